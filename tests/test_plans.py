"""What a finite plan answers, how it breaks ties, and what planning refuses."""

import dataclasses

import numpy as np
import pytest

import rewardfree as rf
from planning_cases import BY_STEP, PLANNERS, REWARD, explored, model
from reference_runs import small_world
from rewardfree.streams import stream

# --- ties ---


def test_random_ties_repeat_with_their_seed():
    """A reward of zero: every action is as good as any other."""
    nothing = np.zeros((6, 5))
    planner = rf.Mean(ties="random")
    one, again, other = (rf.plan(explored(), nothing, planner, seed=seed) for seed in (1, 1, 2))
    assert one.actions.tolist() == again.actions.tolist() != other.actions.tolist()
    assert set(np.concatenate([one.actions, other.actions]).reshape(-1).tolist()) == {0, 1, 2, 3, 4}
    assert (rf.plan(explored(), nothing, rf.Mean()).actions == 0).all()
    np.testing.assert_array_equal(one.values, np.zeros((4, 6)))


def test_random_ties_come_from_the_stream_of_their_name():
    found = rf.plan(explored(), np.zeros((6, 5)), rf.Pessimistic(0, ties="random"), seed=9)
    uniforms = stream(9, "planning ties", explored().seed).random((4, 6))
    assert found.actions.tolist() == [[int(5 * u) for u in row] for row in uniforms]


@pytest.mark.parametrize("seed", [0, 5])
def test_only_ties_are_random(seed):
    found = rf.plan(explored(), REWARD, rf.Mean(ties="random"), seed=seed)
    assert found.actions.tolist() == rf.plan(explored(), REWARD, rf.Mean()).actions.tolist()


# --- what a plan answers ---


def test_a_plan_answers_for_one_state_or_many():
    found = rf.plan(explored(), REWARD)
    for h in range(4):
        assert found.act(np.arange(6), h).tolist() == found.actions[h].tolist()
        assert found.value([5, 0, 5], h).tolist() == found.values[h, [5, 0, 5]].tolist()
        for s in (0, np.int64(3), 5):
            assert found.act(s, h) == found.actions[h, s] and type(found.act(s, h)) is int
            assert found.value(s, h) == found.values[h, s] and type(found.value(s, h)) is float
    assert repr(found) == (
        "FinitePlan(Mean(ties='lowest', clip='range') chosen by DefaultPlanner(), horizon 4, 6 states, "
        f"100 transitions, {explored().model!r})"
    )


@pytest.mark.parametrize(
    ("state", "h", "said"),
    [
        (6, 0, r"state must lie in 0\.\.5, got 6"),
        (-1, 0, r"state must lie in 0\.\.5, got -1"),
        ([0, 6], 0, r"state must lie in 0\.\.5"),
        (0.5, 0, "state must be an index or indices, got float64"),
        ("start", 0, "state must be an index or indices"),
        (True, 0, "state must be an index or indices, got bool"),
        (0, 4, r"h must lie in 0\.\.3, got 4"),
        (0, -1, "h must be a whole number of at least 0, got -1"),
        (0, 0.5, "h must be a whole number"),
        (0, None, "h must be a whole number"),
    ],
)
def test_a_plan_refuses_what_it_has_no_answer_for(state, h, said):
    found = rf.plan(explored(), REWARD)
    for ask in (found.act, found.value):
        with pytest.raises(ValueError, match=said):
            ask(state, h)


# --- at the door ---


@pytest.mark.parametrize("planner", PLANNERS, ids=repr)
@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (2.0 * REWARD / REWARD.max(), r"needs rewards in \[0, 1\], got .* \.\. 2.0: plan for \(r - .*\) / "),
        (REWARD - 0.5, r"needs rewards in \[0, 1\], got -"),
        (1.0 + 0.0 * REWARD + 1e-9, r"plan for \(r - 1\.0+1\), which has the same optimal policies"),
        (np.where(REWARD > 0.5, np.nan, REWARD), "reward must be finite, got"),
        (np.where(REWARD > 0.5, np.inf, REWARD), "reward must be finite, got"),
        (REWARD.T, r"reward must have shape \(6, 5\) or \(4, 6, 5\), states before actions, got \(5, 6\)"),
        (BY_STEP[:3], "reward must have shape"),
        (lambda state, action: np.ones(3), "one number for each of 30 pairs"),
        ("much", "there is no variable .much. here: there are a, h, next_s, s, pi and e"),
    ],
    ids=["two", "below zero", "a constant", "NaN", "infinite", "turned", "few steps", "short", "text"],
)
def test_rewards_that_the_paper_has_no_clip_for_are_refused(planner, reward, said):
    with pytest.raises(ValueError, match=said) as error:
        rf.plan(explored(), reward, planner)
    if "needs rewards" in said:
        assert type(planner).__name__ in str(error.value)
    with pytest.raises(ValueError, match=said):
        rf.plan_many(explored(), [REWARD, reward], planner)


def test_the_rescaling_that_is_named_is_the_one_to_use():
    wild = 3.0 * REWARD - 1.0
    with pytest.raises(ValueError, match=r"plan for \(r \+ (\S+)\) / (\S+), which") as error:
        rf.plan(explored(), wild, rf.Mean())
    words = str(error.value).split("plan for (r + ")[1].split(", which")[0].split(") / ")
    rescaled = (wild + float(words[0])) / float(words[1])
    assert rescaled.min() == 0.0 and rescaled.max() == pytest.approx(1.0, abs=1e-15)


def test_rounding_beyond_one_is_forgiven():
    reward = np.minimum(REWARD + 0.9, 1.0) * (1 + 1e-15)
    assert rf.plan(explored(), reward, rf.Mean()).values.max() <= 4.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 5}, "horizon must be at most the 4 steps of these data, got 5: only a pooled model"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"discount": 0.0}, r"discount must lie in \(0, 1\], got 0.0"),
        ({"discount": 1.5}, r"discount must lie in \(0, 1\], got 1.5"),
        ({"discount": "some"}, "discount must be a number, got 'some'"),
        ({"discount": np.nan}, "discount must be finite"),
        ({"model": model(rf.Matern(1.5, (1.0, 2.0, 3.0)))}, "lengthscale has 3 entries, the points have 2"),
        (
            {"planner": rf.Mean(ties="random"), "seed": -1},
            "seed must be a whole number of at least 0, got -1",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_are_checked(options, said):
    with pytest.raises(ValueError, match=said):
        rf.plan(explored(), REWARD, **options)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rf.Optimistic(-0.1), "beta must be at least 0, got -0.1"),
        (lambda: rf.Pessimistic(-1), "beta must be at least 0, got -1"),
        (lambda: rf.Optimistic(np.inf), "beta must be finite"),
        (lambda: rf.Optimistic(0.1, ties="highest"), 'ties must be "lowest" or "random"'),
        (lambda: rf.Mean(ties=None), 'ties must be "lowest" or "random"'),
    ],
)
def test_planners_refuse_what_they_do_not_know(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_no_rewards_are_refused():
    with pytest.raises(ValueError, match="rewards must hold at least one reward, got none"):
        rf.plan_many(explored(), [])


@pytest.mark.parametrize(
    "other", [small_world(horizon=3), small_world(states=5), small_world(irregular=True)]
)
def test_runs_on_different_worlds_cannot_be_planned_together(other):
    foreign = rf.explore(other, model(), rf.Uniform(), samples_per_step=2)
    with pytest.raises(ValueError, match="must come from one grid and horizon"):
        rf.planning.plan_runs([explored(), foreign], [REWARD])


def test_runs_of_different_models_are_planned_with_their_own():
    models = [model(), model(rf.SquaredExponential(0.9), 0.01), model()]
    world = small_world()
    runs = [rf.explore(world, own, rf.Uniform(), samples_per_step=6, seed=i) for i, own in enumerate(models)]
    for run, (plan,) in zip(runs, rf.planning.plan_runs(runs, [REWARD], rf.Mean()), strict=True):
        np.testing.assert_array_equal(plan.values, rf.plan(run, REWARD, rf.Mean()).values)


def test_random_ties_in_single_precision_are_among_the_best():
    flat = np.zeros_like(REWARD)
    flat[:, 2:] = 1.0
    for seed in range(20):
        plan = rf.plan(explored(), flat, rf.Mean(ties="random"), horizon=1, seed=seed, dtype="float32")
        assert plan.actions.min() >= 2


@pytest.mark.parametrize("planner", ["mean", rf.Mean, 0.1])
def test_what_is_no_planner_is_refused(planner):
    with pytest.raises(
        ValueError, match=r"planner must be DefaultPlanner\(\), DynamicsPlanner\(\), Mean\(\), Optimistic"
    ):
        rf.plan(explored(), REWARD, planner)
    with pytest.raises(ValueError, match="planner must be DefaultPlanner"):
        rf.planning.plan_runs([explored()], [REWARD], planner)


def test_planners_can_be_replaced():
    assert dataclasses.replace(rf.Mean(), ties="random") == rf.Mean(ties="random")
    assert rf.Mean().beta == 0.0 and rf.Optimistic(0.3) != rf.Pessimistic(0.3)


def test_no_states_no_actions():
    assert rf.plan(explored(), REWARD).act([], 0).tolist() == []


def test_random_ties_of_two_runs_are_independent():
    flat, world = np.zeros((6, 5)), small_world()
    runs = rf.explore_many(world, model(), rf.Uniform(), episodes=3, seeds=[0, 1])
    (one,), (two,) = rf.planning.plan_runs(runs, [flat], rf.Mean(ties="random"))
    assert one.actions.tolist() != two.actions.tolist()
    assert two.actions.tolist() == rf.plan(runs[1], flat, rf.Mean(ties="random")).actions.tolist()


def test_one_formula_is_no_list_of_rewards():
    with pytest.raises(ValueError, match="rewards must be a list of rewards, got the one formula 's \\* a'"):
        rf.plan_many(explored(), "s * a")
    several = rf.plan_many(explored(), ["s * a", "1 - s"])
    assert np.array_equal(several[1].actions, rf.plan(explored(), "1 - s").actions)
