"""The study of verdicts: its units, and the tables and figure that are made of their records."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.doubts import LargeError, doubt
from rewardfree.evaluation.diagnosis import diagnose
from rewardfree.experiments.local import run_in_worker
from rewardfree.experiments.running import Runner
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import InstanceCache
from rewardfree.studies.catalogue import study_named
from rewardfree.studies.control.specification import task_named
from rewardfree.studies.verdicts.specification import DEVELOPED_ON, SYSTEMS, TRUE_DYNAMICS, VerdictUnit
from rewardfree.studies.verdicts.study import DataSet, correlation, judged, verdict_figure, verdict_table

SMALL = VerdictUnit("Pendulum", "uniform", 60, seed=3, episodes=3)


def made_up(system="Pendulum", size=60, score=0.5, word="partly", returns=(5.0,), source="uniform", seed=0):
    """A record with one number for each reward; random actions return 0."""
    names = [f"reward {i}" for i in range(len(returns))]
    record = {"system": system, "source": source, "size": size, "seed": seed}
    record |= {
        "returns": {name: [value - 1.0, value + 1.0] for name, value in zip(names, returns, strict=True)}
    }
    record |= {
        "random": {name: [0.0, 0.0] for name in names},
        "doubts": {name: ["LargeError"] for name in names},
    }
    if source != TRUE_DYNAMICS:
        record |= {"score": score, "verdict": f"{word}: because"}
    return record


def data_set(system="Pendulum", score=0.5, share=0.5, word="partly", doubts=(), size=60):
    return DataSet(system, "uniform", size, 0, word, score, share, frozenset(doubts))


# --- what is run ---


def test_half_of_the_systems_and_of_the_data_sets_are_held_out_and_there_are_enough():
    units = study_named("verdicts").units()
    sets = [unit for unit in units if unit.source != TRUE_DYNAMICS]
    held_out = [unit for unit in sets if unit.system not in DEVELOPED_ON]
    assert len(SYSTEMS) >= 8 and set(DEVELOPED_ON) < set(SYSTEMS)
    assert len(sets) >= 60 and 2 * len(held_out) >= len(sets)
    true = [(unit.system, unit.reward) for unit in units if unit.source == TRUE_DYNAMICS]
    assert sorted(true) == sorted(
        2 * [(name, reward) for name in SYSTEMS for reward in SYSTEMS[name].rewards]
    )
    assert len(set(units)) == len(units) == len(sets) + len(true)
    assert {unit.source for unit in sets if unit.size == 25} == {"uniform"}  # all sources begin at random
    assert 0 not in {unit.seed for unit in units}  # the seed of the development


def test_systems_have_the_rewards_and_ends_of_their_tasks():
    task = task_named("MountainCar")
    system = SYSTEMS["MountainCar"]
    assert (
        list(system.rewards.items()) == list(task.rewards.items())[:3]
        and system.terminated == task.terminated
    )
    for each in SYSTEMS.values():
        world = each.world()
        assert isinstance(world, rf.World) and 2 <= len(each.rewards) <= 3


def test_a_unit_says_what_the_library_says():
    (record,) = SMALL.run(InstanceCache())
    world = rf.from_gymnasium("Pendulum-v1")
    data = rf.explore(world, strategy=rf.Uniform(), transitions=60, seed=3, progress=False)
    said = diagnose(data)
    assert (record["score"], record["verdict"]) == (said.score, said.verdict)
    reward = task_named("Pendulum").rewards["own"]
    plan = rf.plan(data, reward, horizon=200)
    score = rf.rollouts(world, plan, reward, episodes=3, seed=10_003)
    assert record["returns"]["own"] == score.returns.tolist()
    assert (
        set(record["returns"])
        == set(record["random"])
        == set(record["doubts"])
        == set(SYSTEMS["Pendulum"].rewards)
    )
    (again,) = SMALL.run(InstanceCache())
    assert {**record, "seconds": 0} == {**again, "seconds": 0}
    (one,) = replace(SMALL, reward="spin").run(InstanceCache())
    assert one["returns"] == {"spin": record["returns"]["spin"]}


def test_doubts_about_its_plans_are_recorded_and_not_said(recwarn):
    (record,) = VerdictUnit("MountainCar", "uniform", 25, seed=0, episodes=3).run(InstanceCache())
    assert "ConstantReward" in record["doubts"]["left hill"] and not recwarn.list


def test_a_worker_says_no_doubts():
    class Doubtful(VerdictUnit):
        def run(self, cache):
            doubt(LargeError, "a doubt")
            warnings.warn("another warning", stacklevel=1)
            return []

    with pytest.warns(UserWarning, match="another warning") as raised:
        assert run_in_worker(Doubtful("Pendulum", "uniform", 6, 0), False) == []
    assert [each.category for each in raised] == [UserWarning]


def test_true_dynamics_reach_what_data_do_not(tmp_path):
    true = VerdictUnit("Pendulum", TRUE_DYNAMICS, 150, seed=3, episodes=3)
    few = VerdictUnit("Pendulum", "uniform", 6, seed=3, episodes=3)
    with Store(tmp_path / "results.sqlite") as store:
        assert Runner(jobs=1).run([few, true], store) == 2
        records = store.tables()
        (only,) = judged(records)
    returns = {record["source"]: np.mean(record["returns"]["own"]) for record in records}
    assert returns[TRUE_DYNAMICS] > returns["uniform"] + 50.0
    assert only.size == 6 and only.share < 0.9 and only.word == "cannot tell"


def test_a_system_of_two_actions_is_planned_with_its_true_dynamics():
    """Next states of a finer mesh are carried over, whoever predicted them."""
    unit = VerdictUnit("unicycle", TRUE_DYNAMICS, 60, seed=3, episodes=3, reward="centre")
    (record,) = unit.run(InstanceCache())
    assert np.mean(record["returns"]["centre"]) > 5.0 + 2.0 * np.mean(record["random"]["centre"])


# --- what is made of it ---


def test_a_share_is_between_random_actions_and_the_best_of_that_seed():
    records = [
        made_up(returns=(5.0, -3.0)),
        made_up(size=150, returns=(10.0, 2.0)),
        made_up(source=TRUE_DYNAMICS, returns=(20.0, 1.0)),
        made_up(seed=1, returns=(4.0, 8.0)),  # episodes of another seed are others
    ]
    shares = [each.share for each in judged(records)]
    assert shares == pytest.approx([(0.25 + 0.0) / 2, (0.5 + 1.0) / 2, 1.0])


def test_a_reward_that_nobody_gains_says_nothing():
    records = [made_up(returns=(0.0, 3.0)), made_up(size=150, returns=(-1.0, 6.0))]
    assert [each.share for each in judged(records)] == pytest.approx([0.5, 1.0])
    assert [each.share for each in judged([made_up(returns=(0.0,))])] == [0.0]


def test_ranks_are_those_of_shares_that_differ():
    rising = [data_set(score=score, share=score**2) for score in (0.1, 0.4, 0.6, 0.9)]
    assert correlation(rising) == 1.0
    falling = [data_set(score=1.0 - each.score, share=each.share) for each in rising]
    assert correlation(falling) == -1.0
    alike = [data_set(score=score, share=0.99 + 0.01 * (score < 0.5)) for score in (0.1, 0.4, 0.6, 0.9)]
    assert np.isnan(correlation(alike))


def test_the_table_keeps_development_and_the_rest_apart_and_says_what_was_missed():
    good = [data_set("Pendulum", score, score, "well") for score in (0.7, 0.8, 1.0)]
    bad = [data_set("Acrobot", score, 1.0 - score, "well", ["LargeError"]) for score in (0.7, 0.8, 1.0)]
    lines = verdict_table(good + bad)
    text = "\n".join(lines)
    first, second = text.split("held out")
    assert (
        "median rank correlation 1.00 (at least 0.7: reached)" in first
        and "0 of 3 times (at most 5%: kept)" in first
    )
    assert "median rank correlation -1.00 (at least 0.7: NOT reached)" in second
    assert '"well" of a share below 0.5: 3 of 3 times (at most 5%: NOT kept)' in second
    assert next(line for line in lines if line.startswith("Pendulum")).split() == [
        "Pendulum",
        "3",
        "1.00",
        "1.00",
        "0.83",
        "(3)",
        "-",
        "-",
        "-",
    ]
    assert next(line for line in lines if line.startswith("LargeError")).split() == [
        "LargeError",
        "3",
        "0",
        "0",
    ]
    assert next(line for line in lines if line.startswith("none")).split() == ["none", "0", "2", "1"]


def test_the_table_tells_ranks_without_the_smallest_sets_and_what_cannot_be_ranked():
    """Of fewer than 50 transitions nothing is told, and what they gain is easily told apart."""
    told = [data_set("Pendulum", score, 1.0 - score) for score in (0.4, 0.5, 0.6)]
    few = [data_set("Pendulum", score, score, "cannot tell", size=6) for score in (0.0, 0.1)]
    alike = [data_set("CartPole", score, 1.0) for score in (0.4, 0.5)]
    lines = verdict_table(told + few + alike)
    assert next(line for line in lines if line.startswith("Pendulum")).split()[1:4] == ["5", "0.60", "-1.00"]
    assert next(line for line in lines if line.startswith("CartPole")).split()[1:4] == ["2", "none", "none"]
    assert "median rank correlation 0.60 (at least 0.7: NOT reached)" in lines
    assert "the same of data sets of at least 50 transitions -1.00" in lines
    assert "no correlation where all shares, or all scores, are alike: CartPole" in lines
    assert '"well" was never said' in lines and "nan" not in "".join(lines)


def test_of_nothing_that_can_be_ranked_there_is_no_median():
    lines = verdict_table([data_set("CartPole", score, 1.0) for score in (0.4, 0.5)])
    assert "median rank correlation none (at least 0.7: NOT reached)" in lines


def test_the_figure_has_a_panel_for_each_system_that_was_run():
    figure = verdict_figure([data_set("Pendulum"), data_set("Acrobot")])
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == [
        "Pendulum",
        "Acrobot, held out",
    ]
    assert [axes.get_xlabel() for axes in figure.axes] == ["score", "score"]
    assert "“partly” and “well” begin" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_lowest_panel_of_each_column_has_numbers():
    names = list(SYSTEMS)[:7]
    axes = verdict_figure([data_set(name) for name in names]).axes
    shown = [place for place in axes if place.get_visible()]
    assert [place.get_xlabel() == "score" for place in shown] == [False] * 2 + [True] * 5
    figure = shown[0].get_figure()
    figure.draw_without_rendering()
    numbered = [any(tick.get_visible() for tick in place.get_xticklabels()) for place in shown]
    assert numbered == [False] * 2 + [True] * 5


def test_the_command_writes_a_table_and_a_figure(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("rewardfree.studies.verdicts.study.sources_of", lambda size: ("uniform",))
    code, said, complaints = cli("reproduce", "verdicts", "--quick", "--jobs", 1, "--out", tmp_path)
    folder = tmp_path / "verdicts-quick"
    assert (code, complaints) == (0, []) and said[0] == "verdicts: 10 units, seeds 4000 to 4000"
    assert re.fullmatch(r"10 units run in \d+ s \(\d+ s of CPU\)", said[1])
    assert (folder / "table.txt").read_text().startswith("score and share of what can be gained, 4 data sets")
    assert (folder / "verdicts.png").exists()
