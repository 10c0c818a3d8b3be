"""Every system on the same worlds: units are what the library gives, and tables say what the records do."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rewardfree as rf
from rewardfree.cli.app import app
from rewardfree.experiments.running import Runner
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache, SweepUnit
from rewardfree.report.gaps import levels
from rewardfree.studies.baselines.specification import QUICK_SIZES, SYSTEMS, BaselineUnit, systems_on
from rewardfree.studies.baselines.study import (
    FIGURES,
    OWN,
    Baselines,
    as_lines,
    curves_figure,
    exponents_table,
    fitted_exponent,
    gap_at,
    gaps_table,
    seconds_table,
    systems_table,
    theory_exponent,
    visits_table,
)
from rewardfree.studies.problems import (
    MEASURES,
    PAPER,
    TABULAR,
    Comparison,
    WorldProfile,
    instance_named,
)
from rewardfree.studies.study import Workspace


@pytest.fixture(scope="module")
def records():
    return BaselineUnit("riverswim", 3, quick=True).run(InstanceCache())


def compared(records, profiles=()):
    return Comparison(records, profiles, method=("system",), budget="size")


def profile(world, myopic, random):
    """What a world asks of a learner, as far as figures and pages show it."""
    levels = {
        policy: dict.fromkeys(MEASURES, gaps) for policy, gaps in (("myopic", myopic), ("random", random))
    }
    return WorldProfile(world, 1.0, 0.0, 1.0, 1.0, levels)


def test_a_unit_is_explore_plan_and_gap(records):
    instance = instance_named("riverswim")
    for name, model in (("qiu", instance.model), ("rf-ucrl", instance.model)):
        system = SYSTEMS[name]
        data = rf.explore(
            instance.world, model, system.strategy(instance), samples_per_step=QUICK_SIZES[0], seed=3
        )
        gaps = [
            rf.gap(instance.world, rf.plan(data, reward, system.planner), reward)
            for reward in instance.rewards
        ]
        (found,) = [each for each in records if (each["system"], each["size"]) == (name, QUICK_SIZES[0])]
        for measure in MEASURES:
            assert found[measure] == [round(float(getattr(gap, measure)), 5) for gap in gaps]
        assert (found["steps"], found["episodes"]) == (data.steps, data.episodes)


def test_every_system_is_measured_at_every_size(records):
    assert {(each["system"], each["size"]) for each in records} == {
        (name, size) for name in systems_on("riverswim") for size in QUICK_SIZES
    }
    assert set(SYSTEMS) - set(systems_on("riverswim")) == {"partitioned", "scout"}
    assert systems_on("rooms") == list(SYSTEMS)


def test_the_cost_of_jin_counts_its_first_phase(records):
    cost = {each["system"]: each for each in records if each["size"] == QUICK_SIZES[-1]}
    goals = 6 * 10 * 100  # states, steps, episodes for each
    assert cost["jin"]["episodes"] == goals + QUICK_SIZES[-1] and cost["qiu"]["episodes"] == QUICK_SIZES[-1]
    assert cost["online"]["episodes"] == 10 * QUICK_SIZES[-1] and cost["generative"]["episodes"] == 0


def falling(world="paper-matern-1.5", exponents=None, sizes=(10, 20, 40, 80)):
    """Records whose gaps are exact powers, two runs apart by a tenth."""
    exponents = exponents or dict.fromkeys(SYSTEMS, 0.25)
    return [
        {
            "world": world, "system": name, "size": n, "steps": 10 * n, "episodes": n, "seed": seed,
            **{measure: [factor * n**-x * (2 + i) / 2.5 for i in range(2)] for measure in MEASURES},
            "seconds": {"explore": 1.5, "plan": 0.25},
        }
        for name, x in exponents.items() for n in sizes for seed, factor in enumerate((0.9, 1.1))
    ]  # fmt: skip


def test_exponents_are_those_of_the_records():
    n = np.array([10.0, 100.0])
    assert fitted_exponent(n, np.array([[1.0, 0.1]]))[0] == pytest.approx(1.0)
    assert np.isnan(fitted_exponent(n, np.array([[1.0, 0.0]]))[0])
    assert np.isnan(fitted_exponent(n[:1], np.array([[1.0]]))[0])
    table = exponents_table(
        compared(falling(exponents={"online": 0.25, "linear": 0.5})), ["paper-matern-1.5"]
    )
    rows = {line[:20].strip(): line[20:].strip() for line in table[6:]}
    assert rows["online"] == "0.25 ± 0.00 / 0.30" and rows["linear"] == "0.50 ± 0.00 / (0.50)"
    assert rows["cme"] == "-"


def test_the_error_of_an_exponent_is_the_spread_over_runs():
    """The jackknife's, of twenty runs, beside the spread of the exponents of many such twenties."""
    rng, n = np.random.default_rng(0), np.array([10.0, 20.0, 40.0, 80.0])
    found = [fitted_exponent(n, n**-0.5 * np.exp(0.1 * rng.standard_normal((20, 4)))) for _ in range(300)]
    exponents, errors = np.array(found).T
    assert errors.mean() == pytest.approx(exponents.std(), rel=0.15)


def test_theory_promises_what_its_rows_do():
    matern, smooth = "paper-matern-1.5", "paper-squared-exponential"
    assert theory_exponent("online", matern) == f"{1.0 / (2.0 + 2.0 / 1.5):.2f}" == "0.30"
    assert theory_exponent("partitioned", "paper-matern-2.5") == "0.36"
    assert theory_exponent("generative", matern) == "(0.30)"  # in the text, not in the table
    assert theory_exponent("online", smooth) == theory_exponent("qiu", smooth) == "0.50"
    assert theory_exponent("qiu", matern) == "-"
    assert theory_exponent("partitioned", smooth) == "(0.50)"  # without a split it is Qiu
    assert theory_exponent("online", "garnet") == theory_exponent("generative", "garnet") == "(0.50)"
    assert theory_exponent("jin", "riverswim") == theory_exponent("linear", "riverswim") == "0.50"
    assert theory_exponent("linear", matern) == theory_exponent("rf-ucrl", "riverswim") == "(0.50)"
    assert theory_exponent("qiu", "riverswim") == "(0.50)" and theory_exponent("scout", "riverswim") == "-"
    assert {theory_exponent(system, "rooms") for system in SYSTEMS} == {"-"}  # a draw of no kernel


def test_gaps_between_sizes_are_interpolated_and_never_guessed_beyond():
    found = compared(falling(exponents={"qiu": 1.0}))
    middle = (20.0**-1 + 40.0**-1) / 2
    between = gap_at(found, "paper-matern-1.5", "qiu", "steps", np.sqrt(200.0 * 400.0))
    assert between.startswith(f"~{middle:.3f} ± ")
    assert gap_at(found, "paper-matern-1.5", "qiu", "steps", 900.0) == "-"
    assert gap_at(found, "rooms", "qiu", "steps", 200.0) == "-"
    table = gaps_table(found, ["paper-matern-1.5"], "steps", 400)
    rows = {line[:20].strip(): line[20:].strip() for line in table[3:]}
    error = 0.025 * 0.2 / 2  # of two runs, a tenth above and below
    assert rows["qiu"] == f"0.025 ± {error:.3f}" and rows["jin"] == "-"


def test_a_table_of_systems_says_what_they_estimate_and_cost():
    table = systems_table(compared(falling(world="rooms")), ["rooms"])
    rows = {line[:20].strip(): line[20:] for line in table[2:]}
    assert set(rows) == set(SYSTEMS)
    assert " ".join(rows["qiu"].split()) == "a regression for each step bonus 0.1 80 / 80 / 800"
    assert "one regression of all steps" in rows["cme"] and "the mean" in rows["cme"]


def test_tables_are_narrow_enough_to_read():
    worlds = [*PAPER, "portal", "rooms", "tide", "corridor", "matern-1.5", *TABULAR]
    records = [each for world in worlds for each in falling(world=world)]
    found, shapes = compared(records), {"paper-squared-exponential": (100, 100, 10)}
    tables = [exponents_table(found, worlds), gaps_table(found, worlds, "size", None), visits_table(shapes)]
    tables += [systems_table(found, worlds), seconds_table(found, worlds)]
    for table in tables:
        assert max(map(len, table)) <= 110


def test_the_figure_has_a_panel_for_each_world_and_a_line_for_each_system():
    comparison = compared(falling(), [profile("paper-matern-1.5", [0.1], [2.0])])
    assert set(SYSTEMS) == {name for systems in FIGURES.values() for name in systems}
    for systems in FIGURES.values():
        figure = curves_figure(comparison, "episodes", systems)
        assert len(figure.axes) == 1 and len(figure.axes[0].lines) == len(systems) + 2
        drawn = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
        assert len(drawn) == len(systems) + 2


def test_the_command_says_and_writes_everything(tmp_path):
    study, workspace = Baselines(runs=1, quick=True), Workspace(tmp_path, Runner(jobs=1))
    said = list(study.reproduce(workspace))
    assert said[0] == "baselines: 2 units, seeds 6000 to 6000"
    folder = tmp_path / "baselines-quick"
    table = (folder / "table.txt").read_text()
    assert all(line in table for line in said if line.startswith(("scout", "jin", "x of the gap", "CPU")))
    pictures = {
        f"baselines-{name}-{axis}.{form}"
        for name in FIGURES
        for axis in ("size", "episodes", "steps")
        for form in ("png", "pdf")
    }
    others = {
        "results.sqlite",
        "results.sqlite.lock",
        "study.json",
        "table.txt",
        "results.csv",
        "report.html",
    }
    others.add("made.json")
    assert {path.name for path in folder.iterdir()} == {*others, *pictures}
    page = folder / "report.html"
    assert said[-1] == f"report:  {page}"
    view = json.loads(re.search(r'<script id="view"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)[1])
    assert [panel["title"] for panel in view["panels"]] == ["rooms", "riverswim"]
    assert [each["key"] for each in view["strategies"]] == list(SYSTEMS)
    assert view["quick"].endswith("The full run: rewardfree reproduce baselines --runs 1")
    assert view["finding"] == []
    assert "2 units run" in view["about"]["time"]
    before = page.read_bytes()
    assert json.loads((folder / "made.json").read_text())["command"] == (
        "rewardfree reproduce baselines --runs 1 --quick"
    )
    for command in ("report", "figures"):
        page.unlink()
        assert CliRunner().invoke(app, [command, str(folder)]).exit_code == 0
        assert page.read_bytes() == before
    exported = CliRunner().invoke(app, ["export", str(folder)]).stdout.splitlines()
    assert exported[0] == "world,seed,system,size,steps,episodes,start,mean,max"
    assert len(exported) == 1 + sum(2 * len(systems_on(world)) for world in study.worlds)
    again = list(study.reproduce(workspace))
    assert "all of them are stored already" in again
    assert page.read_bytes() == before


def test_a_page_has_the_means_over_rewards_and_what_needs_no_data():
    records = falling()
    comparison = compared(records, [profile(records[0]["world"], [1.0, 3.0], [2.0])])
    ((key, panel),) = as_lines(comparison).items()
    assert key == (records[0]["world"], "")
    assert levels(panel)["myopic"].mean("start") == [2.0]
    for system in SYSTEMS:
        line = panel[system, OWN]
        places, gaps = (
            comparison.places(key[0], (system,), "size"),
            comparison.gaps_of_runs(key[0], (system,)),
        )
        np.testing.assert_allclose(line.cost["samples"], places)
        np.testing.assert_allclose(line.gaps["start"], gaps)


@pytest.mark.parametrize("file", sorted((Path(__file__).parents[1] / "examples").glob("*.toml")))
def test_the_sweeps_of_the_examples_can_be_run(file):
    """Their units, of one run and one sample each."""
    for unit in Sweep.load(file).units:
        if isinstance(unit, SweepUnit) and unit.seeds[0] == 0:
            small = dataclasses.replace(unit, seeds=(0,), checkpoints=(1,))
            assert {record.samples for record in small.run(InstanceCache())} == {1}


def test_instances_are_told_a_model_that_suits_them():
    assert isinstance(instance_named("garnet").model.kernel, rf.kernels.Delta)
    assert instance_named("paper-matern-1.5").model.kernel == PAPER["paper-matern-1.5"]
    for name in TABULAR:
        instance = instance_named(name)
        assert instance.rewards.shape == (5, *instance.world.grid.shape)
        assert instance.rewards.min() >= 0.0 and instance.rewards.max() <= 1.0
