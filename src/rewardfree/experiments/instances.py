"""Worlds by name, each with rewards and the model that a learner is told: what methods are compared on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.presets import PUBLISHED
from rewardfree.streams import stream
from rewardfree.worlds.hard_suite import suite_names

#: The paper's own kernels, each with a world drawn from it.
PAPER = {
    "paper-squared-exponential": rf.SquaredExponential(lengthscale=0.1),
    "paper-matern-1.5": rf.Matern(nu=1.5, lengthscale=0.1),
    "paper-matern-2.5": rf.Matern(nu=2.5, lengthscale=0.1),
}
REWARDS = 5
#: Of every gap: at the start, and its mean and largest over all states.
MEASURES = ("start", "mean", "max")


@dataclass(frozen=True)
class WorldUnit(ABC):
    """One run on one of these worlds, of whatever a subclass compares there; a worker's job."""

    world: str
    seed: int
    quick: bool = False
    version: ClassVar[int]  # raised when it would give other numbers

    @property
    def key(self) -> str:
        return f"{self.world}-{self.seed}{'-quick' * self.quick}-{self.version}"

    @property
    def names(self) -> tuple[str, str, str]:
        """Of its world, model and strategy, for messages."""
        return self.world, "all", f"seed {self.seed}"

    @abstractmethod
    def run(self, allow_imports: bool = False) -> list[dict[str, Any]]:
        """Its records."""


def hard_and_paper() -> tuple[str, ...]:
    """The names of the hard suite and of the paper's worlds."""
    return (*suite_names(), *PAPER)


def instance_named(name: str) -> rf.Instance:
    """A world with its rewards and the learner's model."""
    if name in TABULAR:
        return TABULAR[name](name)
    if name not in PAPER:
        return rf.hard_suite([name])[0]
    kernel = PAPER[name]
    draws = [rf.rkhs_world(kernel, seed=seed) for seed in range(REWARDS)]
    ridge = PUBLISHED.ridge(kernel)
    rewards = np.stack([draw.reward for draw in draws])
    return rf.Instance(name, "a draw of the paper's", draws[0].world, rewards, rf.Model(kernel, ridge))


def _garnet(name: str) -> rf.Instance:
    world = rf.worlds.garnet_world()
    rewards = stream(0, "rewards", name).random((REWARDS, *world.grid.shape))
    about = "a random world: every (s,a) leads to three of ten states"
    return rf.Instance(name, about, world, rewards, _TOLD)


def _riverswim(name: str) -> rf.Instance:
    world = rf.worlds.riverswim_world()
    S, A = world.grid.shape
    paid = np.repeat(np.eye(S)[1:, :, None], A, axis=2)  # each for being at one state beyond the first
    return rf.Instance(name, "a chain of six states against a current", world, paid, _TOLD)


#: What a learner is told where no state says anything about another.
_TOLD = rf.Model(rf.kernels.Delta(), ridge=1.0)
#: Small worlds without any geometry.
TABULAR: dict[str, Callable[[str], rf.Instance]] = {"garnet": _garnet, "riverswim": _riverswim}


def references(name: str) -> dict[str, Any]:
    """What a world asks of a learner: V* and gaps at the start that need no data, means over its rewards.

    `levels` has all measures of these gaps, for each reward.
    """
    instance = instance_named(name)
    world = instance.world
    found = [rf.describe(world, reward) for reward in instance.rewards]
    levels = {
        policy: {
            measure: [float(getattr(getattr(each, policy), measure)) for each in found]
            for measure in MEASURES
        }
        for policy in ("myopic", "random")
    }
    mean = {
        "optimal": [each.optimal for each in found],
        **{policy: gaps["start"] for policy, gaps in levels.items()},
        "row_distance": [found[0].row_distance],
        "next_states": [found[0].next_states],
        "reachable": [found[0].reachable],
    }
    means = {key: float(np.mean(values)) for key, values in mean.items()}
    return {"world": name, "about": instance.about, **means, "levels": levels}
