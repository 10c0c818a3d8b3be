"""Environments that several files of tests explore."""

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces

import rewardfree as rf

MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FIXED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
rng_of = np.random.default_rng


def uniform(world, transitions=60, **options):
    return rf.explore(world, MODEL, rf.Uniform(), transitions=transitions, **options)


class OnlyOne(gymnasium.Env):
    """A walk on a line, which can be changed by giving it other spaces."""

    observation_space = gym_spaces.Box(-5.0, 5.0, (2,))
    action_space = gym_spaces.Discrete(3)

    def __init__(self, **spaces):
        vars(self).update(spaces)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-1, 1, 2)
        return self._seen(), {}

    def step(self, action):
        self.at = np.clip(self.at + 0.1 * (np.sum(action) - 1) + [0.0, 0.02 * self.at[0]], -5, 5)
        return self._seen(), self.reward(), bool(self.at[0] > 1.2), False, {}

    def _seen(self):
        return self.at.astype(np.float32)

    def reward(self):
        return 0.0
