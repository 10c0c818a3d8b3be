"""The coordinates of finitely many states and actions, which a kernel sees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.arrays import Array, as_array, as_points, to_numpy


@dataclass(frozen=True, eq=False)
class Grid:
    """All z = (s,a): state by state, and within a state action by action. z = s * |A| + a."""

    states: Any  # (s,d)
    actions: Any  # (a,e)

    @classmethod
    def of(cls, states: Any, actions: Any, sizes: tuple[int, int]) -> Grid:
        """A grid of what a caller gives: coordinates (s,d), (s,), or None for linspace(0, 1, s)."""
        return cls(_coordinates(states, sizes[0], "states"), _coordinates(actions, sizes[1], "actions"))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.states), len(self.actions)

    @cached_property
    def points(self) -> Any:
        """The coordinates of every z, (s*a, d+e)."""
        s, a = self.shape
        points = np.concatenate([np.repeat(self.states, a, axis=0), np.tile(self.actions, (s, 1))], axis=1)
        points.flags.writeable = False
        return points

    def same_as(self, other: Grid) -> bool:
        return np.array_equal(self.states, other.states) and np.array_equal(self.actions, other.actions)


def _coordinates(values: Array | None, size: int, name: str) -> Any:
    if values is None:
        values = np.linspace(0.0, 1.0, size)
    values = as_array(values, name)
    points = to_numpy(as_points(values[:, None] if values.ndim == 1 else values, name)).astype(np.float64)
    if len(points) != size:
        raise ValueError(f"{name} must have one row for each of {size}, got {len(points)}")
    points.flags.writeable = False
    return points
