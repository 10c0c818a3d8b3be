"""The control tasks: units that leave files, and the table and figure that are made of them."""

import dataclasses
import sys

import numpy as np
import pytest

import rewardfree as rf
from reproduction_cases import check_cut_short
from rewardfree import cli
from rewardfree.experiments import local
from rewardfree.experiments.running import Runner
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import InstanceCache
from rewardfree.studies.catalogue import study_named
from rewardfree.studies.control.specification import TASKS, ControlUnit, task_named
from rewardfree.studies.control.study import SOURCES, control_figure, control_table, means, scores_table

#: Made-up returns of each task's own reward, below the best published ones.
LEVELS = dict(zip((task.env for task in TASKS), (-155.0, -103.0, 94.0, 490.0, -72.0), strict=True))
SMALL = ControlUnit("Pendulum-v1", seed=3, transitions=80, episodes=2)


def records(own=0.0):
    """Made-up results of two seeds: a source is as much better as it comes earlier."""
    return [
        {
            "env": task.env,
            "seed": seed,
            "source": source,
            "reward": reward,
            "returns": [own + LEVELS[task.env] + seed - i + more for more in (0.0, 2.0)],
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


def test_a_unit_is_stored_and_is_not_run_again(tmp_path, monkeypatch):
    with Store(tmp_path / "results.sqlite") as store:
        assert Runner(jobs=1).run([SMALL], store) == 1
        found = store.tables()
        assert {record["source"] for record in found} == {"generative", "online", "uniform"}
        assert {record["reward"] for record in found} == set(task_named("Pendulum").rewards)
        assert all(len(record["returns"]) == 2 and record["steps"] == 80 for record in found)
        assert all(each["seconds"]["explore"] > 0.0 < each["seconds"]["plan"] for each in found)
        assert Runner(jobs=1).run([SMALL], store) == 0
        assert store.tables() == found


def test_a_unit_gives_what_the_library_gives():
    (record, *_) = ControlUnit("Pendulum-v1", seed=5, transitions=60, episodes=2).run(InstanceCache())
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


def test_scores_stand_beside_what_was_published_and_its_budget():
    """Nothing else: what a score was hoped to be is no result."""
    lines = scores_table(records(), TASKS)
    assert " ".join(lines[0].split()) == "task queries online random data best published (training budget)"
    assert lines[1].split() == ["Pendulum", "-153.50", "-154.50", "-155.50", "-151.9", "(20,000)"]
    assert "no quantitative benchmark" in lines[1 + len(TASKS)]
    assert not {"must", "met", "NOT"} & set("\n".join(lines).split())


def test_a_published_score_is_reached_by_who_reaches_it():
    line = next(line for line in scores_table(records(own=5.0), TASKS) if line.startswith("Pendulum"))
    assert line.endswith("  reached by queries and online and random data")
    line = next(line for line in scores_table(records(), TASKS) if line.startswith("Pendulum"))
    assert "reached" not in line


def test_the_figure_has_a_panel_for_each_task():
    figure = control_figure(records(), TASKS)
    assert [axes.get_title().splitlines()[0] for axes in figure.axes] == [task.name for task in TASKS]
    assert figure.axes[0].get_title().splitlines()[1] == "(training budget 20,000)"
    assert all(len(axes.lines) == 2 * 3 + 2 for axes in figure.axes)  # dots and a mean of each, two levels


def test_what_was_cut_short_is_not_taken_for_a_whole_data_set(monkeypatch):
    check_cut_short(SMALL, monkeypatch)


def commanded(capsys, monkeypatch, *words):
    """The command in this process: its exit code, and what it printed."""
    monkeypatch.setattr(sys, "argv", ["rewardfree", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    return ended.value.code or 0, said.out, said.err


def test_an_interruption_says_what_is_stored_and_the_command_goes_on(tmp_path, monkeypatch, capsys):
    """One unit is stored when Ctrl-C comes; the command that is said runs the other three."""
    ran = []

    def finished(units, *_):
        for unit in units:
            if len(ran) == 1:
                ran.append(None)
                raise KeyboardInterrupt
            ran.append(unit)
            yield unit, dataclasses.replace(unit, transitions=40, episodes=1).run(InstanceCache())

    monkeypatch.setattr(local, "finished_units", finished)
    words = ("reproduce", "control", "--quick", "--out", tmp_path)
    code, out, errors = commanded(capsys, monkeypatch, *words)
    results = tmp_path / "control-quick" / "results.sqlite"
    assert code == 130 and out == "control: 4 units, seeds 2000 to 2000\n"
    assert errors == (
        f"rewardfree: interrupted with 1 of 4 units stored in {results}; "
        f"to go on: rewardfree {' '.join(map(str, words))}\n"
    )
    code, out, errors = commanded(capsys, monkeypatch, *words)
    assert (code, errors) == (0, "") and "\n3 units run in " in out
    assert len([unit for unit in ran if unit is not None]) == 4 == len(set(ran) - {None})
    table = (results.parent / "table.txt").read_text()
    assert table in out and (results.parent / "control.png").exists()
    (results.parent / "table.txt").unlink()
    for command in ("figures", "export"):
        assert commanded(capsys, monkeypatch, command, results.parent)[0] == 0
    assert (results.parent / "table.txt").read_text() == table
    code, out, errors = commanded(capsys, monkeypatch, "report", results.parent)
    assert (code, out) == (2, "") and f"has no page: `rewardfree figures {results.parent}` writes" in errors


@pytest.mark.parametrize("what", ["control", "beyond", "baselines", "doubling"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"draws": 3}, "--preset, --draws, --kernels and --device are for the paper's figures, not for"),
    ],
)
def test_bad_numbers_are_refused(what, options, said):
    with pytest.raises(ValueError, match=said):
        study_named(what, quick=True, **options)


def test_jobs_are_at_least_one():
    with pytest.raises(ValueError, match="jobs must be a whole number of at least 1, got 0"):
        Runner(jobs=0)


def test_the_true_dynamics_are_planned_with_on_the_same_seeds():
    units = study_named("control", seed=5, runs=3).units()
    seeds = {(unit.env, unit.oracle): [] for unit in units}
    for unit in units:
        seeds[unit.env, unit.oracle].append(unit.seed)
    assert seeds == {(task.env, oracle): [2005, 2006, 2007] for task in TASKS for oracle in (False, True)}
