"""What studies on real states share: explorations that are whole, and a policy to compare with."""

from typing import Any

import rewardfree as rf
from rewardfree.streams import stream


def explored_whole(world: Any, *parts: Any, transitions: int, seed: int) -> rf.Experience:
    """What `rf.explore` returns; an exploration that was cut short must not be stored as if it were whole."""
    data: rf.Experience = rf.explore(world, *parts, transitions=transitions, seed=seed, progress=False)
    if data.stopped_by != "transitions":
        raise KeyboardInterrupt
    return data


class RandomPolicy:
    """The policy that draws its actions evenly."""

    def __init__(self, space: Any, seed: int) -> None:
        self._space, self._rng = space, stream(seed, "any action")

    def act(self, state: Any, h: int) -> Any:
        """An action for each of n states."""
        n = len(state)
        if isinstance(self._space, rf.Discrete):
            return self._rng.integers(self._space.n, size=n)
        return self._rng.uniform(self._space.low, self._space.high, (n, self._space.size))
