"""The change of the state as the target of a regression: in units of its spread, and without its walls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rewardfree.model import Model
from rewardfree.worlds.spaces import Box, Spaces

#: A next state is on a bound if it is this close to it, as a share of the variable's range.
ON_BOUND = 1e-6
#: Walls are looked behind if at least this number of transitions, and this share of all, met none.
LEAST_FREE, LEAST_SHARE = 20, 0.1
#: The most of these transitions that are used.
MOST_FREE = 1000
#: A wall stops its variable alone if at most this share of the variance of all others is missed there, or at
#: most this many times what is missed of them elsewhere: what is noise, or hard to predict, is so everywhere.
ASIDE, AS_ELSEWHERE = 0.1, 4.0
#: Changes that differ by less than this share of the states' size differ by rounding: those of a clock.
ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class StateChange:
    """The change of real variables, or the features of the next label: c targets of n transitions."""

    targets: Any  # (n,c), in the units below
    middle: Any  # (c,) their mean
    unit: Any  # (c,) their standard deviation; 1 where they do not vary
    cut: Any  # (n,c) int: 1 where a variable was stopped by its upper bound, -1 by its lower one, or 0

    @classmethod
    def of(cls, spaces: Spaces, state: Any, next_state: Any) -> Self:
        """Of transitions from states (n,d), labels (n,)."""
        if not isinstance(spaces.state, Box):
            return cls._in_units(spaces.state.features(next_state), np.zeros((len(state), 1), np.int64))
        change = spaces.state.change(state, next_state)
        size = np.where(spaces.state.angular, np.pi, np.abs(np.concatenate([state, next_state])).max(axis=0))
        alike = change.std(axis=0) <= ROUNDING * size
        if alike.any():
            change = np.where(alike, change[0], change)
        return cls._in_units(change, _on_bounds(spaces.state, next_state))

    @classmethod
    def _in_units(cls, change: Any, cut: Any) -> Self:
        free = ~cut.any(axis=1)
        enough = free.sum() >= max(LEAST_FREE, LEAST_SHARE * len(change))
        if not enough or (np.ptp(change[free], axis=0) == 0.0)[np.ptp(change, axis=0) > 0.0].any():
            cut, free = np.zeros_like(cut), np.ones(len(change), bool)
        spread, middle = change[free].std(axis=0), change[free].mean(axis=0)
        unit = np.where(spread > 0.0, spread, 1.0)
        return cls((change - middle) / unit, middle, unit, cut)

    @property
    def differs(self) -> Any:
        """Which targets (c,) are not all the same, bool: of others there is nothing to learn."""
        return np.ptp(self.targets, axis=0) > 0.0

    @property
    def free(self) -> Any:
        """The rows (k,) that met no wall."""
        return np.flatnonzero(~self.cut.any(axis=1))

    @property
    def meets_walls(self) -> bool:
        """Whether a bound has cut off something."""
        return bool(self.cut.any())

    def behind_walls(self, model: Model, points: Any) -> Self:
        """The changes that there would be without bounds, by the regression on points (n,f) that met none.

        At a wall a change is a lower limit of how far the variable would have gone (Tobin 1958), and what is
        predicted is cut at the bounds again. So a wall, which no smooth kernel can follow, is none for the
        regression. Nothing is taken to go farther than what was seen elsewhere. A wall that stops other
        variables too, as a speed that ends there, is left as it is.
        """
        if not self.meets_walls:
            return self
        free, (rows, columns) = self.free, np.nonzero(self.cut)
        known = free[np.unique(np.linspace(0, len(free) - 1, min(len(free), MOST_FREE)).astype(np.int64))]
        design = replace(model, inducing=None).design()  # exact: these are few
        design.extend(points[known])
        met = np.unique(rows)
        expected = np.zeros_like(self.targets)
        expected[met] = design.mean(self.targets[known], points[met])
        aside = self._aside((self.targets - expected) ** 2)
        plain = aside <= ASIDE
        if not plain.all():
            elsewhere = (design.missed(self.targets[known]) ** 2).mean(axis=0)
            plain |= aside <= AS_ELSEWHERE * self._aside(np.broadcast_to(elsewhere, expected.shape))
        if not plain.all():
            change = self.targets * self.unit + self.middle
            return self._in_units(change, np.where(plain, self.cut, 0)).behind_walls(model, points)
        expected = np.clip(expected, self.targets[free].min(axis=0), self.targets[free].max(axis=0))
        seen, further = self.targets[rows, columns], expected[rows, columns]
        upper = self.cut[rows, columns] > 0
        targets = self.targets.copy()
        targets[rows, columns] = np.where(upper, np.maximum(seen, further), np.minimum(seen, further))
        return replace(self, targets=targets)

    def _aside(self, missed: Any) -> Any:
        """For each variable, the mean of (n,c) over all others that met no wall where it met one: (c,)."""
        at_wall = self.cut != 0
        others = np.maximum(1, at_wall.T.astype(np.int64) @ (~at_wall).sum(axis=1))
        return (at_wall.T * np.where(at_wall, 0.0, missed).sum(axis=1)).sum(axis=1) / others


def _on_bounds(space: Box, next_state: Any) -> Any:
    """1 where next states (n,d) are on an upper bound, -1 on a lower one, else 0; an angle has none.

    Bounds may be a user's guess: one that a state went beyond is no wall.
    """
    low, high = np.array(space.low), np.array(space.high)
    walled = np.isfinite(high - low) & ~space.angular
    close = np.where(walled, ON_BOUND * (high - low), 0.0)
    upper = (next_state >= high - close) & (next_state.max(axis=0) <= high + close)
    lower = (next_state <= low + close) & (next_state.min(axis=0) >= low - close)
    return np.where(walled, upper.astype(np.int64) - lower.astype(np.int64), 0)
