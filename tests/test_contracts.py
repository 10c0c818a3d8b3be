"""What a strategy may say, and what is meant where it says nothing."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import rewardfree as rf
from reference_runs import recorded, small_world
from reference_worlds import FINITE, KERNEL, MODEL, POOLED, Puck
from rewardfree.budget import Budget
from rewardfree.strategies import Round, Strategy
from rewardfree.strategies.episodic import EpisodicStrategy

AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
REWARD = np.random.default_rng(0).random((6, 5))


# --- strategies from outside the package ---


@dataclass(frozen=True)
class FirstAction(EpisodicStrategy):
    """Always the first action, on both kinds of world."""

    def action(self, batch, h, state, q):
        return 0 * state

    def play_world(self, run):
        run.play(lambda state, h: run.spaces.action.candidates(2)[0])


@dataclass(frozen=True)
class OnFinite(Strategy):
    """The sum of step and state as an action, on finite worlds alone."""

    uses_posterior: ClassVar[bool] = False

    def play_batch(self, batch):
        state = batch.starts()
        for h in range(batch.horizon):
            state = batch.move(h, state * batch.actions + (state + h) % batch.actions)


@dataclass(frozen=True)
class OnWorlds(Strategy):
    """Full force, on real states alone."""

    def play_world(self, run):
        run.play(lambda state, h: np.ones(1))


@dataclass(frozen=True)
class Checked(Strategy):
    """One with every option that the base class checks."""

    beta: float = 0.5
    ties: str = "lowest"
    empty: str = "zero"
    fresh: bool = False


def test_a_strategy_plays_what_it_has_a_method_for():
    table = {
        (True, True): [FirstAction(), rf.Scout(), rf.Generative(), rf.Online(0.1), rf.Qiu(0.1)],
        (True, False): [OnFinite(), rf.baselines.Jin(), rf.baselines.RFUCRL(0.5, 0.1)],
        (False, True): [OnWorlds()],
        (False, False): [Checked()],
    }
    table[True, True] += [rf.GreedyMaxVariance(), rf.Uniform(), rf.baselines.Partitioned(0.1)]
    table[True, True] += [rf.baselines.LinearRewardFree(rf.posterior.PolynomialFeatures(2), 0.1)]
    table[True, True] += [rf.baselines.KernelRFUCRL(0.1), rf.baselines.KernelRFExpress(0.1)]
    table[True, True] += [rf.baselines.MeanEmbedding(0.1)]
    table[True, False] += [rf.baselines.RFExpress(0.5, 0.1)]
    for (finite, worlds), strategies in table.items():
        for strategy in strategies:
            assert isinstance(strategy, Strategy)
            assert (strategy.plays_finite, strategy.plays_worlds) == (finite, worlds), strategy


def test_a_strategy_of_ones_own_explores_finite_worlds():
    data = rf.explore(FINITE, MODEL, OnFinite(), episodes=6, seed=1)
    assert data.action.tolist() == ((data.state + data.h) % 5).tolist()
    assert data.kept.all() and data.samples.tolist() == [6] * 4 and data.strategy == OnFinite()
    data = rf.explore(FINITE, MODEL, FirstAction(), samples_per_step=6, seed=1)
    assert not data.action.any() and len(data) == 24
    runs = rf.explore_many(FINITE, MODEL, FirstAction(), samples_per_step=6, seeds=[1, 2])
    assert recorded(runs[0]) == recorded(data) != recorded(runs[1])
    assert rf.plan(data, REWARD).planner == rf.Mean(clip="range")


def test_a_strategy_of_ones_own_explores_real_states():
    data = rf.explore(Puck(), POOLED, OnWorlds(), steps=12)
    assert (data.action == 1.0).all() and data.kept.all()
    data = rf.explore(Puck(), POOLED, FirstAction(), steps=12)
    assert (data.action == -1.0).all()
    assert rf.plan(data, "x").planner == rf.DynamicsPlanner()


def test_what_a_strategy_has_no_method_for_is_refused_before_the_first_step():
    with pytest.raises(
        ValueError, match=r"OnFinite is for finite worlds, rf\.FiniteWorld: on real states use"
    ):
        rf.explore(Puck(), POOLED, OnFinite(), steps=5)
    with pytest.raises(ValueError, match="OnWorlds is for real states, and this world is finite"):
        rf.explore(FINITE, MODEL, OnWorlds(), steps=5)
    with pytest.raises(ValueError, match="OnWorlds is for real states: it has no play_batch"):
        OnWorlds().play_batch(None)
    with pytest.raises(ValueError, match="OnFinite is for finite worlds: it has no play_world"):
        OnFinite().play_world(None)


@pytest.mark.parametrize("other", ["online", rf.Online, 0.1, rf.Mean()])
def test_what_is_no_strategy_is_refused(other):
    for world in (FINITE, Puck()):
        with pytest.raises(ValueError, match=r"strategy must be a strategy such as \w+\("):
            rf.explore(world, POOLED, other, steps=5)
    with pytest.raises(ValueError, match=r"strategy must be a strategy such as \w+\("):
        rf.default_model(FINITE, other)


def test_what_is_meant_where_a_strategy_says_nothing():
    strategy, budget = OnFinite(), Budget("steps", 40)
    assert strategy.ties == "lowest"
    assert not (strategy.generative or strategy.cpu_only or strategy.open_ends)
    assert Strategy.uses_posterior and not strategy.uses_posterior
    assert strategy.round(4) == Round.whole_episode(4)
    assert strategy.prologue(FINITE.grid, 4) == 0
    assert strategy.within(budget, FINITE) is strategy
    assert not strategy.shares_points and not strategy.own_posteriors and not strategy.needs_box(MODEL)
    strategy.check_model(AUTO)
    strategy.check_grid(FINITE.grid)
    for device in (None, "cpu", "cuda"):
        strategy.check_device(device)
    posteriors = strategy.posteriors(MODEL, FINITE.grid.points, designs=3)
    assert isinstance(posteriors, rf.posterior.Lattice)
    assert isinstance(strategy.posterior(MODEL, None), rf.posterior.Design)


def test_the_model_where_nobody_names_one():
    by_step = small_world(each_step=True)
    for strategy in (OnFinite(), rf.Scout(), rf.Qiu(0.1)):
        assert strategy.default_model(FINITE) == AUTO == rf.default_model(FINITE, strategy)
        assert strategy.default_model(Puck()) == AUTO
        assert strategy.default_model(by_step) == dataclasses.replace(AUTO, timed=True)
    counts = rf.Model(rf.kernels.Delta(), ridge=1.0)
    assert rf.default_model(FINITE, rf.baselines.Jin()) == counts
    assert rf.explore(FINITE, strategy=rf.baselines.RFUCRL(0.5, 0.1), episodes=3).model == counts
    assert rf.baselines.MeanEmbedding(0.1).default_model(FINITE) == rf.Model(rf.AutoKernel(), pooled=True)


def test_runs_share_their_points_where_nothing_random_enters():
    assert rf.Generative().shares_points
    assert not rf.Generative(ties="random").shares_points and not rf.Uniform().shares_points


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (MODEL, 8 * (4 * 10 * 30)),  # a row of L for each sample of each step
        (POOLED, 8 * (40 * 30 + 6 * 30)),  # and the estimated law
        (dataclasses.replace(POOLED, timed=True), 8 * (40 * 120 + 6 * 120)),
    ],
    ids=["per step", "pooled", "timed"],
)
def test_the_memory_of_a_run_is_that_of_its_posteriors(model, expected):
    assert rf.Uniform().bytes_per_run(model, FINITE.grid, 4, 10) == expected
    assert rf.Generative().bytes_per_run(model, FINITE.grid, 4, 10) == 8 * 30  # the posterior is shared


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"beta": -0.1}, "beta must be at least 0, got -0.1"),
        ({"beta": float("nan")}, "beta must be finite"),
        ({"beta": "0.1 or so"}, "beta must be a number"),
        ({"ties": "first"}, 'ties must be "lowest" or "random"'),
        ({"empty": "none"}, 'empty must be "zero" or "prior", got \'none\''),
        ({"fresh": 1}, "fresh must be True or False, got 1"),
    ],
)
def test_options_that_strategies_share_are_checked_once(options, said):
    with pytest.raises(ValueError, match=said):
        Checked(**options)
    assert type(Checked(beta=1).beta) is float


class Shifted(FirstAction):
    """With posteriors of its own on finite worlds."""

    def posteriors(self, model, inputs, **options):
        return model.posteriors(inputs + 0.0, **options)


class Doubled(FirstAction):
    """With a posterior of its own on real states."""

    def posterior(self, model, box):
        return rf.posterior.Design(2.0 * model.fixed, ridge=model.ridge)


def test_posteriors_of_ones_own_are_known_by_their_methods():
    for strategy in (Shifted(), Doubled(), rf.baselines.Partitioned(0.1), rf.baselines.Jin()):
        assert strategy.own_posteriors
        with pytest.raises(ValueError, match=f"{type(strategy).__name__} has posteriors of its own"):
            rf.explore(FINITE, MODEL, strategy, samples_per_step=99, posterior=rf.Model.design)
    assert not FirstAction().own_posteriors and not rf.Online(0.1).own_posteriors
    data = rf.explore(Puck(), POOLED, Doubled(), steps=20)
    plan = rf.plan(data, "x")
    assert plan.planner == rf.Mean(clip="range")  # they are for regressions of V
    assert {posterior.kernel for posterior in plan.recursion.estimate.posteriors} == {2.0 * KERNEL}


def test_what_counts_on_the_cpu_refuses_a_device():
    strategy = type("Counting", (OnFinite,), {"cpu_only": True})()
    with pytest.raises(ValueError, match='Counting counts visits, on the CPU: leave device= out, got "cuda"'):
        rf.explore(FINITE, MODEL, strategy, steps=8, device="cuda")
    strategy.check_device("cpu")


class Refusing(FirstAction):
    """One that takes neither pooled models nor six states."""

    def check_model(self, model):
        if model.pooled:
            raise ValueError("not pooled")

    def check_grid(self, grid):
        if grid.shape[0] == 6:
            raise ValueError("not six states")


def test_a_strategy_may_refuse_models_and_grids():
    for world in (FINITE, Puck()):
        with pytest.raises(ValueError, match="not pooled"):
            rf.explore(world, POOLED, Refusing(), steps=8)
    with pytest.raises(ValueError, match="not six states"):
        rf.explore(FINITE, MODEL, Refusing(), steps=8)
    assert len(rf.explore(small_world(states=5), MODEL, Refusing(), steps=8)) == 8


@dataclass(frozen=True)
class Halved(FirstAction):
    """One that keeps nothing of a first phase, which it makes half of the budget."""

    first: int | None = None

    def within(self, budget, world):
        return dataclasses.replace(self, first=budget.size // 2)

    def prologue(self, grid, horizon):
        return self.first


def test_a_strategy_may_leave_options_to_the_budget_and_keep_nothing_at_first():
    data = rf.explore(FINITE, MODEL, Halved(), episodes=10)
    assert data.strategy == Halved(5) and data.episodes == 10
    assert not data.kept[:20].any() and data.kept[20:].all()
    data = rf.explore(FINITE, MODEL, Halved(), samples_per_step=10)
    assert data.samples.tolist() == [10] * 4 and data.episodes == 15
