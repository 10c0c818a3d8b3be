"""A finite world, the rewards that are revealed after exploration, and what a learner is told."""

from dataclasses import dataclass

import numpy as np

from rewardfree.arrays import Floats, as_array, check_finite, check_kind, to_numpy
from rewardfree.kernels import AutoKernel
from rewardfree.model import Model
from rewardfree.worlds.finite import FiniteWorld, check_world

#: The model of a learner who is told nothing: kernel and ridge come from the data.
FITTED = Model(AutoKernel())


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem to compare methods on: explore `instance.world`, then plan for its rewards.

    `model` is what a learner is told. The library's own instances give the paper's model: a fixed kernel and
    ridge, one regression for each step, uncentred. By default it is told nothing.
    """

    name: str
    description: str
    world: FiniteWorld
    rewards: Floats  # (c,s,a)
    model: Model = FITTED

    def __post_init__(self) -> None:
        check_world(self.world)
        check_kind(self.model, Model, "model", "rf.Model(kernel, ridge)")
        rewards = to_numpy(as_array(self.rewards, "rewards"))
        s, a = self.world.grid.shape
        if rewards.ndim != 3 or not len(rewards) or rewards.shape[1:] != (s, a):
            raise ValueError(
                f"rewards must have shape (c, {s}, {a}), one table for each reward, got {rewards.shape}: "
                "use reward[None] for a single one"
            )
        check_finite(rewards, "rewards")
        object.__setattr__(self, "rewards", rewards)

    def __repr__(self) -> str:
        rewards = "1 reward" if len(self.rewards) == 1 else f"{len(self.rewards)} rewards"
        return f"Instance({self.name!r}, {self.world!r}, {rewards}, {self.model!r})"

    @property
    def reward(self) -> Floats:
        """The only reward, (s,a)."""
        if len(self.rewards) > 1:
            raise ValueError(
                f"instance {self.name!r} has {len(self.rewards)} rewards: "
                "choose one, such as instance.rewards[0], or plan for all with rf.plan_many"
            )
        return np.asarray(self.rewards[0])
