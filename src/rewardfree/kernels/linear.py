"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass

from rewardfree.arrays import Array, non_negative
from rewardfree.kernels.algebra import Kernel, set_fields
from rewardfree.kernels.lengthscales import Lengthscale, as_lengthscale, check_lengthscale, scaled_columns
from rewardfree.registry import registered


@registered("kernel", "linear")
@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, y) = (x/lengthscale).(y/lengthscale) + bias: kernel ridge regression becomes linear regression."""

    lengthscale: Lengthscale = 1.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        set_fields(self, lengthscale=as_lengthscale(self.lengthscale), bias=non_negative(self.bias, "bias"))

    def _check(self, points: Array, name: str) -> None:
        check_lengthscale(self.lengthscale, points, name)

    def _between(self, x: Array, y: Array) -> Array:
        return self.bias + sum(u[:, None] * v[None, :] for u, v in scaled_columns(x, y, self.lengthscale))

    def _at(self, x: Array) -> Array:
        return self.bias + sum(u * u for u, _ in scaled_columns(x, x, self.lengthscale))
