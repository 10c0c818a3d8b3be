"""The sizes of the paper, and a world for them that takes no time to make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import rewardfree as rf
from rewardfree.streams import stream

KERNEL = rf.Matern(nu=1.5, lengthscale=0.1)
RIDGE = 0.5
BETA = 0.1
CHECKPOINTS = (10, 20, 40, 80, 160)


@dataclass(frozen=True)
class Setting:
    """The paper's sizes by default."""

    rounds: int = 160
    horizon: int = 10
    states: int = 100
    actions: int = 100
    start: int = 20

    @property
    def world(self) -> rf.FiniteWorld:
        """A smooth drift with wide noise."""
        s, a = np.linspace(0, 1, self.states)[:, None], np.linspace(0, 1, self.actions)
        centre = 0.5 + 0.4 * np.sin(3.0 * s + 5.0 * a)
        weight = 0.3 + np.exp(-0.5 * ((s[:, 0] - centre[..., None]) / 0.2) ** 2)
        return rf.FiniteWorld(weight / weight.sum(axis=-1, keepdims=True), self.horizon, self.start)

    @property
    def sizes(self) -> str:
        return f"N = {self.rounds}, H = {self.horizon}, |Z| = {self.states * self.actions:,}"

    def explore(self, world: rf.FiniteWorld, seeds=(0,), strategy=None, **options) -> list[rf.Transitions]:
        """Runs of Alg 3 on that world, or of another strategy."""
        model, strategy = rf.Model(KERNEL, RIDGE), strategy or rf.Online(BETA)
        return rf.explore_many(world, model, strategy, samples_per_step=self.rounds, seeds=seeds, **options)

    def uniforms(self, seed=0):
        """The numbers that a run of Alg 3 draws, (rounds, environment steps of a round)."""
        return stream(seed, "transitions").random((self.rounds, self.horizon * (self.horizon + 1) // 2))


def kept(data: rf.Transitions):
    """The kept points and their next states, each (h, rounds)."""
    rows = data.designs()
    return np.stack([data.points(r) for r in rows]), np.stack([data.next_state[r] for r in rows])
