"""One budget of four: which unit goes with which model, and what is said about a wrong one."""

from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.budget import UNITS, Budget

PER_STEP = rf.Model(rf.kernels.Delta(), ridge=1.0)
POOLED = rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=True)
OWN = {"samples_per_step": PER_STEP, "transitions": POOLED}


@settings(max_examples=20)
@given(st.sampled_from(UNITS), st.integers(1, 10**12))
def test_the_one_that_is_given(unit, size):
    for model in [OWN[unit]] if unit in OWN else [PER_STEP, POOLED]:
        others = {other: None for other in UNITS if other != unit}
        assert Budget.of(model, **{unit: size}) == Budget(unit, size)
        assert Budget.of(model, **others, **{unit: size}) == Budget(unit, size)


def test_four_units():
    assert UNITS == ("samples_per_step", "transitions", "episodes", "steps")


def test_a_size_is_a_plain_int():
    budget = Budget.of(PER_STEP, steps=np.int64(3))
    assert type(budget.size) is int
    with pytest.raises(FrozenInstanceError):
        budget.size = 4


@pytest.mark.parametrize("also", [{}, {"steps": 3}, {"transitions": 2}])
def test_a_pooled_model_names_transitions(also):
    with pytest.raises(
        ValueError,
        match="a pooled model has one design: use transitions= instead of samples_per_step=",
    ):
        Budget.of(POOLED, samples_per_step=2, **also)


@pytest.mark.parametrize("also", [{}, {"steps": 3}, {"samples_per_step": 2}])
def test_a_model_by_step_names_samples_per_step(also):
    with pytest.raises(
        ValueError,
        match="this model has a design for each step: use samples_per_step= instead of transitions=",
    ):
        Budget.of(PER_STEP, transitions=2, **also)


@pytest.mark.parametrize(
    ("model", "own", "given_", "came"),
    [
        (PER_STEP, "samples_per_step", {}, "none"),
        (PER_STEP, "samples_per_step", {"steps": None, "episodes": None}, "none"),
        (POOLED, "transitions", {}, "none"),
        (PER_STEP, "samples_per_step", {"steps": 2, "episodes": 3}, "steps=2, episodes=3"),
        (PER_STEP, "samples_per_step", {"samples_per_step": 1, "steps": 2}, "samples_per_step=1, steps=2"),
        (POOLED, "transitions", {"transitions": 1, "episodes": 0}, "transitions=1, episodes=0"),
    ],
)
def test_none_or_several_are_refused(model, own, given_, came):
    with pytest.raises(ValueError) as caught:
        Budget.of(model, **given_)
    assert str(caught.value) == f"give exactly one budget of {own}=, episodes= or steps=, got {came}"


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "3", np.nan, np.inf, [3, 4]])
@pytest.mark.parametrize("unit", UNITS)
def test_a_size_must_be_a_whole_number_of_at_least_one(unit, size):
    with pytest.raises(ValueError, match=f"{unit} must be a whole number"):
        Budget.of(OWN.get(unit, PER_STEP), **{unit: size})


@pytest.mark.parametrize("unit", ["samples_per_step", "episodes", "steps"])
def test_explore_and_first_say_the_same(unit):
    world = rf.FiniteWorld(np.full((2, 2, 2), 0.5), horizon=2)
    data = rf.explore(world, PER_STEP, rf.Uniform(), episodes=2)
    for ask in (lambda **size: rf.explore(world, PER_STEP, rf.Uniform(), **size), data.first):
        with pytest.raises(ValueError, match=f"{unit} must be a whole number of at least 1, got 0"):
            ask(**{unit: 0})
        with pytest.raises(ValueError, match="use samples_per_step= instead of transitions="):
            ask(transitions=1)
        with pytest.raises(ValueError, match="give exactly one budget of samples_per_step="):
            ask()


@pytest.mark.parametrize("size", [10**18, 1e308])
@pytest.mark.parametrize("unit", UNITS)
def test_a_size_that_nobody_could_wait_for_is_refused(unit, size):
    model = OWN.get(unit, PER_STEP)
    with pytest.raises(ValueError, match=f"{unit} must be at most 1,000,000,000,000, got 1"):
        Budget.of(model, **{unit: size})


class Still(rf.World):
    state, action, horizon = rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(u=(-1.0, 1.0)), 10**18

    def start(self, rng):
        return np.zeros(1)

    def sample(self, state, action, h, rng):
        return state, np.zeros(len(state), bool)


def test_a_horizon_that_nobody_could_wait_for_is_refused():
    said = "must be at most 1,000,000,000, got 1000000000000000000"
    short = type("Short", (Still,), {"horizon": 3})()
    data = rf.explore(short, strategy=rf.Uniform(), steps=6)
    for attempt in (
        lambda: rf.explore(Still(), strategy=rf.Uniform(), steps=3),
        lambda: rf.FiniteWorld(np.ones((1, 1, 1)), 10**18),
        lambda: rf.from_gymnasium("Pendulum-v1", horizon=10**18),
        lambda: rf.plan(data, "x", horizon=10**18),
        lambda: rf.rollouts(short, SimpleNamespace(act=np.zeros_like), "x", horizon=10**18),
        lambda: rf.worlds.corridor_world(states=6, actions=3, horizon=10**18),
    ):
        with pytest.raises(ValueError, match=f"horizon.* {said}"):
            attempt()
    with pytest.raises(ValueError, match="episodes must be at most"):
        rf.rollouts(short, short, "x", episodes=10**18)
