"""The linear kernel, which makes KRR linear regression, and the delta kernel, which makes it tabular."""

from dataclasses import dataclass

from rewardfree.arrays import Array, namespace, non_negative
from rewardfree.kernels.algebra import Kernel, set_fields
from rewardfree.kernels.stationary import Lengthscale, as_lengthscale, check_lengthscale, scaled_columns
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


@registered("kernel", "delta")
@dataclass(frozen=True)
class Delta(Kernel):
    """k(x, y) = 1 if x = y, else 0: points share nothing, the tabular case."""

    @property
    def mirrored(self) -> bool:
        return True

    def _between(self, x: Array, y: Array) -> Array:
        xp = namespace(x, y)
        equal = x[:, 0][:, None] == y[:, 0][None, :]
        for axis in range(1, x.shape[1]):
            equal = equal & (x[:, axis][:, None] == y[:, axis][None, :])
        return xp.astype(equal, xp.result_type(x, y))

    def _at(self, x: Array) -> Array:
        return namespace(x).ones_like(x[:, 0])
