"""The paper's experiments: which runs they are made of, and what the command makes of them."""

import json
from collections import Counter

import numpy as np
import pytest

import rewardfree as rf
from reproduction_cases import KERNELS
from rewardfree.experiments.unit import NO_DATA, InstanceCache, ReferenceUnit, SweepUnit
from rewardfree.presets import LITERAL, PUBLISHED
from rewardfree.registry import build
from rewardfree.studies.paper.specification import PaperSettings, paper_strategies

EXTRA = {"generative-ties": rf.Generative(ties="random"), "uniform": rf.Uniform()}
PRESETS = pytest.mark.parametrize("preset", [PUBLISHED, LITERAL], ids=lambda preset: preset.name)


def runs_of(sweep):
    """The units that explore."""
    return [unit for unit in sweep.units if isinstance(unit, SweepUnit)]


def references_of(sweep):
    return [unit for unit in sweep.units if isinstance(unit, ReferenceUnit)]


def built(kind, table):
    return build(kind, json.loads(table))


def planners_of(unit):
    return {name: built("planner", table) for name, table in unit.planners}


def explored(sweep):
    """How often each run of each strategy is explored, whatever it is planned with."""
    return Counter(
        (unit.world, unit.model, unit.strategy, seed) for unit in runs_of(sweep) for seed in unit.seeds
    )


# --- Figure 1 ---


def test_figure_1_is_six_strategies_on_three_kernels():
    sweep = PaperSettings().figure1()
    pairs = {(f"{kernel}, draw 0", kernel) for kernel in KERNELS}
    strategies = {"generative", "online", "qiu", "greedy", "generative-ties", "uniform"}
    assert {unit.names for unit in runs_of(sweep)} == {(*pair, own) for pair in pairs for own in strategies}
    assert sorted(unit.names for unit in references_of(sweep)) == sorted((*pair, NO_DATA) for pair in pairs)
    worlds = {unit.names[1]: unit.world for unit in runs_of(sweep)}
    assert {unit.names[1]: unit.world for unit in references_of(sweep)} == worlds


@pytest.mark.parametrize("figure", ["figure1", "betas", "repeats"])
def test_a_sweep_is_called_as_its_figure(figure):
    assert getattr(PaperSettings("published", ("se",)), figure)().name == figure


@pytest.mark.parametrize(("figure", "runs"), [("figure1", 80), ("betas", 20), ("repeats", 20)])
def test_runs_checkpoints_and_batches_are_the_papers(figure, runs):
    units = runs_of(getattr(PaperSettings("published", ("matern15",)), figure)())
    seeds = {}
    for unit in units:
        assert (unit.budget, unit.checkpoints) == ("samples_per_step", (10, 20, 40, 80, 160))
        assert (unit.device, unit.dtype) == ("cpu", "float64") and len(unit.seeds) <= 8
        seeds.setdefault(unit.names, []).extend(unit.seeds)
    assert {tuple(each) for each in seeds.values()} == {tuple(range(runs))}
    assert len(units) == -(-runs // 8) * len(seeds)  # no smaller batches than that


def test_every_exploration_is_planned_with_and_without_the_bonus():
    sweep = PaperSettings().figure1()
    assert set(explored(sweep).values()) == {1} and len(explored(sweep)) == 3 * 6 * 80
    for unit in runs_of(sweep):
        assert planners_of(unit) == {"optimistic": rf.Optimistic(0.1), "mean": rf.Mean()}


@PRESETS
def test_the_preset_arrives_in_models_and_strategies(preset):
    ridges = {"published": (0.01, 0.5, 0.5), "literal": (1e-4, 0.25, 0.25)}[preset.name]
    units = runs_of(PaperSettings(preset.name).figure1())
    models = {unit.names[1]: built("model", unit.model) for unit in units}
    wanted = [rf.Model(kernel, ridge) for kernel, ridge in zip(KERNELS.values(), ridges, strict=True)]
    assert models == dict(zip(KERNELS, wanted, strict=True))
    strategies = {unit.names[2]: built("strategy", unit.strategy) for unit in units}
    assert strategies == {**paper_strategies(preset), **EXTRA}
    empty = {"published": "zero", "literal": "prior"}[preset.name]
    assert {strategies[name].empty for name in ("online", "qiu", "greedy")} == {empty}


@PRESETS
def test_the_preset_arrives_in_the_worlds(preset):
    """One minimum for all of P leaves one zero in it, one for each z leaves a zero in every row."""
    tables = {unit.names[1]: unit.world for unit in runs_of(PaperSettings(preset.name, quick=True).figure1())}
    for name, table in tables.items():
        instance = built("world", table)
        same = rf.rkhs_world(KERNELS[name], preset=preset, states=20, actions=20)
        world = instance.world
        assert np.array_equal(world.P, same.world.P) and np.array_equal(instance.reward, same.reward)
        zeros = np.count_nonzero(world.P == 0.0, axis=-1)
        assert np.all(zeros == 1) if preset is LITERAL else zeros.sum() == 1
    assert {json.loads(table)["preset"] for table in tables.values()} == {preset.name}


def test_the_worlds_are_as_large_as_the_papers_unless_quick():
    for quick, wanted in [(False, {}), (True, {"states": 20, "actions": 20})]:
        (table,) = {unit.world for unit in PaperSettings("published", ("se",), quick=quick).figure1().units}
        found = json.loads(table)
        assert {key: found[key] for key in ("states", "actions") if key in found} == wanted
    assert rf.rkhs_world.__kwdefaults__["states"] == rf.rkhs_world.__kwdefaults__["actions"] == 100


@PRESETS
def test_a_unit_is_the_learning_curve_of_the_papers_strategy(preset):
    kernel = KERNELS["matern15"]
    instance = rf.rkhs_world(kernel, seed=3, preset=preset, states=20, actions=20)
    world, reward = instance.world, instance.reward
    units = runs_of(PaperSettings(preset.name, ("matern15",), seed=3, quick=True).figure1())
    strategies = {**paper_strategies(preset), **EXTRA}
    assert [unit.names[2] for unit in units] == list(strategies)
    for unit in units:
        curves = rf.experiments.learning_curves(
            world, rf.Model(kernel, preset.ridge(kernel)), strategies[unit.names[2]], reward,
            {"optimistic": rf.Optimistic(0.1), "mean": rf.Mean()},
            samples_per_step=[4, 8, 16], seeds=range(4),
        )  # fmt: skip
        records = unit.run(InstanceCache())
        for name, curve in curves.items():
            own = [record for record in records if record.planner == name]
            assert [record.samples for record in own] == 4 * [4, 8, 16]
            for measure in ("start", "mean", "max"):
                found = np.reshape([getattr(record, measure) for record in own], (4, 3))
                np.testing.assert_allclose(found, getattr(curve, measure), rtol=0, atol=1e-12)


# --- betas and repeats ---


def test_beta_is_the_explorers_and_the_planners():
    sweep = PaperSettings().betas()
    found = {}
    for unit in runs_of(sweep):
        planners = tuple(planners_of(unit).values())
        found.setdefault(unit.names[1], set()).add((built("strategy", unit.strategy), planners))
    every = tuple(rf.Optimistic(beta) for beta in (0.1, 1.0, 10.0, 100.0))
    wanted = {(rf.Generative(), every), (rf.GreedyMaxVariance(), every), (rf.Uniform(), (rf.Mean(),))}
    for own in every:
        wanted |= {(rf.Online(own.beta), (own,)), (rf.Qiu(own.beta), (own,))}
    assert found == dict.fromkeys(KERNELS, wanted)
    assert set(explored(sweep).values()) == {1} and len(explored(sweep)) == 3 * 11 * 20
    assert len(references_of(sweep)) == 3


def test_every_beta_has_a_name_of_its_own():
    """Records are found by the names of their strategy and planner: these must tell the betas apart."""
    names = [(unit.names, name) for unit in runs_of(PaperSettings("published", ("se",), runs=1).betas())
             for name, _ in unit.planners]  # fmt: skip
    assert len(set(names)) == len(names) == 4 * 4 + 1


def test_repeats_are_other_worlds_and_begin_with_figure_1():
    what = PaperSettings("published", ("matern15",), seed=5, draws=2, quick=True)
    tables = list(dict.fromkeys(unit.world for unit in what.repeats().units))
    first, second = (built("world", table) for table in tables)
    assert np.abs(first.world.P - second.world.P).max() > 1e-3
    assert np.abs(first.reward - second.reward).max() > 0.1
    (figure1,) = {unit.world for unit in what.figure1().units}
    assert tables[0] == figure1
    instance = what.instances()["matern15"]
    assert np.array_equal(instance.world.P, first.world.P)
    assert np.array_equal(instance.reward, first.reward)


def test_repeats_have_ten_draws_and_the_four_algorithms():
    sweep = PaperSettings().repeats()
    names = {unit.names for unit in runs_of(sweep)}
    strategies = ("generative", "online", "qiu", "greedy", "uniform")
    assert names == {
        (f"{kernel}, draw {seed}", kernel, own)
        for kernel in KERNELS for seed in range(10) for own in strategies
    }  # fmt: skip
    assert len({unit.world for unit in sweep.units}) == len(references_of(sweep)) == 30
    assert set(explored(sweep).values()) == {1}


def test_kernels_seed_runs_and_draws_are_respected():
    what = PaperSettings("literal", ("matern15", "se"), seed=7, runs=11, draws=3, quick=True)
    for sweep, draws in [(what.figure1(), [7]), (what.betas(), [7]), (what.repeats(), [7, 8, 9])]:
        worlds = {unit.names[:2]: json.loads(unit.world) for unit in sweep.units}
        assert list(worlds) == [(f"{k}, draw {seed}", k) for k in ("matern15", "se") for seed in draws]
        for (name, kernel), table in worlds.items():
            assert name.endswith(f", draw {table['seed']}") and table["preset"] == "literal"
            assert build("kernel", table["kernel"]) == KERNELS[kernel]
        of_one = [unit.seeds for unit in runs_of(sweep) if unit.names == runs_of(sweep)[0].names]
        assert of_one == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10)]
    assert what.every_draw == range(7, 10) and list(what.instances()) == ["matern15", "se"]


def test_quick_is_small_unless_told_otherwise():
    quick = PaperSettings("published", ("se",), quick=True)
    for sweep in (quick.figure1(), quick.betas(), quick.repeats()):
        assert {unit.checkpoints for unit in runs_of(sweep)} == {(4, 8, 16)}
        assert {seed for unit in runs_of(sweep) for seed in unit.seeds} == set(range(4))
    assert len(quick.every_draw) == 3
    own = PaperSettings("published", ("se",), runs=6, draws=5, quick=True)
    assert len(own.every_draw) == 5 and {unit.seeds for unit in runs_of(own.figure1())} == {
        (0, 1, 2, 3),
        (4, 5),
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernels": ("se", "rbf")}, "kernels must be among se, matern25, matern15, got 'rbf'"),
        ({"kernels": ("se", "se")}, "kernels must be different and at least one, got 'se, se'"),
        ({"kernels": ()}, "kernels must be different and at least one, got ''"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"runs": -3}, "runs must be a whole number of at least 1, got -3"),
        ({"draws": 0}, "draws must be a whole number of at least 1, got 0"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        PaperSettings(**options)
