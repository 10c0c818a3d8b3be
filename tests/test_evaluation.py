"""Exact values and gaps, against plain loops."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.evaluation.exact import gap_of_values
from value_cases import CLOSE, KINDS, drawn, plain_value, plain_value_of_actions, rewards


@pytest.mark.parametrize(("laws_by_step", "rewards_by_step"), KINDS)
def test_optimal_is_the_best_of_all_policies(laws_by_step, rewards_by_step):
    world = drawn(by_step=laws_by_step)
    reward = rewards(world, by_step=rewards_by_step)
    each = [
        plain_value_of_actions(world, np.array(flat).reshape(3, 3), reward)
        for flat in itertools.product(range(2), repeat=9)
    ]
    assert len(each) == 512
    np.testing.assert_allclose(rf.optimal_value(world, reward), np.max(each, axis=0), **CLOSE)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.sampled_from(KINDS))
def test_a_policys_value_is_that_of_the_loops(seed, s, a, horizon, kind):
    world = drawn(s, a, horizon, seed, by_step=kind[0])
    reward, rng = rewards(world, seed, by_step=kind[1]), np.random.default_rng(seed)
    actions = rng.integers(0, a, (horizon, s))
    expected = plain_value_of_actions(world, actions, reward)
    np.testing.assert_allclose(rf.policy_value(world, actions, reward), expected, **CLOSE)
    odds = rng.dirichlet(np.ones(a), (horizon, s))
    expected = plain_value(world, lambda h, i: odds[h, i], reward)
    np.testing.assert_allclose(rf.policy_value(world, odds, reward), expected, **CLOSE)
    assert np.all(rf.optimal_value(world, reward) >= expected - 1e-12)


def test_a_certain_random_policy_is_the_deterministic_one():
    world = drawn(4, 3, 5, by_step=True)
    actions = np.random.default_rng(0).integers(0, 3, (5, 4))
    reward = rewards(world)
    np.testing.assert_allclose(
        rf.policy_value(world, np.eye(3)[actions], reward), rf.policy_value(world, actions, reward), **CLOSE
    )


@pytest.mark.parametrize("by_step", [False, True])
def test_many_policies_at_once_are_one_by_one(by_step):
    world = drawn(4, 3, 5, by_step=by_step)
    reward, actions = rewards(world, by_step=by_step), np.random.default_rng(0).integers(0, 3, (2, 6, 5, 4))
    values, gaps = rf.policy_value(world, actions, reward), rf.gap(world, actions, reward)
    assert values.shape == (2, 6, 5, 4)
    assert gaps.start.shape == gaps.mean.shape == gaps.max.shape == (2, 6)
    for i, j in itertools.product(range(2), range(6)):
        np.testing.assert_allclose(values[i, j], rf.policy_value(world, actions[i, j], reward), **CLOSE)
        one = rf.gap(world, actions[i, j], reward)
        found = (gaps.start[i, j], gaps.mean[i, j], gaps.max[i, j])
        np.testing.assert_allclose(found, (one.start, one.mean, one.max), **CLOSE)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.floats(-3, 3), st.booleans())
def test_a_constant_shifts_the_optimum_by_horizon_times_it(seed, c, by_step):
    world = drawn(4, 3, 6, seed, by_step=by_step)
    reward = rewards(world, seed)
    left = 6 - np.arange(6)[:, None]  # steps to go
    shifted = rf.optimal_value(world, reward + c)
    np.testing.assert_allclose(shifted, rf.optimal_value(world, reward) + left * c, **CLOSE)
    np.testing.assert_allclose(shifted[0], rf.optimal_value(world, reward)[0] + 6 * c, **CLOSE)
    actions = np.random.default_rng(seed).integers(0, 3, (6, 4))
    before, after = (rf.gap(world, actions, r) for r in (reward, reward + c))
    np.testing.assert_allclose(
        (after.start, after.mean, after.max), (before.start, before.mean, before.max), **CLOSE
    )


def test_values_at_the_last_step_are_the_reward_alone():
    world = drawn(4, 3, 2)
    reward = rewards(world, by_step=True)
    assert np.array_equal(rf.optimal_value(world, reward)[1], reward[1].max(axis=-1))
    assert np.array_equal(rf.policy_value(world, np.ones((2, 4), int), reward)[1], reward[1][:, 1])


def test_a_walk_whose_value_is_known():
    """Action 1 goes one state up, action 0 stays; the top state pays 1: V*_h(s) counts the steps up there."""
    P = np.zeros((4, 2, 4))
    for s in range(4):
        P[s, 0, s] = P[s, 1, min(s + 1, 3)] = 1.0
    reward = np.zeros((4, 2))
    reward[3] = 1.0
    world = rf.FiniteWorld(P, horizon=6, start=0)
    expected = [[max(6 - h - (3 - s), 0) for s in range(4)] for h in range(6)]
    assert rf.optimal_value(world, reward).tolist() == expected
    lazy = rf.gap(world, np.zeros((6, 4), int), reward)
    assert (lazy.start, lazy.mean, lazy.max) == (3.0, 3.0, 5.0)  # losses 3, 4, 5, 0
    up = rf.gap(world, np.ones((6, 4), int), reward)
    assert (up.start, up.mean, up.max) == (0.0, 0.0, 0.0)


def test_a_gap_at_the_start_is_expected_over_the_start():
    start = np.array([0.5, 0.0, 0.2, 0.3])
    reward = rewards(drawn(4, 3, 5))
    actions = np.random.default_rng(1).integers(0, 3, (5, 4))
    loss = [rf.gap(drawn(4, 3, 5, start=s), actions, reward).start for s in range(4)]  # from each state
    world = drawn(4, 3, 5)
    best, own = rf.optimal_value(world, reward), rf.policy_value(world, actions, reward)
    np.testing.assert_allclose(loss, (best - own)[0], **CLOSE)
    gap = rf.gap(drawn(4, 3, 5, start=start), actions, reward)
    assert gap.start == pytest.approx(sum(p * lost for p, lost in zip(start, loss, strict=True)), abs=1e-12)
    assert gap.mean == pytest.approx(sum(loss) / 4, abs=1e-12) and gap.max == max(loss)
    assert rf.gap(drawn(4, 3, 5), actions, reward).start == pytest.approx(gap.mean, abs=1e-12)


def test_a_gap_of_one_policy_is_plain_numbers():
    world = drawn()
    gap = rf.gap(world, np.zeros((3, 3), int), rewards(world))
    assert {type(number) for number in (gap.start, gap.mean, gap.max)} == {float}
    assert 0.0 <= gap.mean <= gap.max


def test_gaps_of_values_keep_their_axes():
    world = drawn(start=[0.2, 0.3, 0.5])
    achieved = np.random.default_rng(0).random((4, 2, 3))
    gaps = gap_of_values(world, np.ones(3), achieved)
    for i, j in itertools.product(range(4), range(2)):
        loss = [1.0 - v for v in achieved[i, j]]
        assert gaps.start[i, j] == pytest.approx(0.2 * loss[0] + 0.3 * loss[1] + 0.5 * loss[2], abs=1e-15)
        assert gaps.mean[i, j] == pytest.approx(sum(loss) / 3, abs=1e-15) and gaps.max[i, j] == max(loss)


def test_the_greedy_policy_of_the_optimum_has_no_gap():
    world = drawn(5, 4, 6, by_step=True)
    reward = rewards(world, by_step=True)
    after = [*rf.optimal_value(world, reward)[1:], np.zeros(5)]
    greedy = np.array([(reward[h] + world.P[h] @ after[h]).argmax(axis=-1) for h in range(6)])
    assert rf.gap(world, greedy, reward).max < 1e-12


def test_a_plan_is_a_policy():
    world = drawn(5, 4, 3)
    reward = rewards(world)
    data = rf.explore(world, rf.Model(rf.kernels.Delta(), ridge=0.1), rf.Uniform(), episodes=10)
    plan = rf.plan(data, reward)
    np.testing.assert_array_equal(
        rf.policy_value(world, plan, reward), rf.policy_value(world, plan.actions, reward)
    )
    expected = plain_value_of_actions(world, plan.actions, reward)
    assert rf.gap(world, plan, reward).mean == pytest.approx(
        (rf.optimal_value(world, reward) - expected)[0].mean(), abs=1e-12
    )


def test_a_reward_may_be_a_function():
    world = drawn(4, 3, 2)
    table = world.states + world.actions.T**2
    for evaluate in (rf.optimal_value, lambda w, r: rf.policy_value(w, np.zeros((2, 4), int), r)):
        found = evaluate(world, lambda state, action: state[:, 0] + action[:, 0] ** 2)
        assert np.array_equal(found, evaluate(world, table))


@pytest.mark.parametrize(
    "policy",
    [
        np.zeros(3, int),
        np.zeros((2, 3), int),
        np.zeros((3, 4), int),
        np.zeros((3, 3)),  # actions must be whole numbers
        np.zeros((3, 3), bool),
        np.ones((3, 3, 3)) / 3,
        np.ones((2, 3, 2)) / 2,
        "up",
        None,
    ],
)
def test_a_policy_of_another_shape_is_refused(policy):
    world = drawn()
    said = r"a policy must be a plan, actions of shape \(3, 3\), or probabilities of shape \(3, 3, 2\), got"
    for ask in (rf.policy_value, rf.gap):
        with pytest.raises(ValueError, match=said):
            ask(world, policy, rewards(world))


@pytest.mark.parametrize(("action", "said"), [(2, r"got 0\.\.2"), (-1, r"got -1\.\.0")])
def test_actions_must_exist(action, said):
    actions = np.zeros((3, 3), int)
    actions[1, 2] = action
    with pytest.raises(ValueError, match=r"actions must lie in 0\.\.1, " + said):
        rf.policy_value(drawn(), actions, np.zeros((3, 2)))


@pytest.mark.parametrize("row", [[0.5, 0.4], [1.5, -0.5], [0.0, 0.0], [1.0, 1.0]])
def test_a_random_policy_must_be_distributions(row):
    odds = np.full((3, 3, 2), 0.5)
    odds[2, 1] = row
    with pytest.raises(ValueError, match="a random policy must have one distribution over actions"):
        rf.policy_value(drawn(), odds, np.zeros((3, 2)))


def test_a_random_policy_must_be_numbers():
    """NaN is neither negative nor off by more than 1e-9: it comes back as the value."""
    with pytest.raises(ValueError):
        rf.policy_value(drawn(), np.full((3, 3, 2), np.nan), np.zeros((3, 2)))


def test_no_policies_have_no_values():
    """zero-size array to reduction operation minimum which has no identity."""
    assert rf.policy_value(drawn(), np.zeros((0, 3, 3), int), np.zeros((3, 2))).shape == (0, 3, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rewards_are_checked(bad):
    world, reward = drawn(), np.full((3, 2), bad)
    for ask in (
        lambda: rf.optimal_value(world, reward),
        lambda: rf.policy_value(world, np.zeros((3, 3), int), reward),
        lambda: rf.gap(world, np.zeros((3, 3), int), reward),
        lambda: rf.describe(world, reward),
    ):
        with pytest.raises(ValueError, match="reward must be finite, got 6 NaN or infinite"):
            ask()
    with pytest.raises(ValueError, match=r"reward must have shape \(3, 2\) or \(3, 3, 2\)"):
        rf.optimal_value(world, np.zeros((2, 3)))
