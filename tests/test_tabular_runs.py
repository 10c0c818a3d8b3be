"""Tabular explorers in the library: runs, budgets, stops, numbers of the theory, and what is refused."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.baselines.rf_ucrl import Sizes, express_width, ucrl_width
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.experiments.run_maps import maps_of
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache, SweepUnit
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.studies.coverage import errors_of_run
from tabular_cases import CERTIFIED, DELTA, certified, rows, world

ALL = [*CERTIFIED, rf.baselines.Jin(3, bonus_scale=0.05)]
named = pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: type(strategy).__name__)


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
