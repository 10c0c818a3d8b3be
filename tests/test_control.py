"""The control tasks: units that leave files, and the table and figure that are made of them."""

import dataclasses
import json

import numpy as np
import pytest
import typer

import rewardfree as rf
from rewardfree.cli import beyond, engine
from rewardfree.cli import control as command
from rewardfree.experiments import control
from rewardfree.experiments.control import TASKS, ControlUnit, task_named
from rewardfree.experiments.unitfiles import read_stored, run_stored
from rewardfree.report.control import SOURCES, control_figure, control_table, means, scores_table

SMALL = ControlUnit("Pendulum-v1", seed=3, transitions=80, episodes=2)


def records(own=0.0):
    """Made-up results of two seeds: a source is as much better as it comes earlier."""
    return [
        {
            "env": task.env,
            "seed": seed,
            "source": source,
            "reward": reward,
            "returns": [own + task.must + seed - i, own + task.must + seed - i + 2.0],
            "seconds": {"explore": 2.0 + seed, "plan": 3.0},
        }
        for task in TASKS
        for reward in task.rewards
        for seed in (0, 1)
        for i, source in enumerate(SOURCES)
    ]


def test_every_task_can_be_planned_for_each_of_its_rewards():
    for task in TASKS:
        world = rf.from_gymnasium(task.env)
        assert len(task.rewards) >= 4 and next(iter(task.rewards)) == "own"
        state = np.zeros((3, world.state.size))
        action = world.action.candidates(3)[:1].repeat(3, axis=0)
        for reward in task.rewards.values():
            assert rf.rewards.RewardFunction(reward, world.spaces)(0, state, action, state).shape == (3,)
        assert task_named(task.name) is task_named(task.env) is task


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match=r"there is Pendulum, .*, got 'Hopper'"):
        task_named("Hopper")


def test_a_unit_leaves_a_file_and_is_not_run_again(tmp_path, monkeypatch):
    assert [unit for _, unit in run_stored([SMALL], tmp_path, jobs=1)] == [SMALL]
    found = read_stored([SMALL], tmp_path)
    assert {record["source"] for record in found} == {"generative", "online", "uniform"}
    assert {record["reward"] for record in found} == set(task_named("Pendulum").rewards)
    assert all(len(record["returns"]) == 2 and record["steps"] == 80 for record in found)
    monkeypatch.setattr(control, "run_unit", lambda unit: pytest.fail("it is there"))
    assert list(run_stored([SMALL], tmp_path, jobs=1)) == []
    kept = json.loads((tmp_path / f"{SMALL.key}.json").read_text())
    assert kept == [{key: value for key, value in each.items() if key != "seconds"} for each in found]
    assert all(each["seconds"]["explore"] > 0.0 < each["seconds"]["plan"] for each in found)


def test_a_unit_gives_what_the_library_gives():
    (record, *_) = control.run_unit(ControlUnit("Pendulum-v1", seed=5, transitions=60, episodes=2))
    world, task = rf.from_gymnasium("Pendulum-v1"), task_named("Pendulum")
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
    data = rf.explore(world, model, rf.Generative(), transitions=60, seed=5)
    plan = rf.plan(data, task.rewards["own"])
    score = rf.rollouts(world, plan, task.rewards["own"], episodes=2, seed=10_005)
    assert record["returns"] == score.returns.tolist() and record["expected"] == plan.expected


def test_the_table_has_a_line_for_each_reward_with_mean_and_worst_seed():
    lines = control_table(records(), TASKS)
    own = next(line for line in lines if line.startswith("MountainCar ") and " own " in line)
    assert "-101.5 ± 0.5 (-102.0)" in own  # -103 + seed + 1 for the first source
    assert sum(line.startswith("Acrobot") for line in lines) == 4 + 1  # and one of seconds
    assert f"{'Pendulum':<23}{3.0:>18.1f}{3.0:>18.1f}{3.0:>8.1f}" in lines  # the largest of all seeds


def test_means_are_of_seeds():
    found = means(records())
    assert found["CartPole-v1", "own", "generative"].tolist() == [491.0, 492.0]


@pytest.mark.parametrize(("own", "verdict"), [(0.0, "must met"), (-5.0, "must NOT met")])
def test_a_must_is_judged_by_the_mean_of_queries(own, verdict):
    lines = scores_table(records(own), TASKS)
    assert all(verdict in line for line in lines[1:])


def test_a_published_score_is_reached_by_who_reaches_it():
    line = next(line for line in scores_table(records(own=5.0), TASKS) if line.startswith("Pendulum"))
    assert "best published reached by queries and online" in line
    line = next(line for line in scores_table(records(), TASKS) if line.startswith("Pendulum"))
    assert "best published" not in line


def test_the_figure_has_a_panel_for_each_task():
    figure = control_figure(records(), TASKS)
    assert [axes.get_title().splitlines()[0] for axes in figure.axes] == [task.name for task in TASKS]
    assert all(len(axes.lines) == 2 * 3 + 2 for axes in figure.axes)  # dots and a mean of each, two levels


def test_what_was_cut_short_is_not_taken_for_a_whole_data_set(monkeypatch):
    explore = rf.explore

    def interrupted(*arguments, **options):
        return dataclasses.replace(explore(*arguments, **options), stopped_by="interrupted")

    monkeypatch.setattr(rf, "explore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        control.run_unit(SMALL)


def test_an_interruption_says_what_is_stored_and_how_to_go_on(tmp_path, monkeypatch, capsys):
    def run(units, folder, jobs, cluster):
        folder.mkdir(parents=True)
        for end in ("json", "seconds.json"):
            (folder / f"{units[0].key}.{end}").write_text("[]")
        yield 1, units[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "run_stored", run)
    with pytest.raises(typer.Exit) as end:
        list(command.control(tmp_path, None, 0, True, engine.Engine()))
    said = capsys.readouterr().err
    assert end.value.exit_code == 130
    assert "interrupted with 1 of 4 units stored in" in said and "to go on: rewardfree" in said


@pytest.mark.parametrize("what", [command.control, beyond.beyond])
@pytest.mark.parametrize(
    ("runs", "jobs", "seed", "said"),
    [
        (None, 0, 0, "jobs must be a whole number of at least 1, got 0"),
        (0, None, 0, "runs must be a whole number of at least 1, got 0"),
        (None, None, -1, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_numbers_are_refused(tmp_path, what, runs, jobs, seed, said):
    with pytest.raises(ValueError, match=said):
        list(what(tmp_path, runs, seed, True, engine.Engine(jobs)))
