"""Maps of single runs, and the page that shows them: what is in them is what the run knew."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import rewardfree as rf
from rewardfree.cli.app import app
from rewardfree.experiments.run_maps import mapped_runs, maps_are_there, maps_of, read_maps, write_maps
from rewardfree.experiments.running import Runner
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache

TOML = """
runs = 4
batch = 2
samples_per_step = [2, 5]
worlds = [{type = "corridor_world", states = 7, actions = 5, horizon = 3}]
models = [{type = "Model", kernel = {type = "Matern", nu = 1.5, lengthscale = 0.3}, ridge = 0.2}]
strategies = [{type = "GreedyMaxVariance", name = "greedy"}, {type = "Online", beta = 0.1, name = "online"}]
planners = [{type = "Mean", name = "mean"}, {type = "Optimistic", beta = 0.1, name = "optimistic"}]
"""


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TOML)
    return Sweep.load(path)


def run(folder, *more):
    return CliRunner().invoke(app, [*map(str, more), str(folder)], catch_exceptions=True)


def test_maps_are_of_the_first_run_of_each_strategy(sweep):
    wanted = mapped_runs(sweep.units)
    assert [unit.names[2] for unit in wanted] == ["online", "greedy"]  # in the order of the paper
    assert all(unit.seeds[0] == 0 for unit in wanted)


def test_maps_are_what_the_run_knew(sweep):
    (online,) = [unit for unit in mapped_runs(sweep.units) if unit.names[2] == "online"]
    seen = maps_of(online, InstanceCache())
    instance = rf.worlds.corridor_world(states=7, actions=5, horizon=3)
    world, reward = instance.world, instance.reward
    model = rf.Model(rf.Matern(1.5, 0.3), 0.2)
    data = rf.explore(world, model, rf.Online(0.1), samples_per_step=5, seed=0)
    assert seen["steps"].tolist() == [0, 1, 2] and seen["sizes"].tolist() == [2, 5]
    for i, n in enumerate((2, 5)):
        part = data.first(samples_per_step=n)
        plan = rf.plan(part, reward, rf.Optimistic(0.1))
        np.testing.assert_allclose(seen["value"][i], plan.values, atol=1e-5)
        np.testing.assert_array_equal(seen["policy"][i], world.actions[plan.actions, 0])
        for h, rows in enumerate(part.designs()):
            design = model.design()
            design.extend(world.grid.points[part.points(rows)])
            sigma = design.std(world.grid.points).reshape(7, 5)
            np.testing.assert_allclose(seen["sigma"][i, h], sigma, atol=1e-5)
            np.testing.assert_array_equal(seen["state"][h, :n], world.states[part.state[rows], 0])
            np.testing.assert_array_equal(seen["action"][h, :n], world.actions[part.action[rows], 0])
    np.testing.assert_array_equal(seen["reward"], reward)
    np.testing.assert_array_equal(seen["law"], world.P[:, 2])


def test_maps_are_made_once_and_read_as_they_were(sweep, tmp_path):
    wanted, path = mapped_runs(sweep.units), tmp_path / "maps.npz"
    assert not maps_are_there(wanted, path)
    assert list(write_maps(wanted, path, Runner(jobs=1))) == wanted
    assert maps_are_there(wanted, path) and not maps_are_there(wanted[:1], path)
    (world,) = read_maps(path)
    assert [each["strategy"] for each in world["runs"]] == ["online", "greedy"]
    np.testing.assert_array_equal(world["runs"][1]["sigma"], maps_of(wanted[1], InstanceCache())["sigma"])


@pytest.fixture
def swept(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TOML)
    out = tmp_path / "results"
    ran = CliRunner().invoke(app, ["sweep", str(path), "--out", str(out), "--jobs", "1"])
    assert ran.exit_code == 0, ran.output
    return out


def test_a_sweep_of_ones_own_gets_a_page_and_the_same_one_again(swept):
    first = run(swept, "report")
    assert first.exit_code == 0 and str(swept / "report.html") in first.output.replace("\n", "")
    page = (swept / "report.html").read_bytes()
    run(swept, "report")
    assert (swept / "report.html").read_bytes() == page
    assert b"4, from 0 to 3" in page and b"<title>results</title>" in page


def test_a_page_may_go_elsewhere(swept, tmp_path):
    out = tmp_path / "pages" / "mine.html"
    assert run(swept, "report", "--out", out).exit_code == 0
    assert out.exists() and not (swept / "report.html").exists()


def test_without_results_there_is_no_page(tmp_path):
    said = run(tmp_path, "report")
    assert said.exit_code != 0 and "there are no results" in str(said.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "text"), [("made.json", "{"), ("made.json", "[]"), ("maps.npz", "x")])
def test_damaged_files_are_named(swept, name, text):
    (swept / name).write_text(text)
    said = run(swept, "report")
    assert said.exit_code != 0 and name in str(said.exception)


def test_a_reproduction_ends_with_its_page(tmp_path):
    arguments = ["reproduce", "figure1", "--quick", "--kernels", "se", "--runs", "2", "--jobs", "1"]
    ran = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    (page,) = tmp_path.rglob("report.html")
    made = json.loads((page.parent / "made.json").read_text())
    assert made["command"] == "rewardfree reproduce figure1 --kernels se --runs 2 --quick"
    assert f"rewardfree {rf.__version__}" in made["versions"] and "units run in" in made["time"]
    before = page.read_bytes()
    assert run(page.parent, "report").exit_code == 0
    assert page.read_bytes() == before
    again = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert "all of them are stored already" in again.output
    assert page.read_bytes() == before
