"""Kernels as frozen values: `k(x, y)` is the (n,m) matrix of k(x_i, y_j), `k.diag(x)` the (n,) k(x_i, x_i).

Letters: x (n,d), y (m,d). Kernels have unit variance unless scaled (`Linear` is what it is); they add,
multiply and scale with `+` and `*`. Anything else that offers `k(x, y)` and `k.diag(x)`, such as a
scikit-learn kernel, is accepted wherever a kernel is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, as_points, count, namespace, non_negative, positive, to_numpy
from rewardfree.special import matern_correlation
from rewardfree.tables import tabled


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


class _Stationary(Kernel):
    """A function of the scaled distance r(x, y) = |(x - y)/lengthscale|, 1 at r = 0."""

    lengthscale: float | tuple[float, ...]

    @property
    def mirrored(self) -> bool:
        return True

    @abstractmethod
    def _correlation(self, square: Array) -> Array:
        """The kernel as a function of r^2."""

    def _check(self, points: Array, name: str) -> None:
        _check_lengthscale(self.lengthscale, points, name)

    def _between(self, x: Array, y: Array) -> Array:
        # Differences first: |x|^2 + |y|^2 - 2 x.y loses half the digits of r for near points.
        square = None
        for u, v in _scaled_columns(x, y, self.lengthscale):
            difference = u[:, None] - v[None, :]
            difference *= difference
            square = difference if square is None else square + difference
        return self._correlation(square)

    def _at(self, x: Array) -> Array:
        return namespace(x).ones_like(x[:, 0])


@tabled
@dataclass(frozen=True)
class SquaredExponential(_Stationary):
    """k(x, y) = exp(-r^2/2), r = |(x - y)/lengthscale|."""

    lengthscale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        _set(self, lengthscale=_lengthscale(self.lengthscale))

    def _correlation(self, square: Array) -> Array:
        return namespace(square).exp(-0.5 * square)


@tabled
@dataclass(frozen=True)
class Matern(_Stationary):
    """k(x, y) = 2^(1-nu)/Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) r, r = |(x - y)/lengthscale|.

    Closed forms for nu = 1/2, 3/2, 5/2; nu = inf is the squared exponential. Any other nu > 0 goes
    through Bessel functions, in float64 on the CPU.
    """

    nu: float
    lengthscale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        limit = isinstance(self.nu, float) and self.nu == math.inf
        nu = math.inf if limit else positive(self.nu, "nu")
        _set(self, nu=nu, lengthscale=_lengthscale(self.lengthscale))

    @property
    def cpu_only(self) -> bool:
        return self.nu not in (0.5, 1.5, 2.5, math.inf)

    def _correlation(self, square: Array) -> Array:
        xp = namespace(square)
        if self.nu == math.inf:
            return xp.exp(-0.5 * square)
        if self.cpu_only:
            return _on_cpu(lambda r: matern_correlation(self.nu, r), xp.sqrt(square))
        t = xp.sqrt((2.0 * self.nu) * square)
        values = xp.exp(-t)
        if self.nu == 1.5:
            values *= 1.0 + t
        elif self.nu == 2.5:
            values *= 1.0 + t + t * t / 3.0
        return values


@tabled
@dataclass(frozen=True)
class NeuralTangent(Kernel):
    """The tangent kernel of a ReLU network of `depth` hidden layers and infinite width, made k(x, x) = 1.

    With q = sqrt(S(x,x) S(y,y)), u = S(x,y)/q, S_0 = T_0 = x.y + bias: S_l = q k1(u) + bias,
    T_l = S_l + T_{l-1} k0(u); k = T(x,y)/sqrt(T(x,x) T(y,y)). Inputs are embedded as (x, 1), or scaling a
    point would not move it; `bias` is the variance of the biases.
    """

    depth: int
    bias: float = 0.0

    def __post_init__(self) -> None:
        _set(self, depth=count(self.depth, "depth"), bias=non_negative(self.bias, "bias"))

    def _check(self, points: Array, name: str) -> None:
        _check_size(points, name, power=4, unit=1.0, beside=math.sqrt(self.bias))

    def _between(self, x: Array, y: Array) -> Array:
        """The recursion in v = 1 - u, so that k(x, x) is 1 to the last digit: arccos(1 - v) is not."""
        xp, bias = namespace(x, y), self.bias
        a, b = _embedded_norm(x) + bias, _embedded_norm(y) + bias  # S(x,x), S(y,y)
        v = self._first_gap(x, y, a, b)
        tangent = xp.sqrt(a[:, None] * b[None, :]) * (1.0 - v)
        for _ in range(self.depth):
            q = xp.sqrt(a[:, None] * b[None, :])
            angle = 2.0 * xp.asin(xp.sqrt(xp.clip(0.5 * v, 0.0, 1.0)))
            k0 = 1.0 - angle / math.pi
            gap = v - (xp.sin(angle) - angle * (1.0 - v)) / math.pi  # 1 - k1(u)
            new_a, new_b = a + bias, b + bias
            new_q = xp.sqrt(new_a[:, None] * new_b[None, :])
            # new_q - q - bias, written so that it vanishes exactly when a = b.
            roots = xp.sqrt(a)[:, None] - xp.sqrt(b)[None, :]
            v = (q * gap + bias * roots * roots / (new_q + q + bias)) / new_q
            a, b = new_a, new_b
            tangent = q * (1.0 - gap) + bias + tangent * k0
        return tangent / xp.sqrt(self._tangent_norm(x)[:, None] * self._tangent_norm(y)[None, :])

    def _first_gap(self, x: Array, y: Array, a: Array, b: Array) -> Array:
        """1 - u for the input layer: half the squared distance of the embedded points on the sphere."""
        xp = namespace(x, y)
        root_a, root_b = xp.sqrt(a), xp.sqrt(b)
        constant = 1.0 / root_a[:, None] - 1.0 / root_b[None, :]
        square = (1.0 + self.bias) * constant * constant
        for axis in range(x.shape[1]):
            difference = (x[:, axis] / root_a)[:, None] - (y[:, axis] / root_b)[None, :]
            square = square + difference * difference
        return 0.5 * square

    def _tangent_norm(self, x: Array) -> Array:
        """T_L(x,x), by the steps of the recursion: a point and its copy must divide to exactly 1."""
        a = tangent = _embedded_norm(x) + self.bias
        for _ in range(self.depth):
            a = a + self.bias
            tangent = a + tangent
        return tangent

    def _at(self, x: Array) -> Array:
        return namespace(x).ones_like(x[:, 0])


@tabled
@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, y) = (x/lengthscale).(y/lengthscale) + bias: kernel ridge regression becomes linear regression."""

    lengthscale: float | tuple[float, ...] = 1.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        _set(self, lengthscale=_lengthscale(self.lengthscale), bias=non_negative(self.bias, "bias"))

    def _check(self, points: Array, name: str) -> None:
        _check_lengthscale(self.lengthscale, points, name)

    def _between(self, x: Array, y: Array) -> Array:
        return self.bias + sum(u[:, None] * v[None, :] for u, v in _scaled_columns(x, y, self.lengthscale))

    def _at(self, x: Array) -> Array:
        return self.bias + sum(u * u for u, _ in _scaled_columns(x, x, self.lengthscale))


@tabled
@dataclass(frozen=True)
class Delta(Kernel):
    """k(x, y) = 1 if x = y, else 0: every point for itself, the tabular case."""

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


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        _set(self, left=as_kernel(self.left), right=as_kernel(self.right))

    @property
    def cpu_only(self) -> bool:
        return self.left.cpu_only or self.right.cpu_only

    @property
    def mirrored(self) -> bool:
        return self.left.mirrored and self.right.mirrored

    def _check(self, points: Array, name: str) -> None:
        self.left._check(points, name)
        self.right._check(points, name)


@tabled
@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, y) = left(x, y) + right(x, y)."""

    def _between(self, x: Array, y: Array) -> Array:
        return self.left._between(x, y) + self.right._between(x, y)

    def _at(self, x: Array) -> Array:
        return self.left._at(x) + self.right._at(x)


@tabled
@dataclass(frozen=True)
class Product(_Pair):
    """k(x, y) = left(x, y) right(x, y)."""

    def _between(self, x: Array, y: Array) -> Array:
        return self.left._between(x, y) * self.right._between(x, y)

    def _at(self, x: Array) -> Array:
        return self.left._at(x) * self.right._at(x)


@tabled
@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, y) = variance * kernel(x, y)."""

    kernel: Kernel
    variance: float

    def __post_init__(self) -> None:
        _set(self, kernel=as_kernel(self.kernel), variance=positive(self.variance, "variance"))

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
        return _on_cpu(self._matrix, x, y)

    def _at(self, x: Array) -> Array:
        return _on_cpu(self._diagonal, x)

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


def _on_cpu(function: Any, *arrays: Array) -> Array:
    """function(*arrays) in NumPy float64, brought back to the arrays' namespace, device and dtype."""
    xp = namespace(*arrays)
    values = function(*(to_numpy(array).astype(np.float64) for array in arrays))
    device = array_api_compat.device(arrays[0])
    return xp.asarray(values, dtype=xp.result_type(*arrays), device=device)


@lru_cache(maxsize=8)
def _smallest_normal(xp: Any, dtype: Any) -> float:
    return float(xp.finfo(dtype).smallest_normal)


def _embedded_norm(x: Array) -> Array:
    """|(x, 1)|^2."""
    return 1.0 + namespace(x).sum(x * x, axis=1)


def _scaled_columns(
    x: Array, y: Array, lengthscale: float | tuple[float, ...]
) -> Iterator[tuple[Array, Array]]:
    """The coordinates of both point sets, one axis at a time, over the lengthscale of that axis."""
    for axis in range(x.shape[1]):
        length = lengthscale[axis] if isinstance(lengthscale, tuple) else lengthscale
        yield x[:, axis] / length, y[:, axis] / length


def _lengthscale(value: Any) -> float | tuple[float, ...]:
    """A positive float, or a tuple of them: one per dimension."""
    try:
        given = tuple(value)
    except TypeError:
        return positive(value, "lengthscale")
    lengths = tuple(positive(length, "lengthscale") for length in given)
    if not lengths:
        raise ValueError("lengthscale must hold one number per dimension, got none")
    return lengths


def _check_lengthscale(lengthscale: float | tuple[float, ...], points: Array, name: str) -> None:
    if isinstance(lengthscale, tuple) and len(lengthscale) != points.shape[1]:
        raise ValueError(
            f"lengthscale has {len(lengthscale)} entries, the points have {points.shape[1]} coordinates"
        )
    shortest = min(lengthscale) if isinstance(lengthscale, tuple) else lengthscale
    _check_size(points, name, power=2, unit=shortest)


def _check_size(points: Array, name: str, power: int, unit: float, beside: float = 0.0) -> None:
    """Refuse coordinates that overflow when taken over `unit` and to that power: here, not in every loop."""
    xp = namespace(points)
    limit = 1e-3 * float(xp.finfo(points.dtype).max) ** (1.0 / power) * unit
    largest = max(float(xp.max(xp.abs(points))), beside)
    if largest > limit:
        raise ValueError(
            f"{name} must stay below {limit:.3g} in {points.dtype} here, got {largest:.3g}: rescale"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _set(frozen: Kernel, /, **fields: Any) -> None:
    """Store checked values on a frozen dataclass while it is being made."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
