"""What every plan on real states offers: actions for states or observations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardfree.arrays import check_finite, count
from rewardfree.model import Model
from rewardfree.planning.planner import Plan
from rewardfree.worlds.spaces import Discrete, Spaces
from rewardfree.worlds.world import Observation


class WorldPlan(Plan):
    """A policy: `act(state, h)`, or `act(observation=o, h=h)` where the world is seen otherwise."""

    spaces: Spaces
    observation: Observation | None
    horizon: int | None  # None: no end, discounted
    provenance: Mapping[str, Any]  # of the world
    model: Model  # which the plan needs to act
    expected: float | None  # the mean return inside the model, where it was computed

    @property
    @abstractmethod
    def discount(self) -> float:
        """Of later rewards, in the values."""

    @property
    def reward_text(self) -> str | None:
        """The formula that it was planned for; None if it was a Python function."""
        return None

    @abstractmethod
    def choose(self, states: Any, h: int) -> Any:
        """The actions at states (n,d), labels (n,)."""

    @abstractmethod
    def values_at(self, states: Any, h: int) -> Any:
        """The planner's V_h at states (n,d), (n,)."""

    def act(self, state: Any = None, h: int = 0, *, observation: Any = None) -> Any:
        """The action at a state (d,) or the actions at states (n,d): labels, or (a,) and (n,a)."""
        states, single = self._states(state, observation)
        chosen = self.choose(states, self._step(h))
        if not single:
            return chosen
        return int(chosen[0]) if isinstance(self.spaces.action, Discrete) else chosen[0]

    def value(self, state: Any, h: int = 0) -> Any:
        """The planner's V_h at a state (d,) or states (n,d), in the reward's own units."""
        states, single = self._states(state, None)
        values = self.values_at(states, self._step(h))
        return float(values[0]) if single else values

    def _details(self) -> list[str]:
        return ["no horizon" if self.horizon is None else f"horizon {self.horizon}"]

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
