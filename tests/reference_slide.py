"""Worlds of real states to explore, and what explores them, that several test files look at."""

import numpy as np

import rewardfree as rf
from rewardfree.data import COLUMNS

AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FIXED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
PER_STEP = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
MODELS = {"automatic": AUTO, "fixed": FIXED, "per step": PER_STEP}
SOBOL, BOX = rf.Generative(candidates="sobol"), rf.Generative(candidates="box")
ONLINE = [rf.Uniform(), rf.GreedyMaxVariance(), rf.Qiu(0.5), rf.Online(0.5), rf.Online(0.5, fresh=True)]
STRATEGIES = [*ONLINE, rf.Scout(), rf.Generative(), SOBOL, BOX]


class Slide(rf.World):
    """A puck that is pushed along a noisy line, and falls off at its right end."""

    state = rf.Box.of(x=(-2.0, 2.0), v=(-1.0, 1.0))
    action = rf.Box.of(push=(-1.0, 1.0))
    horizon = 6
    edge = 0.1

    def __init__(self):
        self.calls = 0

    def start(self, rng):
        return np.array([rng.uniform(-0.5, 0.0), 0.0])

    def sample(self, state, action, h, rng):
        self.calls += 1
        self.happen()
        v = np.clip(
            0.9 * state[:, 1] + 0.4 * action[:, 0] + 0.05 * rng.standard_normal(len(state)), -1.0, 1.0
        )
        x = np.clip(state[:, 0] + 0.5 * v, -2.0, 2.0)
        return np.stack([x, v], axis=1), x > self.edge

    def happen(self):
        """Something may, at a call."""


def pendulum(horizon=6, **options):
    return rf.from_gymnasium("Pendulum-v1", horizon=horizon, **options)


def cart():
    return rf.from_gymnasium("CartPole-v1", horizon=15, bounds={"v": (-3.0, 3.0), "omega": (-4.0, 4.0)})


def world_named(world):
    return {"pendulum": pendulum, "cart": cart, "slide": Slide}[world]()


def assert_same(data, expected, rows=None):
    """The same steps, or the same as the first rows of others."""
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(data, name), getattr(expected, name)[:rows], err_msg=name)
