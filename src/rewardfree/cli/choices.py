"""Words typed on the command line, turned into objects once."""

from __future__ import annotations

from typing import Any

import rewardfree as rf
from rewardfree.arrays import count, even_points

#: A grid larger than this was almost surely not meant: its posterior alone takes gigabytes.
MOST_POINTS = 1_000_000


def kernel_named(name: str, *, nu: float, lengthscale: float, depth: int) -> rf.kernels.Kernel:
    """The kernel of that name, with those of the parameters that it has."""
    kernels: dict[str, Any] = {
        "se": lambda: rf.SquaredExponential(lengthscale),
        "matern": lambda: rf.Matern(nu, lengthscale),
        "ntk": lambda: rf.NeuralTangent(depth),
        "linear": lambda: rf.Linear(lengthscale, bias=1.0),
        "delta": rf.kernels.Delta,
    }
    if name not in kernels:
        raise ValueError(f"kernel must be one of {', '.join(kernels)}, got {name!r}")
    kernel: rf.kernels.Kernel = kernels[name]()
    return kernel


def grid(dim: int, side: int) -> Any:
    """All points of a regular grid on [0,1]^dim, (side**dim, dim), the last coordinate fastest."""
    dim, side = count(dim, "dim"), count(side, "side")
    if dim > 20 or side**dim > MOST_POINTS:
        raise ValueError(
            f"a grid of {side}^{dim} points is too large: at most 20 dimensions and {MOST_POINTS:,} points"
        )
    return even_points(side, dim)
