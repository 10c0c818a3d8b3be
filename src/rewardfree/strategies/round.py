"""What one round of a strategy consists of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Round:
    """The environment steps of one round, in order: e of them, in some episodes, some of them kept."""

    episode: tuple[int, ...]  # within the round
    h: tuple[int, ...]
    kept: tuple[bool, ...]

    @classmethod
    def whole_episode(cls, horizon: int) -> Round:
        """One episode, all of whose steps are kept."""
        return cls((0,) * horizon, tuple(range(horizon)), (True,) * horizon)

    @classmethod
    def growing_episodes(cls, horizon: int) -> Round:
        """Episodes of 1 .. horizon steps, of which the last one is kept (Alg 3)."""
        steps = [(target, h) for target in range(horizon) for h in range(target + 1)]
        return cls(*zip(*[(target, h, target == h) for target, h in steps], strict=True))

    def __len__(self) -> int:
        return len(self.h)

    @property
    def episodes(self) -> int:
        return max(self.episode) + 1

    def length(self, episode: int) -> int:
        """How many steps episode number `episode` of a run has."""
        return self.episode.count(episode % self.episodes)

    @cached_property
    def by_step(self) -> Any:
        """An order of the environment steps in which those of one h are side by side, (e,)."""
        return np.lexsort((self.episode, self.h))

    def columns(self, h: int, episode: int | None = None) -> slice:
        """Where step h is in that order, of all episodes that get there, or of one."""
        return self._places[h, episode]

    @cached_property
    def _places(self) -> dict[tuple[int, int | None], slice]:
        places: dict[tuple[int, int | None], slice] = {}
        for column, i in enumerate(self.by_step):
            h, place = self.h[i], slice(column, column + 1)
            places[h, self.episode[i]] = place
            places[h, None] = slice(places.get((h, None), place).start, place.stop)
        return places
