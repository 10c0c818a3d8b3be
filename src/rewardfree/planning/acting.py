"""What every policy on real states offers: actions for states or observations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rewardfree.arrays import check_finite, count
from rewardfree.worlds.spaces import Discrete, Spaces
from rewardfree.worlds.world import Observation


class Acting(ABC):
    """A policy: `act(state, h)`, or `act(observation=o, h=h)` where the world is seen otherwise."""

    spaces: Spaces
    observation: Observation | None
    horizon: int | None

    @abstractmethod
    def choose(self, states: Any, h: int) -> Any:
        """The actions at states (n,d), labels (n,)."""

    def act(self, state: Any = None, h: int = 0, *, observation: Any = None) -> Any:
        """The action at a state (d,) or the actions at states (n,d): labels, or (a,) and (n,a)."""
        states, single = self._states(state, observation)
        chosen = self.choose(states, self._step(h))
        if not single:
            return chosen
        return int(chosen[0]) if isinstance(self.spaces.action, Discrete) else chosen[0]

    def _states(self, state: Any, observation: Any) -> tuple[Any, bool]:
        """What was given as states (n,d), and whether it was one."""
        space = self.spaces.state
        if (state is None) == (observation is None):
            raise ValueError("give a state, or observation=, and not both")
        if observation is not None and self.observation is not None:
            seen = np.asarray(observation, np.float64)
            check_finite(seen, "observation")
            single = seen.ndim == 1
            return self.observation.state(space, seen[None] if single else seen), single
        given = np.asarray(state if observation is None else observation)
        single = given.ndim == (0 if isinstance(space, Discrete) else 1)
        return space.checked(given[None] if single else given, "state"), single

    def _step(self, h: int) -> int:
        h = count(h, "h", at_least=0)
        if self.horizon is not None and h >= self.horizon:
            raise ValueError(f"h must lie in 0..{self.horizon - 1}, got {h}")
        return h
