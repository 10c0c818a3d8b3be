"""What goes beyond the paper: planning by range, steps as a coordinate, kernels from data, and Scout."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import rewardfree as rf
from reference_runs import recorded
from reference_scout import (
    BOTH,
    BY_STEP,
    CLOSE,
    EXPLORERS,
    GAINS,
    KERNEL,
    MEAN,
    RANGE,
    REWARD,
    RNG,
    SURE,
    TIMED,
    A,
    H,
    S,
    a_world,
    assert_same_plan,
    auto,
    explored,
    model,
    same_data,
    scout_tables,
    textbook,
    textbook_run,
)
from rewardfree.data import Samples
from rewardfree.dynamics import ExplorationValue
from rewardfree.estimates import FiniteEstimate
from rewardfree.estimates.backups import OBJECTIVES
from rewardfree.model import MODEL_POSTERIORS, SeparatePosteriors
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.worlds.spaces import Spaces

MODELS = [model(), model(centred=True), model(pooled=False, centred=True), TIMED]


# --- planning by range ---


@pytest.mark.parametrize("planner", RANGE, ids=repr)
@pytest.mark.parametrize("each", MODELS, ids=repr)
def test_plans_by_range_are_the_textbooks(planner, each):
    for reward in (REWARD, BY_STEP, (REWARD > 0.5) * 1.0, -7.0 * REWARD):
        for discount in (1.0, 0.8):
            found = rf.plan(explored(each), reward, planner, discount=discount)
            assert_same_plan(found, textbook(explored(each), reward, planner, each, discount=discount))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    planner=st.sampled_from(RANGE),
    constant=st.floats(-20.0, 20.0),
    discount=st.sampled_from([1.0, 0.7]),
    by_step=st.booleans(),
    each=st.sampled_from(MODELS[1:]),
)
def test_what_is_paid_anyway_changes_no_policy(seed, planner, constant, discount, by_step, each):
    data = explored(each, seed=seed % 7)
    reward = np.random.default_rng(seed).random((H, S, A) if by_step else (S, A))
    one, other = (rf.plan(data, r, planner, discount=discount) for r in (reward, reward + constant))
    paid = constant * np.array([sum(discount**k for k in range(H - h)) for h in range(H)])
    np.testing.assert_allclose(other.values, one.values + paid[:, None], rtol=0, atol=1e-8)
    assert one.actions.tolist() == other.actions.tolist()


def test_without_centring_what_is_paid_anyway_does_matter():
    one, other = (rf.plan(explored(model()), r, MEAN).actions for r in (REWARD, REWARD + 20.0))
    assert one.tolist() != other.tolist()


def test_a_bonus_is_at_most_the_range_of_what_can_be_paid():
    """It shows where a mean is far beyond that: here a linear kernel's, with two samples of each step."""
    each, data = model(rf.Linear(), 1e-3, pooled=False), explored(model(), seed=0).first(steps=2 * H)
    for make, reward in zip(BOTH, (REWARD, -7.0 * REWARD), strict=True):
        planner = make(50.0, clip="range")
        assert_same_plan(rf.plan(data, reward, planner, each), textbook(data, reward, planner, each))


# --- centring, pooling, and steps as a coordinate ---


def filled(model, *runs, **options):
    """The one regression of each of some runs."""
    own = FiniteEstimate(model, runs[0].grid, H, runs=len(runs), capacity=len(runs[0]), **options)
    z = [run.points(np.arange(len(run)), model.timed) for run in runs]
    own.load([z], [[run.next_state for run in runs]])
    return own


def test_centring_is_the_regression_of_what_differs_from_the_midrange():
    data, values = explored(model()), 5.0 + RNG.random((1, S, 2))
    plain, centred = (filled(model(centred=yes), data) for yes in (False, True))
    x, c = data.grid.points, 0.5 * (values.min(axis=1) + values.max(axis=1))
    seen, symmetric = x[data.state * A + data.action], values - c[:, None]
    expected = c + reference.mean(KERNEL, seen, 0.3, symmetric[0, data.next_state], x)
    for h in range(H):
        np.testing.assert_allclose(centred.mean(h, values)[0], expected.T, **CLOSE)
        np.testing.assert_allclose(centred.mean(h, symmetric), plain.mean(h, symmetric), rtol=0, atol=1e-14)
        assert np.abs(centred.mean(h, values) - plain.mean(h, values)).max() > 0.1


def test_with_data_of_one_step_pooling_changes_nothing():
    data = dataclasses.replace(explored(model()), h=np.zeros(8 * H, int))
    for planner, horizon in ((MEAN, 2), (rf.Optimistic(0.5), 1)):  # the other steps have no data
        plans = [rf.plan(data, REWARD, planner, model(pooled=each), horizon) for each in (True, False)]
        assert_same_plan(*plans, atol=1e-12)


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_exploring_and_planning_with_a_timed_model_are_the_textbooks(strategy):
    for seed in (0, 1):
        data = rf.explore(a_world(True, seed=seed), TIMED, strategy, transitions=3 * H, seed=seed)
        assert recorded(data) == recorded(textbook_run(a_world(True, seed=seed), TIMED, strategy, 3, seed))
        for planner in (rf.Optimistic(0.5), *RANGE):
            assert_same_plan(rf.plan(data, REWARD, planner), textbook(data, REWARD, planner, TIMED))


@pytest.mark.parametrize(("length", "other"), [(1e6, model()), (1e-3, model(pooled=False))], ids=repr)
def test_a_timed_model_lies_between_one_regression_and_one_for_each_step(length, other):
    timed = model(rf.Matern(1.5, (length, 0.3, 0.3)), timed=True)
    for planner in RANGE:
        plans = [rf.plan(explored(model()), BY_STEP, planner, model=each) for each in (timed, other)]
        assert_same_plan(*plans, atol=1e-7)


@pytest.mark.parametrize(
    "source", [MODEL_POSTERIORS, SeparatePosteriors(rf.Model.design)], ids=["lattice", "designs"]
)
@pytest.mark.parametrize("each", [TIMED, model(centred=True)], ids=repr)
def test_a_question_about_some_rows_is_one_about_all(each, source):
    runs, values = [explored(each, seed=seed) for seed in (1, 2)], RNG.random((2, S, 3))
    own, rows = filled(each, *runs, source=source), np.array([[0, 7, 39], [12, 12, 3]])
    for h in range(H):
        std, mean = own.std(h), own.mean(h, values)
        assert std.shape == (2, S * A) and mean.shape == (2, 3, S * A)
        np.testing.assert_allclose(own.std(h, rows), np.take_along_axis(std, rows, 1), **CLOSE)
        some = np.take_along_axis(mean, rows[:, None], 2)
        np.testing.assert_allclose(own.mean(h, values, rows), some, **CLOSE)


def test_a_plan_counts_steps_as_the_data_do():
    """Also for fewer of them, and where an episode has one."""
    for horizon in (1, 2, 3):
        found = rf.plan(explored(TIMED), REWARD, SURE, horizon=horizon)
        assert_same_plan(found, textbook(explored(TIMED), REWARD, SURE, TIMED, horizon=horizon))
    data = rf.explore(rf.FiniteWorld(a_world().P, 1), TIMED, rf.Scout(), episodes=6)
    assert_same_plan(rf.plan(data, REWARD, SURE), textbook(data, REWARD, SURE, TIMED))
    assert rf.plan(explored(TIMED), REWARD, SURE, model(), H + 1).horizon == H + 1


# --- Scout ---


@pytest.mark.parametrize("each", MODELS, ids=repr)
@pytest.mark.parametrize("objective", [*OBJECTIVES, None])
def test_scouts_are_the_textbooks(objective, each):
    """By default the variance, on finite worlds. The first episode is all ties, drawn from their stream."""
    strategy, world = rf.Scout(objective), a_world(each.timed)
    for seed in (0, 1):
        run = textbook_run(world, each, strategy, 6, seed)
        assert recorded(rf.explore(world, each, strategy, episodes=6, seed=seed)) == recorded(run)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_exploration_value_is_clipped_to_what_can_be_gained(objective):
    """Number by number, with a smooth kernel that promises more than that, or less than nothing."""
    clipped = np.zeros(2)
    for rounds, seed, centred in ((1, 3, False), (1, 3, True), (2, 8, True), (2, 6, True)):
        about = (a_world(), model(rf.SquaredExponential(0.8), 1e-3, centred=centred), rf.Scout(objective))
        batch = RunBatch(*about, [seed], rounds)
        assert list(batch.play())[-1] == 1.0
        tables, now = scout_tables(textbook_run(*about, rounds, seed))
        for h, found in batch.exploration(OBJECTIVES[objective]).items():
            np.testing.assert_allclose(found.reshape(S, A), tables[h], rtol=0, atol=1e-8)
        clipped = np.maximum(clipped, now)
    assert (clipped > 1e-3).all()


@pytest.mark.parametrize("each", [model(), TIMED, auto(), auto(timed=True)], ids=repr)
def test_runs_of_scout_are_their_own_and_begin_as_shorter_ones(each):
    world = a_world(True, start=1)
    runs = rf.explore_many(world, each, rf.Scout(), seeds=[4, 0, 4], episodes=9)
    for run in runs:
        assert same_data(run, rf.explore(world, each, rf.Scout(), seed=run.seed, episodes=9))
        for sizes in ({"episodes": 3}, {"steps": 7}, {"transitions": 33}):
            assert same_data(run.first(**sizes), rf.explore(world, each, rf.Scout(), seed=run.seed, **sizes))
    assert same_data(runs[0], runs[2]) and not same_data(runs[0], runs[1])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("each", [model(rf.Matern(1.5, 0.2), 0.1), auto()], ids=["fixed", "auto"])
def test_scout_finds_the_end_of_a_corridor_where_chance_does_not(each, objective):
    instance = rf.worlds.corridor_world(states=20, actions=8, horizon=8)
    world, reward = instance.world, instance.reward

    def lost(strategy):
        runs = rf.explore_many(world, each, strategy, seeds=range(4), episodes=15)
        gaps = [rf.gap(world, rf.plan(run, reward), reward).start for run in runs]
        return np.mean(gaps) / (rf.optimal_value(world, reward)[0] @ world.start)

    assert lost(rf.Scout(objective)) < 0.25
    assert lost(rf.Uniform()) > 0.6


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_on_real_states_the_gain_of_exploration_is_its_objectives(objective):
    rng = np.random.default_rng(0)
    (state, action), at = rng.uniform(-1.0, 1.0, (2, 30, 1)), rng.uniform(-1.0, 1.0, (2, 9, 1))
    seen = Samples(state, action, 0.9 * state + 0.3 * action, np.zeros(30, bool))
    spaces = Spaces(rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(push=(-1.0, 1.0)))
    found = ExplorationValue(spaces, model(rf.Matern(2.5, 0.5), 0.02), seen, OBJECTIVES[objective])
    expected = GAINS[objective](found.sigma(*at), 0.02)
    assert expected.min() > 0.0
    np.testing.assert_allclose(found.gain(*at), expected, rtol=1e-12)
    q, _ = found.choices(found.mesh.nodes)  # E solves its equation
    np.testing.assert_allclose(q.max(axis=0), found.value, rtol=0, atol=1e-3 * found.value.max())
