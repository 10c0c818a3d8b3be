"""The contract of a kernel, and kernels made of others: sums, products, multiples, and foreign kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, Floats, as_points, namespace, positive, to_numpy
from rewardfree.registry import registered


class Kernel(ABC):
    """The contract of a kernel. A subclass writes two formulas, and inherits the checks and the algebra."""

    @abstractmethod
    def _between(self, x: Array, y: Array) -> Array:
        """The (n,m) matrix of k(x_i, y_j), for checked points."""

    @abstractmethod
    def _at(self, x: Array) -> Array:
        """The (n,) values k(x_i, x_i), for checked points."""

    def _check(self, points: Array, name: str) -> None:
        """Refuse points whose dimension or size this kernel cannot take."""
        return

    # NumPy must leave np.float64(2) * kernel to __rmul__, and not take the kernel for an array of objects.
    __array_ufunc__ = None

    @property
    def cpu_only(self) -> bool:
        """Whether values are always computed on the CPU, and moved to the device of the arrays."""
        return False

    @property
    def mirrored(self) -> bool:
        """Whether k(x, y) depends on |x_i - y_i| only, for each coordinate i; False if unknown."""
        return False

    def __call__(self, x: Array, y: Array | None = None) -> Array:
        """The (n,m) matrix of k(x_i, y_j); `y` defaults to `x`."""
        x = self.checked(x, "x")
        return self.between(x, x if y is None else self.checked(y, "y", like=x))

    def diag(self, x: Array) -> Array:
        """The (n,) values k(x_i, x_i)."""
        return self._at(self.checked(x, "x"))

    def checked(self, points: Array, name: str, like: Array | None = None) -> Array:
        """`points` as finite (n,d) that this kernel takes, of the dimension and array type of `like`."""
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
        """`self(x, y)` without the checks, for loops on points that were checked before."""
        # Denormal numbers carry no information, and slow down the products that follow.
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
    """`kernel` itself if it is a `Kernel`, else a wrapper of an object with `k(x, y)` and `k.diag(x)`."""
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
    """A kernel from outside (scikit-learn's, a user's) that takes NumPy arrays only: evaluated on the CPU."""

    kernel: Any

    @property
    def cpu_only(self) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(repr(self.kernel))  # scikit-learn's kernels have no hash

    def _check(self, points: Array, name: str) -> None:
        # One point shows a noise term: it is part of diag(x) and not of k(x, x).
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

    def _matrix(self, x: Floats, y: Floats) -> Floats:
        return self._checked_values(self.kernel(x, y), (len(x), len(y)))

    def _diagonal(self, x: Floats) -> Floats:
        return self._checked_values(self.kernel.diag(x), (len(x),))

    def _checked_values(self, values: Any, shape: tuple[int, ...]) -> Floats:
        numbers: Floats = np.asarray(values, dtype=np.float64)
        bad = int(numbers.size - np.isfinite(numbers).sum())
        if numbers.shape != shape or bad:
            raise ValueError(
                f"{self.kernel!r} must give finite values of shape {shape}, "
                f"got {numbers.shape} with {bad} NaN or infinite"
            )
        return numbers


def on_cpu(function: Callable[..., Floats], *arrays: Array) -> Array:
    """function(*arrays) in NumPy float64, moved to the namespace, device and dtype of the arrays."""
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
    """Store checked values in a frozen dataclass, for its __post_init__."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
