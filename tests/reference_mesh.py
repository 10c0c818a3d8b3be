"""Small worlds of real states, and plans on a mesh for them, that several test files look at."""

import math
from functools import cache

import numpy as np

import rewardfree as rf

AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
QUADRATIC = "-(x**2 + 0.1*u**2)"
CLIMB = "-1 + 10*(next_x >= 3)"
FALL = "x - 20*(next_x > 1)"
H = 8
X = np.linspace(-1.0, 1.0, 9)[:, None]


class Linear(rf.World):
    """x' = 0.9 x + 0.5 u, without noise and without an end; the bounds are never met from |x| <= 1."""

    state, action, horizon = rf.Box.of(x=(-2.0, 2.0)), rf.Box.of(u=(-2.0, 2.0)), H

    def start(self, rng):
        return rng.uniform(-1.0, 1.0, 1)

    def sample(self, state, action, h, rng):
        return 0.9 * state + 0.5 * action, np.zeros(len(state), bool)

    def copy(self):
        return type(self)()


class Stairs(rf.World):
    """Half a metre up or down; it is over at 3 and at -3."""

    state, action, horizon = rf.Box.of(x=(-4.0, 4.0)), rf.Discrete(2, "up"), 20

    def start(self, rng):
        return rng.uniform(0.2, 0.3, 1)

    def sample(self, state, action, h, rng):
        next_state = state + 0.5 * (2.0 * action[:, None] - 1.0)
        return next_state, np.abs(next_state[:, 0]) >= 3.0


class Cliff(rf.World):
    """A walk that is shaken; beyond 1 it falls."""

    state, action, horizon, shake = rf.Box.of(x=(-2.0, 1.5)), rf.Box.of(u=(-0.5, 0.5)), 20, 0.15

    def start(self, rng):
        return rng.uniform(-1.0, -0.5, 1)

    def sample(self, state, action, h, rng):
        next_state = np.clip(state + action + self.shake * rng.standard_normal(state.shape), -2.0, 1.5)
        return next_state, next_state[:, 0] > 1.0

    def copy(self):
        return type(self)()


@cache
def explored(world=Linear, transitions=60, strategy=None, seed=0):
    made = rf.from_gymnasium(world) if isinstance(world, str) else world()
    strategy = strategy or rf.Generative()
    return rf.explore(made, AUTO, strategy, transitions=transitions, seed=seed, progress=False)


@cache
def linear_plan(reward=QUADRATIC, actions=81, horizon=H, discount=1.0):
    return rf.plan(
        explored(), reward, rf.DynamicsPlanner(actions=actions), horizon=horizon, discount=discount
    )


def riccati(steps, weights=None):
    """The costs S of V = -S x^2 and the gains K of u = -K x with 1, 2, ... steps to go."""
    s, costs, gains = 0.0, [], []
    for k in range(steps):
        gains.append(0.45 * s / (0.1 + 0.25 * s))
        s = (1.0 if weights is None else weights[steps - 1 - k]) + 0.81 * s - 0.45 * s * gains[-1]
        costs.append(s)
    return costs[::-1], gains[::-1]  # by h


@cache
def cliff_plan(noise=None, seed=0):
    options = {"horizon": 20, "discount": 1.0, "terminated": "x > 1"}
    return rf.plan(explored(Cliff, 300, seed=seed), FALL, rf.DynamicsPlanner(noise=noise), **options)


def bellman_plan(name):
    if name == "noisy":
        return cliff_plan()
    if name == "ends":
        options = {"horizon": 20, "discount": 1.0, "terminated": "abs(x) >= 3"}
        return rf.plan(explored(Stairs, 80), CLIMB, **options)
    return linear_plan(horizon=math.inf, discount=0.9)
