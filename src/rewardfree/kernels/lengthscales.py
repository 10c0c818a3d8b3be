"""Lengthscales, one for all coordinates or one for each, and the points that they allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewardfree.arrays import Array, namespace, positive


def scaled_columns(
    x: Array, y: Array, lengthscale: float | tuple[float, ...]
) -> Iterator[tuple[Array, Array]]:
    """The coordinates of both point sets, one axis at a time, over the lengthscale of that axis."""
    for axis in range(x.shape[1]):
        length = lengthscale[axis] if isinstance(lengthscale, tuple) else lengthscale
        yield x[:, axis] / length, y[:, axis] / length


def as_lengthscale(value: Any) -> float | tuple[float, ...]:
    """A positive float, or a tuple of them: one per dimension."""
    try:
        given = tuple(value)
    except TypeError:
        return positive(value, "lengthscale")
    lengths = tuple(positive(length, "lengthscale") for length in given)
    if not lengths:
        raise ValueError("lengthscale must hold one number per dimension, got none")
    return lengths


def check_lengthscale(lengthscale: float | tuple[float, ...], points: Array, name: str) -> None:
    if isinstance(lengthscale, tuple) and len(lengthscale) != points.shape[1]:
        raise ValueError(
            f"lengthscale has {len(lengthscale)} entries, the points have {points.shape[1]} coordinates"
        )
    shortest = min(lengthscale) if isinstance(lengthscale, tuple) else lengthscale
    check_size(points, name, power=2, unit=shortest)


def check_size(points: Array, name: str, power: int, unit: float, beside: float = 0.0) -> None:
    """Refuse coordinates that overflow when taken over `unit` and to that power: here, not in every loop."""
    xp = namespace(points)
    limit = 1e-3 * float(xp.finfo(points.dtype).max) ** (1.0 / power) * unit
    largest = max(float(xp.max(xp.abs(points))), beside)
    if largest > limit:
        raise ValueError(
            f"{name} must stay below {limit:.3g} in {points.dtype} here, got {largest:.3g}: rescale"
        )
