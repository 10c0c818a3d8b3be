"""What exploration leaves behind: every environment step, kept for the regressions or passed by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.budget import Budget
from rewardfree.model import Model
from rewardfree.worlds.grid import Grid


@dataclass(frozen=True, eq=False)
class Transitions:
    """The environment steps of one run in the order in which they were made, t of them; no reward.

    `kept` marks those that the strategy put into the regression of their step (or into the pooled one).
    """

    grid: Grid
    horizon: int
    model: Model  # what the run explored with
    strategy: Any
    seed: int
    episode: Any  # (t,) int, from 0; -1 for queries of a generative model, which belong to none
    h: Any  # (t,) int, from 0
    state: Any  # (t,) int
    action: Any  # (t,) int
    next_state: Any  # (t,) int
    terminated: Any  # (t,) bool
    kept: Any  # (t,) bool

    def __len__(self) -> int:
        return len(self.h)

    def __repr__(self) -> str:
        return (
            f"Transitions({len(self)} steps in {self.episodes} episodes, {int(self.kept.sum())} kept, "
            f"by {self.strategy!r}, seed {self.seed})"
        )

    @property
    def steps(self) -> int:
        """How many environment steps the run took."""
        return len(self)

    @property
    def episodes(self) -> int:
        """How many episodes the run began."""
        return int(self.episode.max(initial=-1)) + 1

    @property
    def samples(self) -> Any:
        """How many samples the regressions have: for each step (h,), or (1,) if pooled."""
        return np.array([len(rows) for rows in self.designs()])

    def designs(self, pooled: bool | None = None) -> list[Any]:
        """The rows that each regression has, in order: an index array per step h, or one if pooled."""
        kept = np.flatnonzero(self.kept)
        if self.model.pooled if pooled is None else pooled:
            return [kept]
        return [kept[self.h[kept] == h] for h in range(self.horizon)]

    def points(self, rows: Any) -> Any:
        """z = s * |A| + a of some of the steps."""
        return self.state[rows] * self.grid.shape[1] + self.action[rows]

    def first(
        self,
        samples_per_step: int | None = None,
        *,
        transitions: int | None = None,
        episodes: int | None = None,
        steps: int | None = None,
    ) -> Transitions:
        """That run stopped earlier, exactly: at one of the budgets of `explore`."""
        budget = Budget.of(
            self.model,
            samples_per_step=samples_per_step,
            transitions=transitions,
            episodes=episodes,
            steps=steps,
        )
        return self.cut(budget)

    def cut(self, budget: Budget) -> Transitions:
        """`first`, for a budget that is checked already."""
        end = self._end(budget)
        columns = ("episode", "h", "state", "action", "next_state", "terminated", "kept")
        return replace(self, **{name: getattr(self, name)[:end] for name in columns})

    def _whole_episodes(self) -> int:
        """How many episodes were played to their end; a budget of steps may have cut the last one."""
        if not len(self):
            return 0
        length = self.strategy.round(self.horizon).length(int(self.episode[-1]))
        return self.episodes - int((self.episode == self.episode[-1]).sum() < length)

    def _end(self, budget: Budget) -> int:
        """How many environment steps that budget allows; data that end before it are an error."""
        size = budget.size
        if budget.unit == "steps":
            have, end = len(self), size
        elif budget.unit == "episodes":
            if (self.episode < 0).any():
                raise ValueError("queries of a generative model belong to no episode: use steps=")
            have, end = self._whole_episodes(), int(np.searchsorted(self.episode, size))
        else:  # of kept samples: in each design
            rows = self.designs()
            have = min(len(design) for design in rows)
            end = max(int(design[size - 1]) + 1 for design in rows) if have >= size else 0
        if have < size:
            raise ValueError(f"{budget.unit} must be at most the {have} of these data, got {size}")
        return end
