"""Runs of five worlds, whose data several files of tests look at."""

import numpy as np

import rewardfree as rf
from rewardfree.worlds import LabelledWorld

MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FIXED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
PER_STEP = rf.Model(rf.Matern(1.5, 0.3) + rf.Linear(2.0), ridge=0.1)
COLUMNS = ("episode", "h", "state", "action", "next_state", "terminated", "kept")
SAID = ("spaces", "horizon", "model", "strategy", "seed", "observation", "provenance", "stopped_by")


class Hill(rf.World):
    """An angle and a speed; it ends at speed 1.5."""

    state, action, horizon = rf.Box.of(theta="angle", v=None), rf.Box.of(u=(-1, 1), w=(-2, 2)), 8

    def start(self, rng):
        return rng.uniform(-3, 3, 2) * [1.0, 0.3]

    def sample(self, state, action, h, rng):
        v = state[:, 1] + 0.1 * np.sin(state[:, 0]) + 0.2 * action[:, 0] + 0.01 * action[:, 1]
        return np.stack([state[:, 0] + v, v], axis=1), np.abs(v) > 1.5


def finite():
    P = np.random.default_rng(0).random((5, 3, 5))
    return rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), 6, 2)


def run(name):
    if name == "pendulum":
        return rf.explore(rf.from_gymnasium("Pendulum-v1", g=9.0), MODEL, rf.Scout(), transitions=70, seed=3)
    if name == "cart":
        return rf.explore(rf.from_gymnasium("CartPole-v1"), MODEL, rf.Uniform(), steps=90, seed=1)
    if name == "queries":
        return rf.explore(Hill(), MODEL, rf.Generative(), transitions=70)
    if name == "per step":
        world = type("Flat", (Hill,), {"state": rf.Box.of(theta="angle", v=(-2, 2))})()
        return rf.explore(world, PER_STEP, rf.Online(beta=0.1), episodes=17)
    return rf.explore(LabelledWorld(finite()), FIXED, rf.Qiu(beta=0.1), steps=33, seed=9)


NAMES = ["pendulum", "cart", "queries", "per step", "labels"]
RUNS = {}


def made(name):
    if name not in RUNS:
        RUNS[name] = run(name)
    return RUNS[name]


def assert_same(one, other, said=SAID):
    for name in (*COLUMNS, "starts"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), name
    for name in said:
        assert getattr(one, name) == getattr(other, name), name


# Tables of text.


def read(path, data, **options):
    return rf.Experience.from_csv(
        path, state=data.spaces.state, action=data.spaces.action, horizon=data.horizon, **options
    )
