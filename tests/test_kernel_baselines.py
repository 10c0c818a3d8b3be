"""Baselines with posteriors of their own, and kernel analogues of tabular ones, against textbook loops."""

import math
import tomllib
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import reference_partition
import reference_runs
import rewardfree as rf
from reference_runs import Run, recorded, small_world
from reference_worlds import Puck
from rewardfree.experiments.run_maps import maps_of
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache
from rewardfree.posterior import FeatureDesign, FeatureLattice, Lattice, Partition, PartitionLattice
from rewardfree.studies.coverage import errors_of_run
from rewardfree.worlds.world import LabelledWorld
from test_features import KernelOf

KERNEL = rf.Matern(1.5, 0.3)
MODEL = rf.Model(KERNEL, ridge=0.5)
POOLED = replace(MODEL, pooled=True)
AUTO = rf.Model(rf.AutoKernel(), pooled=True)
REWARD = np.random.default_rng(7).random((6, 5))
FEATURES = rf.posterior.PolynomialFeatures(2)
PARTITIONED = [
    rf.baselines.Partitioned(0.2),
    rf.baselines.Partitioned(0.2, alpha=0.8),
    rf.baselines.Partitioned(0.2, drop=True),
    rf.baselines.Partitioned(0.2, alpha=1.0, drop=True, ties="random", empty="prior"),
]
LINEAR = rf.baselines.LinearRewardFree(FEATURES, 0.2)
ANALOGUES = [
    rf.baselines.KernelRFUCRL(0.7),
    rf.baselines.KernelRFExpress(0.7),
    rf.baselines.KernelRFUCRL(0.7, ties="random"),
]
ALL = [*PARTITIONED, LINEAR, *ANALOGUES]


def explored(strategy, model=MODEL, rounds=14, world=None, **options):
    world = world or small_world(irregular=True)
    sizes = {"transitions": 4 * rounds} if model.pooled else {"samples_per_step": rounds}
    return rf.explore(world, model, strategy, seed=3, **sizes, **options)


def same(data, other):
    assert recorded(data) == recorded(other)


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


# --- in the library: batches, curves, files, sweeps ---


@pytest.mark.parametrize("strategy", ALL, ids=repr)
def test_runs_do_not_depend_on_the_batch(strategy):
    options = {"seeds": [4, 3, 9], "samples_per_step": 12}
    world = small_world()
    batches = [rf.explore_many(world, MODEL, strategy, batch=n, **options) for n in (1, 2, 3)]
    for runs in zip(*batches, strict=True):
        same(runs[0], runs[1])
        same(runs[0], runs[2])


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("strategy", [PARTITIONED[0], PARTITIONED[3], LINEAR, *ANALOGUES[:2]], ids=repr)
def test_curves_are_explore_first_plan_gap(strategy, pooled):
    world, model = small_world(start=None), replace(MODEL, pooled=pooled)
    unit, sizes = ("transitions", [8, 40]) if pooled else ("samples_per_step", [2, 10])
    planner = rf.Optimistic(0.3)
    found = rf.experiments.learning_curves(
        world, model, strategy, REWARD, {"bonus": planner}, seeds=[3, 5], **{unit: sizes}
    )["bonus"]
    for b, seed in enumerate([3, 5]):
        data = rf.explore(world, model, strategy, seed=seed, **{unit: sizes[-1]})
        for i, size in enumerate(sizes):
            gap = rf.gap(world, rf.plan(data.first(**{unit: size}), REWARD, planner), REWARD)
            assert math.isclose(found.max[b, i], gap.max, abs_tol=1e-11)


@pytest.mark.parametrize("strategy", [*ALL, rf.baselines.MeanEmbedding(0.1)], ids=repr)
def test_data_and_plans_survive_a_file(strategy, tmp_path):
    data = explored(strategy, POOLED)
    data.save(tmp_path / "run.npz")
    read = rf.load(tmp_path / "run.npz")
    assert read.strategy == data.strategy and type(read.strategy) is type(data.strategy)
    same(read, data)
    plans = [rf.plan(each, REWARD) for each in (data, read)]
    assert np.array_equal(plans[0].values, plans[1].values)


def test_a_table_of_features_survives_a_file_and_a_function_is_refused(tmp_path):
    """By pairs or by rows, which are equal in all but their shape."""
    table, plans = FEATURES(small_world(irregular=True).grid.points), []
    for given in (table, table.reshape(6, 5, -1)):
        data = explored(rf.baselines.LinearRewardFree(given, 0.1))
        data.save(tmp_path / "run.npz")
        read = rf.load(tmp_path / "run.npz")
        assert read.strategy == data.strategy and np.shape(read.strategy.features) == given.shape
        plans.append(rf.plan(read, REWARD).values)
    assert np.array_equal(*plans)
    with pytest.raises(ValueError, match="cannot be written to a file"):
        explored(rf.baselines.LinearRewardFree(lambda z: z, 0.1)).save(tmp_path / "other.npz")


TOML = """
name = "baselines"
runs = 2
samples_per_step = [2, 9]

[[worlds]]
type = "corridor_world"
states = 8
actions = 5

[[models]]
type = "Model"
kernel = {type = "Matern", nu = 1.5, lengthscale = 0.2}
ridge = 0.5

[[strategies]]
name = "cells"
type = "Partitioned"
beta = 0.1

[[strategies]]
name = "whole"
type = "Partitioned"
beta = 0.1
alpha = "never"

[[strategies]]
name = "linear"
type = "LinearRewardFree"
beta = 0.1
features = {type = "PolynomialFeatures", degree = 3}

[[strategies]]
name = "ucrl"
type = "KernelRFUCRL"
beta = 0.5

[[strategies]]
name = "express"
type = "KernelRFExpress"
beta = 0.5

[[planners]]
name = "mean"
type = "Mean"
"""


def test_a_sweep_is_explore_plan_and_gap(tmp_path):
    (tmp_path / "baselines.toml").write_text(TOML)
    units = Sweep.load(tmp_path / "baselines.toml").units
    instance = rf.worlds.corridor_world(states=8, actions=5)
    world, reward = instance.world, instance.reward
    model = rf.Model(rf.Matern(1.5, 0.2), ridge=0.5)
    strategies = {
        "cells": rf.baselines.Partitioned(0.1),
        "whole": rf.Qiu(0.1),
        "linear": rf.baselines.LinearRewardFree(rf.posterior.PolynomialFeatures(3), 0.1),
        "ucrl": rf.baselines.KernelRFUCRL(0.5),
        "express": rf.baselines.KernelRFExpress(0.5),
    }
    found = {}
    for unit in units:
        for record in unit.run(InstanceCache()):
            found[unit.names[2], record.seed, record.samples] = record.max
    assert len([name for name, *_ in found if name in strategies]) == 5 * 2 * 2
    for name, strategy in strategies.items():
        data = rf.explore(world, model, strategy, samples_per_step=9, seed=1)
        for size in (2, 9):
            gap = rf.gap(world, rf.plan(data.first(size), reward, rf.Mean()), reward)
            assert math.isclose(found[name, 1, size], gap.max, abs_tol=1e-11)


@pytest.mark.parametrize("strategy", [{"type": "Partitioned"}, {"type": "LinearRewardFree"}], ids=str)
def test_a_report_can_look_at_their_runs(strategy):
    """The maps of a run at its checkpoints are those of runs that stop there."""
    options = (
        {"features": {"type": "PolynomialFeatures", "degree": 2}} if "Linear" in strategy["type"] else {}
    )
    table = tomllib.loads(TOML) | {"strategies": [strategy | options | {"beta": 0.1}], "runs": 1}
    unit = Sweep.of(table).units[-1]
    found = maps_of(unit, InstanceCache())
    instance = rf.worlds.corridor_world(states=8, actions=5)
    world, reward = instance.world, instance.reward
    own = (
        rf.baselines.Partitioned(0.1)
        if "Part" in strategy["type"]
        else rf.baselines.LinearRewardFree(FEATURES, 0.1)
    )
    data = rf.explore(world, rf.Model(rf.Matern(1.5, 0.2), ridge=0.5), own, samples_per_step=9, seed=0)
    for i, size in enumerate((2, 9)):
        plan = rf.plan(data.first(size), reward, rf.Mean())
        np.testing.assert_allclose(found["value"][i], plan.values, rtol=0, atol=1e-6)  # kept in float32
    assert found["sigma"].shape == (2, 3, 8, 5)


def test_a_kernel_to_be_found_and_steps_as_a_coordinate_are_taken():
    """With a number for alpha; the partition of a timed model has the step as an axis."""
    assert len(explored(rf.baselines.Partitioned(0.1, alpha=3.0), AUTO, rounds=9)) == 36
    timed = replace(POOLED, timed=True)
    world = small_world(irregular=True)
    points = np.concatenate(
        [np.repeat(np.linspace(0, 1, 4), 30)[:, None], np.tile(world.grid.points, (4, 1))], 1
    )
    box = {"low": points.min(axis=0), "high": points.max(axis=0)}
    one_by_one = explored(
        rf.Qiu(0.2), timed, posterior=lambda m: Partition(KERNEL, ridge=0.5, alpha=3.0, **box)
    )
    same(explored(rf.baselines.Partitioned(0.2), timed), one_by_one)


# --- on real states ---


def labelled_run(strategy, model=MODEL, rounds=10, **options):
    """An enumerated world, whose labels a kernel sees at their coordinates."""
    sizes = {"transitions": 4 * rounds} if model.pooled else {"samples_per_step": rounds}
    return rf.explore(LabelledWorld(small_world(irregular=True)), model, strategy, seed=3, **sizes, **options)


def on_the_unit_cube(state, action):
    """What a fixed kernel sees of a puck."""
    return np.concatenate([(state + np.array([2.0, 1.0])) / (4.0, 2.0), (action + 1.0) / 2.0], axis=1)


def equal(data, other):
    for name in ("state", "action", "next_state"):
        np.testing.assert_array_equal(getattr(data, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("model", [MODEL, POOLED], ids=["per step", "pooled"])
def test_never_splitting_is_qiu_on_real_states(model):
    runs = [
        rf.explore(Puck(), model, strategy, steps=60)
        for strategy in (rf.baselines.Partitioned(0.3, alpha=None), rf.Qiu(0.3))
    ]
    equal(*runs)
    plans = [rf.plan(data, "-x**2", rf.Mean(clip="range")) for data in runs]
    at = np.array([[0.3, 0.1], [-1.0, 0.4]])
    assert plans[0].value(at).tolist() == plans[1].value(at).tolist()


@pytest.mark.parametrize("model", [MODEL, POOLED], ids=["per step", "pooled"])
def test_linear_is_qiu_with_the_linear_kernel_on_real_states(model):
    linear = replace(model, kernel=KernelOf(FEATURES), ridge=1.0)
    runs = [
        rf.explore(Puck(), linear, strategy, steps=60)
        for strategy in (rf.baselines.LinearRewardFree(FEATURES, 0.3), rf.Qiu(0.3))
    ]
    equal(*runs)
    plans = [rf.plan(data, "-x**2", rf.Mean(clip="range")) for data in runs]
    at = np.array([[0.3, 0.1], [-1.0, 0.4]])
    np.testing.assert_allclose(plans[0].value(at), plans[1].value(at), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "strategy", [rf.baselines.Partitioned(0.3), rf.baselines.Partitioned(0.3, 1.0, True), LINEAR], ids=repr
)
@pytest.mark.parametrize("model", [MODEL, POOLED], ids=["per step", "pooled"])
def test_plans_on_real_states_use_the_strategys_posterior(model, strategy, tmp_path):
    data = rf.explore(Puck(), model, strategy, steps=80)
    plan = rf.plan(data, "-x**2 + 0.1*push")  # by default too
    assert isinstance(plan, rf.planning.SampledPlan)
    kind = FeatureDesign if strategy == LINEAR else Partition
    for design in plan.recursion.estimate.posteriors:
        assert type(design) is kind
    other = rf.plan(data, "-x**2 + 0.1*push", rf.Mean(clip="range"), model=model)
    assert {type(each) for each in other.recursion.estimate.posteriors} == {rf.posterior.Design}
    at = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    assert np.abs(plan.value(at) - other.value(at)).max() > 1e-3
    data.save(tmp_path / "run.npz")
    read = rf.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(rf.plan(read, "-x**2 + 0.1*push").value(at), plan.value(at))
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    np.testing.assert_allclose(again.value(at), plan.value(at), rtol=0, atol=1e-12)
    half = rf.explore(Puck(), model, strategy, steps=37)
    equal(rf.explore(Puck(), model, strategy, steps=80, resume=half), data)


@pytest.mark.parametrize("drop", [False, True])
def test_a_partition_of_real_states_is_that_of_their_bounds(drop):
    strategy = rf.baselines.Partitioned(0.3, alpha=1.0, drop=drop)
    data = rf.explore(Puck(), POOLED, strategy, steps=80)
    (design,) = rf.plan(data, "-x**2", rf.Mean(clip="range")).recursion.estimate.posteriors
    _, inside = reference_partition.grown(on_the_unit_cube(data.state, data.action), 1.0, drop)
    assert sorted(cell.samples for cell in design.cells) == sorted(inside.values())


def test_a_partition_of_labels_is_that_of_their_coordinates():
    data = labelled_run(rf.baselines.Partitioned(0.3, alpha=1.0), POOLED)
    (design,) = rf.plan(data, "s", rf.Mean(clip="range")).recursion.estimate.posteriors
    grid = small_world(irregular=True).grid.points
    unit = reference_partition.unit(grid[data.state * 5 + data.action], grid.min(axis=0), grid.max(axis=0))
    _, inside = reference_partition.grown(unit, 1.0, drop=False)
    assert sorted(cell.samples for cell in design.cells) == sorted(inside.values())


def analogue_tables(data, n, strategy, scale):
    """E of every action at the state of step n, by dense inverses on the transitions before its episode."""
    H, grid = 5, np.linspace(-1.0, 1.0, 9)
    before = np.flatnonzero(data.episode < data.episode[n])
    express = isinstance(strategy, rf.baselines.KernelRFExpress)

    def table(h, states, value):
        pairs = np.repeat(states, 9, axis=0), np.tile(grid, len(states))[:, None]
        at, seen = on_the_unit_cube(*pairs), on_the_unit_cube(data.state[before], data.action[before])
        kernel, prior = scale * KERNEL, math.sqrt(scale)
        sigma = np.sqrt(np.maximum(reference_partition.reference.variance(kernel, seen, 0.5, at), 0.0))
        mean = 0.0
        if value is not None:
            unknown = 0.0
            for later in range(H - 1, h, -1):
                bonus = (0.7 * prior) ** 2 + 1.2 * unknown if express else 0.7 * prior + unknown
                unknown = min(H if express else H - 1 - later, bonus)
            mean = unknown + reference_partition.reference.mean(kernel, seen, 0.5, value - unknown, at)
        bonus = (0.7 * sigma) ** 2 if express else 0.7 * sigma
        most = H if express else H - 1 - h
        return np.clip(bonus + (1.2 if express else 1.0) * mean, 0.0, most).reshape(-1, 9)

    value = None
    for h in range(H - 1, int(data.h[n]), -1):
        value = table(h, data.next_state[before], value).max(axis=1)
    return table(int(data.h[n]), data.state[n : n + 1], value)[0]


@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize(
    "strategy", [rf.baselines.KernelRFUCRL(0.7), rf.baselines.KernelRFExpress(0.7)], ids=repr
)
def test_analogues_on_real_states_are_the_textbooks(strategy, scale):
    data = rf.explore(Puck(), replace(POOLED, kernel=scale * KERNEL), strategy, steps=30)
    for n in range(10, 30):
        tables = analogue_tables(data, n, strategy, scale)
        chosen = int(np.argmin(np.abs(np.linspace(-1.0, 1.0, 9) - data.action[n, 0])))
        assert tables[chosen] >= tables.max() - 1e-9


# --- refused ---


@pytest.mark.parametrize("alpha", [0, -1.0, float("nan"), float("inf"), "two", False, np.array([1.0, 2.0])])
def test_a_bad_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha must be"):
        rf.baselines.Partitioned(0.1, alpha=alpha)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rf.baselines.Partitioned(-0.1), "beta must be at least 0"),
        (
            lambda: rf.baselines.Partitioned(0.1, "none"),
            'alpha must be a number, "kernel", or "never" .*, got "none"',
        ),
        (lambda: rf.baselines.Partitioned(0.1, drop=1), "drop must be True or False"),
        (lambda: rf.baselines.Partitioned(0.1, ties="first"), "ties must be"),
        (lambda: rf.baselines.LinearRewardFree(np.zeros(4), 0.1), r"features must be a table \(\|Z\|, d\)"),
        (lambda: rf.baselines.LinearRewardFree(np.zeros((4, 0)), 0.1), "features must be a table"),
        (lambda: rf.baselines.LinearRewardFree([[np.nan]], 0.1), "features must be finite"),
        (lambda: rf.baselines.LinearRewardFree("poly", 0.1), "features must be rows of numbers"),
        (lambda: rf.baselines.LinearRewardFree(FEATURES, 0.1, ridge=-1.0), "ridge must be positive"),
        (lambda: rf.baselines.KernelRFUCRL(math.nan), "beta must be finite"),
        (
            lambda: explored(rf.baselines.LinearRewardFree(np.ones((29, 2)), 0.1)),
            "a row for each of 30 pairs",
        ),
        (lambda: explored(rf.baselines.LinearRewardFree(lambda z: z[:, 0], 0.1)), "features must map points"),
        (
            lambda: explored(rf.baselines.LinearRewardFree(np.ones((5, 6, 2)), 0.1)),
            r"shape \(6, 5, d\) .* got \(5, 6, 2\)",
        ),
        (lambda: explored(rf.baselines.LinearRewardFree(np.ones((3, 10, 2)), 0.1)), r"shape \(6, 5, d\)"),
        (lambda: explored(LINEAR, rf.Model(rf.AutoKernel())), "there is none to be fitted"),
        (lambda: explored(rf.baselines.Partitioned(0.1), rf.Model(rf.AutoKernel())), "still to be fitted"),
        (
            lambda: explored(rf.baselines.Partitioned(0.1), rf.Model(rf.Linear(), 0.5)),
            "alpha is known for Matern",
        ),
        (lambda: explored(rf.baselines.MeanEmbedding(0.1)), "one plain regression for all steps"),
        (
            lambda: explored(rf.baselines.MeanEmbedding(0.1), replace(POOLED, centred=True)),
            "one plain regression",
        ),
        (lambda: labelled_run(rf.baselines.MeanEmbedding(0.1)), "one plain regression"),
        (lambda: labelled_run(rf.baselines.LinearRewardFree(np.ones((30, 2)), 0.1)), "must be a function"),
        (lambda: explored(LINEAR, posterior=lambda model: model.design()), "leave out posterior="),
    ],
)
def test_what_makes_no_sense_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


class Open(Puck):
    """Of which nobody says how far x goes."""

    state = rf.Box.of(x=None, v=(-1.0, 1.0))

    def start(self, rng):
        assert self.may_start, "the first step was made"
        return super().start(rng)

    def __init__(self, may_start=True):
        self.may_start = may_start


@pytest.mark.parametrize(
    "strategy", [rf.baselines.Partitioned(0.1, alpha=3.0), rf.baselines.Partitioned(0.1, 1.0, True)], ids=repr
)
def test_a_partition_needs_bounds_before_the_first_step(strategy):
    with pytest.raises(ValueError, match="a partition of space needs bounds, and x has none"):
        rf.explore(Open(may_start=False), AUTO, strategy, steps=5)


def test_never_splitting_is_qiu_without_bounds_too():
    never, qiu = (
        rf.explore(Open(), AUTO, strategy, steps=65)
        for strategy in (rf.baselines.Partitioned(0.3, None), rf.Qiu(0.3))
    )
    equal(never, qiu)
    at = np.array([[0.3, 0.1], [-1.0, 0.4]])
    values = [rf.plan(data, "-x**2", rf.Mean(clip="range")).value(at).tolist() for data in (never, qiu)]
    assert values[0] == values[1]


@pytest.mark.parametrize("model", [None, MODEL, POOLED], ids=["default", "per step", "pooled"])
def test_features_need_no_bounds(model, tmp_path):
    """They see x as it is and other variables on [0, 1]: bounds of x that are [0, 1] say the same."""

    class Told(Puck):
        state = rf.Box.of(x=(0.0, 1.0), v=(-1.0, 1.0))

    data, told = (rf.explore(world, model, LINEAR, steps=60) for world in (Open(), Told()))
    equal(data, told)
    plan = rf.plan(data, "-x**2")
    at = np.array([[0.3, 0.1], [-1.0, 0.4]])
    np.testing.assert_array_equal(plan.value(at), rf.plan(told, "-x**2").value(at))
    plan.save(tmp_path / "plan.npz")
    np.testing.assert_allclose(
        rf.load_plan(tmp_path / "plan.npz").value(at), plan.value(at), rtol=0, atol=1e-12
    )
    with pytest.raises(ValueError, match="a kernel that is fixed needs bounds, and x has none"):
        rf.plan(data, "-x**2", rf.Mean(), model=MODEL)


def test_coverage_refuses_posteriors_that_it_does_not_know():
    with pytest.raises(ValueError, match="errors are measured of the model's own posteriors"):
        errors_of_run(small_world(), REWARD, MODEL, rf.baselines.Partitioned(0.1), 4)


def test_what_a_strategy_brings():
    assert isinstance(rf.baselines.Partitioned(0.1).posteriors(MODEL, np.eye(2)), PartitionLattice)
    assert isinstance(LINEAR.posteriors(MODEL, np.eye(2)), FeatureLattice)
