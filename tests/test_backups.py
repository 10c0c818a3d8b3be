"""Every Bellman line against plain loops and known limits, and the two estimates against each other."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardfree as rf
from reference_runs import small_world
from rewardfree.estimates import Backup, FiniteEstimate, SampledEstimate, SampledRecursion
from rewardfree.estimates import backups as lines
from rewardfree.model import MODEL_POSTERIORS
from rewardfree.strategies import RunBatch
from rewardfree.worlds.scaling import ScaledModel
from rewardfree.worlds.world import LabelledWorld

#: Rounding of a few additions and multiplications of numbers near 1.
CLOSE = {"rtol": 0, "atol": 1e-14}
S, A, H = 6, 5, 4
RNG = np.random.default_rng(11)
R, MEAN, SIGMA = RNG.random((3, A)), 4.0 * RNG.random((3, A)) - 2.0, 0.9 * RNG.random((3, A))


def by_loops(line, *tables):
    """A line at every entry of some tables (3,a), by numbers alone."""
    q = np.empty((3, A))
    for i, a in itertools.product(range(3), range(A)):
        q[i, a] = line(*(float(table[i, a]) for table in tables))
    return q


# --- the lines ---


@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_bellmans_line_is_the_reward_and_what_is_expected_after_it(discount):
    expected = by_loops(lambda r, m: r + discount * m, R, MEAN)
    np.testing.assert_allclose(lines.bellman_q(R, MEAN.copy(), discount), expected, **CLOSE)


@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_nothing_is_expected_where_there_is_no_next_value(discount):
    assert lines.bellman_q(R, None, discount) is R
    assert lines.scout_q(SIGMA, None, discount) is SIGMA
    np.testing.assert_array_equal(lines.alg3_q(None, SIGMA, 0.3), 0.3 * SIGMA)
    np.testing.assert_array_equal(lines.qiu_q(None, SIGMA, 0.3, H), lines.qiu_q(0.0 * MEAN, SIGMA, 0.3, H))


@pytest.mark.parametrize(
    "line",
    [
        lambda mean: lines.bellman_q(R, mean, 0.7),
        lambda mean: lines.alg1_q(R, mean, SIGMA, 0.3, 4.0, 0.7),
        lambda mean: lines.alg1_q(None, mean, SIGMA, 0.3, 4.0),
        lambda mean: lines.alg3_q(mean, SIGMA, 0.3),
        lambda mean: lines.qiu_q(mean, SIGMA, 0.3, H),
        lambda mean: lines.scout_q(SIGMA, mean, 0.7),
    ],
    ids=["bellman", "alg1", "alg1 without a reward", "alg3", "qiu", "scout"],
)
def test_lines_are_computed_in_the_memory_of_the_mean_and_change_nothing_else(line):
    mean, before = MEAN.copy(), (R.copy(), SIGMA.copy())
    assert line(mean) is mean
    np.testing.assert_array_equal((R, SIGMA), before)


@pytest.mark.parametrize("discount", [1.0, 0.7])
@pytest.mark.parametrize("weight", [0.0, 0.4, -0.4, 50.0, -50.0])
def test_alg_1_adds_a_bonus_of_at_most_the_span(weight, discount):
    def line(r, mean, sigma):
        return r + discount * mean + max(-4.0, min(weight * sigma, 4.0))

    q = lines.alg1_q(R, MEAN.copy(), SIGMA, weight, 4.0, discount)
    np.testing.assert_allclose(q, by_loops(line, R, MEAN, SIGMA), **CLOSE)
    without = lines.alg1_q(None, MEAN.copy(), SIGMA, weight, 4.0, discount)
    np.testing.assert_allclose(q - without, R, **CLOSE)


def test_alg_1_has_a_span_for_each_reward():
    spans = np.array([[0.1], [0.5], [9.0]])
    q = lines.alg1_q(R, MEAN.copy(), SIGMA, 3.0, spans)
    for i, span in enumerate(spans[:, 0]):
        one = lines.alg1_q(R[i], MEAN[i].copy(), SIGMA[i], 3.0, float(span))
        np.testing.assert_array_equal(q[i], one)


def test_alg_1_without_a_bonus_is_bellmans_line():
    """With weight 0, without sigma, or with no room for a bonus."""
    expected = lines.bellman_q(R, MEAN.copy(), 0.7)
    for sigma, weight, span in ((SIGMA, 0.0, 4.0), (None, 0.3, 4.0), (SIGMA, 0.3, 0.0)):
        np.testing.assert_array_equal(lines.alg1_q(R, MEAN.copy(), sigma, weight, span, 0.7), expected)


def test_optimism_and_pessimism_lie_evenly_about_the_mean():
    up, down = (lines.alg1_q(R, MEAN.copy(), SIGMA, weight, 4.0) for weight in (0.8, -0.8))
    np.testing.assert_allclose(0.5 * (up + down), lines.bellman_q(R, MEAN.copy()), **CLOSE)
    assert (up > down).all()


@pytest.mark.parametrize("beta", [0.0, 0.3, 7.0])
def test_alg_3_is_rewarded_by_sigma_alone(beta):
    q = lines.alg3_q(MEAN.copy(), SIGMA, beta)
    np.testing.assert_allclose(q, by_loops(lambda mean, sigma: beta * sigma + mean, MEAN, SIGMA), **CLOSE)
    np.testing.assert_array_equal(q, lines.bellman_q(beta * SIGMA, MEAN.copy()))


@pytest.mark.parametrize("horizon", [1, 4])
@pytest.mark.parametrize("beta", [0.0, 0.3, 7.0, 1e9])
def test_qiu_is_paid_the_bonus_as_a_reward_and_again_as_optimism(beta, horizon):
    def line(mean, sigma):
        u = min(beta * sigma, horizon)
        return u / horizon + mean + u

    expected = by_loops(line, MEAN, SIGMA)
    np.testing.assert_allclose(lines.qiu_q(MEAN.copy(), SIGMA, beta, horizon), expected, **CLOSE)
    if beta == 1e9:  # more than everything that can be paid: u = H
        np.testing.assert_allclose(lines.qiu_q(None, SIGMA, beta, horizon), horizon + 1.0, **CLOSE)


def test_greedy_does_not_look_ahead():
    assert lines.greedy_q(SIGMA) is SIGMA


@pytest.mark.parametrize("discount", [1.0, 0.98])
def test_scout_is_rewarded_by_what_is_gained(discount):
    expected = by_loops(lambda gain, mean: gain + discount * mean, SIGMA, MEAN)
    np.testing.assert_allclose(lines.scout_q(SIGMA, MEAN.copy(), discount), expected, **CLOSE)


def test_lines_broadcast_over_rewards_and_runs():
    """As planning has them: sigma (b,1,z), the reward (c,z), the mean (b,c,z)."""
    mean, sigma, reward = RNG.random((2, 3, A)), RNG.random((2, 1, A)), RNG.random((3, A))
    q = lines.alg1_q(reward, mean.copy(), sigma, 0.3, 4.0)
    for b, c in itertools.product(range(2), range(3)):
        one = lines.alg1_q(reward[c], mean[b, c].copy(), sigma[b, 0], 0.3, 4.0)
        np.testing.assert_array_equal(q[b, c], one)


@given(
    st.lists(st.floats(-9.0, 9.0), min_size=1, max_size=6),
    st.floats(-5.0, 5.0),
    st.floats(0.0, 5.0),
)
def test_the_value_is_the_largest_of_the_clipped(q, low, width):
    clipped = max(min(max(entry, low), low + width) for entry in q)
    assert lines.state_value(np.array(q), low, low + width) == clipped


def test_values_may_have_limits_of_their_own():
    low, high = np.array([0.0, -1.0, 0.5]), np.array([0.2, 1.0, 0.6])
    value = lines.state_value(MEAN, low, high)
    assert value.shape == (3,)
    for i in range(3):
        assert value[i] == np.clip(MEAN[i], low[i], high[i]).max()


# --- what the remaining steps can pay ---


@pytest.mark.parametrize("discount", [1.0, 0.9, 0.5])
@pytest.mark.parametrize("may_end", [False, True])
def test_the_remaining_range_is_the_sum_over_the_steps(discount, may_end):
    low = RNG.random((3, H)) - 0.5
    high = low + RNG.random((3, H))
    before = low.copy(), high.copy()
    lowest, highest = lines.remaining_range(low, high, discount, may_end)
    for c, h in itertools.product(range(3), range(H)):
        least, most = (sum(discount**k * end[c, h + k] for k in range(H - h)) for end in (low, high))
        if may_end:
            least, most = min(least, 0.0), max(most, 0.0)
        assert lowest[c, h] == pytest.approx(least, abs=1e-14)
        assert highest[c, h] == pytest.approx(most, abs=1e-14)
    np.testing.assert_array_equal((low, high), before)


def test_the_remaining_range_of_unit_rewards_is_the_paper_s():
    lowest, highest = lines.remaining_range(np.zeros(H), np.ones(H))
    assert lowest.tolist() == [0.0] * H and highest.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_an_episode_that_may_end_can_always_pay_nothing():
    """Costs from 1 to 2: whoever stays pays, and who is thrown out does not."""
    lowest, highest = lines.remaining_range(np.full(H, -2.0), np.full(H, -1.0), may_end=True)
    assert lowest.tolist() == [-8.0, -6.0, -4.0, -2.0] and highest.tolist() == [0.0] * H
    assert lines.remaining_range(np.full(H, -2.0), np.full(H, -1.0))[1].tolist() == [-4.0, -3.0, -2.0, -1.0]


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.98])
def test_a_value_that_has_settled_is_near_the_solution_of_its_equation(discount):
    """The equation is linear here: E = g + discount P E is solved by elimination."""
    P = RNG.dirichlet(np.ones(7), size=7)
    gain = RNG.random(7)
    exact = np.linalg.solve(np.eye(7) - discount * P, gain)
    value = lines.settled(lambda e: gain + discount * P @ e, np.zeros(7), 10_000)
    # A change of at most c leaves an error of at most c discount / (1 - discount).
    assert np.abs(value - exact).max() <= lines.SETTLED_E * value.max() * discount / (1 - discount)
    np.testing.assert_array_equal(lines.settled(lambda e: gain + discount * P @ e, np.zeros(7), 1), gain)
    np.testing.assert_array_equal(lines.settled(lambda e: e, gain, 5), gain)
    asked = []
    lines.settled(lambda e: asked.append(e) or e + 1.0, gain, 3)
    assert len(asked) == 3


# --- what sigma is worth ---


def test_objectives_are_what_their_names_say():
    assert list(lines.OBJECTIVES) == ["sigma", "variance", "information"]
    assert lines.sigma_gain(SIGMA, 0.5) is SIGMA
    expected = by_loops(lambda sigma: sigma**2, SIGMA)
    np.testing.assert_allclose(lines.variance_gain(SIGMA, 0.5), expected, **CLOSE)
    expected = by_loops(lambda sigma: 0.5 * math.log(1.0 + sigma**2 / 0.5), SIGMA)
    np.testing.assert_allclose(lines.information_gain(SIGMA, 0.5), expected, **CLOSE)
    for name, gain in lines.OBJECTIVES.items():
        assert lines.objective_named(name) is gain


def test_the_information_that_a_sample_adds_is_that_of_the_determinants():
    kernel, ridge, z = rf.Matern(1.5, 0.3), 0.2, RNG.random((9, 2))
    for n in range(1, 9):
        design = rf.posterior.Design(kernel, ridge=ridge)
        design.extend(z[:n])
        added = lines.information_gain(design.std(z[n : n + 1]), ridge)[0]
        parts = [np.linalg.slogdet(np.eye(m) + kernel(z[:m], z[:m]) / ridge)[1] for m in (n, n + 1)]
        assert added == pytest.approx(0.5 * (parts[1] - parts[0]), abs=1e-12)


@pytest.mark.parametrize("name", ["entropy", "", "Sigma", None, 1])
def test_what_is_no_objective_is_refused(name):
    with pytest.raises(ValueError, match="objective must be one of sigma, variance, information, got"):
        lines.objective_named(name)


# --- one protocol, two forms ---

FEATURES = rf.posterior.PolynomialFeatures(2)
SOURCES = [
    MODEL_POSTERIORS,
    rf.baselines.Partitioned(0.1, alpha=1.0),
    rf.baselines.LinearRewardFree(FEATURES, 0.1),
]
KERNEL = rf.Matern(1.5, 0.3)
MODELS = [
    rf.Model(KERNEL, ridge=0.1, pooled=pooled, centred=centred)
    for pooled, centred in itertools.product((False, True), repeat=2)
]
WORLD = small_world(each_step=True, start=None, irregular=True)
EPISODES = 40


def estimates(model, source, episodes=EPISODES):
    """The same samples as a `FiniteEstimate` and as a `SampledEstimate`, and the inputs of every z (z,f)."""
    world = LabelledWorld(WORLD)
    data = rf.explore(world, model, rf.Uniform(), episodes=episodes, seed=2)
    sampled = SampledEstimate(data.spaces, ScaledModel.of_bounds(data.spaces, model), H, np.arange(A), source)
    finite = FiniteEstimate(model, WORLD.grid, H, capacity=episodes * H, source=source)
    z, next_states = [], []
    for h, rows in enumerate(data.designs()):
        samples = data.at(rows)
        sampled.load(h, samples)
        z.append([samples.state * A + samples.action])
        next_states.append([samples.next_state])
    finite.load(z, next_states)
    state, action = np.divmod(np.arange(S * A), A)
    points = sampled.points(state, action)
    np.testing.assert_array_equal(points, WORLD.grid.points)
    return finite, sampled, points


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"pooled={model.pooled}-centred={model.centred}")
def test_the_estimate_of_a_finite_world_is_that_of_the_same_world_by_samples(model, source):
    """mean, std and count of both, by the protocol alone."""
    finite, sampled, points = estimates(model, source)
    for h in range(H):
        seen = sampled.samples(h).next_state
        assert set(seen) == set(range(S))  # V is centred on the same midrange
        assert finite.count(h) == sampled.count(h) == len(seen) == EPISODES * (H if model.pooled else 1)
        for value in (RNG.random(S), 20.0 * RNG.random(S) - 5.0):
            ours, theirs = finite.mean(h, value[None, :, None])[0, 0], sampled.mean(h, value[seen])(points)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
        np.testing.assert_allclose(finite.std(h)[0], sampled.std(h)(points), rtol=0, atol=1e-10)
        assert finite.std(h).min() < 0.9 * sampled.prior_sigma


@pytest.mark.parametrize("pooled", [False, True])
def test_without_samples_both_have_a_mean_of_zero_and_the_priors_sigma(pooled):
    model = rf.Model(2.0 * KERNEL, ridge=0.1, pooled=pooled)
    finite, sampled, points = estimates(model, MODEL_POSTERIORS, episodes=1)
    empty = (
        FiniteEstimate(model, WORLD.grid, H),
        SampledEstimate(sampled.spaces, sampled.scaled, H, np.arange(A)),
    )
    for h in range(H):
        assert empty[0].count(h) == empty[1].count(h) == 0
        assert not empty[0].mean(h, RNG.random((1, S, 1))).any()
        assert empty[1].mean(h, np.zeros(0))(points) == 0.0
        assert empty[1].mean(h, np.zeros(0), around=2.5)(points) == 2.5
        np.testing.assert_allclose(empty[0].std(h)[0], math.sqrt(2.0), rtol=1e-15)
        np.testing.assert_allclose(empty[1].std(h)(points), math.sqrt(2.0), rtol=1e-15)
    assert finite.prior_sigma == sampled.prior_sigma == math.sqrt(2.0)


LINES = {
    "alg3": rf.Online(0.4).backup(H),
    "alg3, prior": rf.Online(0.4, empty="prior").backup(H),
    "qiu": rf.Qiu(0.7).backup(H, lambda: 1.0),
    "rf-ucrl": rf.baselines.KernelRFUCRL(0.7).backup(H, lambda: 1.0),
    "rf-express": rf.baselines.KernelRFExpress(0.7).backup(H, lambda: 1.0),
}


@pytest.mark.parametrize("backup", LINES.values(), ids=LINES)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("episodes", [EPISODES, 3])
def test_one_line_gives_one_q_on_both_kinds_of_world(backup, pooled, episodes):
    """By the recursion of a batch of finite runs, and by that of samples; and again by plain loops."""
    model = rf.Model(KERNEL, ridge=0.1, pooled=pooled)
    finite, sampled, _ = estimates(model, MODEL_POSTERIORS, episodes)
    batch = RunBatch(WORLD, model, rf.Uniform(), [0], 1)
    batch.estimate = finite
    last = H - 1
    q, recursion = batch.backwards(last, backup), SampledRecursion(sampled, last, backup)
    value = None
    for h in reversed(range(H)):
        low, high = backup.limits(H - h)
        theirs = recursion.q(h, np.arange(S))  # (a,s), clipped
        np.testing.assert_allclose(np.clip(q[h][0, 0].reshape(S, A).T, low, high), theirs, rtol=0, atol=1e-10)
        np.testing.assert_allclose(
            recursion.value(h, np.arange(S)), lines.state_value(theirs.T, low, high), rtol=0, atol=1e-12
        )
        around = (lambda k: 0.0) if backup.around is None else backup.around
        mean = None
        if value is not None:
            mean = around(last - h) + finite.mean(h, (value - around(last - h))[None, :, None])[0, 0]
        expected = backup.q(None, mean, finite.std(h)[0], H - h)
        np.testing.assert_allclose(q[h][0, 0], expected, rtol=0, atol=1e-10)
        value = np.clip(expected.reshape(S, A), low, high).max(axis=1)
    assert recursion.value(H, np.arange(S)).tolist() == [0.0] * S


def test_a_line_that_is_zero_without_data_differs_from_the_priors():
    finite = FiniteEstimate(rf.Model(KERNEL, ridge=0.1), WORLD.grid, H)
    batch = RunBatch(WORLD, finite.model, rf.Uniform(), [0], 1)
    batch.estimate = finite
    for backup, expected in ((LINES["alg3"], 0.0), (LINES["alg3, prior"], 0.4)):
        assert (batch.backwards(H - 1, backup)[H - 1] == expected).all()


def test_a_backup_says_what_a_recursion_needs():
    backup = Backup(lambda reward, mean, sigma, to_go: mean, lambda to_go: (0.0, 1.0))
    assert (backup.empty, backup.around, backup.uses_sigma) == ("prior", None, True)


def test_a_step_without_samples_is_worth_nothing_if_asked():
    values = np.array([[0.3, -2.0]])
    for empty, samples, right in (("zero", 0, 0 * values), ("zero", 1, values), ("prior", 0, values)):
        np.testing.assert_array_equal(lines.zero_without_data(values, empty, samples), right)


def test_nothing_follows_an_end():
    np.testing.assert_array_equal(
        lines.until_end(np.array([1.0, 2.0]), np.array([True, False])), np.array([0.0, 2.0])
    )
