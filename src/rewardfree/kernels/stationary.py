"""Stationary kernels: squared exponential and Matern, their closed forms and the slopes of these."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import Array, Floats, namespace, positive
from rewardfree.kernels.algebra import Kernel, on_cpu, set_fields
from rewardfree.kernels.matern import matern_correlation
from rewardfree.registry import registered

#: Smoothness with a closed form; infinity is the squared exponential.
CLOSED_FORMS = (0.5, 1.5, 2.5, math.inf)


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


def closed_form(nu: float, square: Array) -> Array:
    """M as a function of r^2: e^-t P(t), t = sqrt(2 nu) r, P = 1, 1 + t, 1 + t + t^2/3; or exp(-r^2/2)."""
    xp = namespace(square)
    if nu == math.inf:
        return xp.exp(-0.5 * square)
    t = xp.sqrt((2.0 * nu) * square)
    values = xp.exp(-t)
    if nu == 1.5:
        values *= 1.0 + t
    elif nu == 2.5:
        values *= 1.0 + t + t * t / 3.0
    return values


def closed_form_in_place(nu: float, t: Floats) -> Floats:
    """M by t = 2 nu r^2 (r^2/2 for the squared exponential), in the memory of `t`: for hot loops."""
    if nu == math.inf:
        np.negative(t, out=t)
        return np.exp(t, out=t)
    np.sqrt(t, out=t)
    decay = np.exp(-t)
    if nu == 2.5:  # Horner's rule
        polynomial = t * (1.0 / 3.0)
        polynomial += 1.0
        polynomial *= t
        t = polynomial
    t += 1.0
    t *= decay
    return t


def slope(nu: float, square: Floats) -> Floats:
    """dM/d(r^2) where M is smooth at r = 0: -3/2 e^-t, -5/6 (1 + t) e^-t, or -1/2 exp(-r^2/2)."""
    if nu == math.inf:
        return -0.5 * np.exp(-0.5 * square)
    t = np.sqrt((2.0 * nu) * square)
    decay = np.exp(-t)
    return -1.5 * decay if nu == 1.5 else -(5.0 / 6.0) * (1.0 + t) * decay


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
