"""Worlds of a user's own, what a sensor shows, and finite worlds as worlds of any states."""

import copy
import math

import numpy as np
import pytest
from gymnasium import spaces as gym_spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from environments import FIXED, MODEL, rng_of, uniform
from rewardfree.worlds import LabelledWorld

# A world of a user's own.


class Slope(rf.World):
    state = rf.Box.of(x=(-1, 1), v=(-1, 1))
    action = rf.Box.of(u=(-1, 1))
    horizon = 20

    def start(self, rng):
        return np.array([rng.uniform(-0.2, 0.2), 0.0])

    def sample(self, state, action, h, rng):
        x, v = state.T
        v = np.clip(v + 0.2 * action[:, 0] - 0.1 * x, -1, 1)
        x = np.clip(x + 0.2 * v, -1, 1)
        return np.stack([x, v], axis=1), x >= 1.0


@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Scout()], ids=repr)
def test_a_world_of_fourteen_lines_explores_and_plans(strategy):
    world = Slope()
    data = rf.explore(world, MODEL, strategy, transitions=120, seed=1)
    next_state, ended = world.sample(data.state, data.action, 0, None)
    assert np.array_equal(next_state, data.next_state) and np.array_equal(ended, data.terminated)
    assert data.provenance == {"world": "Slope"}
    plan = rf.plan(data, "x")
    gained = {}
    for name, act in (("plan", lambda s, h: plan.act(s, h)), ("rest", lambda s, h: np.zeros(1))):
        state, gained[name] = world.reset(rng_of(0)), 0.0
        for h in range(world.horizon):
            gained[name] += state[0]
            state, over, _ = world.step(act(state, h))
            if over:
                break
    assert gained["plan"] > gained["rest"] + 1.0


def test_reset_and_step_follow_from_start_and_sample():
    world, rng = Slope(), rng_of(7)
    state = world.reset(rng_of(7))
    assert np.array_equal(state, [rng.uniform(-0.2, 0.2), 0.0])
    for action in (0.3, -1.0, 1.0):
        expected, ended = world.sample(state[None], np.array([[action]]), 0, None)
        state, terminated, cut = world.step(np.array([action]))
        assert np.array_equal(state, expected[0]) and terminated is bool(ended[0]) and cut is False


def test_random_worlds_are_told_the_step_and_given_the_episodes_numbers():
    class Noisy(Slope):
        def sample(self, state, action, h, rng):
            self.asked.append(h)
            return state + rng.normal(size=state.shape), np.zeros(len(state), bool)

    world = Noisy()
    world.asked = []
    first = uniform(world, 45)
    assert world.asked == [t % 20 for t in range(45)]
    assert np.array_equal(first.next_state, uniform(world, 45).next_state)


def test_a_world_says_what_it_can():
    class Stepped(rf.World):
        state, action, horizon = rf.Box.of(x=(-1, 1)), rf.Discrete(2), 4

        def reset(self, rng):
            self.x = rng.uniform(-0.1, 0.1, 1)
            return self.x

        def step(self, action):
            self.x = self.x + 0.1 * action
            return self.x, False, bool(self.x > 0.25)

    assert Slope().generative and not Stepped().generative
    assert Slope().copy() is None and Slope().observe(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]
    assert Slope().features(np.zeros((3, 2)), np.ones((3, 1))).tolist() == [[0.0, 0.0, 1.0]] * 3
    data = uniform(Stepped())
    for t in range(59):
        same = data.episode[t] == data.episode[t + 1]
        assert same == (data.h[t] < 3 and data.next_state[t, 0] <= 0.25)
    assert not data.terminated.any() and (data.h[np.flatnonzero(data.next_state[:, 0] > 0.25)] < 4).all()
    with pytest.raises(NotImplementedError, match="Stepped has no start: give start and sample"):
        Stepped().start(None)
    with pytest.raises(NotImplementedError, match="Stepped cannot be put into a state: it has no sample"):
        Stepped().sample(None, None, 0, None)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": None}, r"a world must declare state as a Box or Discrete, such as state = rf\.Box\.of"),
        ({"action": (0, 1)}, r"a world must declare action as a Box or Discrete, .* got \(0, 1\)"),
        ({"state": gym_spaces.Box(-1, 1)}, "a world must declare state"),
        ({"horizon": None}, "a world's horizon, the steps of an episode, must be a whole number, got None"),
        (
            {"horizon": 0},
            "a world's horizon, the steps of an episode, must be a whole number of at least 1, got 0",
        ),
        ({"start": rf.World.start}, "Changed must give start and sample, or reset and step"),
    ],
)
def test_a_world_that_does_not_say_what_it_is_is_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        uniform(type("Changed", (Slope,), changed)())


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (rf.Box.of(x=(-1, 1), v=(-1, 1)), rf.Box.of(x=(-1, 1))),
        (rf.Discrete(3), rf.Discrete(2)),
        (rf.Box.of(x=(-1, 1), next_x=(-1, 1)), rf.Box.of(u=(-1, 1))),
        (rf.Box.of(x=(-1, 1), h=(-1, 1)), rf.Box.of(u=(-1, 1))),
    ],
    ids=["x twice", "labels", "next_x", "h"],
)
def test_one_name_for_two_things_is_refused(state, action):
    with pytest.raises(ValueError, match="name"):

        class Doubled(Slope):
            pass

        Doubled.state, Doubled.action = state, action
        if isinstance(state, rf.Discrete):
            Doubled.start = lambda self, rng: np.int64(rng.integers(3))
            Doubled.sample = lambda self, s, a, h, rng: ((s + a) % 3, np.zeros(len(s), bool))
        uniform(Doubled())


# What a sensor shows.


@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-8, 8)), min_size=1, max_size=6))
@settings(max_examples=50)
def test_an_observation_turns_states_into_columns_and_back(rows):
    box, state = rf.Box.of(theta="angle", omega=(-8, 8)), np.array(rows)
    seen = rf.worlds.Observation((("is", "omega"), ("sin", "theta"), ("cos", "theta")), "float64")
    shown = seen.of(box, state)
    np.testing.assert_array_equal(shown, [[o, math.sin(t), math.cos(t)] for t, o in rows])
    back = seen.state(box, shown)
    np.testing.assert_allclose(box.change(back, state), 0.0, atol=1e-13)


def test_an_observation_of_other_columns_is_refused():
    world = rf.from_gymnasium("Pendulum-v1")
    for wrong in (np.zeros((2, 2)), np.zeros(3)):
        with pytest.raises(ValueError, match=r"must have 3 columns \(cos theta, sin theta, omega\), got"):
            world.observation.state(world.state, wrong)


# A finite world as one of any states.


def finite(steps=None):
    shape = (5, 3, 5) if steps is None else (steps, 5, 3, 5)
    P = rng_of(0).random(shape) ** 3
    return rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), 6, [0.5, 0.0, 0.5, 0.0, 0.0])


def test_an_enumerated_world_has_labels_at_the_coordinates_of_the_grid():
    inner = finite()
    world = LabelledWorld(inner)
    assert world.generative and world.horizon == 6 and (world.state.n, world.action.n) == (5, 3)
    z = [(s, a) for s in range(5) for a in range(3)]
    features = world.features(np.array([s for s, _ in z]), np.array([a for _, a in z]))
    assert np.array_equal(features, inner.grid.points)
    assert world.spaces.names == ("s", "a", "next_s")


@pytest.mark.parametrize("steps", [None, 6])
def test_an_enumerated_world_draws_from_the_law(steps):
    inner = finite(steps)
    world = LabelledWorld(inner)
    state, action = np.repeat(np.arange(5), 3), np.tile(np.arange(3), 5)
    for h in (0, 3):
        counts = np.zeros((15, 5))
        rng = rng_of(h)
        for _ in range(2000):
            next_state, ended = world.sample(state, action, h, rng)
            assert not ended.any()
            counts[np.arange(15), next_state] += 1
        np.testing.assert_allclose(counts / 2000, inner.law(h).reshape(15, 5), atol=0.05)
    assert {int(world.start(rng)) for _ in range(50)} == {0, 2}


@pytest.mark.parametrize("strategy", [rf.Uniform(), rf.Generative(), rf.GreedyMaxVariance()], ids=repr)
def test_an_enumerated_world_is_explored(strategy):
    inner = finite()
    data = rf.explore(LabelledWorld(inner), FIXED, strategy, transitions=50)
    assert data.state.shape == data.action.shape == (50,) and data.state.dtype == np.int64
    assert (inner.P[data.state, data.action, data.next_state] > 0.0).all()
    if not strategy.generative:
        assert set(data.state[data.h == 0].tolist()) <= {0, 2}
        inside = (data.h[1:] > 0).nonzero()[0]
        assert np.array_equal(data.state[inside + 1], data.next_state[inside])


def test_a_copy_of_an_enumerated_world_is_another():
    world = LabelledWorld(finite())
    twin = world.copy()
    assert twin is not world and twin.finite is world.finite and twin.spaces == world.spaces
    assert copy.copy(twin).horizon == 6


def test_queries_of_an_enumerated_world_are_those_of_the_finite_one():
    """Alg 2 on the same candidates: sigma depends on where one looked alone."""
    inner = finite()
    plan = rf.query_plan(FIXED, inner.grid.points, 12)
    data = rf.explore(LabelledWorld(inner), FIXED, rf.Generative(), transitions=12)
    assert (data.state * 3 + data.action).tolist() == plan.tolist()
