"""Baselines with posteriors of their own, and kernel analogues of tabular ones, against textbook loops."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import reference_partition
import reference_runs
import rewardfree as rf
from kernel_baseline_cases import (
    ANALOGUES,
    AUTO,
    FEATURES,
    KERNEL,
    LINEAR,
    MODEL,
    PARTITIONED,
    POOLED,
    REWARD,
    explored,
    same,
)
from reference_runs import Run, small_world
from reference_worlds import Puck
from rewardfree.posterior import Lattice
from test_features import KernelOf

# --- by the textbook ---


class PartitionRun(Run):
    """Means and sigmas from the samples of own cells, each cell from scratch."""

    def _predictions(self, h, value):
        z, grid = self.samples_of(h), self.world.grid.points
        alpha = 3.0 if self.strategy.alpha == "kernel" else self.strategy.alpha
        box = (grid.min(axis=0), grid.max(axis=0))
        seen = grid[[each for each, _ in z]].reshape(-1, 2)
        y = np.array([value[following] for _, following in z]).reshape(-1, 1)
        options = (alpha, self.strategy.drop, *box)
        mean, variance = reference_partition.predictions(KERNEL, seen, 0.5, y, grid, *options)
        return mean[:, 0], np.sqrt(np.maximum(variance, 0.0))

    def sigma(self, h):
        found = self._predictions(h, np.zeros(self.states))[1]
        return (0.0 if self.is_zero(h) else 1.0) * found.reshape(self.states, self.actions)

    def mean(self, h, value):
        return self._predictions(h, value)[0].reshape(self.states, self.actions)


@pytest.mark.parametrize(("model", "start"), [(MODEL, 2), (POOLED, None)], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", PARTITIONED, ids=repr)
def test_partitioned_is_the_textbooks(strategy, model, start):
    world = small_world(irregular=True, start=start)
    rounds = 7 if model.pooled else 14
    run = PartitionRun(world, model, strategy, 3, rounds, world.horizon)
    reference_runs.qiu(run)
    same(explored(strategy, model, rounds, world), run)


@pytest.mark.parametrize("strategy", PARTITIONED, ids=repr)
def test_partitioned_plans_from_own_cells(strategy):
    data = explored(strategy, rounds=20)
    run = PartitionRun(small_world(irregular=True), MODEL, strategy, 3, 20, 4)
    run.samples = reference_runs.kept_samples(data, pooled=False)
    value, H, actions, values = np.zeros(6), 4, [], []
    for h in reversed(range(H)):
        mean, sigma = run._predictions(h, value)
        q = np.clip(REWARD + (mean + np.minimum(0.3 * sigma, H)).reshape(6, 5), 0.0, H)
        actions.insert(0, [reference_runs.pick(list(row)) for row in q])
        value = q.max(axis=1)
        values.insert(0, value)
    plan = rf.plan(data, REWARD, rf.Optimistic(0.3))
    np.testing.assert_allclose(plan.values, values, rtol=0, atol=1e-11)
    assert plan.actions.tolist() == actions
    whole = rf.plan(data, REWARD, rf.Optimistic(0.3), model=MODEL)  # the posterior of that model instead
    _, expected, _ = reference_runs.plan(data, REWARD, rf.Optimistic(0.3))
    np.testing.assert_allclose(whole.values, expected, rtol=0, atol=1e-11)
    assert np.abs(whole.values - plan.values).max() > 1e-3


def error_tables(run, express):
    """E_h = min(H-1-h, beta sigma + mean[max E]) or W_h = min(H, beta^2 sigma^2 + (1+1/H) mean[max W]).

    Regressed around what E_{h+1} is where nothing is known: sigma = sqrt(k(z,z)) at every step.
    """
    prior = math.sqrt(run.model.kernel(np.zeros((1, 2)))[0, 0])
    H, beta, tables, value, unknown = run.horizon, run.strategy.beta, {}, None, 0.0
    for h in reversed(range(H)):
        bonus = beta**2 * run.sigma(h) ** 2 if express else beta * run.sigma(h)
        growth, later = 1.0 + 1.0 / H if express else 1.0, 0.0
        if value is not None:
            later = growth * (unknown + run.mean(h, value - unknown))
        most = H if express else H - 1 - h
        e = np.clip(bonus + later, 0.0, most)
        unknown = min(most, ((beta * prior) ** 2 if express else beta * prior) + growth * unknown)
        tables[h], value = e.tolist(), e.max(axis=1)
    return tables


@pytest.mark.parametrize("beta", [0.7, 3.0])
@pytest.mark.parametrize(
    "model",
    [MODEL, POOLED, replace(POOLED, centred=True), replace(MODEL, kernel=0.3 * KERNEL)],
    ids=str,
)
@pytest.mark.parametrize("strategy", ANALOGUES, ids=repr)
def test_analogues_are_the_textbooks(strategy, model, beta):
    strategy = replace(strategy, beta=beta)
    world = small_world(irregular=True, start=None)
    run = Run(world, model, strategy, 3, 14, world.horizon)
    express = isinstance(strategy, rf.baselines.KernelRFExpress)
    reference_runs.whole_episodes(
        run,
        lambda tables, n, h, state: run.choose(tables[h][state], n, h),
        prepare=lambda: error_tables(run, express),
    )
    same(explored(strategy, model, world=world), run)


@pytest.mark.parametrize(
    "strategy", [rf.baselines.KernelRFUCRL(1.0), rf.baselines.KernelRFExpress(0.5)], ids=repr
)
@pytest.mark.parametrize("pooled", [False, True])
def test_analogues_with_a_delta_kernel_try_everything_before_they_repeat(strategy, pooled):
    """As the tabular systems do, whose bound is largest where nothing was tried."""
    world = small_world(start=2)
    data = explored(strategy, rf.Model(rf.kernels.Delta(), ridge=0.5, pooled=pooled), rounds=5, world=world)
    first = data.action[data.h == 0]
    assert sorted(first.tolist()) == [0, 1, 2, 3, 4]


class CountedRun(Run):
    """Tabular estimates with a ridge: sum V(s')/(n + ridge), and sigma^2 = ridge/(n + ridge)."""

    def _counts(self, h):
        n, law = np.zeros((30, 1)), np.zeros((30, 6))
        for z, following in self.samples_of(h):
            n[z] += 1
            law[z, following] += 1
        return n, law

    def sigma(self, h):
        n, _ = self._counts(h)
        return np.sqrt(0.5 / (n + 0.5)).reshape(6, 5)

    def mean(self, h, value):
        n, law = self._counts(h)
        return (law @ np.array(value) / (n[:, 0] + 0.5)).reshape(6, 5)


def test_qiu_with_a_delta_kernel_is_tabular_with_a_ridge():
    model, strategy = rf.Model(rf.kernels.Delta(), ridge=0.5), rf.Qiu(0.3, empty="prior")
    world = small_world(irregular=True)
    run = CountedRun(world, model, strategy, 3, 14, world.horizon)
    reference_runs.qiu(run)
    data = explored(strategy, model, world=world)
    same(data, run)
    value, values = np.zeros(6), []
    for h in reversed(range(4)):
        value = np.clip(REWARD + run.mean(h, value), 0.0, 4.0).max(axis=1)
        values.insert(0, value)
    np.testing.assert_allclose(rf.plan(data, REWARD, rf.Mean()).values, values, rtol=0, atol=1e-12)


# --- never splitting, linear kernels, pooled regression: the same thing by another name ---


@pytest.mark.parametrize("alpha", [None, "never"])
@pytest.mark.parametrize("regular", [False, True])
def test_never_splitting_is_qiu_exactly(alpha, regular):
    world = small_world(irregular=not regular)
    ours, theirs = rf.baselines.Partitioned(0.2, alpha=alpha), rf.Qiu(0.2)
    runs = [explored(strategy, world=world, rounds=30) for strategy in (ours, theirs)]
    same(*runs)
    plans = [rf.plan(data, REWARD, rf.Optimistic(0.2)) for data in runs]
    assert np.array_equal(plans[0].values, plans[1].values)


def test_the_squared_exponential_never_splits_by_itself():
    model = rf.Model(2.0 * rf.SquaredExponential(0.3), ridge=0.5)
    same(explored(rf.baselines.Partitioned(0.2), model), explored(rf.Qiu(0.2), model))
    assert isinstance(rf.baselines.Partitioned(0.2).posteriors(model, np.eye(2)), Lattice)


@pytest.mark.parametrize(
    ("kernel", "alpha"), [(KERNEL, 3.0), (0.5 * rf.Matern(2.5), 5.0), (rf.Matern(math.inf), None)]
)
def test_alpha_comes_from_the_kernel(kernel, alpha):
    assert rf.baselines.Partitioned(0.1).exponent(rf.Model(kernel, 0.5)) == alpha
    assert rf.baselines.Partitioned(0.1, alpha=1.5).exponent(rf.Model(kernel, 0.5)) == 1.5


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(
    "features", [FEATURES, "table", "table by state and action"], ids=["map", "table", "table of pairs"]
)
def test_linear_is_qiu_with_the_linear_kernel(features, pooled):
    world = small_world(irregular=True)
    table = FEATURES(world.grid.points)
    given = {"table": table, "table by state and action": table.reshape(6, 5, -1)}.get(features, features)
    strategy = rf.baselines.LinearRewardFree(given, 0.3)
    kernel = rf.Model(KernelOf(FEATURES), ridge=1.0, pooled=pooled)
    runs = [explored(each, replace(kernel), world=world) for each in (strategy, rf.Qiu(0.3))]
    same(*runs)
    plans = [rf.plan(data, REWARD, rf.Optimistic(0.3)) for data in runs]
    np.testing.assert_allclose(plans[0].values, plans[1].values, rtol=0, atol=1e-10)


def test_linear_takes_its_own_ridge_and_no_kernel():
    models = MODEL, rf.Model(rf.SquaredExponential(2.0), ridge=7.0)
    same(*(explored(LINEAR, model) for model in models))
    ours = explored(rf.baselines.LinearRewardFree(FEATURES, 0.3, ridge=0.2))
    same(ours, explored(rf.Qiu(0.3), rf.Model(KernelOf(FEATURES), ridge=0.2)))


def test_they_have_a_usual_model():
    world = small_world(irregular=True)
    linear = rf.baselines.LinearRewardFree(FEATURES, 0.3, ridge=0.2)
    for strategy, model, size in (
        (linear, rf.Model(rf.Linear(), ridge=0.2), {"samples_per_step": 5}),
        (rf.baselines.MeanEmbedding(0.2), AUTO, {"transitions": 20}),
    ):
        data = rf.explore(world, strategy=strategy, **size)
        assert data.model == model
        same(data, rf.explore(world, model, strategy, **size))
    assert rf.explore(Puck(), strategy=rf.baselines.MeanEmbedding(0.2), steps=10).model == AUTO


@pytest.mark.parametrize("pooled", [False, True])
def test_features_know_what_a_run_takes(pooled):
    """Within a factor of 2 of what each further run of a batch takes, and far below a lattice's."""
    world, model = small_world(states=30, actions=20), replace(MODEL, pooled=pooled)
    strategy = rf.baselines.LinearRewardFree(rf.posterior.PolynomialFeatures(3), 0.1)
    sizes, peaks = {"transitions": 160} if pooled else {"samples_per_step": 40}, []
    for runs in (5, 25):
        tracemalloc.start()
        rf.explore_many(world, model, strategy, seeds=range(runs), batch=runs, **sizes)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    each = strategy.bytes_per_run(model, world.grid, world.horizon, 40)
    assert 0.5 < each / ((peaks[1] - peaks[0]) / 20) < 2.0
    assert each < 8 * 4 * 40 * 600 / 2


def test_the_mean_embedding_is_qiu_on_one_plain_regression():
    same(explored(rf.baselines.MeanEmbedding(0.2), POOLED), explored(rf.Qiu(0.2), POOLED))


def test_the_beta_of_the_linear_theory():
    found = rf.baselines.linear_beta(3, 10, epsilon=0.1, delta=0.05, c=2.0)
    assert math.isclose(found, 2.0 * 3 * 10 * math.sqrt(math.log(3 * 10 / (0.05 * 0.1))))
    with pytest.raises(ValueError, match="epsilon must be below"):
        rf.baselines.linear_beta(1, 1, epsilon=30.0, delta=0.5)
