"""Plans against the textbook's loops, exact value iteration, and each other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_runs
import rewardfree as rf
from planning_cases import BY_STEP, EXPLORERS, PLANNERS, REWARD, explored, model
from reference_runs import small_world

CLOSE = {"rtol": 0, "atol": 1e-10}


def assert_textbook(data, reward, planner, table=None, **options):
    """`table` is the reward as an array, where it is not one."""
    found = rf.plan(data, reward, planner, **options)
    asked = {name: value for name, value in options.items() if value is not None}
    actions, values, _ = reference_runs.plan(data, reward if table is None else table, planner, **asked)
    assert found.actions.tolist() == actions.tolist()
    np.testing.assert_allclose(found.values, values, **CLOSE)
    return found


# --- against the textbook ---


@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("planner", PLANNERS, ids=repr)
@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_plans_are_the_textbooks(strategy, planner, pooled, centred):
    assert_textbook(explored(strategy, pooled, centred), REWARD, planner)


@pytest.mark.parametrize("planner", PLANNERS, ids=repr)
@pytest.mark.parametrize("discount", [0.9, 0.5, 1.0, 1])
def test_a_discount_is_the_textbooks(planner, discount):
    found = assert_textbook(explored(), REWARD, planner, discount=discount)
    whole = rf.plan(explored(), REWARD, planner)
    assert np.array_equal(found.values, whole.values) == (discount == 1)


@pytest.mark.parametrize("planner", PLANNERS, ids=repr)
@pytest.mark.parametrize(("pooled", "horizon"), [(False, 1), (False, 3), (False, 4), (True, 2), (True, 9)])
def test_another_horizon_is_the_textbooks(planner, pooled, horizon):
    """A shorter one plans the first steps; beyond the data's only a pooled model can go."""
    data = explored(pooled=pooled, each_step=not pooled)
    found = assert_textbook(data, REWARD, planner, horizon=horizon)
    assert found.horizon == horizon and found.actions.shape == found.values.shape == (horizon, 6)


def test_a_horizon_of_one_is_the_reward_alone():
    found = rf.plan(explored(), REWARD, rf.Mean(), horizon=1)
    assert found.actions[0].tolist() == REWARD.argmax(axis=1).tolist()
    np.testing.assert_allclose(found.values[0], REWARD.max(axis=1), rtol=1e-15)


OTHERS = [
    model(rf.SquaredExponential(0.4), 0.05),
    model(rf.Linear(bias=0.5), 0.1, centred=True),
    model(rf.NeuralTangent(2, bias=0.1), 0.3),
    model(ridge=0.02, pooled=True),
]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Qiu(0.1)], ids=repr)
def test_another_model_overrides_that_of_the_data(strategy, other):
    for planner in PLANNERS:
        found = assert_textbook(explored(strategy), REWARD, planner, model=other)
        assert not np.allclose(found.values, rf.plan(explored(strategy), REWARD, planner).values)


def test_pooled_data_can_be_planned_step_by_step():
    """Alg 3's pooled run kept a sample of every step in every round."""
    assert_textbook(explored(pooled=True), REWARD, rf.Optimistic(0.2), model=model())


def unit_square(state, action):
    """A function of coordinates (n,1) each."""
    return 0.5 * state[:, 0] + 0.5 * np.sin(3.0 * action[:, 0]) ** 2


@pytest.mark.parametrize("planner", PLANNERS, ids=repr)
def test_a_reward_may_be_a_table_for_each_step_a_list_or_a_function(planner):
    assert_textbook(explored(), BY_STEP, planner)
    assert_textbook(explored(), REWARD.tolist(), planner)
    axes = np.linspace(0, 1, 6), np.linspace(0, 1, 5)
    table = [[0.5 * s + 0.5 * np.sin(3.0 * a) ** 2 for a in axes[1]] for s in axes[0]]
    assert_textbook(explored(), unit_square, planner, table=table)


@pytest.mark.parametrize("planner", PLANNERS, ids=repr)
@pytest.mark.parametrize("steps", [1, 2, 5, 37])
@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1), rf.Qiu(0.1)], ids=repr)
def test_data_that_end_anywhere_are_the_textbooks(strategy, steps, planner):
    """Some steps then have more samples than others, and some have none: the prior speaks for them."""
    for centred in (False, True):
        assert_textbook(explored(strategy, centred=centred).first(steps=steps), REWARD, planner)


@pytest.mark.parametrize("beta", [0.0, 5.0, 1000.0])
@pytest.mark.parametrize("make", [rf.Optimistic, rf.Pessimistic])
def test_the_clips_are_the_textbooks(make, beta):
    """min(beta sigma, H), and Q between 0 and H."""
    found = assert_textbook(explored(), REWARD, make(beta))
    if beta == 1000.0:
        assert (found.values == (4.0 if make is rf.Optimistic else 0.0)).all()
        assert (found.actions == 0).all()


def test_a_bonus_is_at_most_the_horizon():
    """It shows only where the mean is far below zero, as a linear fit is at (1,0) that falls from (0,1) to
    (1,1): min(beta sigma, H) = 2 does not lift it to the clip, and beta sigma = 6 would."""
    world = rf.FiniteWorld(np.full((2, 2, 2), 0.5), horizon=2, start=0)
    # (step, state, action, next state): at the last step V is about 0 in state 0, and 2 in state 1.
    rows = np.array([(0, 0, 1, 1), (0, 1, 1, 0)] + [(1, 0, 1, 0)] * 50)
    yes = np.ones(len(rows), bool)
    about = (world.grid, 2, model(rf.Linear(), 0.05), rf.Uniform(), 0, np.arange(len(rows)))
    data = rf.Transitions(*about, *rows.T, ~yes, yes)
    found = assert_textbook(data, np.zeros((2, 2)), rf.Optimistic(20.0))
    assert found.values[1].tolist() == pytest.approx([0.632, 2.0], abs=1e-3)
    assert found.act(1, 0) == 1  # not a tie with action 0


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    strategy=st.sampled_from(EXPLORERS),
    planner=st.sampled_from([*PLANNERS, rf.Optimistic(0.1, ties="random"), rf.Pessimistic(2.0)]),
    steps=st.integers(1, 60),
    pooled=st.booleans(),
    discount=st.sampled_from([None, 0.8]),
)
def test_any_data_and_reward_are_the_textbooks(seed, strategy, planner, steps, pooled, discount):
    """Rewards of few levels, so that there are ties."""
    world = small_world(each_step=not pooled, start=None, seed=seed % 50)
    data = rf.explore(world, model(pooled=pooled), strategy, seed=seed, steps=steps)
    reward = np.random.default_rng(seed).integers(0, 3, (6, 5)) / 2
    assert_textbook(data, reward, planner, discount=discount, seed=seed)


def test_single_precision_is_close():
    exact, single = (rf.plan(explored(), REWARD, rf.Optimistic(0.3), dtype=d) for d in (None, np.float32))
    np.testing.assert_allclose(single.values, exact.values, rtol=0, atol=1e-4)


# --- the planners among themselves ---


@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1)], ids=repr)
@pytest.mark.parametrize("other", [rf.Optimistic(0), rf.Pessimistic(0.0)], ids=repr)
def test_the_mean_is_no_bonus(strategy, other):
    mean, without = (rf.plan(explored(strategy), REWARD, planner) for planner in (rf.Mean(), other))
    np.testing.assert_array_equal(mean.actions, without.actions)
    np.testing.assert_array_equal(mean.values, without.values)


@pytest.mark.parametrize("given", [False, True], ids=["the data's model", "a model"])
@pytest.mark.parametrize("pooled", [False, True])
def test_by_default_one_gets_the_mean_of_every_transition_centred_if_pooled(pooled, given):
    data = explored(pooled=pooled)
    default = rf.plan(data, REWARD, model=data.model if given else None)
    own = replace(data.model, centred=pooled)
    mean = rf.plan(data.using_all(), REWARD, rf.Mean(clip="range"), model=own)
    assert default.planner == rf.Mean(clip="range")
    np.testing.assert_array_equal(default.values, mean.values)
    assert not np.array_equal(default.values, rf.plan(data, REWARD, rf.Mean()).values)


def test_optimism_and_pessimism_lie_on_their_sides_at_the_last_step():
    """Nothing is behind it, so the order of the bonuses is that of the values."""
    low, middle, high = (
        rf.plan(explored(), 0.2 + 0.5 * REWARD, planner).values[-1]
        for planner in (rf.Pessimistic(0.1), rf.Mean(), rf.Optimistic(0.1))
    )
    assert (low < middle).all() and (middle < high).all()


def test_planners_are_values():
    assert rf.Optimistic(1) == rf.Optimistic(1.0) != rf.Pessimistic(1.0)
    assert rf.Mean() == rf.Mean() != rf.Mean(ties="random")
    assert len({rf.Mean(), rf.Mean(), rf.Optimistic(0.1), rf.Optimistic(0.1)}) == 2
    assert repr(rf.Optimistic(0.1)) == "Optimistic(beta=0.1, ties='lowest', clip='paper')"


# --- many at once ---


def assert_same_plan(one, other):
    assert one.actions.tolist() == other.actions.tolist()
    np.testing.assert_allclose(one.values, other.values, **CLOSE)
    assert (one.horizon, one.planner) == (other.horizon, other.planner)


@pytest.mark.parametrize("planner", [*PLANNERS, rf.Mean(ties="random")], ids=repr)
@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1)], ids=repr)
@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
def test_many_rewards_are_one_by_one(strategy, planner, pooled):
    """Also where some change with the step and others do not."""
    data = explored(strategy, pooled, centred=True)
    rewards = [REWARD, BY_STEP, 1.0 - REWARD, unit_square]
    options = {"discount": 0.9, "seed": 4}
    plans = rf.plan_many(data, rewards, planner, **options)
    assert len(plans) == 4
    for found, reward in zip(plans, rewards, strict=True):
        assert_same_plan(found, rf.plan(data, reward, planner, **options))


@pytest.mark.parametrize("planner", [rf.Optimistic(0.3), rf.Mean(ties="random")], ids=repr)
@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", [*EXPLORERS, rf.Generative(ties="random")], ids=repr)
def test_many_runs_are_one_by_one(strategy, pooled, planner):
    runs = [explored(strategy, pooled, seed=seed) for seed in (3, 4, 5)]
    rewards = [REWARD, 1.0 - REWARD]
    plans = rf.planning.plan_runs(runs, rewards, planner)
    assert [len(of_run) for of_run in plans] == [2, 2, 2]
    for of_run, run in zip(plans, runs, strict=True):
        for found, reward in zip(of_run, rewards, strict=True):
            assert_same_plan(found, rf.plan(run, reward, planner))


def test_runs_of_different_lengths_are_one_by_one():
    whole = explored(rf.Generative())
    runs = [whole, whole.first(4), explored(rf.Qiu(0.1)).first(steps=6), whole.first(steps=2)]
    for of_run, run in zip(rf.planning.plan_runs(runs, [REWARD]), runs, strict=True):
        assert_same_plan(of_run[0], rf.plan(run, REWARD))


@pytest.mark.parametrize(
    ("strategy", "pooled", "designs"),
    [
        (rf.Generative(), False, 1),
        (rf.Generative(), True, 1),
        (rf.Generative(ties="random"), False, 3),
        (rf.Qiu(0.1), False, 3 * 4),
        (rf.Qiu(0.1), True, 3),
    ],
    ids=repr,
)
def test_runs_with_the_same_points_share_one_factorisation(monkeypatch, strategy, pooled, designs):
    """Generative data have the same points in every step and run; random ties, in every step."""
    runs, made, lattice = [explored(strategy, pooled, seed=seed) for seed in (3, 4, 5)], [], rf.Model.lattice

    def counted(self, candidates, **options):
        made.append(options.get("designs", 1))
        return lattice(self, candidates, **options)

    monkeypatch.setattr(rf.Model, "lattice", counted)
    rf.planning.plan_runs(runs, [REWARD, 1.0 - REWARD], rf.Optimistic(0.1))
    assert sum(made) == designs


def test_no_runs_are_no_plans():
    assert rf.planning.plan_runs([], [REWARD]) == []


# --- exact limits ---


def by_hand(world, model, times, seed=0):
    """Every (s,a) so many times, from the first step's law."""
    (S, A), rng = world.grid.shape, np.random.default_rng(seed)
    state, action = np.tile(np.repeat(np.arange(S), A), times), np.tile(np.arange(A), S * times)
    following = world.sample(state, action, 0, rng.random(len(state)))
    yes = np.ones(len(state), bool)
    step, no_episode = np.zeros(len(state), int), np.full(len(state), -1)
    about = (world.grid, world.horizon, model, rf.Generative(), seed)
    return rf.Transitions(*about, no_episode, step, state, action, following, ~yes, yes)


@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("planner", [rf.Mean(), rf.Optimistic(1.0), rf.Pessimistic(1.0)], ids=repr)
def test_full_coverage_of_a_deterministic_world_is_value_iteration(planner, centred):
    """Delta kernel: the mean is V(s')/(1 + ridge), sigma^2 is ridge/(1 + ridge), and the ridge is tiny."""
    law = np.eye(6)[np.random.default_rng(1).integers(0, 6, (6, 5))]
    world = rf.FiniteWorld(law, horizon=4, start=0)
    data = by_hand(world, model(rf.kernels.Delta(), 1e-14, pooled=True, centred=centred), times=1)
    found = rf.plan(data, REWARD, planner)
    actions, values = reference_runs.value_iteration(world, REWARD)
    assert found.actions.tolist() == actions.tolist()
    np.testing.assert_allclose(found.values, values, rtol=0, atol=1e-6)  # sigma is 1e-7
    assert rf.gap(world, found, REWARD).max == pytest.approx(0.0, abs=1e-12)


def test_exploring_a_deterministic_world_with_a_delta_kernel_finds_the_optimum():
    """Alg 2 asks every (s,a) once before any again, for every step."""
    law = np.eye(6)[np.random.default_rng(2).integers(0, 6, (4, 6, 5))]
    world = rf.FiniteWorld(law, horizon=4, start=0)
    data = rf.explore(world, model(rf.kernels.Delta(), 1e-9), rf.Generative(), samples_per_step=30)
    actions, values = reference_runs.value_iteration(world, REWARD)
    found = rf.plan(data, REWARD)
    assert found.actions.tolist() == actions.tolist()
    np.testing.assert_allclose(found.values, values, rtol=0, atol=1e-7)


def test_a_delta_kernel_is_the_empirical_law():
    """Visits that count n + ridge: value iteration in the table of relative frequencies."""
    world, ridge, times = small_world(), 0.5, 7
    data = by_hand(world, model(rf.kernels.Delta(), ridge, pooled=True), times)
    law = np.zeros((6, 5, 6))
    for s, a, t in zip(data.state, data.action, data.next_state, strict=True):
        law[s, a, t] += 1.0 / (times + ridge)
    value = np.zeros(6)
    for _ in range(4):
        value = (REWARD + law @ value).max(axis=1)
    np.testing.assert_allclose(rf.plan(data, REWARD, rf.Mean()).values[0], value, **CLOSE)


@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("make", [rf.worlds.sharpened_world, rf.worlds.corridor_world])
def test_on_the_hard_worlds_exhaustive_data_are_enough(make, centred):
    """Planning matters there: the policy that looks at the reward alone loses nearly half, or more."""
    instance = make(states=30, actions=10)
    world, reward = instance.world, instance.reward
    optimal = rf.optimal_value(world, reward)[0]
    data = by_hand(world, model(rf.Matern(1.5, 0.1), pooled=True, centred=centred), times=5)
    gap = rf.gap(world, rf.plan(data, reward), reward)
    assert gap.start < 0.05 * (optimal @ world.start)
    assert gap.mean < 0.05 * optimal.mean()
    myopic = np.broadcast_to(reward.argmax(axis=1), (world.horizon, 30))
    assert rf.gap(world, myopic, reward).start > 0.4 * (optimal @ world.start)
