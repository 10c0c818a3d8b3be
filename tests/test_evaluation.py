"""Exact values against enumeration and plain loops, and the description of a world against its formulas."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.evaluation import description, myopic_gap, random_gap
from rewardfree.evaluation.exact import gap_of_values

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


# What describe says.


def plain_row_distance(P):
    rows = [row for state in P for row in state]
    mean = [sum(row[k] for row in rows) / len(rows) for k in range(P.shape[-1])]
    return sum(0.5 * sum(abs(p - m) for p, m in zip(row, mean, strict=True)) for row in rows) / len(rows)


def plain_entropy(P):
    rows = [row for state in P for row in state]
    return sum(-sum(p * np.log(p) for p in row if p > 0) for row in rows) / len(rows)


@pytest.mark.parametrize("by_step", [False, True])
def test_describe_is_its_formulas(by_step):
    world = drawn(5, 4, 3, by_step=by_step, start=[0.1, 0.2, 0.3, 0.4, 0.0])
    reward = rewards(world, by_step=by_step)
    found = rf.describe(world, reward)
    laws = world.P if by_step else [world.P]
    assert found.row_distance == pytest.approx(np.mean([plain_row_distance(P) for P in laws]), abs=1e-12)
    assert found.next_states == pytest.approx(np.mean([np.exp(plain_entropy(P)) for P in laws]), abs=1e-12)
    assert found.optimal == pytest.approx(world.start @ rf.optimal_value(world, reward)[0], abs=1e-12)
    assert found.norms is None


@pytest.mark.parametrize(("laws_by_step", "rewards_by_step"), KINDS)
def test_myopic_and_random_gaps_are_those_of_their_policies(laws_by_step, rewards_by_step):
    world = drawn(5, 4, 3, by_step=laws_by_step, start=[0.1, 0.2, 0.3, 0.4, 0.0])
    reward = rewards(world, by_step=rewards_by_step)
    found = rf.describe(world, reward)
    best = [
        [int(np.argmax((reward[h] if rewards_by_step else reward)[s])) for s in range(5)] for h in range(3)
    ]
    optimal = rf.optimal_value(world, reward)[0]
    for gap, values in (
        (found.myopic, plain_value_of_actions(world, best, reward)),
        (found.random, plain_value(world, lambda h, s: [0.25] * 4, reward)),
    ):
        loss = optimal - values[0]
        expected = (loss @ world.start, loss.mean(), loss.max())
        np.testing.assert_allclose((gap.start, gap.mean, gap.max), expected, **CLOSE)
    exact = rf.gap(world, np.array(best), reward)
    assert (found.myopic.start, found.myopic.max) == pytest.approx((exact.start, exact.max), abs=1e-12)


#: Two states, two actions, two steps, and whole eighths: small enough for a sheet of paper.
BY_HAND = np.array([[[1.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]])
HAND_CASES = {
    # Last step: V* = (1/2, 1), random (3/8, 7/8). First: Q* = ((1, 9/8), (3/2, 7/4)); argmax r is action 0 in
    # both states, and random actions have (7/8 + 1)/2 and (11/8 + 13/8)/2.
    "one reward": ([[0.5, 0.25], [1.0, 0.75]], [9 / 8 - 1, 7 / 4 - 3 / 2], [9 / 8 - 15 / 16, 7 / 4 - 3 / 2]),
    # Last step: V* = (1, 1/4), random (1/2, 1/8). First: Q* = ((5/4, 15/16), (7/4, 5/4)); argmax r_1 is
    # action 1 in both, and random actions have (3/4 + 23/32)/2 and (5/4 + 9/8)/2.
    "by step": (
        [[[0.25, 0.5], [0.75, 1.0]], [[1.0, 0.0], [0.0, 0.25]]],
        [5 / 4 - 15 / 16, 7 / 4 - 5 / 4],
        [5 / 4 - 47 / 64, 7 / 4 - 19 / 16],
    ),
}


def expected_return(P, r, odds, state, h=0):
    """Over every sequence of actions and states, one by one."""
    if h == len(r):
        return 0.0
    return sum(
        odds[h][state][a] * P[state][a][after] * (r[h][state][a] + expected_return(P, r, odds, after, h + 1))
        for a in range(2) for after in range(2)
    )  # fmt: skip


@pytest.mark.parametrize(("reward", "myopic", "random"), HAND_CASES.values(), ids=HAND_CASES.keys())
def test_myopic_and_random_gaps_by_hand(reward, myopic, random):
    world, reward = rf.FiniteWorld(BY_HAND, horizon=2, start=[0.25, 0.75]), np.array(reward)
    for found, loss in ((myopic_gap(world, reward), myopic), (random_gap(world, reward), random)):
        assert found.start == pytest.approx(0.25 * loss[0] + 0.75 * loss[1], abs=1e-15)
        assert found.mean == pytest.approx(sum(loss) / 2, abs=1e-15)
        assert found.max == pytest.approx(max(loss), abs=1e-15)


@pytest.mark.parametrize("reward", [case[0] for case in HAND_CASES.values()], ids=HAND_CASES.keys())
def test_myopic_and_random_gaps_by_every_path(reward):
    world, table = rf.FiniteWorld(BY_HAND, horizon=2), np.array(reward)
    r = np.broadcast_to(table, (2, 2, 2))
    certain = [np.eye(2)[np.reshape(flat, (2, 2))] for flat in itertools.product(range(2), repeat=4)]
    best = [max(expected_return(BY_HAND, r, odds, state) for odds in certain) for state in range(2)]
    for found, odds in (
        (myopic_gap(world, table), np.eye(2)[r.argmax(axis=-1)]),
        (random_gap(world, table), np.full((2, 2, 2), 0.5)),
    ):
        loss = [best[state] - expected_return(BY_HAND, r, odds, state) for state in range(2)]
        assert (found.start, found.mean, found.max) == pytest.approx(
            (sum(loss) / 2, sum(loss) / 2, max(loss))
        )
        assert {type(number) for number in (found.start, found.mean, found.max)} == {float}


def test_a_myopic_policy_takes_the_lowest_of_equal_actions():
    """Both actions pay the same, and only the second leads to where there is more."""
    P = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    for order, expected in [(slice(None), 0.5), (slice(None, None, -1), 0.0)]:
        world = rf.FiniteWorld(P[:, order], horizon=2, start=0)
        assert myopic_gap(world, np.array([[0.25, 0.25], [0.75, 0.75]])).start == expected


def test_policies_without_data_need_a_world_and_its_reward():
    world = rf.FiniteWorld(BY_HAND, horizon=2)
    for ask in (myopic_gap, random_gap):
        with pytest.raises(ValueError, match=r"reward must have shape \(2, 2\) or \(2, 2, 2\)"):
            ask(world, np.zeros((3, 2)))
        with pytest.raises(ValueError, match="reward must be finite"):
            ask(world, np.full((2, 2), np.nan))
        with pytest.raises(ValueError, match="world"):
            ask(BY_HAND, np.zeros((2, 2)))


def test_a_bandit_has_equal_rows():
    row = np.array([0.2, 0.5, 0.3])
    world = rf.FiniteWorld(np.tile(row, (3, 2, 1)), horizon=4)
    found = rf.describe(world, rewards(world))
    assert found.row_distance == pytest.approx(0.0, abs=1e-15)
    assert found.myopic.max == pytest.approx(0.0, abs=1e-12)  # nothing to plan for
    assert found.random.max > 0.01


@pytest.mark.parametrize("s", [1, 2, 7])
def test_uniform_rows_lead_to_all_states(s):
    world = rf.FiniteWorld(np.full((s, 3, s), 1.0 / s), horizon=2)
    assert rf.describe(world, rewards(world)).next_states == pytest.approx(s, rel=1e-14)


def test_certain_rows_lead_to_one_state():
    P = np.zeros((4, 2, 4))
    for s in range(4):
        P[s, 0, s] = P[s, 1, (s + 1) % 4] = 1.0
    found = rf.describe(rf.FiniteWorld(P, horizon=2), np.zeros((4, 2)))
    assert found.next_states == 1.0
    assert found.row_distance == pytest.approx(1 - 1 / 4, abs=1e-15)  # every state is reached equally often


def plain_norm(kernel, points, values):
    """sqrt(f^T K^-1 f), by eigenvalues."""
    weights, vectors = np.linalg.eigh(kernel(points, points))
    return np.sqrt(np.sum((vectors.T @ values) ** 2 / weights))


KERNELS = [
    rf.Matern(1.5, 0.2),
    rf.SquaredExponential(0.15),
    2.0 * rf.Matern(0.5, 0.5),
    rf.NeuralTangent(1) + rf.kernels.Delta(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("by_step", [False, True])
def test_norms_are_the_dense_ones(kernel, by_step):
    world = drawn(6, 5, 2, by_step=by_step)
    reward, z = rewards(world, by_step=by_step), world.grid.points
    reward[-1] *= 2.0  # so that of several steps the last has the largest norm
    norms = rf.describe(world, reward, kernel).norms
    tables = reward if by_step else [reward]
    laws = world.P if by_step else [world.P]
    of_laws = [[plain_norm(kernel, z, P[:, :, k].reshape(-1)) for k in range(6)] for P in laws]
    close = {"rel": 1e-6}  # the jitter of 1e-10 against eigenvalues of 1e-4 and more
    assert norms.reward == pytest.approx(max(plain_norm(kernel, z, r.reshape(-1)) for r in tables), **close)
    assert norms.law == pytest.approx(max(map(max, of_laws)), **close)
    assert norms.law_sum == pytest.approx(max(map(sum, of_laws)), **close)
    assert norms.one == pytest.approx(plain_norm(kernel, z, np.ones(30)), **close)
    assert norms.points == 30


def test_a_kernels_own_function_has_its_own_norm():
    """||sum_i w_i k(., z_i)||^2 = w^T K w."""
    world, kernel = drawn(6, 5), rf.Matern(2.5, 0.2)
    z, w = world.grid.points, np.random.default_rng(0).normal(size=30)
    K = kernel(z, z)
    norms = rf.describe(world, (K @ w).reshape(6, 5), kernel).norms
    assert norms.reward == pytest.approx(np.sqrt(w @ K @ w), rel=1e-6)
    assert rf.describe(world, K[7].reshape(6, 5), kernel).norms.reward == pytest.approx(1.0, rel=1e-6)


def test_norms_of_the_delta_kernel_are_euclidean():
    world = drawn(6, 5)
    reward = rewards(world)
    norms = rf.describe(world, reward, rf.kernels.Delta()).norms
    columns = np.sqrt((world.P**2).sum(axis=(0, 1)))
    assert norms.reward == pytest.approx(np.sqrt((reward**2).sum()), rel=1e-9)
    assert (norms.law, norms.law_sum) == pytest.approx((columns.max(), columns.sum()), rel=1e-9)
    assert norms.one == pytest.approx(np.sqrt(30), rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fewer_points_give_lower_bounds(kernel, monkeypatch):
    world = drawn(9, 8, seed=2)
    whole = rf.describe(world, rewards(world), kernel).norms
    for most in (1, 4, 9, 30, 71):
        monkeypatch.setattr(description, "MOST_POINTS", most)
        part = rf.describe(world, rewards(world), kernel).norms
        assert 1 <= part.points <= most < whole.points == 72
        for name in ("reward", "law", "law_sum", "one"):
            assert 0.0 < getattr(part, name) <= getattr(whole, name) * (1 + 1e-12)


def test_the_subset_is_spread_over_states_and_actions(monkeypatch):
    monkeypatch.setattr(description, "MOST_POINTS", 9)
    world, kernel = drawn(9, 9), rf.Matern(1.5, 0.2)
    norms = rf.describe(world, rewards(world), kernel).norms
    chosen = [9 * s + a for s in (0, 4, 8) for a in (0, 4, 8)]
    expected = plain_norm(kernel, world.grid.points[chosen], rewards(world).reshape(-1)[chosen])
    assert norms.points == 9 and norms.reward == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", [(10_000, 2), (2, 10_000), (5_000, 3), (100_000, 4)])
def test_a_long_grid_is_cut_to_the_most_points_as_well(shape):
    """int(2 * share) is 0 actions, made 1, while the states keep their whole share: 3535 points of 2500."""
    chosen = description._subset(shape)
    assert len(chosen) <= description.MOST_POINTS
    assert len(np.unique(chosen // shape[1])) > 1 and len(np.unique(chosen % shape[1])) > 1


def test_what_norms_say_of_the_assumption():
    norms = description.Norms(reward=3.0, law=1.0, law_sum=9.0, one=1.1, points=4)
    assert norms.assumption_1 and not norms.values_bounded
    norms = description.Norms(reward=3.0, law=1.01, law_sum=9.0, one=1.0, points=4)
    assert not norms.assumption_1 and norms.values_bounded


def test_a_description_can_be_read():
    world = drawn(6, 5, seed=1)
    reward = rewards(world)
    found = rf.describe(world, reward, rf.Matern(1.5, 0.2))
    text = str(found)
    numbers = [found.optimal, found.row_distance, found.norms.reward, found.norms.law, found.norms.one]
    numbers += [getattr(g, name) for g in (found.myopic, found.random) for name in ("start", "mean", "max")]
    assert [number for number in numbers if f"{number:.4f}" not in text] == []
    assert "on 30 points" in text and "Assumption 1, ||P(s'|.)|| <= 1:" in text
    assert "norms" not in str(rf.describe(world, reward))


def test_a_kernel_must_fit_the_worlds_points():
    world = drawn()
    with pytest.raises(ValueError, match="lengthscale has 3 entries, the points have 2"):
        rf.describe(world, rewards(world), rf.Matern(1.5, (0.1, 0.2, 0.3)))
    with pytest.raises(ValueError, match="a kernel must offer"):
        rf.describe(world, rewards(world), "matern")
