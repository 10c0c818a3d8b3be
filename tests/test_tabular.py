"""Tabular exploration: against textbook loops, exact dynamic programming, and what the theory promises."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import reference_tabular as textbook
import rewardfree as rf
from reference_runs import small_world
from rewardfree.baselines.jin import ReachingLearner
from rewardfree.baselines.rf_ucrl import Sizes, express_width, ucrl_width
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.experiments.run_maps import maps_of
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache, SweepUnit
from rewardfree.posterior import Counts, Lattice, Posteriors
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.studies.coverage import errors_of_run

DELTA = 0.1
COLUMNS = ("h", "state", "action", "next_state")
CERTIFIED = [
    rf.baselines.RFUCRL(0.5, DELTA, bonus_scale=0.01),
    rf.baselines.RFExpress(1.0, DELTA, bonus_scale=1e-5),
]
ALL = [*CERTIFIED, rf.baselines.Jin(3, bonus_scale=0.05)]
named = pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: type(strategy).__name__)
certified = pytest.mark.parametrize("strategy", CERTIFIED, ids=lambda strategy: type(strategy).__name__)


def world(states=3, actions=2, horizon=3, **options):
    return small_world(states=states, actions=actions, horizon=horizon, **{"start": 0, **options})


def rows(data):
    return list(zip(*(getattr(data, name).tolist() for name in COLUMNS), strict=True))


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


# --- runs, budgets and stops ---


@named
def test_a_run_does_not_depend_on_its_batch(strategy):
    w = world(start=None)
    together = rf.explore_many(w, strategy=strategy, seeds=range(4), episodes=260)
    assert len({run.episodes for run in together}) > 1 or isinstance(strategy, rf.baselines.Jin)
    for run in (*rf.explore_many(w, strategy=strategy, seeds=range(4), episodes=260, batch=3), *together):
        alone = rf.explore(w, strategy=strategy, seed=run.seed, episodes=260)
        assert rows(run) == rows(alone) and run.stopped_by == alone.stopped_by
        assert run.kept.tolist() == alone.kept.tolist()


@certified
def test_nothing_after_a_stop_belongs_to_a_run(strategy):
    w = world(start=None)
    batch = RunBatch(w, strategy.default_model(w), strategy, range(4), 5000)
    assert list(batch.play())[-1] == 1.0
    assert batch.stopped.all() and len(set(batch.lasted)) > 1
    assert int(batch.now[0]) == batch.lasted.max() + 1  # a part of 250 rounds is not played to its end
    known = batch.after(5000)
    for h in range(3):
        assert known.visits(h).sum(axis=1).tolist() == batch.lasted.tolist()


@certified
def test_a_stop_ends_the_same_exploration_earlier(strategy):
    w = world()
    eager = type(strategy)(2.0 * strategy.epsilon, DELTA, strategy.bonus_scale)
    short, long = (rf.explore(w, strategy=each, episodes=500) for each in (eager, strategy))
    assert 0 < short.episodes < long.episodes < 500
    assert rows(short) == rows(long.first(episodes=short.episodes))
    capped = rf.explore(w, strategy=strategy, episodes=short.episodes)
    assert capped.stopped_by == "episodes" and rows(capped) == rows(short)
    with pytest.raises(ValueError, match=f"episodes must be at most the {short.episodes} of these data"):
        short.first(episodes=short.episodes + 1)


@certified
def test_the_rule_for_a_random_start_is_the_mean(strategy):
    start = np.array([0.5, 0.25, 0.25])
    first = np.array([[0.1, 0.4, 0.0, 0.2, 0.8, 0.3]])  # max_a: 0.4, 0.2, 0.8
    expected = 0.45 if isinstance(strategy, rf.baselines.RFUCRL) else 3 * math.e * math.sqrt(0.45) + 0.45
    assert strategy.at_start(first, start)[0] == pytest.approx(expected)
    w = world(start=start)
    data = rf.explore(w, strategy=strategy, episodes=2000)
    batch = RunBatch(w, data.model, strategy, [0], 2000)
    for _ in batch.play():
        pass
    assert data.stopped_by == "accuracy" and 0 < data.episodes < 2000
    for rounds, done in ((data.episodes, True), (data.episodes - 1, False)):
        bound = strategy.at_start(strategy.bounds(batch.after(rounds))[0], start)
        assert (bound[0] <= strategy.epsilon / 2) == done


def test_a_goal_that_is_met_without_data_needs_none():
    data = rf.explore(world(horizon=1), strategy=rf.baselines.RFUCRL(0.1, DELTA), episodes=10)
    assert (data.episodes, data.stopped_by) == (0, "accuracy")
    assert rf.plan(data, np.eye(3, 2)).actions.tolist() == [[0, 1, 0]]


def test_budgets_count_both_phases_of_jin():
    w = world()  # 9 goals
    each = {"samples_per_step": 20, "episodes": 40, "steps": 119}
    runs = {unit: rf.explore(w, strategy=rf.baselines.Jin(), **{unit: size}) for unit, size in each.items()}
    assert {run.strategy.episodes_per_goal for run in runs.values()} == {2}
    assert [run.episodes for run in runs.values()] == [38, 40, 40]
    assert [len(run) for run in runs.values()] == [114, 120, 119]
    for run in runs.values():
        assert not run.kept[:54].any() and run.kept[54:].all()
    pooled = rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=True)
    run = rf.explore(w, pooled, rf.baselines.Jin(), transitions=60)
    assert run.samples.tolist() == [60] and run.strategy.episodes_per_goal == 2
    with pytest.raises(ValueError, match=r"an episode for each of 9 goals \(s,h\), but episodes=17 leaves 8"):
        rf.explore(w, strategy=rf.baselines.Jin(), episodes=17)
    with pytest.raises(ValueError, match=r"steps must exceed the 81 of a first phase .* got 81"):
        rf.explore(w, strategy=rf.baselines.Jin(3), steps=81)


@named
def test_runs_are_stored_with_what_they_say(strategy, tmp_path):
    data = rf.explore(world(), strategy=strategy, episodes=200)
    data.save(tmp_path / "run.npz")
    again = rf.load(tmp_path / "run.npz")
    assert rows(again) == rows(data) and again.strategy == strategy and again.stopped_by == data.stopped_by
    reward = np.random.default_rng(0).random((3, 2))
    assert rf.plan(again, reward).values.tolist() == rf.plan(data, reward).values.tolist()


TOML = """
runs = 3
samples_per_step = [30, 60, 150]
worlds = [{{type = "sharpened_world", states = 4, actions = 3, horizon = 3, coarse = 4, start = 0}}]
models = [{{type = "Model", kernel = {{type = "Matern", nu = 1.5, lengthscale = 0.1}}, ridge = 0.5}}]
strategies = [{{name = "it", type = "{type}", {options}}}]
planners = [{{type = "Mean"}}, {{type = "Optimistic", beta = 0.1}}]
"""


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("RFUCRL", "epsilon = 0.8, delta = 0.1, bonus_scale = 0.01"),
        ("RFExpress", "epsilon = 2.0, delta = 0.1, bonus_scale = 1e-5"),
        ("Jin", "bonus_scale = 0.05"),
    ],
)
def test_sweeps_are_explore_plan_and_gap(kind, options, tmp_path):
    """Also where a run stops before a checkpoint: it keeps what it had."""
    (tmp_path / "small.toml").write_text(TOML.format(type=kind, options=options))
    units = [unit for unit in Sweep.load(tmp_path / "small.toml").units if isinstance(unit, SweepUnit)]
    records = [record for unit in units for record in unit.run(InstanceCache())]
    instance = rf.worlds.sharpened_world(states=4, actions=3, horizon=3, coarse=4, start=0)
    w, reward = instance.world, instance.reward
    values = dict(re.findall(r"(\w+) = ([\d.e-]+)", options))
    strategy = getattr(rf.baselines, kind)(**{name: float(value) for name, value in values.items()})
    model = rf.Model(rf.Matern(1.5, 0.1), ridge=0.5)
    planners = {"Mean": rf.Mean(), "Optimistic": rf.Optimistic(0.1)}
    runs = [rf.explore(w, model, strategy, samples_per_step=150, seed=seed) for seed in range(3)]
    stops = 0
    for record in records:
        data = runs[record.seed]
        n = min(record.samples, data.samples[0])
        stops += n < record.samples
        first = data.first(int(n))
        assert (record.episodes, record.steps) == (first.episodes, first.steps)
        plan = rf.plan(data.first(int(n)), reward, planners[record.planner])
        for measure in ("start", "mean", "max"):
            expected = getattr(rf.gap(w, plan, reward), measure)
            assert getattr(record, measure) == pytest.approx(expected, abs=1e-12)
    assert len(records) == 18 and (stops > 0) == (kind != "Jin")
    if kind == "Jin":
        assert {(r.samples, r.episodes, r.steps) for r in records} == {
            (n, n + 144, 3 * (n + 144)) for n in (30, 60, 150)
        }
    assert maps_of(units[0], InstanceCache())["sigma"].shape == (3, 3, 4, 3)


# --- numbers of the theory ---


@certified
def test_visits_needed_are_just_enough(strategy):
    """On a table in which every (s,a) was visited n times at every step, wherever it led."""
    small = type(strategy)(1.0, DELTA, 1e-5 if isinstance(strategy, rf.baselines.RFExpress) else 0.01)
    needed = small.visits_needed(3, 2, 3)
    for n in (needed, needed - 1):
        model = small.default_model(world())
        where = FiniteEstimate(model, world().grid, 3, capacity=6 * n, source=small)
        z = np.repeat(np.arange(6), n)
        following = np.random.default_rng(0).integers(0, 3, (3, 1, 6 * n))
        where.load([[z]] * 3, following)
        bound = small.at_start(small.bounds(where)[0], np.full(3, 1 / 3))[0]
        assert (bound <= 0.5) == (n == needed)
    assert needed > 3


def test_the_theorys_constants_ask_for_a_great_many():
    """RF-UCRL without clips: H(H-1)/2 sqrt(2b/n) <= epsilon/2."""
    n = rf.baselines.RFUCRL(0.1, DELTA).visits_needed(10, 4, 5)
    b = float(ucrl_width(n, Sizes(10, 4, 5), DELTA))
    assert n == pytest.approx(2 * b * (10 / 0.05) ** 2, rel=1e-6)
    assert rf.baselines.RFUCRL(0.1, DELTA).visits_needed(100, 100, 10) > 1e9
    m = rf.baselines.RFExpress(0.1, DELTA).visits_needed(10, 4, 5)
    b = float(express_width(m, Sizes(10, 4, 5), DELTA))
    w = (math.sqrt((3 * math.e) ** 2 + 4 * 0.05) - 3 * math.e) ** 2 / 4  # 3e sqrt(w) + w = 0.05
    assert m == pytest.approx(15 * 25 * b * sum(1.2**i for i in range(5)) / w, rel=1e-6)


def test_no_visits_are_needed_where_nothing_can_be_learnt():
    """One step: rewards are known, so no value is wrong. Or where every error is small enough."""
    assert rf.baselines.RFUCRL(0.1, DELTA).visits_needed(5, 3, 1) == 0
    assert rf.baselines.RFExpress(0.1, DELTA).visits_needed(5, 3, 1) > 0  # its bound does not know that
    assert rf.baselines.RFUCRL(6.0, DELTA).visits_needed(5, 3, 4) == 0  # E <= H-1 = 3 = epsilon/2
    assert rf.baselines.RFUCRL(5.9, DELTA).visits_needed(5, 3, 4) > 0


@certified
def test_more_visits_than_a_number_can_hold_are_refused(strategy):
    with pytest.raises(ValueError, match="epsilon must be larger: 1e-200 asks for more than"):
        type(strategy)(1e-200, DELTA).visits_needed(3, 2, 3)
    assert type(strategy)(1e-100, DELTA).visits_needed(3, 2, 3) > 1e200


def test_the_documents_print_those_numbers():
    text = (Path(__file__).parents[1] / "docs" / "baselines.md").read_text()
    lines = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) \| (\S+) \| (\S+) \|$", text, re.MULTILINE)
    assert len(lines) >= 4
    for S, A, H, epsilon, ucrl, express in lines:
        for strategy, printed in ((rf.baselines.RFUCRL, ucrl), (rf.baselines.RFExpress, express)):
            needed = strategy(float(epsilon), DELTA).visits_needed(int(S), int(A), int(H))
            assert f"{needed:.1e}" == printed


# --- what is refused ---


@pytest.mark.parametrize("kind", [rf.baselines.RFUCRL, rf.baselines.RFExpress])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive, got 0"),
        ({"epsilon": math.nan}, "epsilon must be finite"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1, got 0"),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1, got 1"),
        ({"bonus_scale": 0.0}, "bonus_scale must be positive, got 0"),
        ({"bonus_scale": -1.0}, "bonus_scale must be positive, got -1"),
        ({"ties": "first"}, 'ties must be "lowest" or "random"'),
    ],
)
def test_bad_options(kind, options, said):
    with pytest.raises(ValueError, match=said):
        kind(**{"epsilon": 0.5, "delta": 0.1, **options})
    if "epsilon" not in options:
        with pytest.raises(ValueError, match=said):
            rf.baselines.Jin(**options)


@pytest.mark.parametrize("episodes", [0, 2.5, "many", True])
def test_bad_numbers_of_episodes(episodes):
    with pytest.raises(ValueError, match="episodes_per_goal must be a whole number"):
        rf.baselines.Jin(episodes)


@named
def test_what_means_nothing_to_counts_is_refused(strategy):
    name = type(strategy).__name__
    for model, said in (
        (rf.Model(rf.AutoKernel()), "AutoKernel"),
        (rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=True, timed=True), "timed=True"),
    ):
        with pytest.raises(ValueError, match=f"{name} counts visits, for which {said}"):
            rf.explore(world(), model, strategy, steps=300)
    with pytest.raises(ValueError, match=f"{name} has posteriors of its own: leave out posterior="):
        rf.explore(world(), strategy=strategy, steps=300, posterior=lambda model: model.design())
    with pytest.raises(ValueError, match="measured of the model's own posteriors"):
        errors_of_run(world(), np.eye(3, 2), strategy.default_model(world()), strategy, 20)
    with pytest.raises(ValueError, match=f"{name} counts visits, on the CPU: leave device= out"):
        rf.explore(world(), strategy=strategy, steps=300, device="cuda")


class Line(rf.World):
    state = rf.Box.of(x=(0.0, 1.0))
    action = rf.Discrete(2, "a")
    horizon = 3

    def start(self, rng):
        return np.zeros(1)

    def sample(self, state, action, h, rng):
        return state, np.zeros(len(state), bool)


@named
def test_a_continuous_world_is_refused(strategy):
    name = type(strategy).__name__
    for model in ((), (rf.Model(rf.Matern(1.5), ridge=0.1, pooled=True),)):
        with pytest.raises(ValueError, match=rf"{name} is for finite worlds, rf.FiniteWorld: .* Scout\(\)"):
            rf.explore(Line(), *model, strategy=strategy, steps=10)


def test_a_kernel_changes_nothing():
    kernel, plain = (
        rf.explore(world(), model, CERTIFIED[0], episodes=300)
        for model in (rf.Model(rf.Matern(1.5, 0.1), ridge=0.5), None)
    )
    assert rows(kernel) == rows(plain)
    assert plain.model == rf.default_model(world(), CERTIFIED[0]) == rf.Model(rf.kernels.Delta(), ridge=1.0)
