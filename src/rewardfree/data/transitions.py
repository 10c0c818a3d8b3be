"""What exploration of a finite world leaves behind: every environment step, kept or passed by."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from rewardfree.arrays import Flags, Integers
from rewardfree.data.run_data import Explorer, RunData
from rewardfree.data.run_files import read_run, write_run
from rewardfree.files import content_of
from rewardfree.model import Model
from rewardfree.worlds.grid import NAMED_ARRAYS, Grid, stored_grid
from rewardfree.worlds.spaces import Discrete

#: Of files without names, which older versions read too, and of those with them.
FILE_VERSION, NAMED_VERSION = 1, 2


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(RunData):
    """The environment steps of one run in the order in which they were made, t of them; no reward.

    `kept` marks those that the strategy put into the regression of their step (or into the pooled one).
    """

    grid: Grid
    horizon: int
    model: Model
    strategy: Explorer
    seed: int
    episode: Integers  # (t,) int, from 0; -1 for queries of a generative model, which belong to none
    h: Integers  # (t,) int, from 0
    state: Integers  # (t,) int
    action: Integers  # (t,) int
    next_state: Integers  # (t,) int
    terminated: Flags  # (t,) bool
    kept: Flags  # (t,) bool
    stopped_by: str = "budget"  # which one: a unit of `explore`; "accuracy": the strategy's own rule

    def points(self, rows: Any, timed: bool = False) -> Integers:
        """z = s * |A| + a of some of the steps; `timed`, h * |S| * |A| + z: see `Model`."""
        s, a = self.grid.shape
        z: Integers = self.state[rows] * a + self.action[rows]
        return self.h[rows] * (s * a) + z if timed else z

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the data as npz, without pickle; `rf.load` reads it."""
        arrays = {"states": self.grid.states, "actions": self.grid.actions}
        names = self.grid.named_arrays()
        write_run(path, self, NAMED_VERSION if names else FILE_VERSION, {**arrays, **names}, {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Transitions:
        """The data in that file; a damaged or foreign one is refused."""
        known = f"states|actions|{NAMED_ARRAYS}"
        columns, arrays, fields = read_run(path, cls.__name__, NAMED_VERSION, known)
        with content_of(path, "transitions"):
            data = cls(stored_grid(arrays["states"], arrays["actions"], arrays), **fields, **columns)
            data.check()
        return data

    def check(self) -> None:
        super().check()
        if self.strategy is None:
            raise ValueError("strategy must be one of rewardfree's, got None")
        s, a = self.grid.shape
        for name, size in (("state", s), ("action", a), ("next_state", s)):
            Discrete(size, name).checked(getattr(self, name), name)
        if not self.model.automatic:
            self.model.fixed.checked(self.model.inputs(self.grid.points[:1], 1), "states and actions")

    def _whole_episodes(self) -> int:
        """A budget of steps may have cut the last one."""
        if not len(self):
            return 0
        length = self.strategy.episode_length(int(self.episode[-1]), self.horizon)
        over = bool(self.terminated[-1]) or int((self.episode == self.episode[-1]).sum()) >= length
        return self.episodes - int(not over)
