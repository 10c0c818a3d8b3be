"""What every kernel offers, and kernels made of others: sums, products, multiples, and foreign ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, as_points, namespace, positive, to_numpy
from rewardfree.registry import registered


class Kernel(ABC):
    """What every kernel offers. A new one writes its two formulas and inherits checks and algebra."""

    @abstractmethod
    def _between(self, x: Array, y: Array) -> Array:
        """The (n,m) matrix of k(x_i, y_j), for points that are checked already."""

    @abstractmethod
    def _at(self, x: Array) -> Array:
        """The (n,) values k(x_i, x_i), for points that are checked already."""

    def _check(self, points: Array, name: str) -> None:
        """Refuse points that this kernel cannot take, because of their dimension or their size."""
        return

    # NumPy must not take a kernel for an array of objects: np.float64(2) * kernel is for __rmul__.
    __array_ufunc__ = None

    @property
    def cpu_only(self) -> bool:
        """Whether values are computed on the CPU and moved, whatever the arrays are."""
        return False

    @property
    def mirrored(self) -> bool:
        """Whether turning the sign of any coordinate of x - y changes nothing; False if unknown."""
        return False

    def __call__(self, x: Array, y: Array | None = None) -> Array:
        """The (n,m) matrix of k(x_i, y_j); `y` defaults to `x`."""
        x = self.checked(x, "x")
        return self.between(x, x if y is None else self.checked(y, "y", like=x))

    def diag(self, x: Array) -> Array:
        """The (n,) values k(x_i, x_i)."""
        return self._at(self.checked(x, "x"))

    def checked(self, points: Array, name: str, like: Array | None = None) -> Array:
        """`points` as finite (n,d) of a dimension this kernel takes, and of `like`'s dimension and kind."""
        points = as_points(points, name, None if like is None else like.shape[1])
        if points.shape[0]:
            self._check(points, name)
        if like is not None:
            try:
                namespace(points, like)
            except TypeError:
                raise ValueError(
                    f"{name} must be the same kind of array as x, got {type(points)} with {type(like)}"
                ) from None
        return points

    def between(self, x: Array, y: Array) -> Array:
        """`self(x, y)` without the checks, for loops whose points were checked once."""
        # Denormal numbers carry no information, and slow the products that follow.
        values = self._between(x, y)
        xp = namespace(values)
        kept = xp.abs(values) >= _smallest_normal(xp, values.dtype)
        return xp.where(kept, values, xp.zeros_like(values))

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        return Scaled(self, other) if _is_number(other) else Product(self, as_kernel(other))

    def __rmul__(self, other: Any) -> Kernel:
        return Scaled(self, other) if _is_number(other) else Product(as_kernel(other), self)


def as_kernel(kernel: Any) -> Kernel:
    """`kernel` itself if it is one of ours, else a wrapper round anything with `k(x, y)` and `k.diag(x)`."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and callable(getattr(kernel, "diag", None)) and not isinstance(kernel, type):
        return Foreign(kernel)
    raise ValueError(
        f"a kernel must offer k(x, y) and k.diag(x), got {kernel!r}: "
        "use rewardfree's kernels, scikit-learn's (to the right of ours in a sum or product), "
        "or an object with these two methods"
    )


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        set_fields(self, left=as_kernel(self.left), right=as_kernel(self.right))

    @property
    def cpu_only(self) -> bool:
        return self.left.cpu_only or self.right.cpu_only

    @property
    def mirrored(self) -> bool:
        return self.left.mirrored and self.right.mirrored

    def _check(self, points: Array, name: str) -> None:
        self.left._check(points, name)
        self.right._check(points, name)


@registered("kernel")
@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, y) = left(x, y) + right(x, y)."""

    def _between(self, x: Array, y: Array) -> Array:
        return self.left._between(x, y) + self.right._between(x, y)

    def _at(self, x: Array) -> Array:
        return self.left._at(x) + self.right._at(x)


@registered("kernel")
@dataclass(frozen=True)
class Product(_Pair):
    """k(x, y) = left(x, y) right(x, y)."""

    def _between(self, x: Array, y: Array) -> Array:
        return self.left._between(x, y) * self.right._between(x, y)

    def _at(self, x: Array) -> Array:
        return self.left._at(x) * self.right._at(x)


@registered("kernel")
@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, y) = variance * kernel(x, y)."""

    kernel: Kernel
    variance: float

    def __post_init__(self) -> None:
        set_fields(self, kernel=as_kernel(self.kernel), variance=positive(self.variance, "variance"))

    @property
    def cpu_only(self) -> bool:
        return self.kernel.cpu_only

    @property
    def mirrored(self) -> bool:
        return self.kernel.mirrored

    def _check(self, points: Array, name: str) -> None:
        self.kernel._check(points, name)

    def _between(self, x: Array, y: Array) -> Array:
        return self.variance * self.kernel._between(x, y)

    def _at(self, x: Array) -> Array:
        return self.variance * self.kernel._at(x)


@dataclass(frozen=True)
class Foreign(Kernel):
    """A kernel that speaks NumPy alone (scikit-learn's, a user's): evaluated on the CPU, then moved."""

    kernel: Any

    @property
    def cpu_only(self) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(repr(self.kernel))  # scikit-learn's kernels have none of their own

    def _check(self, points: Array, name: str) -> None:
        # One point tells a noise term apart: it sits in diag(x) and not in k(x, x).
        first = to_numpy(points[:1, :]).astype(np.float64)
        if not np.isclose(self._diagonal(first)[0], self._matrix(first, first)[0, 0], rtol=1e-9):
            raise ValueError(
                f"{self.kernel!r} has diag(x) different from k(x, x): "
                "leave a white-noise term out of the kernel and pass it as ridge"
            )

    def _between(self, x: Array, y: Array) -> Array:
        return on_cpu(self._matrix, x, y)

    def _at(self, x: Array) -> Array:
        return on_cpu(self._diagonal, x)

    def _matrix(self, x: Any, y: Any) -> Any:
        return self._checked_values(self.kernel(x, y), (len(x), len(y)))

    def _diagonal(self, x: Any) -> Any:
        return self._checked_values(self.kernel.diag(x), (len(x),))

    def _checked_values(self, values: Any, shape: tuple[int, ...]) -> Any:
        values = np.asarray(values, dtype=np.float64)
        bad = int(values.size - np.isfinite(values).sum())
        if values.shape != shape or bad:
            raise ValueError(
                f"{self.kernel!r} must give finite values of shape {shape}, "
                f"got {values.shape} with {bad} NaN or infinite"
            )
        return values


def on_cpu(function: Any, *arrays: Array) -> Array:
    """function(*arrays) in NumPy float64, brought back to the arrays' namespace, device and dtype."""
    xp = namespace(*arrays)
    values = function(*(to_numpy(array).astype(np.float64) for array in arrays))
    device = array_api_compat.device(arrays[0])
    return xp.asarray(values, dtype=xp.result_type(*arrays), device=device)


@lru_cache(maxsize=8)
def _smallest_normal(xp: Any, dtype: Any) -> float:
    return float(xp.finfo(dtype).smallest_normal)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def set_fields(frozen: Kernel, /, **fields: Any) -> None:
    """Store checked values on a frozen dataclass while it is being made."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
