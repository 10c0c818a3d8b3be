"""Values by plain loops, for the tests of exact ones."""

import itertools

import numpy as np

import rewardfree as rf

# Sums of a few dozen terms of size 1, in another order.
CLOSE = {"rtol": 0, "atol": 1e-12}


def drawn(s=3, a=2, horizon=3, seed=0, by_step=False, start=None):
    rng = np.random.default_rng(seed)
    P = rng.random((horizon, s, a, s) if by_step else (s, a, s)) ** 4
    return rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), horizon, start)


def rewards(world, seed=0, by_step=False):
    shape = (world.horizon, *world.grid.shape) if by_step else world.grid.shape
    return np.random.default_rng(100 + seed).random(shape)


def plain_value(world, choose, reward):
    """V_h(s) = sum_a pi(a) (r + sum_s' P V_{h+1}), by loops; choose(h, s) is pi, the odds of the actions."""
    s = len(world.states)
    values = np.zeros((world.horizon + 1, s))
    for h in reversed(range(world.horizon)):
        P, r = world.P if world.P.ndim == 3 else world.P[h], reward if reward.ndim == 2 else reward[h]
        for i in range(s):
            for j, chance in enumerate(choose(h, i)):
                following = sum(P[i, j, k] * values[h + 1, k] for k in range(s))
                values[h, i] += chance * (r[i, j] + following)
    return values[:-1]


def plain_value_of_actions(world, actions, reward):
    eye = np.eye(world.grid.shape[1])
    return plain_value(world, lambda h, s: eye[actions[h][s]], reward)


KINDS = list(itertools.product([False, True], [False, True]))
