"""Tabular exploration: against textbook loops, exact dynamic programming, and what the theory promises."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import reference_tabular as textbook
import rewardfree as rf
from rewardfree.baselines.jin import ReachingLearner
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.posterior import Counts, Lattice, Posteriors
from rewardfree.strategies.run_batch import RunBatch
from tabular_cases import CERTIFIED, DELTA, certified, rows, world


def chain(length, actions, horizon, slip=0.1):
    """The right one of several actions leads one state further, any other back to the first."""
    law = np.zeros((length, actions, length))
    law[:, :, 0] = 1.0
    for s in range(length - 1):
        right = s % actions
        law[s, right, 0], law[s, right, s + 1] = slip, 1.0 - slip
    return rf.FiniteWorld(law, horizon, 0)


# --- visit counts as posteriors ---


@settings(max_examples=40)
@given(st.data())
def test_counts_are_the_delta_kernel(data):
    """sum/(n + ridge) for any ridge, the average for none, and sigma/tau = 1/sqrt(n)."""
    z = np.arange(6.0)[:, None]
    counts = Counts(z, designs=2, capacity=1)
    ridged = Counts(z, ridge=0.5, designs=2)
    seen = [[], []]
    for _ in range(data.draw(st.integers(1, 6))):
        designs = data.draw(st.sampled_from([None, [1], slice(0, 1), [1, 0]]))
        numbers = np.arange(2)[slice(None) if designs is None else designs]
        added = data.draw(st.lists(st.integers(0, 5), min_size=len(numbers), max_size=len(numbers)))
        counts.append(designs, added)
        ridged.append(designs, added)
        for number, point in zip(numbers, added, strict=True):
            seen[number].append(point)
    assert counts.length() == max(map(len, seen))
    y = np.random.default_rng(0).standard_normal((2, counts.length(), 3))
    for g, points in enumerate(seen):
        n = np.bincount(points, minlength=6)
        assert counts.visits([g])[0].tolist() == n.tolist()
        own = y[g, : len(points)]
        for ridge in (0.5, 1e-9):
            expected = reference.mean(rf.kernels.Delta(), z[points], ridge, own, z)
            shrunk = counts.mean(y)[g] * (n / (n + ridge))[:, None]
            np.testing.assert_allclose(shrunk, expected, atol=1e-6 if ridge < 0.1 else 1e-12)
        expected = reference.mean(rf.kernels.Delta(), z[points], 0.5, own, z)
        np.testing.assert_allclose(ridged.mean(y)[g], expected, atol=1e-12)
        variance = reference.variance(rf.kernels.Delta(), z[points], 0.5, z)
        np.testing.assert_allclose(ridged.std()[g] ** 2, variance, atol=1e-12)
        tried, ridge = n > 0, 1e-5
        sigma = np.sqrt(reference.variance(rf.kernels.Delta(), z[points], ridge, z) / ridge)
        np.testing.assert_allclose(counts.std()[g][tried], sigma[tried], rtol=1e-4)
        assert (counts.mean(y)[g][n == 0] == 0.0).all() and (counts.std()[g][n == 0] == 1.0).all()
    some = np.array([[0, 5], [3, 3]])
    np.testing.assert_array_equal(counts.std(rows=some)[1], counts.std()[1, [3, 3]])
    np.testing.assert_array_equal(counts.mean(y, rows=some)[0], counts.mean(y)[0, [0, 5]])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30), st.data())
def test_a_law_grows_as_it_is_counted(samples, data):
    """In any pieces: exactly the shares of labels, so that no rounding adds up."""
    z, labels = np.array(samples).T
    counts, law, since = Counts(np.arange(4.0)[:, None]), None, 0
    while since < len(z):
        n = data.draw(st.integers(since + 1, len(z)))
        counts.extend_each(z[None, since:n])
        law = counts.of_labels(labels[None, :n], 3, since, before=law)
        since = n
    expected = np.zeros((3, 4))
    np.add.at(expected, (labels, z), 1.0)
    np.testing.assert_array_equal(law[0], expected / np.maximum(np.bincount(z, minlength=4), 1))
    value = np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(value @ law[0], counts.mean(value[labels][None, :, None])[0, :, 0], atol=1e-12)


def test_no_rounding_adds_up_in_a_law():
    labels = np.random.default_rng(0).integers(0, 3, (1, 300))
    counts, law = Counts(np.zeros((1, 1)), capacity=300), None
    for n in range(1, 301):  # 1/49 * 49 is not 1
        counts.append(None, [0])
        law = counts.of_labels(labels[:, :n], 3, n - 1, before=law)
        assert law[0, :, 0].tolist() == (np.bincount(labels[0, :n], minlength=3) / n).tolist()


def test_designs_of_different_lengths_have_laws_of_their_own():
    counts = Counts(np.arange(2.0)[:, None], designs=2)
    counts.extend_each([[0, 1], [0, 0]])
    counts.append([1], [1])
    law = counts.of_labels(np.array([[0, 1, 1], [1, 0, 0]]), 2)  # the last label of the first is not its own
    assert law.tolist() == [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 1.0], [0.5, 0.0]]]


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_laws_shrink_with_the_ridge(ridge):
    counts, labels, law = Counts(np.arange(2.0)[:, None], ridge=ridge), np.array([[0, 1, 1, 0, 1]]), None
    for n, point in enumerate([0, 0, 1, 0, 0], start=1):
        counts.append(None, [point])
        law = counts.of_labels(labels[:, :n], 2, n - 1, before=law)
    value = np.array([0.3, -1.0])
    np.testing.assert_allclose(value @ law[0], counts.mean(value[labels][..., None])[0, :, 0], atol=1e-12)


def test_whole_numbers_have_means_between_them():
    counts = Counts(np.zeros((1, 1)))
    counts.extend_each([[0, 0]])
    assert counts.mean(np.array([[[1], [2]]])).tolist() == [[[1.5]]]
    with pytest.raises(ValueError, match="at least one point, got none"):
        rf.Model(rf.kernels.Delta(), ridge=0.5).posteriors(np.zeros((0, 2)))


def test_a_delta_kernel_is_counted_where_points_are_distinct():
    model, z = rf.Model(rf.kernels.Delta(), ridge=0.5), np.arange(3.0)[:, None]
    assert isinstance(model.posteriors(z), Counts) and model.posteriors(z).ridge == 0.5
    assert isinstance(model.posteriors(np.zeros((2, 1))), Lattice)
    near = np.array([[0.1], [0.1 + 1e-12]])
    assert isinstance(model.posteriors(near), Counts)
    assert isinstance(model.posteriors(near, dtype="float32"), Lattice)
    assert isinstance(rf.Model(2.0 * rf.kernels.Delta(), ridge=0.5).posteriors(z), Lattice)
    assert isinstance(model.lattice(z), Lattice)


@pytest.mark.parametrize(
    "strategy", [rf.Qiu(0.3), rf.Online(0.3), rf.Generative(), rf.baselines.KernelRFUCRL(1.0)]
)
@pytest.mark.parametrize("options", [{}, {"pooled": True}, {"pooled": True, "timed": True, "centred": True}])
def test_a_delta_kernel_explores_and_plans_as_its_lattice_does(strategy, options, monkeypatch):
    w, reward = world(4, 3, 3, each_step=False), np.random.default_rng(0).random((4, 3))
    model, found = rf.Model(rf.kernels.Delta(), ridge=0.5, **options), []
    for posteriors in (rf.Model.posteriors, rf.Model.lattice):
        monkeypatch.setattr(rf.Model, "posteriors", posteriors)
        data = rf.explore(w, model, strategy, steps=150, seed=3)
        found.append((data, rf.plan(data, reward, rf.Optimistic(0.3))))
    (ours, plan), (theirs, expected) = found
    for column in ("state", "action", "next_state"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column))
    np.testing.assert_allclose(plan.values, expected.values, atol=1e-12)


def test_counts_are_posteriors_on_the_cpu():
    assert isinstance(Counts(np.zeros((2, 1))), Posteriors)
    with pytest.raises(ValueError, match="counts visits, on the CPU: leave device= out"):
        Counts(np.zeros((2, 1)), device="cuda")
    with pytest.raises(ValueError, match=r"candidate indices must lie in 0\.\.1, got 2"):
        Counts(np.zeros((2, 1))).append(None, [2])
    assert Counts(np.zeros((2, 1)), dtype="float32").std().dtype == np.float32


@pytest.mark.parametrize("pooled", [False, True])
def test_plans_are_exact_in_the_estimated_world(pooled):
    """P^ as a world of its own, with an absorbing state of no reward for what was never tried."""
    w = world(4, 3, 3, each_step=not pooled)
    model = rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=pooled)
    data = rf.explore(w, model, CERTIFIED[0], episodes=12, seed=3)
    law = np.zeros((3, 5, 3, 5))
    for h, s, a, following in rows(data):
        law[slice(None) if pooled else h, s, a, following] += 1.0
    law[law.sum(axis=-1) == 0.0, 4] = 1.0
    estimated = rf.FiniteWorld(law / law.sum(axis=-1, keepdims=True), 3, 0)
    for reward in np.random.default_rng(1).random((5, 3, 4, 3)):
        padded = np.concatenate([reward, np.zeros((3, 1, 3))], axis=1)
        plan = rf.plan(data, reward, rf.Mean())
        np.testing.assert_allclose(plan.values, rf.optimal_value(estimated, padded)[:, :4], atol=1e-12)


# --- the explorers are the textbook's ---


@pytest.mark.parametrize("each_step", [False, True])
@certified
def test_a_certified_run_is_the_textbooks(strategy, each_step):
    w = world(each_step=each_step, seed=4)
    express = isinstance(strategy, rf.baselines.RFExpress)
    errors = textbook.express_errors if express else textbook.ucrl_errors
    for seed in range(2):
        expected, stopped = textbook.certified_run(
            w,
            lambda table: errors(table, DELTA, strategy.bonus_scale),
            lambda e: (3 * math.e * math.sqrt(e) + e if express else e) <= strategy.epsilon / 2,
            seed,
            250,
        )
        data = rf.explore(w, strategy=strategy, episodes=250, seed=seed)
        assert rows(data) == expected
        assert data.stopped_by == ("accuracy" if stopped else "episodes") == "accuracy"
        assert data.kept.all()


@pytest.mark.parametrize("states", [1, 2])
def test_few_states(states):
    w = world(states=states, each_step=True)
    expected, _ = textbook.certified_run(
        w, lambda table: textbook.ucrl_errors(table, DELTA, 0.05), lambda e: e <= 0.25, 0, 100
    )
    assert rows(rf.explore(w, strategy=rf.baselines.RFUCRL(0.5, DELTA, 0.05), episodes=100)) == expected


def test_a_run_of_jin_is_the_textbooks():
    w = world(each_step=True, seed=2)
    expected = textbook.jin_run(w, 6, DELTA, 0.05, 5, 90)
    data = rf.explore(w, strategy=rf.baselines.Jin(6, DELTA, 0.05), episodes=90, seed=5)
    assert [(*row, kept) for row, kept in zip(rows(data), data.kept.tolist(), strict=True)] == expected
    assert data.kept.sum() == 3 * (90 - 54) and data.stopped_by == "episodes"


def test_every_goal_has_its_share_of_delta():
    """L = log(5 S A H T/(delta/(SH))), T = H episodes_per_goal steps."""
    jin, w = rf.baselines.Jin(6, 0.05), world(4, 2, 3)
    batch = RunBatch(w, jin.default_model(w), jin, [0], 72)
    for _ in batch.play():
        pass
    assert batch.notes["learner"].log_term == pytest.approx(math.log(5 * 4 * 2 * 3 * 18 / (0.05 / 12)))
    assert (batch.notes["learner"].last, batch.notes["learner"].goal) == (2, 3)


@pytest.mark.parametrize("log_term", [0.001, 3.0])  # the small one is below the cap of the last term
def test_the_bernstein_bonus_is_the_textbooks(log_term):
    """Values of a learner with data of its own, and that they never rise."""
    w, rng = world(4, 2, 4, each_step=True), np.random.default_rng(0)
    table = textbook.Table(4, 2, 4)
    model = rf.Model(rf.kernels.Delta(), ridge=1.0)
    estimate = FiniteEstimate(model, w.grid, 4, capacity=60, source=rf.baselines.Jin())
    learner, q = ReachingLearner(estimate, 3, 1, log_term, 0.5), {}
    for i in range(60):
        z, following = rng.integers(0, 8, (1, 4)), rng.integers(0, 4, (1, 4))
        learner.learn(z, following)
        for h in range(4):
            table.seen[h, *divmod(z[0, h], 2)].append(following[0, h])
        if i % 10 == 0:
            before, q = q, textbook.reach_q(table, 3, 1, log_term, 0.5, q)
            found = learner.plan()
            assert len(found) == 3
            for (h, s, a), value in q.items():
                assert found[h][0, s, a] == pytest.approx(value, abs=1e-12)
            assert all(value <= before.get(key, 1.0) for key, value in q.items())
    assert 0.0 < min(q.values()) < max(q.values()) <= 1.0


# --- what they promise ---


@certified
def test_stopping_times_grow_like_one_over_epsilon_squared(strategy):
    """tau ~ b(n)/epsilon^2, b logarithmic: the slope is a little above 2. And the plans keep the promise."""
    w = world(4, 2, 3, seed=1)
    epsilons = (
        np.array([1.0, 0.5, 0.25]) if isinstance(strategy, rf.baselines.RFUCRL) else np.array([2.0, 1.0, 0.5])
    )
    times = []
    for epsilon in epsilons:
        eager = type(strategy)(epsilon, DELTA, strategy.bonus_scale)
        runs = rf.explore_many(w, strategy=eager, seeds=range(3), episodes=20_000)
        assert {run.stopped_by for run in runs} == {"accuracy"}
        times.append(np.mean([run.episodes for run in runs]))
        rewards = np.random.default_rng(2).random((50, 3, 4, 2))
        rewards[::2] = (rewards[::2] > 0.8).astype(float)  # sharper ones
        for run in runs:
            plans = rf.plan_many(run, rewards, rf.Mean())
            gaps = [rf.gap(w, plan, reward).start for plan, reward in zip(plans, rewards, strict=True)]
            assert max(gaps) <= epsilon
    slope = -np.polyfit(np.log(epsilons), np.log(times), 1)[0]
    assert 2.0 <= slope <= 2.5


def worst_error(laws, estimated, start):
    """max |V^pi - V^^pi| at the start over all deterministic policies and all rewards in [0,1].

    The difference is linear in the reward, so the worst one is 1 where a policy is more often in one world.
    """
    H, S, A = len(laws), *laws[0].shape[:2]
    worst = 0.0
    for policy in itertools.product(range(A), repeat=H * S):
        policy = np.reshape(policy, (H, S))
        more = textbook.occupancy(laws, policy, start) - textbook.occupancy(estimated, policy, start)
        worst = max(worst, more[more > 0].sum(), -more[more < 0].sum())
    return worst


def broken_and_held(scale, checkpoints, runs=40):
    """Of so many runs, how often max_a E_1 was below the true worst error at some checkpoint."""
    broken = 0
    for seed in range(runs):
        w = world(2, 2, 3, seed=seed, each_step=True)
        strategy = rf.baselines.RFUCRL(1e-6, DELTA, scale)
        batch = RunBatch(w, strategy.default_model(w), strategy, [seed], checkpoints[-1])
        for _ in batch.play():
            pass
        bad = False
        for n in checkpoints:
            known = batch.after(n)
            estimated = [known.mean(h, np.eye(2)[None])[0].T.reshape(2, 2, 2) for h in range(3)]
            bound = strategy.at_start(strategy.bounds(known)[0], w.start)[0]
            bad |= worst_error([w.law(h) for h in range(3)], estimated, 0) > bound + 1e-12
        broken += bad
    return broken, runs


def test_the_bound_of_rf_ucrl_covers_every_policy_and_reward():
    """With the theory's constants in at least 1 - delta of the runs; with far smaller ones it does not."""
    broken, runs = broken_and_held(1.0, [5, 40, 160, 1000])  # from 160 on the bound is below its clip
    assert broken <= DELTA * runs
    broken, runs = broken_and_held(2e-3, [5, 40], runs=15)
    assert broken > DELTA * runs


def test_jin_reaches_what_can_be_reached():
    """Every (s,h) at least 1/(2SH) as often as the best policy for it: uniform actions do not manage that."""
    S, H, A = 4, 4, 5
    w = chain(S, A, H)
    reach = np.zeros((H, S))  # by dynamic programming for each goal
    for h, s in itertools.product(range(H), range(S)):
        reward = np.zeros((H, S, A))
        reward[h, s] = 1.0
        reach[h, s] = rf.optimal_value(w, reward)[0] @ w.start
    data = rf.explore(w, strategy=rf.baselines.Jin(120, DELTA, 0.02), samples_per_step=1000)
    other = rf.explore(w, rf.Model(rf.kernels.Delta(), ridge=1.0), rf.Uniform(), samples_per_step=1000)

    def share(run):
        found = np.zeros((H, S))
        np.add.at(found, (run.h[run.kept], run.state[run.kept]), 1.0 / 1000)
        return (found[reach > 0] / reach[reach > 0]).min()

    assert reach[3, 3] == pytest.approx(0.9**3)
    assert share(data) >= 1.0 / (2 * S * H) > share(other)
    assert data.samples.tolist() == [1000] * H and data.episodes == 16 * 120 + 1000
