"""How [PV] is estimated: which kernel and ridge, one regression per step or one for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewardfree.arrays import Array, as_array, check_finite, count, namespace, positive
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior import Design, Lattice


@dataclass(frozen=True)
class Model:
    """The estimate of [PV](z): kernel ridge regression of V(s') on z = (s,a).

    `ridge` is the paper's tau^2, the number on the diagonal. `pooled` shares one regression between all
    steps, for dynamics that do not change with h. `centred` regresses V - c and adds c again, which is exact
    because P(.|z) sums to 1.
    """

    kernel: Kernel
    ridge: float | None = None
    pooled: bool = False
    centred: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        if self.ridge is None:
            raise ValueError("ridge must be given with a fixed kernel, got None: for example ridge=0.5")
        object.__setattr__(self, "ridge", positive(self.ridge, "ridge"))
        for name in ("pooled", "centred"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")

    def regressions(self, horizon: int) -> int:
        """How many designs a run needs: one for each step, or one for all if pooled."""
        horizon = count(horizon, "horizon")
        return 1 if self.pooled else horizon

    def design(self, **options: Any) -> Design:
        """An empty posterior for points anywhere; options as for `Design`."""
        return Design(self.kernel, ridge=self._ridge, **options)

    def lattice(self, candidates: Array, **options: Any) -> Lattice:
        """An empty posterior on a finite set; options as for `Lattice` (designs, capacity, device, dtype)."""
        return Lattice(self.kernel, candidates, ridge=self._ridge, **options)

    def centre(self, values: Array) -> Array:
        """The c of [PV] = c + [P(V - c)] for values (...,s): their midrange if centred, else 0; (...)."""
        values = as_array(values, "values")
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ValueError(f"values must hold V at one state or more, got shape {tuple(values.shape)}")
        check_finite(values, "values")
        centre = midrange(values, axis=-1)
        return centre if self.centred else namespace(values).zeros_like(centre)

    @property
    def _ridge(self) -> float:
        assert self.ridge is not None  # __post_init__ refuses None
        return self.ridge


def midrange(values: Array, axis: int) -> Array:
    """(min + max)/2 along an axis."""
    xp = namespace(values)
    return 0.5 * (xp.min(values, axis=axis) + xp.max(values, axis=axis))
