"""What plans where a user names no planner, on both kinds of world, and that the plan says so."""

import numpy as np
import pytest

import rewardfree as rf
from reference_mesh import AUTO, QUADRATIC, Linear, X, explored
from reference_runs import small_world
from reference_worlds import Many
from rewardfree.planning import PlanRequest
from rewardfree.worlds import LabelledWorld

pytestmark = pytest.mark.usefixtures("one_thread")

PER_STEP = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
POOLED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
RANGE = rf.Mean(clip="range")


def chosen(data, model=None):
    return rf.DefaultPlanner().choose(PlanRequest(data, ["1"], model))


def finite_data(model, strategy):
    return rf.explore(small_world(irregular=True), model, strategy, steps=80)


def labelled_data(model, strategy):
    return rf.explore(LabelledWorld(small_world(irregular=True)), model, strategy, steps=80)


def test_up_to_four_variables_are_planned_on_a_mesh_and_more_by_regression():
    few = rf.plan(explored(), QUADRATIC)
    assert type(few) is rf.planning.MeshPlan and few.planner == rf.DynamicsPlanner()
    many = rf.plan(explored(Many, 40, rf.Uniform()), "-a**2", horizon=3)
    assert type(many) is rf.planning.SampledPlan and many.planner == RANGE
    assert type(rf.plan(explored(), QUADRATIC, model=PER_STEP)) is rf.planning.SampledPlan
    assert chosen(explored(), PER_STEP) == RANGE
    assert chosen(explored()) == rf.DynamicsPlanner()


def test_labels_finite_worlds_and_posteriors_of_a_strategy_are_planned_by_the_mean():
    assert chosen(finite_data(POOLED, rf.Uniform())) == RANGE
    assert chosen(labelled_data(POOLED, rf.Uniform())) == RANGE
    by_cells = rf.explore(Linear(), POOLED, rf.baselines.Partitioned(0.5), steps=40)
    assert chosen(by_cells) == RANGE
    assert chosen(by_cells, POOLED) == rf.DynamicsPlanner()  # with a model that a user names it is KRR


@pytest.mark.parametrize("explore", [finite_data, labelled_data])
@pytest.mark.parametrize("model", [PER_STEP, POOLED], ids=["per step", "pooled"])
def test_it_uses_every_transition_and_centres_a_pooled_model(explore, model):
    data = explore(model, rf.Online(0.5))
    assert 0 < data.kept.sum() < len(data)
    plan = rf.plan(data, "0.1*s")
    assert plan.transitions == len(data)
    assert plan.model.centred == model.pooled
    named = rf.plan(data, "0.1*s", RANGE)
    assert (named.transitions, named.model.centred) == (data.kept.sum(), False)  # as the data say
    asked = rf.plan(data.using_all().centred(), "0.1*s", RANGE)
    for h in range(plan.horizon):
        np.testing.assert_array_equal(plan.value(np.arange(6), h), asked.value(np.arange(6), h))


@pytest.mark.parametrize("explore", [finite_data, labelled_data])
def test_a_model_that_is_named_is_centred_too(explore):
    plan = rf.plan(explore(PER_STEP, rf.Online(0.5)), "0.1*s", model=POOLED)
    assert plan.model == rf.Model(POOLED.kernel, POOLED.ridge, pooled=True, centred=True)


def test_the_rules_are_the_same_on_a_mesh():
    data = rf.explore(Linear(), rf.Model(rf.AutoKernel(), pooled=True), rf.Online(0.5), steps=120)
    assert 0 < data.kept.sum() < 120
    plan = rf.plan(data, QUADRATIC)
    assert plan.transitions == 120
    assert plan.model.centred and not plan.model.automatic
    asked = rf.plan(data.using_all(), QUADRATIC, rf.DynamicsPlanner())
    np.testing.assert_array_equal(plan.value(X), asked.value(X))


@pytest.mark.parametrize(
    "explore",
    [
        lambda: finite_data(POOLED, rf.Uniform()),
        lambda: labelled_data(PER_STEP, rf.Uniform()),
        lambda: rf.explore(Linear(), AUTO, rf.Uniform(), steps=60),
    ],
)
def test_to_name_it_is_to_name_none_and_the_plan_says_who_chose(explore):
    data = explore()
    none, named = (rf.plan(data, "1", planner) for planner in (None, rf.DefaultPlanner()))
    assert none.chosen_by == named.chosen_by == rf.DefaultPlanner()
    assert repr(none) == repr(named)
    assert f"({none.planner!r} chosen by DefaultPlanner(), " in repr(none)
    own_choice = rf.plan(data, "1", none.planner)
    assert own_choice.chosen_by is None and "chosen by" not in repr(own_choice)


def test_a_plan_says_what_it_was_made_of():
    plan = rf.plan(explored(), QUADRATIC)
    assert repr(plan).startswith("MeshPlan(DynamicsPlanner(")
    assert f"horizon 8, discount {plan.discount:g}, 201 nodes" in repr(plan)
    assert f"expects {plan.expected:.4g}, 60 transitions, Model(" in repr(plan)
    data = labelled_data(PER_STEP, rf.Uniform())
    assert repr(rf.plan(data, "0.1*s", rf.Mean())) == (
        f"SampledPlan(Mean(ties='lowest', clip='paper'), horizon 4, 80 transitions, {PER_STEP!r})"
    )


def test_nothing_is_computed_twice_for_the_same_data():
    data = rf.explore(Linear(), AUTO, rf.Generative(), transitions=40, seed=1)
    first, second = rf.plan(data, QUADRATIC), rf.plan(data, "-abs(x - 0.5)")
    assert first.on_mesh is second.on_mesh
