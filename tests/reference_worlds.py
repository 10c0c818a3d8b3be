"""Small systems of every kind, and data from them, for tests of what holds on all of them."""

from functools import cache

import numpy as np

import rewardfree as rf
from reference_runs import small_world
from rewardfree.worlds.world import LabelledWorld

KERNEL = rf.Matern(1.5, 0.3)
MODEL = rf.Model(KERNEL, ridge=0.1)
POOLED = rf.Model(KERNEL, ridge=0.1, pooled=True)
FINITE = small_world(start=None)


class Puck(rf.World):
    """A puck on a noisy line."""

    state = rf.Box.of(x=(-2.0, 2.0), v=(-1.0, 1.0))
    action = rf.Box.of(push=(-1.0, 1.0))
    horizon = 5

    def start(self, rng):
        return np.array([rng.uniform(-0.5, 0.5), 0.0])

    def sample(self, state, action, h, rng):
        v = np.clip(0.9 * state[:, 1] + 0.4 * action[:, 0] + 0.05 * rng.standard_normal(len(state)), -1, 1)
        x = np.clip(state[:, 0] + 0.5 * v, -2.0, 2.0)
        return np.stack([x, v], axis=1), np.zeros(len(x), bool)


class Many(rf.World):
    """Five variables that are pushed about: too many for a mesh."""

    state = rf.Box.of(**dict.fromkeys("abcdf", (-1.0, 1.0)))
    action, horizon = rf.Box.of(u=(-1.0, 1.0)), 4

    def start(self, rng):
        return rng.uniform(-0.1, 0.1, 5)

    def sample(self, state, action, h, rng):
        return np.clip(0.9 * state + 0.1 * action, -1.0, 1.0), np.zeros(len(state), bool)


@cache
def explored(kind, model=POOLED, strategy=rf.Uniform()):  # noqa: B008  strategies are frozen
    world = {"finite": FINITE, "labels": LabelledWorld(FINITE), "puck": Puck(), "many": Many()}[kind]
    return rf.explore(world, model, strategy, steps=60, seed=2)
