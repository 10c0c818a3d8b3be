"""What a strategy and a planner may say, and what is meant where they say nothing."""

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

import rewardfree as rf
from reference_runs import recorded, small_world
from rewardfree.arrays import Placement
from rewardfree.budget import Budget
from rewardfree.planning import FinitePlan, Plan, Planner, PlanRequest, plan_runs
from rewardfree.strategies import Round, Strategy
from rewardfree.strategies.episodic import EpisodicStrategy
from rewardfree.worlds.world import LabelledWorld

KERNEL = rf.Matern(1.5, 0.3)
MODEL = rf.Model(KERNEL, ridge=0.1)
POOLED = rf.Model(KERNEL, ridge=0.1, pooled=True)
AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FINITE = small_world(start=None)
REWARD = np.random.default_rng(0).random((6, 5))


class Puck(rf.World):
    """A puck on a noisy line."""

    state = rf.Box.of(x=(-2.0, 2.0), v=(-1.0, 1.0))
    action = rf.Box.of(push=(-1.0, 1.0))
    horizon = 5

    def start(self, rng):
        return np.array([rng.uniform(-0.5, 0.5), 0.0])

    def sample(self, state, action, h, rng):
        v = np.clip(0.9 * state[:, 1] + 0.4 * action[:, 0] + 0.05 * rng.standard_normal(len(state)), -1, 1)
        x = np.clip(state[:, 0] + 0.5 * v, -2.0, 2.0)
        return np.stack([x, v], axis=1), np.zeros(len(x), bool)


class Many(rf.World):
    """Five variables that are pushed about: too many for a mesh."""

    state = rf.Box.of(**dict.fromkeys("abcdf", (-1.0, 1.0)))
    action, horizon = rf.Box.of(u=(-1.0, 1.0)), 4

    def start(self, rng):
        return rng.uniform(-0.1, 0.1, 5)

    def sample(self, state, action, h, rng):
        return np.clip(0.9 * state + 0.1 * action, -1.0, 1.0), np.zeros(len(state), bool)


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


# --- planners ---


@cache
def explored(kind, model=POOLED, strategy=rf.Uniform()):  # noqa: B008  strategies are frozen
    world = {"finite": FINITE, "labels": LabelledWorld(FINITE), "puck": Puck(), "many": Many()}[kind]
    return rf.explore(world, model, strategy, steps=60, seed=2)


@dataclass(frozen=True)
class OneAction(Planner):
    """A plan that always does the same."""

    action: int

    def plan(self, request):
        data, shape = request.data, (request.steps, request.data.grid.shape[0])
        actions, values = np.full(shape, self.action), np.zeros(shape)
        about = (data.grid, request.steps, self, request.used_model, len(data))
        return [FinitePlan(*about, actions, values) for _ in request.rewards]


def test_a_planner_of_ones_own_plans():
    data = explored("finite")
    plan = rf.plan(data, REWARD, OneAction(3), horizon=2)
    assert plan.act(5, 1) == 3 and plan.horizon == 2 and plan.chosen_by is None
    assert [plan.planner for plan in rf.plan_many(data, [REWARD, REWARD], OneAction(1))] == [OneAction(1)] * 2
    together = plan_runs([data, data], [REWARD], OneAction(2))
    assert [[plan.act(0) for plan in plans] for plans in together] == [[2], [2]]
    assert plan_runs([], [REWARD], OneAction(2)) == plan_runs([], [REWARD]) == []
    assert repr(plan).startswith(
        "FinitePlan(OneAction(action=3), horizon 2, 6 states, 60 transitions, Model("
    )


def test_planners_and_plans_are_contracts():
    for kind in (Planner, Plan, rf.planning.ValuePlanner, rf.planning.WorldPlan):
        with pytest.raises(TypeError, match="abstract"):
            kind()
    for planner in (rf.Mean(), rf.Optimistic(1.0), rf.Pessimistic(1.0), rf.DynamicsPlanner()):
        assert isinstance(planner, Planner)
    assert isinstance(rf.DefaultPlanner(), Planner)


REFUSED = {
    "data must be what rf.explore returns, or rf.load": {"data": "run.npz"},
    "rewards must be a list of rewards, got the one formula 's': use plan": {"rewards": "s"},
    "rewards must hold at least one reward, got none": {"rewards": []},
    r"model must be rf.Model\(kernel, ridge\)": {"model": KERNEL},
    "horizon must be a whole number of at least 1, got 0": {"horizon": 0},
    "horizon must be a whole number of at least 1, got 2.5": {"horizon": 2.5},
    "discount must be a number, got 'half'": {"discount": "half"},
    r"discount must lie in \(0, 1\], got 0": {"discount": 0.0},
    r"discount must lie in \(0, 1\], got 1.1": {"discount": 1.1},
    "seed must be a whole number of at least 0, got -1": {"seed": -1},
    "seed must be a whole number, got 'x'": {"seed": "x"},
}
FOR_FINITE = "device=, dtype= and seed= are for finite worlds: this plan runs on the CPU"
FOR_WORLDS = "terminated= and starts= are for real states: a finite world knows its own"


@pytest.mark.parametrize("kind", ["finite", "puck"])
@pytest.mark.parametrize("said", REFUSED)
def test_a_request_refuses_what_makes_no_sense(said, kind):
    with pytest.raises(ValueError, match=said):
        PlanRequest(**{"data": explored(kind), "rewards": ["0.5"], **REFUSED[said]})


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("puck", {"seed": 1}, FOR_FINITE),
        ("puck", {"placement": Placement("cuda")}, FOR_FINITE),
        ("puck", {"placement": Placement("cpu", "float32")}, FOR_FINITE),
        ("finite", {"terminated": "s > 0.5"}, FOR_WORLDS),
        ("finite", {"starts": [[0.1]]}, FOR_WORLDS),
    ],
)
def test_a_request_refuses_what_is_for_the_other_kind_of_world(kind, options, said):
    with pytest.raises(ValueError, match=said):
        PlanRequest(explored(kind), ["0.5"], **options)


@pytest.mark.parametrize("planner", [None, rf.Mean(clip="range"), rf.Optimistic(0.5), rf.Pessimistic(0.5)])
def test_every_door_refuses_by_the_request(planner):
    for kind in ("finite", "puck"):
        data = explored(kind)
        for make in (
            rf.plan,
            lambda data, reward, *more, **options: rf.plan_many(data, [reward], *more, **options),
        ):
            with pytest.raises(ValueError, match=r"discount must lie in \(0, 1\], got 2"):
                make(data, "0.5", planner, discount=2)
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0, got -1"):
        plan_runs([explored("finite")], ["0.5"], planner, seed=-1)
    with pytest.raises(ValueError, match=r"data must be what rf\.explore returns; plan_runs takes several"):
        plan_runs([explored("puck")], ["0.5"], planner)


def test_a_request_fills_in_what_nobody_said():
    data = explored("finite")
    request = PlanRequest(data, ["s"])
    assert request.used_model is data.model and request.source is data.strategy and request.steps == 4
    request = PlanRequest(data, ["s"], MODEL, horizon=3.0, discount=1)
    assert request.used_model is MODEL and type(request.horizon) is int and type(request.discount) is float
    assert not request.source.own_posteriors
    own = explored("finite", MODEL, rf.baselines.Partitioned(0.1, alpha=1.0))
    assert PlanRequest(own, ["s"]).source == own.strategy
    assert not PlanRequest(own, ["s"], MODEL).source.own_posteriors


@pytest.mark.parametrize("kind", ["finite", "puck"])
def test_only_a_model_that_is_the_same_at_every_step_goes_beyond_the_data(kind):
    H = explored(kind).horizon
    for data, model in ((explored(kind, MODEL), None), (explored(kind), MODEL)):
        assert PlanRequest(data, ["0.5"], model, horizon=H).steps == H
        with pytest.raises(
            ValueError, match=rf"at most the {H} steps of these data, got {H + 1}: only a pooled"
        ):
            assert PlanRequest(data, ["0.5"], model, horizon=H + 1).steps
    assert PlanRequest(explored(kind), ["0.5"], horizon=9).steps == 9
    assert PlanRequest(explored(kind, MODEL), ["0.5"], POOLED, horizon=9).steps == 9


def test_the_default_planner_says_which_planner_it_takes():
    mean, mesh, choose = rf.Mean(clip="range"), rf.DynamicsPlanner(), rf.DefaultPlanner().choose
    own = rf.baselines.Partitioned(0.3, alpha=1.0)
    for data, model, expected in [
        (explored("finite"), None, mean),
        (explored("finite", MODEL), None, mean),
        (explored("labels"), None, mean),
        (explored("many"), None, mean),
        (explored("puck"), None, mesh),
        (explored("puck"), MODEL, mean),  # a regression for each step
        (explored("puck", MODEL), None, mean),
        (explored("puck", MODEL), POOLED, mesh),
        (explored("puck", POOLED, own), None, mean),  # whose posteriors are for regressions of V
        (explored("puck", POOLED, own), POOLED, mesh),
    ]:
        assert choose(PlanRequest(data, ["0.5"], model)) == expected
        plan = rf.plan(data, "0.5", model=model)
        assert (plan.planner, plan.chosen_by) == (expected, rf.DefaultPlanner())
        assert rf.plan(data, "0.5", expected, model).chosen_by is None


@pytest.mark.parametrize("kind", ["finite", "labels", "puck", "many"])
@pytest.mark.parametrize("named", [False, True], ids=["the data's model", "a named model"])
def test_the_default_uses_every_transition_and_centres_one_regression_on_both_kinds(kind, named):
    """It is its choice on these data, and a planner that is named uses what was kept as it is."""
    reward = "0.5 + 0.1*x" if kind == "puck" else "0.5 + 0.1*a"
    for model in (POOLED, MODEL):
        data = explored(kind, model, rf.Online(0.3))
        assert not data.kept.all()
        before = data.kept.copy()
        default = rf.plan(data, reward, model=model if named else None)
        assert default.transitions == len(data) == 60
        assert default.model == dataclasses.replace(model, centred=model.pooled)
        assert data.kept.tolist() == before.tolist() and data.model == model
        centred = dataclasses.replace(model, centred=model.pooled)
        same = rf.plan(data.using_all(), reward, default.planner, centred)
        at = data.state[:20]
        np.testing.assert_allclose(default.value(at), same.value(at), rtol=0, atol=1e-9)
        if default.planner == rf.Mean(clip="range"):
            plain = rf.plan(data, reward, rf.Mean(clip="range"), model if named else None)
            assert plain.transitions == data.kept.sum() and plain.model == model


def test_a_plan_shows_what_it_was_made_of():
    default, mean = " chosen by DefaultPlanner()", "Mean(ties='lowest', clip='range')"
    centred = dataclasses.replace(POOLED, centred=True)
    finite, sampled, mesh = (rf.plan(explored(kind), "0.5") for kind in ("finite", "labels", "puck"))
    assert repr(finite) == (f"FinitePlan({mean}{default}, horizon 4, 6 states, 60 transitions, {centred!r})")
    assert repr(sampled).startswith(f"SampledPlan({mean}{default}, horizon 4, ")
    assert repr(mesh).startswith(f"MeshPlan({rf.DynamicsPlanner()!r}{default}, horizon 5, ")
    for plan in (sampled, mesh):
        assert repr(plan).endswith(f", 60 transitions, {centred!r})")
    named = rf.plan(explored("labels"), "0.5", rf.Optimistic(0.5))
    assert "chosen by" not in repr(named) and repr(rf.Optimistic(0.5)) in repr(named)


def test_a_plan_shows_the_kernel_that_was_fitted():
    for kind in ("finite", "labels", "puck"):
        plan = rf.plan(explored(kind, AUTO), "0.5")
        assert not plan.model.automatic and plan.model.ridge is not None
        assert "AutoKernel" not in repr(plan) and repr(plan.model) in repr(plan)


def test_a_plan_of_many_runs_is_that_of_each():
    """For the default too: those that share their points are planned together."""
    for strategy in (rf.Generative(), rf.Online(0.3)):
        runs = rf.explore_many(FINITE, POOLED, strategy, transitions=40, seeds=range(3))
        for run, (plan,) in zip(runs, plan_runs(runs, [REWARD]), strict=True):
            alone = rf.plan(run, REWARD)
            assert (plan.planner, plan.chosen_by, plan.model, plan.transitions) == (
                alone.planner, alone.chosen_by, alone.model, alone.transitions
            )  # fmt: skip
            np.testing.assert_allclose(plan.values, alone.values, rtol=0, atol=1e-12)
            assert plan.actions.tolist() == alone.actions.tolist()


@pytest.mark.parametrize("kind", ["finite", "labels", "puck"])
@pytest.mark.parametrize("make", [rf.Optimistic, rf.Pessimistic, lambda beta, **options: rf.Mean(**options)])
def test_rewards_outside_the_unit_range_are_for_planning_by_range(kind, make):
    data = explored(kind)
    variable = "x" if kind == "puck" else "a"
    for reward in (f"2*{variable} - 0.5", f"-0.1 - {variable}**2"):
        with pytest.raises(
            ValueError, match=r"\w+ needs rewards in \[0, 1\], got .*: plan for .* or use clip="
        ):
            rf.plan(data, reward, make(0.3))
        assert rf.plan(data, reward, make(0.3, clip="range")).planner.clip == "range"
    for reward in (f"{variable}**2 / 100", "0", "1"):
        assert rf.plan(data, reward, make(0.3)).planner.clip == "paper"


def test_a_mesh_is_for_real_states():
    with pytest.raises(ValueError, match=r"DynamicsPlanner\(\) is for real states: use Mean\(\)"):
        rf.plan(explored("finite"), REWARD, rf.DynamicsPlanner())
    with pytest.raises(ValueError, match=r"DynamicsPlanner\(\) is for real states"):
        plan_runs([explored("finite")], [REWARD], rf.DynamicsPlanner())
    with pytest.raises(ValueError, match='ties="random" is for finite worlds'):
        rf.plan(explored("puck"), "0.5", rf.Mean(ties="random"))
