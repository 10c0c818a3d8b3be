"""Lengthscales, and the check that points suit them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from rewardfree.arrays import Array, namespace, positive

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
