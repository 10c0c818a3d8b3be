"""Stationary kernels: squared exponential and Matern."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from rewardfree.arrays import Array, namespace, positive
from rewardfree.kernels.algebra import Kernel, on_cpu, set_fields
from rewardfree.kernels.matern import CLOSED_FORMS, closed_form, matern_correlation
from rewardfree.registry import registered


class Stationary(Kernel):
    """A function of the scaled distance r(x, y) = |(x - y)/lengthscale|, 1 at r = 0."""

    lengthscale: Lengthscale

    @property
    def mirrored(self) -> bool:
        return True

    @abstractmethod
    def _correlation(self, square: Array) -> Array:
        """The kernel as a function of r^2."""

    def _check(self, points: Array, name: str) -> None:
        check_lengthscale(self.lengthscale, points, name)

    def _between(self, x: Array, y: Array) -> Array:
        # By differences: |x|^2 + |y|^2 - 2 x.y would lose half of the digits of r for near points.
        square = None
        for u, v in scaled_columns(x, y, self.lengthscale):
            difference = u[:, None] - v[None, :]
            difference *= difference
            square = difference if square is None else square + difference
        return self._correlation(square)

    def _at(self, x: Array) -> Array:
        return namespace(x).ones_like(x[:, 0])


@registered("kernel", "se")
@dataclass(frozen=True)
class SquaredExponential(Stationary):
    """k(x, y) = exp(-r^2/2), r = |(x - y)/lengthscale|."""

    lengthscale: Lengthscale = 1.0

    def __post_init__(self) -> None:
        set_fields(self, lengthscale=as_lengthscale(self.lengthscale))

    def _correlation(self, square: Array) -> Array:
        return closed_form(math.inf, square)


@registered("kernel", "matern")
@dataclass(frozen=True)
class Matern(Stationary):
    """k(x, y) = 2^(1-nu)/Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) r, r = |(x - y)/lengthscale|.

    Closed forms for nu = 1/2, 3/2, 5/2; nu = inf is the squared exponential. Any other nu > 0 needs Bessel
    functions, in float64 on the CPU.
    """

    nu: float
    lengthscale: Lengthscale = 1.0

    def __post_init__(self) -> None:
        limit = isinstance(self.nu, float) and self.nu == math.inf
        nu = math.inf if limit else positive(self.nu, "nu")
        set_fields(self, nu=nu, lengthscale=as_lengthscale(self.lengthscale))

    @property
    def cpu_only(self) -> bool:
        return self.nu not in CLOSED_FORMS

    def _correlation(self, square: Array) -> Array:
        if self.cpu_only:
            return on_cpu(lambda r: matern_correlation(self.nu, r), namespace(square).sqrt(square))
        return closed_form(self.nu, square)


#: One length for all coordinates, or d lengths, one for each coordinate.
Lengthscale: TypeAlias = float | tuple[float, ...]


def scaled_columns(x: Array, y: Array, lengthscale: Lengthscale) -> Iterator[tuple[Array, Array]]:
    """Each coordinate of x (n,d) and y (m,d), divided by its lengthscale: d pairs (n,), (m,)."""
    for axis in range(x.shape[1]):
        length = lengthscale[axis] if isinstance(lengthscale, tuple) else lengthscale
        yield x[:, axis] / length, y[:, axis] / length


def as_lengthscale(value: Any) -> Lengthscale:
    """`value` as a positive float, or as a tuple of positive floats."""
    try:
        entries = tuple(value)
    except TypeError:
        return positive(value, "lengthscale")
    lengths = tuple(positive(entry, "lengthscale") for entry in entries)
    if not lengths:
        raise ValueError("lengthscale must hold one number per dimension, got none")
    return lengths


def check_lengthscale(lengthscale: Lengthscale, points: Array, name: str) -> None:
    """Refuse points of another dimension, or too large for the lengthscale."""
    if isinstance(lengthscale, tuple) and len(lengthscale) != points.shape[1]:
        raise ValueError(
            f"lengthscale has {len(lengthscale)} entries, the points have {points.shape[1]} coordinates"
        )
    shortest = min(lengthscale) if isinstance(lengthscale, tuple) else lengthscale
    check_size(points, name, power=2, unit=shortest)


def check_size(points: Array, name: str, power: int, unit: float, offset: float = 0.0) -> None:
    """Refuse points for which (coordinate/unit)^power, or that of `offset`, comes near to overflow."""
    xp = namespace(points)
    limit = 1e-3 * float(xp.finfo(points.dtype).max) ** (1.0 / power) * unit
    largest = max(float(xp.max(xp.abs(points))), offset)
    if largest > limit:
        raise ValueError(
            f"{name} must stay below {limit:.3g} in {points.dtype} here, got {largest:.3g}: rescale"
        )
