"""What `rf.describe` says of a world."""

import itertools

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.evaluation import description, myopic_gap, random_gap
from value_cases import CLOSE, KINDS, drawn, plain_value, plain_value_of_actions, rewards

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
