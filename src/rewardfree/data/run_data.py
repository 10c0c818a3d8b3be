"""What the data of every run offer: environment steps in their order, without any reward."""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from rewardfree.arrays import Flags, Integers, as_horizon, check_kind, count, counted
from rewardfree.budget import Budget
from rewardfree.data.samples import COLUMNS
from rewardfree.model import Model, ModelPosteriors
from rewardfree.registry import is_made_by

#: The largest number of an episode that a table of text can hold to its last digit.
MOST_EPISODES = 2**53


def numbered_from_0(episode: Integers) -> Integers:
    """Numbers of episodes from 0, in their order, whatever they were; -1 stays: a query."""
    played = episode >= 0
    given = episode[played]
    number = np.cumsum(np.diff(given, prepend=given[:1]) != 0)
    blocks = given[np.diff(number, prepend=-1) != 0]
    again = np.flatnonzero(np.bincount(np.unique(blocks, return_inverse=True)[1]) > 1)
    if len(again):
        raise ValueError(
            f"episode {np.unique(blocks)[again[0]]} comes again after lines of another one: the "
            "lines of an episode must follow each other, and every episode must have a number of its own"
        )
    numbered = np.full(len(episode), -1)
    numbered[played] = number
    return numbered


class Explorer(ModelPosteriors, ABC):
    """What data ask of the strategy that made them. The whole contract is `rf.strategies.Strategy`."""

    @abstractmethod
    def episode_length(self, episode: int, horizon: int) -> int:
        """How many steps episode number `episode` of a run on a finite world has, if nothing ends it."""


class RunData(ABC):
    """t environment steps of one run; a subclass says what states and actions are."""

    horizon: int
    model: Model  # what the run explored with
    strategy: Explorer | None  # None: recorded elsewhere
    seed: int
    stopped_by: str
    episode: Integers  # (t,) int, from 0; -1 for queries of a generative model, which belong to none
    h: Integers  # (t,) int, from 0
    terminated: Flags  # (t,) bool
    kept: Flags  # (t,) bool

    def __len__(self) -> int:
        return len(self.h)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({counted(len(self), 'step')} in {counted(self.episodes, 'episode')}, "
            f"{int(self.kept.sum())} kept, by {self.strategy!r}, seed {self.seed})"
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
    def samples(self) -> Integers:
        """How many samples the regressions have: for each step (h,), or (1,) if pooled."""
        return np.array([len(rows) for rows in self.designs()])

    def designs(self, pooled: bool | None = None) -> list[Integers]:
        """The rows that each regression has, in order: an index array per step h, or one if pooled."""
        kept = np.flatnonzero(self.kept)
        if self.model.pooled if pooled is None else pooled:
            return [kept]
        return [kept[self.h[kept] == h] for h in range(self.horizon)]

    def using_all(self) -> Self:
        """The same steps, every one kept: what a strategy passed by serves planning too.

        Samples that were chosen by where earlier ones led are not as unbiased as those that Alg 3 keeps.
        """
        return self if self.kept.all() else self._all_kept

    @cached_property
    def _all_kept(self) -> Self:
        return replace(self, kept=np.ones(len(self), bool))  # type: ignore[type-var]

    def centred(self) -> Self:
        """The same data, planned around the midrange of V if one regression serves all steps."""
        return self if self.model.centred or not self.model.pooled else self._centred

    @cached_property
    def _centred(self) -> Self:
        return replace(self, model=replace(self.model, centred=True))  # type: ignore[type-var]

    def check(self) -> None:
        """Refuse what no exploration leaves behind, in data that come from a file."""
        as_horizon(self.horizon)
        count(self.seed, "seed", at_least=0)
        check_kind(self.model, Model, "model", "a rewardfree Model")
        check_kind(self.stopped_by, str, "stopped_by", "text")
        if self.strategy is not None and not is_made_by("strategy", self.strategy):
            raise ValueError(f"strategy must be one of rewardfree's, got {self.strategy!r:.200}")
        for name, kinds in (("episode", "iu"), ("h", "iu"), ("terminated", "b"), ("kept", "b")):
            column = getattr(self, name)
            if column.dtype.kind not in kinds or column.ndim != 1:
                raise ValueError(f"{name} must be whole numbers or flags of shape (t,), got {column.dtype}")
        for name, lowest, highest in (("episode", -1, MOST_EPISODES), ("h", 0, self.horizon - 1)):
            column = getattr(self, name)
            if len(column) and not (column.min() >= lowest and column.max() <= highest):
                raise ValueError(
                    f"{name} must lie in {lowest}..{highest}, got {column.min()}..{column.max()}"
                )
        self._check_episodes()

    def _check_episodes(self) -> None:
        """Episodes are numbered from 0 in their order, and every step of one is later than the last.

        Queries of a generative model may be anywhere, and a recording may begin late or have gaps.
        """
        played = self.episode >= 0
        number, h = self.episode[played], self.h[played]
        rise = np.diff(number, prepend=-1)
        if len(rise) and (rise[0] != 1 or rise.min() < 0 or rise.max() > 1):
            wrong = number[np.flatnonzero((rise < 0) | (rise > 1))[0]]
            raise ValueError(f"episode must begin at 0 and rise by at most 1 a step, got {wrong}")
        later = np.diff(h)[rise[1:] == 0]
        if self.strategy is None:
            if (later <= 0).any():
                raise ValueError("h must rise within an episode, and it does not")
        elif (h[rise == 1] != 0).any() or (later != 1).any():
            raise ValueError("h must begin at 0 and rise by 1 a step within an episode, and it does not")

    @cached_property
    def prepared(self) -> dict[Any, Any]:
        """What planners have computed from these data without a reward, to be used for the next one."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "prepared"}  # which is large

    def first(
        self,
        samples_per_step: int | None = None,
        *,
        transitions: int | None = None,
        episodes: int | None = None,
        steps: int | None = None,
    ) -> Self:
        """That run stopped earlier, exactly: at one of the budgets of `explore`."""
        budget = Budget.of(
            self.model,
            samples_per_step=samples_per_step,
            transitions=transitions,
            episodes=episodes,
            steps=steps,
        )
        return self.cut(budget)

    def cut(self, budget: Budget) -> Self:
        """`first`, for a budget that is checked already."""
        return self._rows(self._end(budget), budget.unit)

    def _rows(self, end: int, stopped_by: str) -> Self:
        """The first rows alone."""
        shorter: dict[str, Any] = {name: getattr(self, name)[:end] for name in COLUMNS}
        return replace(self, **shorter, stopped_by=stopped_by)  # type: ignore[type-var]

    @abstractmethod
    def _whole_episodes(self) -> int:
        """How many episodes were played to their end."""

    def _end(self, budget: Budget) -> int:
        """How many environment steps fit the budget; shorter data are refused."""
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
