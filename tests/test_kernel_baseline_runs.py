"""Prior systems with kernels in the library: batches, curves, files, sweeps, real states, refusals."""

import math
import tomllib
from dataclasses import replace

import numpy as np
import pytest

import reference_partition
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
from reference_runs import small_world
from reference_worlds import Puck
from rewardfree.experiments.run_maps import maps_of
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache
from rewardfree.posterior import FeatureDesign, FeatureLattice, Partition, PartitionLattice
from rewardfree.studies.coverage import errors_of_run
from rewardfree.worlds.world import LabelledWorld
from test_features import KernelOf

ALL = [*PARTITIONED, LINEAR, *ANALOGUES]


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
