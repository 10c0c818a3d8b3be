"""What a planner and a plan may say, and what is meant where they say nothing."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import pytest

import rewardfree as rf
from reference_worlds import FINITE, KERNEL, MODEL, POOLED, explored
from rewardfree.planning import FinitePlan, Plan, Planner, PlanRequest, plan_runs

AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
REWARD = np.random.default_rng(0).random((6, 5))


@dataclass(frozen=True)
class OneAction(Planner):
    """A plan that always does the same."""

    action: int

    def plan(self, request):
        data, shape = request.data, (request.steps, request.data.grid.shape[0])
        actions, values = np.full(shape, self.action), np.zeros(shape)
        about = (data.grid, request.steps, self, request.used_model, len(data), 1.0)
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


def test_curves_ask_a_planner_whose_plan_is_its_own():
    asked = []

    class Noting(rf.Mean):
        def plan_runs(self, requests):
            asked.append(len(requests))
            return rf.Mean.plan_runs(self, requests)

    options = {"samples_per_step": [2, 4], "seeds": [0, 1]}
    planners = {"noting": Noting(), "mean": rf.Mean()}
    curves = rf.experiments.learning_curves(FINITE, MODEL, rf.Uniform(), REWARD, planners, **options)
    assert asked and rf.Mean().by_values == rf.Mean() and Noting().by_values is None
    assert OneAction(1).by_values is rf.DynamicsPlanner().by_values is None
    np.testing.assert_allclose(curves["noting"].start, curves["mean"].start, rtol=0, atol=1e-9)


@pytest.mark.parametrize("made", [[], [None], None, "plan"])
def test_what_a_planner_of_ones_own_returns_is_checked(made):
    class Careless(Planner):
        def plan(self, request):
            return made

    def many(data, reward, planner):
        return rf.plan_many(data, [reward], planner)

    def runs(data, reward, planner):
        return plan_runs([data, data], [reward], planner)

    for ask in (rf.plan, many, runs):
        with pytest.raises(ValueError, match=r"Careless.* must (return|be) a list"):
            ask(explored("finite"), REWARD, Careless())


@pytest.mark.parametrize("made", [[], None, [[]], [[None], [None], [None]]])
def test_what_a_planner_of_ones_own_returns_for_runs_is_checked(made):
    class Careless(OneAction):
        def plan_runs(self, requests):
            return made

    said = "plan_runs method of Careless must return a list with one list of plans for each of 2 runs, got"
    with pytest.raises(ValueError, match=said):
        plan_runs([explored("finite")] * 2, [REWARD], Careless(0))


@pytest.mark.parametrize("kind", ["finite", "puck"])
def test_one_run_is_no_list_of_runs(kind):
    with pytest.raises(ValueError, match="plan_runs takes a list of runs, and got one: use plan_many for it"):
        plan_runs(explored(kind), [REWARD])


class Table(Plan):
    """A plan of one's own, which is no `FinitePlan`."""

    planner, chosen_by, model, transitions, discount = rf.Mean(), None, None, 0, 1.0

    def __init__(self, actions):
        self.actions, self.horizon = actions, len(actions)

    def choose(self, states, h):
        return self.actions[h][states]

    def values_at(self, states, h):
        return np.zeros(len(states))

    def save(self, path):
        raise NotImplementedError


def test_a_plan_of_ones_own_is_evaluated():
    actions = np.random.default_rng(0).integers(4, size=(4, 6))
    plan = Table(actions)
    assert rf.gap(FINITE, plan, REWARD) == rf.gap(FINITE, actions, REWARD)
    assert type(plan.act(3, 2)) is int and plan.act(3, 2) == plan.act([3], h=2)[0] == actions[2, 3]
    assert type(plan.value(3)) is float and plan.value([3, 4]).shape == (2,)
    with pytest.raises(ValueError, match=r"h must lie in 0\.\.3, got 4"):
        plan.act(0, 4)
    assert repr(Table(actions)) == "Table(Mean(ties='lowest', clip='paper'), horizon 4, 0 transitions)"


def test_a_plan_counts_the_transitions_that_it_rests_on_and_says_its_discount():
    data = explored("finite", MODEL, rf.Online(0.3))
    counts = [int((data.kept & (data.h == h)).sum()) for h in range(4)]
    assert [rf.plan(data, REWARD, rf.Mean(), horizon=H).transitions for H in (4, 2)] == [
        sum(counts),
        sum(counts[:2]),
    ]
    for kind in ("finite", "labels", "puck"):
        plan = rf.plan(explored(kind), "0.5", discount=0.75)
        assert plan.discount == 0.75 and "discount 0.75" in repr(plan)
        assert plan.horizon == explored(kind).horizon


@pytest.mark.parametrize("kind", ["finite", "labels", "many"])
def test_no_end_is_for_meshes(kind):
    with pytest.raises(ValueError, match=r"horizon=math\.inf, no end, is for DynamicsPlanner\(\)"):
        rf.plan(explored(kind), "0.5", horizon=math.inf, discount=0.9)
    assert rf.plan(explored("puck"), "0.5", horizon=math.inf, discount=0.9).horizon is None


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
    r"got a mapping: give list\(rewards.values\(\)\)": {"rewards": {"s": "0.5"}},
    "horizon=math.inf, no end, needs a discount below 1": {"horizon": math.inf},
    r"model must be rf.Model\(kernel, ridge\)": {"model": KERNEL},
    "horizon must be a whole number of at least 1, got 0": {"horizon": 0},
    "horizon must be a whole number of at least 1, got 2.5": {"horizon": 2.5},
    "discount must be a number, got 'half'": {"discount": "half"},
    r"discount must lie in \(0, 1\], got 0": {"discount": 0.0},
    r"discount must lie in \(0, 1\], got 1.1": {"discount": 1.1},
    "seed must be a whole number of at least 0, got -1": {"seed": -1},
    "seed must be a whole number, got 'x'": {"seed": "x"},
}
FOR_FINITE = "seed= is for finite worlds, where ties are drawn: leave it out"
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
        ("puck", {"model": dataclasses.replace(POOLED, timed=True)}, "timed=True is for finite worlds"),
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


OWN = [rf.baselines.Partitioned(0.3, alpha=1.0), rf.baselines.LinearRewardFree(lambda z: z, 0.3)]


@pytest.mark.parametrize("planner", [None, rf.Mean(), rf.Optimistic(0.5)])
@pytest.mark.parametrize("strategy", [*OWN, rf.baselines.RFUCRL(0.5, 0.1)])
def test_a_plan_says_whose_posteriors_it_used(planner, strategy):
    counts = isinstance(strategy, rf.baselines.RFUCRL)
    for kind in ("finite",) if counts else ("finite", "labels", "puck", "many"):
        data = explored(kind, MODEL, strategy)
        plan = rf.plan(data, "0.5", planner)
        assert plan.source == strategy
        assert repr(plan).endswith(f", posteriors of {strategy!r} in the place of {plan.model!r})")
        named = rf.plan(data, "0.5", planner, MODEL)  # whose posteriors are then used
        assert named.source is None and repr(named).endswith(f" transitions, {MODEL!r})")
    (plan,), _ = plan_runs([explored("finite", MODEL, strategy), explored("finite", MODEL)], ["0.5"], planner)
    assert plan.source == strategy
    assert rf.plan(explored("finite", MODEL), "0.5", planner).source is None


def test_a_plan_from_counts_names_no_kernel():
    data, counts = explored("finite", AUTO), rf.Model(rf.kernels.Delta(), ridge=0.01, pooled=True)
    for model in (AUTO, counts):
        plan = rf.plan(data, "0.5", rf.CountingPlanner(), model)
        assert plan.model is None and repr(plan).endswith("horizon 4, 6 states, 60 transitions)")
    plan = rf.plan(explored("labels", AUTO), "0.5", rf.CountingPlanner())
    assert plan.model is None and repr(plan) == "LabelPlan(CountingPlanner(), horizon 4, 60 transitions)"


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        *(("finite", model) for model in (POOLED, MODEL, dataclasses.replace(AUTO, timed=True))),
        *(("labels", model) for model in (POOLED, MODEL)),
    ],
)
def test_a_kernel_that_was_chosen_is_not_left_unused(kind, model):
    with pytest.raises(ValueError, match=r"CountingPlanner counts all steps together: use a Model\("):
        rf.plan(explored(kind, AUTO), "0.5", rf.CountingPlanner(), model)


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
        # Where episodes may end, a constant that is added to the reward changes what is optimal.
        advice = r"plan for \(r .* or " if kind == "finite" else ""
        with pytest.raises(
            ValueError, match=rf"\w+ needs rewards in \[0, 1\], got \S+ .. \S+: {advice}use clip="
        ):
            rf.plan(data, reward, make(0.3))
        assert rf.plan(data, reward, make(0.3, clip="range")).planner.clip == "range"
    for reward in (f"{variable}**2 / 100", "0", "1"):
        assert rf.plan(data, reward, make(0.3)).planner.clip == "paper"


@pytest.mark.parametrize("planner", [None, rf.Mean(clip="range"), OneAction(1)])
def test_first_states_are_for_planners_that_take_them(planner):
    name = "Mean" if planner is None else type(planner).__name__
    said = rf"starts= is for DynamicsPlanner\(\), which compares plans from there: {name}"
    with pytest.raises(ValueError, match=said):
        rf.plan(explored("many"), "0.5", planner, starts=np.zeros((2, 5)))
    assert rf.plan(explored("puck"), "0.5", starts=np.zeros((2, 2))).expected is not None


def test_a_mesh_is_for_real_states():
    with pytest.raises(ValueError, match=r"DynamicsPlanner\(\) is for real states: use Mean\(\)"):
        rf.plan(explored("finite"), REWARD, rf.DynamicsPlanner())
    with pytest.raises(ValueError, match=r"DynamicsPlanner\(\) is for real states"):
        plan_runs([explored("finite")], [REWARD], rf.DynamicsPlanner())
    with pytest.raises(ValueError, match='ties="random" is for finite worlds'):
        rf.plan(explored("puck"), "0.5", rf.Mean(ties="random"))
