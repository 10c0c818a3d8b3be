"""A pendulum whose learnt dynamics several test files look at."""

import math

import numpy as np

import rewardfree as rf
from rewardfree.data import Samples
from rewardfree.worlds import Spaces

SPACES = Spaces(rf.Box.of(theta="angle", omega=(-2.0, 2.0)), rf.Box.of(push=(-1.0, 1.0)))
MODEL = rf.Model(rf.Matern(2.5, 0.6) + 0.5 * rf.Linear(bias=1.0), ridge=0.01, pooled=True)


def swing(state, action):
    """A pendulum: next states of theta, omega under a push."""
    theta, omega = state.T
    after = np.clip(omega + 0.3 * np.sin(theta) + 0.5 * action[:, 0], -2.0, 2.0)
    return SPACES.state.wrapped(np.stack([theta + 0.4 * after, after], axis=1))


def swings(n=40, seed=0, noise=0.0):
    """Transitions from anywhere."""
    rng = np.random.default_rng(seed)
    state = np.stack([rng.uniform(-math.pi, math.pi, n), rng.uniform(-2.0, 2.0, n)], axis=1)
    action = rng.uniform(-1.0, 1.0, (n, 1))
    next_state = SPACES.state.wrapped(swing(state, action) + noise * rng.standard_normal((n, 2)))
    return samples(state, action, next_state)


def unstopped(known):
    """Those of some transitions that no bound of omega has cut."""
    return known[np.flatnonzero(np.abs(known.next_state[:, 1]) < 2.0)]


def samples(state, action, next_state):
    """Transitions of which none ended an episode."""
    return Samples(state, action, next_state, np.zeros(len(state), bool))


def nowhere(states):
    """Where no episode ends."""
    return np.zeros(len(states), bool)
