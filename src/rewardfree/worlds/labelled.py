"""A finite world behind the interface of `World`: its states are labels with coordinates."""

from typing import Any

import numpy as np

from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.spaces import Discrete
from rewardfree.worlds.world import World


class LabelledWorld(World):
    """A `FiniteWorld` as a `World` whose states and actions are labels."""

    def __init__(self, world: FiniteWorld) -> None:
        self.finite, self.horizon = world, world.horizon
        self.state = Discrete(len(world.states), "s", _tuples(world.states))
        self.action = Discrete(len(world.actions), "a", _tuples(world.actions))

    def start(self, rng: np.random.Generator) -> Any:
        return self.finite.first_states(rng.random())

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        state = np.asarray(state, np.int64)
        following = self.finite.sample(state, action, h, rng.random(state.shape))
        return following, np.zeros(state.shape, bool)

    def copy(self) -> World:
        return LabelledWorld(self.finite)


def _tuples(points: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, point)) for point in points)
