"""Warnings about data and plans: each fires where there is reason to, and is silent where there is none."""

import re
import subprocess
import sys
import warnings
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import rewardfree as rf
from reference_mesh import AUTO, QUADRATIC, Cliff, Linear, Stairs, explored
from reference_runs import small_world
from reference_worlds import Many
from rewardfree.doubts import (
    ConstantReward,
    Doubt,
    FallbackPlanner,
    FitOnBounds,
    LargeError,
    MissedReturn,
    NoBetterThanRandom,
    UnknownStates,
    doubt,
)
from rewardfree.dynamics import Dynamics
from rewardfree.evaluation.diagnosis import diagnose
from rewardfree.planning.mesh.imagined import random_returns
from rewardfree.planning.trust import BLOCK, BLOCKS, left_out_error, lengthscales_away

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("always::rewardfree.doubts.Doubt"),
]


class Wheel(rf.World):
    """A wheel of fortune: how far it turns does not depend on anything."""

    state, action, horizon = rf.Box.of(x="angle"), rf.Discrete(2), 5

    def start(self, rng):
        return rng.uniform(-1.0, 1.0, 1)

    def sample(self, state, action, h, rng):
        return state + rng.uniform(-1.0, 1.0, state.shape), np.zeros(len(state), bool)


class Wide(Linear):
    """Bounds that are far away."""

    state = rf.Box.of(x=(-10.0, 10.0))


class Mirrored(Linear):
    """It goes the other way."""

    def sample(self, state, action, h, rng):
        return super().sample(state, -action, h, rng)


def said(call):
    """The kinds of doubt that a call raises, in their order, and all of their texts."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        call()
    doubts = [each for each in raised if issubclass(each.category, Doubt)]
    return [each.category for each in doubts], " ".join(str(each.message) for each in doubts)


def fresh(world=Linear, transitions=60, strategy=None):
    """Data about which nothing was said yet."""
    return replace(explored(world, transitions, strategy))


def with_kernel(data, **changes):
    return replace(data, fitted=replace(data.fitted, model=replace(data.fitted.model, **changes)))


def test_nothing_is_said_of_good_data_and_a_plan_that_keeps_its_word():
    data = fresh()

    def all_of_it():
        plan = rf.plan(data, QUADRATIC)
        rf.rollouts(Linear(), plan, QUADRATIC, 5)
        rf.plan(data, "x", rf.Mean(clip="range"), horizon=3)

    assert said(all_of_it) == ([], "")


# --- the fit ---


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"kernel": rf.Matern(1.5, 0.05)}, "lengthscale of the kernel sits"),
        ({"kernel": rf.Matern(1.5, 3.0), "ridge": 10.0}, "ridge of the kernel sits"),
        ({"kernel": rf.Matern(1.5, 0.05), "ridge": 10.0}, "lengthscale and ridge of the kernel sit"),
    ],
)
def test_a_kernel_on_its_bound_that_predicts_nothing_is_told_once(changes, what):
    data = with_kernel(fresh(), **changes)
    kinds, text = said(lambda: rf.plan(data, QUADRATIC))
    assert kinds[0] == FitOnBounds
    assert f"the fitted {what} on a bound" in text and "explore more" in text
    assert not {FitOnBounds, LargeError} & set(said(lambda: rf.plan(data, "-abs(x - 0.5)"))[0])
    assert said(lambda: rf.plan(replace(data), QUADRATIC))[0] == kinds  # other data


def test_a_bound_that_does_no_harm_is_not_told():
    """The least ridge, the longest lengthscale: no noise, and a variable that does not count."""
    data = with_kernel(fresh(), kernel=rf.SquaredExponential((30.0, 30.0)) + rf.Linear(bias=1.0), ridge=1e-8)
    assert said(lambda: rf.plan(data, QUADRATIC))[0] == []


def test_a_kernel_of_a_users_own_sits_on_no_bound_but_its_error_is_told():
    short = rf.Model(rf.Matern(1.5, 0.001), 1e-4, pooled=True)
    data = fresh()
    assert said(lambda: rf.plan(data, QUADRATIC, model=short))[0][0] == LargeError
    shorter = replace(short, kernel=rf.Matern(1.5, 0.0001))  # another attempt that is no better
    assert said(lambda: rf.plan(data, QUADRATIC, model=shorter))[0][0] == LargeError
    for model in (short, shorter):
        assert LargeError not in said(lambda model=model: rf.plan(data, QUADRATIC, model=model))[0]


def test_random_changes_have_a_large_error():
    """The fit takes all for noise: its ridge is as large as may be, but not one of a user's own."""
    data, own = fresh(Wheel, 100, rf.Uniform()), rf.Model(rf.AutoKernel(), ridge=1.0, pooled=True)
    for model, expected in ((None, FitOnBounds), (own, LargeError)):
        kinds, text = said(lambda model=model: rf.plan(data, "x", model=model))
        assert kinds == [expected]
        assert re.search(r"left out have (9\d|1\d\d)% of a constant change's error: explore more; ", text)


@pytest.mark.parametrize(("world", "n"), [(Cliff, 300), (Linear, 12), (Wheel, 57), (Linear, 3)])
def test_left_out_errors_are_those_of_refits_without_each_block(world, n):
    data = rf.explore(world(), AUTO, rf.Uniform(), transitions=n, progress=False)
    dynamics = Dynamics.learn(data.spaces, data.model, data.at(np.arange(n)), data.fitted)
    y, z, model = dynamics.targets, dynamics.points, dynamics.model
    size, square, rows = max(1, min(BLOCK, n // BLOCKS)), 0.0, 0
    for first in np.linspace(0, n - size, min(BLOCKS, n)).astype(int):
        rest = np.ones(n, bool)
        rest[first : first + size] = False
        gram = model.kernel(z[rest], z[rest]) + model.ridge * np.eye(rest.sum())
        told = model.kernel(z[~rest], z[rest]) @ np.linalg.solve(gram, y[rest])
        square, rows = square + ((y[~rest] - told) ** 2).sum(axis=0), rows + size
    expected = np.mean(np.sqrt(square / rows) / y.std(axis=0))
    assert left_out_error(dynamics) == pytest.approx(expected, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("n", [200, 600])
def test_what_is_known_within_episodes_alone_is_not_known(n):
    """Whole episodes are left out, as for the verdict: blocks are told by what is beside them."""

    class Regions(rf.World):
        state, action, horizon = rf.Box.of(x=None), rf.Box.of(u=(-1.0, 1.0)), 40

        def start(self, rng):
            return np.array([200.0 * rng.integers(-20, 20)])

        def sample(self, state, action, h, rng):  # every region has a drift of its own
            drift = np.cos(np.round(state / 200.0) ** 2)
            return state + drift + 0.01 * action, np.zeros(len(state), bool)

    data = rf.explore(Regions(), strategy=rf.Uniform(), transitions=n, seed=1, progress=False)
    assert left_out_error(Dynamics.learn(data.spaces, data.model, data.at(np.arange(n)), data.fitted)) < 0.5
    assert diagnose(data).error[0] > 0.7
    kinds, text = said(lambda: rf.plan(data, "-abs(x)"))
    assert {FitOnBounds, LargeError} & set(kinds)
    assert re.search(r"left out have (\d\d|1\d\d)% of a constant change's error", text)


# --- the reward ---


@pytest.mark.parametrize(
    "reward",
    ["where(x > 3.9, 1, 0)", "3", lambda state, action: state[:, 0] > 3.9, "where(x > 3.9, h, 0)"],
)
@pytest.mark.parametrize("planner", [None, rf.Mean(clip="range")], ids=str)
def test_a_reward_that_is_constant_on_all_that_was_seen(reward, planner):
    data = fresh(strategy=rf.Uniform())
    assert data.next_state.max() < 3.9
    kinds, text = said(lambda: rf.plan(data, reward, planner))
    assert kinds == [ConstantReward]
    value = 3 if reward == "3" else 0
    assert f"the reward is {value} on all 60 steps that were seen, and no episode ended: where it" in text
    assert "explore more" in text


@pytest.mark.parametrize("reward", ["where(x > 0.5, 1, 0)", "h*x", "next_x"])
def test_a_reward_that_differs_somewhere_is_no_doubt(reward):
    assert said(lambda: rf.plan(fresh(strategy=rf.Uniform()), reward))[0] == []


def test_a_constant_reward_is_none_where_episodes_end():
    data = fresh(Stairs, 80)
    assert data.terminated.any()
    assert said(lambda: rf.plan(data, "-1", terminated="abs(x) >= 3"))[0] == []
    assert said(lambda: rf.plan(data, "-1"))[0] == []
    assert said(lambda: rf.plan(data, "-1", terminated="x > 100"))[0] == [ConstantReward]


def test_a_constant_reward_on_finite_worlds():
    data = rf.explore(small_world(), rf.Model(rf.Matern(1.5, 0.3), ridge=0.1), rf.Uniform(), steps=8)
    states = np.unique(data.state)
    assert len(states) < 6
    unseen = np.ones((6, 5))
    unseen[states] = 0.0
    assert said(lambda: rf.plan(data, unseen))[0] == [ConstantReward]
    assert said(lambda: rf.plan(data, np.broadcast_to(unseen, (4, 6, 5))))[0] == [ConstantReward]
    assert said(lambda: rf.plan(data, 1.0 - np.eye(6)[data.next_state[0]][:, None] * np.ones(5)))[0] == []
    assert said(lambda: rf.plan_many(data, [unseen, "s"], rf.Mean()))[0] == [ConstantReward]


def test_of_several_rewards_the_constant_one_is_named():
    data = fresh(strategy=rf.Uniform())
    kinds, text = said(lambda: rf.plan_many(data, [QUADRATIC, "3", "x"]))
    assert kinds == [ConstantReward] and text.startswith("reward 2 of 3 is 3 on all 60 steps")


@pytest.mark.parametrize(
    "reward",
    ["exp(-(x - 8)**2)", "1e-9*x + (next_x > 8)", lambda state, action: np.exp(-((state[:, 0] - 8) ** 2))],
)
@pytest.mark.parametrize("planner", [None, rf.Mean(clip="range")], ids=str)
def test_a_reward_of_which_only_a_tail_was_seen(reward, planner):
    """Farther than any data, within the bounds: what was seen differs by less than a thousandth of that."""
    data = fresh(Wide, strategy=rf.Uniform())
    assert np.abs(data.next_state).max() < 2.5
    kinds, text = said(lambda: rf.plan(data, reward, planner, horizon=3))
    assert kinds.count(ConstantReward) == 1
    assert re.search(
        r"the reward is \S+ to \S+ on all 60 steps that were seen, and up to \S+ elsewhere within", text
    )
    assert "explore more" in text


def test_round_what_was_seen_is_elsewhere_where_there_are_no_bounds():
    class Open(Wide):
        state = rf.Box.of(x=None)

    data = fresh(Open, 60, rf.Uniform())
    assert ConstantReward in said(lambda: rf.plan(data, "exp(-9*(x - 4)**2)"))[0]
    assert ConstantReward not in said(lambda: rf.plan(data, "-(x**2)"))[0]


@pytest.mark.parametrize(
    "reward", ["-(x**2)", "-abs(x)", "x", "-exp(x)", "100*(next_x - x)", "where(x > 0.5, 1, 0)", "1e-9*x"]
)
def test_what_is_only_worse_elsewhere_is_no_tail(reward):
    assert ConstantReward not in said(lambda: rf.plan(fresh(Wide, 60, rf.Uniform()), reward))[0]


def test_a_linear_reward_within_bounds_that_were_guessed_far_too_wide_is_no_tail():
    class Guessed(Linear):
        state = rf.Box.of(x=(-1e6, 1e6))

    data = fresh(Guessed, 60, rf.Uniform())
    assert np.abs(data.state).max() < 3.0
    assert ConstantReward not in said(lambda: rf.plan(data, "x", rf.Mean(clip="range"), horizon=3))[0]
    assert ConstantReward in said(lambda: rf.plan(data, "exp(-(x - 12)**2)", rf.Mean(clip="range")))[0]


def test_a_tail_is_found_of_wide_data_too():
    class Spread(Wide):
        def start(self, rng):
            return rng.uniform(-4.0, 4.0, 1)

    data = fresh(Spread, 100, rf.Uniform())
    assert 3.0 < np.abs(data.next_state).max() < 5.0
    assert ConstantReward in said(lambda: rf.plan(data, "exp(-(x - 8)**2)", rf.Mean(clip="range")))[0]


def test_a_function_that_is_made_for_what_was_seen_is_asked_for_nothing_more():
    def looked_up(state, action):
        if np.abs(state).max() > 9.0:
            raise KeyError("there is no such place")
        return state[:, 0]

    planner = rf.DynamicsPlanner(sides=5)
    assert ConstantReward not in said(lambda: rf.plan(fresh(Wide, 60, rf.Uniform()), looked_up, planner))[0]


def test_a_reward_of_nothing_is_a_doubt_though_episodes_end():
    """Ends tell plans apart where each step costs something, not where none is paid."""
    data = fresh(Stairs, 80)
    assert data.terminated.any()
    kinds, text = said(lambda: rf.plan(data, "where(x > 100, 1, 0)"))
    assert kinds == [ConstantReward]
    assert text.startswith("the reward is 0 on all 80 steps that were seen: where it differs is a guess")


def test_a_goal_that_no_episode_reached_is_a_doubt_among_labels():
    """What an end pays for being there was seen where an episode ended."""
    world, end = rf.from_gymnasium("FrozenLake-v1"), "next_s == {0} and s != {0}"
    data = rf.explore(world, steps=60, seed=0)
    reached = set(data.next_state[data.terminated].tolist())
    assert reached and 15 not in reached
    for reward in (end.format(15), "s == 15", "-1"):
        assert said(lambda reward=reward: rf.plan(data, reward))[0] == [ConstantReward]
    hole = min(reached)
    for reward in (end.format(hole), f"s == {hole}", f"s == {hole} and next_s == {hole}"):
        assert said(lambda reward=reward: rf.plan(data, reward))[0] == []


# --- where a plan goes ---


def test_a_plan_that_goes_far_from_what_was_seen():
    """From MountainCar's valley floor the hill is a guess."""
    data = fresh("MountainCar-v0", 300, rf.Uniform())
    goal = "position >= 0.5 and velocity >= 0"
    kinds, text = said(lambda: rf.plan(data, "where(position < -1, 1, 0)", terminated=goal))
    assert kinds == [ConstantReward, UnknownStates] or kinds == [UnknownStates, ConstantReward]
    assert re.search(r"\d\d% of the states that the plan meets inside its model .* explore more", text)
    assert UnknownStates not in said(lambda: rf.plan(data, "-(position + 0.5)**2", terminated=goal))[0]
    rewards = ["-(position + 0.5)**2", "where(position < -1, 1, 0)"]
    assert "states that plan 2 of 2 meets" in said(lambda: rf.plan_many(data, rewards, terminated=goal))[1]


@pytest.mark.parametrize(
    "kernel", [rf.Matern(1.5, (0.5, 2.0, 0.7, 3.0)), rf.SquaredExponential(0.4), rf.Linear()]
)
def test_distances_are_counted_in_lengthscales_of_the_nearest_state(kernel):
    world = rf.from_gymnasium("Pendulum-v1", horizon=20)
    data = rf.explore(world, rf.Model(kernel, 0.1, pooled=True), rf.Uniform(), transitions=40, progress=False)
    dynamics = Dynamics.learn(data.spaces, data.model, data.at(np.arange(40)), data.fitted)
    states = np.random.default_rng(0).uniform((-3.0, -8.0), (3.0, 8.0), (20, 2))
    features, seen = (
        np.stack(
            [(np.cos(s[:, 0]) + 1.0) / 2.0, (np.sin(s[:, 0]) + 1.0) / 2.0, (s[:, 1] + 8.0) / 16.0], axis=1
        )
        for s in (states, data.state)
    )
    lengths = np.broadcast_to(getattr(kernel, "lengthscale", np.inf), 4)[:3]
    gaps = ((features[:, None] - seen[None]) / lengths) ** 2
    np.testing.assert_allclose(lengthscales_away(dynamics, states), np.sqrt(gaps.sum(axis=2)).min(axis=1))


# --- what a plan gains ---


class Runaway(rf.World):
    """It doubles what it is away from 0, and soon no action holds it any more."""

    state, action, horizon = rf.Box.of(x=None), rf.Box.of(u=(-1.0, 1.0)), 40

    def start(self, rng):
        return rng.uniform(-0.2, 0.2, 1)

    def sample(self, state, action, h, rng):
        return 1.5 * state + action, np.zeros(len(state), bool)


@pytest.mark.parametrize("reward", ["-abs(x)", "exp(-(x**2))"])
def test_a_plan_that_gains_less_than_random_actions_in_its_own_model(reward):
    data = fresh(Runaway, 400, rf.Scout())
    kinds, text = said(lambda: rf.plan(data, reward))
    assert kinds.count(NoBetterThanRandom) == 1
    assert re.search(
        r"inside its model the plan returns \S+ and random actions \S+: it controls nothing", text
    )
    assert "that plan 2 of 2" not in text
    _, text = said(lambda: rf.plan_many(replace(data), ["x", reward]))
    assert "inside its model plan 2 of 2 returns" in text and "plan 1 of 2 returns" not in text


@pytest.mark.parametrize("reward", ["1", "u", "where(x > 1.9, 1, 0)", "-abs(x)", "x"])
def test_plans_that_keep_a_system_or_have_nothing_to_gain_are_no_doubt(reward):
    assert NoBetterThanRandom not in said(lambda: rf.plan(fresh(), reward))[0]


def test_chance_is_not_held_against_a_plan():
    """What a wheel turns does not depend on actions: one of ten may seem worse by chance."""
    heard = []
    for seed in range(10):
        data = rf.explore(Wheel(), strategy=rf.Uniform(), transitions=80, seed=seed, progress=False)
        heard += said(lambda data=data: rf.plan(data, "cos(x)"))[0]
    assert heard.count(NoBetterThanRandom) <= 2


@pytest.mark.parametrize(
    ("world", "reward"), [(Linear, QUADRATIC), (Linear, "h*x**2"), (Cliff, "x"), (Stairs, "x")]
)
def test_returns_of_random_actions_are_those_of_a_walk_through_the_model(world, reward):
    data = explored(world, 60, rf.Uniform())
    plan = rf.plan(data, reward, rf.DynamicsPlanner(noise=False))
    starts = np.linspace(-0.2, 0.2, 200)[:, None]
    found = random_returns(plan, starts)
    rng, state, total, going = np.random.default_rng(3), starts, np.zeros(200), np.ones(200, bool)
    for h in range(plan.horizon):
        action = plan.on_mesh.actions[rng.integers(len(plan.on_mesh.actions), size=200)]
        following = plan.on_mesh.predictor.next_state(state, action)
        total += going * plan.reward(h, state, action, following)
        state, going = following, going & ~plan.on_mesh.is_end(following)
    error = np.hypot(found.std(), total.std()) / np.sqrt(200)
    assert found.mean() == pytest.approx(total.mean(), abs=4 * error + 0.02 * abs(total.mean()))


# --- the planner ---


def test_five_variables_are_planned_by_regression_and_that_is_told_once():
    data = fresh(Many, 40, rf.Uniform())
    kinds, text = said(lambda: rf.plan(data, "-a**2", horizon=3))
    assert kinds == [FallbackPlanner]
    assert (
        "5 state variables are too many for DynamicsPlanner(), at most 4" in text
        and "name the planner" in text
    )
    assert said(lambda: rf.plan(data, "-b**2", horizon=3))[0] == []
    assert said(lambda: rf.plan(replace(data), "-a**2", rf.Mean(clip="range"), horizon=3))[0] == []


def test_a_model_for_each_step_is_a_reason_to_fall_back_too():
    each_step = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
    kinds, text = said(lambda: rf.plan(fresh(), QUADRATIC, model=each_step))
    assert kinds == [FallbackPlanner] and "needs a pooled model: give one" in text


def test_posteriors_of_a_strategy_are_for_regressions_of_values():
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
    data = rf.explore(Linear(), model, rf.baselines.Partitioned(0.5), steps=40)
    assert said(lambda: rf.plan(data, "x", horizon=3))[0] == []


# --- episodes that are played ---


def test_a_return_that_episodes_contradict_is_told_once():
    plan = rf.plan(fresh(), QUADRATIC)
    kinds, text = said(lambda: rf.rollouts(Mirrored(), plan, QUADRATIC, 3))
    assert kinds == [MissedReturn]
    assert (
        "3 episodes returned -" in text and "where the plan's model says" in text and "explore more" in text
    )
    assert said(lambda: rf.rollouts(Mirrored(), plan, QUADRATIC, 3))[0] == []


@pytest.mark.parametrize(
    ("episodes", "reward", "options"),
    [
        (2, QUADRATIC, {}),  # too few
        (5, "-(x**2)", {}),  # not what it was planned for
        (5, QUADRATIC, {"horizon": 4}),  # not as long
    ],
)
def test_what_cannot_be_compared_is_not(episodes, reward, options):
    plan = rf.plan(fresh(), QUADRATIC)
    assert said(lambda: rf.rollouts(Mirrored(), plan, reward, episodes, **options))[0] == []


def test_a_reward_that_is_a_function_is_known_by_itself():
    def cost(state, action):
        return -(state[:, 0] ** 2) - 0.1 * action[:, 0] ** 2

    plan = rf.plan(fresh(), cost)
    assert said(lambda: rf.rollouts(Mirrored(), plan, lambda state, action: cost(state, action), 5))[0] == []
    assert said(lambda: rf.rollouts(Mirrored(), plan, cost, 5))[0] == [MissedReturn]


def test_more_than_was_expected_is_no_contradiction():
    plan = rf.plan(fresh(), "u", horizon=8)  # a plan that gains the same wherever it goes

    class Kinder(Linear):
        def sample(self, state, action, h, rng):
            return state * 0.0, np.zeros(len(state), bool)

    quadratic = rf.plan(fresh(), QUADRATIC)
    assert said(lambda: rf.rollouts(Kinder(), quadratic, QUADRATIC, 5))[0] == []
    assert said(lambda: rf.rollouts(Mirrored(), plan, "u", 5))[0] == []


def test_chance_is_no_contradiction_and_a_cliff_that_is_underrated_is_one():
    """Far from the cliff the noise is known; beside it falls are rarer in the model than in the world."""
    shaken = rf.plan(fresh(Cliff, 300), "-(x + 0.7)**2", horizon=20, terminated="x > 1")
    assert shaken.on_mesh.noisy
    assert (
        said(lambda: [rf.rollouts(Cliff(), replace(shaken), "-(x + 0.7)**2", 3, seed) for seed in range(8)])[
            0
        ]
        == []
    )
    risky = rf.plan(fresh(Cliff, 300), "x", horizon=20, terminated="x > 1")
    heard = said(lambda: [rf.rollouts(Cliff(), replace(risky), "x", 5, seed) for seed in range(8)])[0]
    assert len(heard) >= 3 and set(heard) == {MissedReturn}


class Shut(gymnasium.Wrapper):
    """It defines `step`, and so the task is explored on what it shows."""

    def step(self, action):
        return self.env.step(action)


def test_values_of_labels_that_episodes_contradict_are_told():
    """The goal was reached once, by a slip that seems likely: 0.99 is expected, and nothing is gained."""
    world, goal = rf.from_gymnasium(Shut(gymnasium.make("FrozenLake-v1"))), "next_s == 15 and s != 15"
    data = rf.explore(world, strategy=rf.Uniform(), transitions=1500, seed=3, progress=False)
    plan = rf.plan(data, goal)
    kinds, text = said(lambda: rf.rollouts(world, plan, goal, 20))
    assert plan.value(0) > 0.9 and kinds == [MissedReturn]
    assert "20 episodes returned 0 where the plan's model says 0.9" in text
    for options in ({"discount": 0.9}, {"horizon": 50}, {"reward": "s == 14"}, {"episodes": 2}):
        asked = {"reward": goal, "episodes": 20, **options}
        assert said(lambda asked=asked: rf.rollouts(world, replace(plan), **asked))[0] == []


def test_labels_whose_goal_is_reached_now_and_then_are_no_contradiction():
    lake, goal = rf.worlds.LabelledWorld(rf.from_gymnasium("FrozenLake-v1")), "next_s == 15 and s != 15"
    data = rf.explore(lake, strategy=rf.Scout(), transitions=8000, seed=0, progress=False)
    plan = rf.plan(data, goal)
    kinds = [said(lambda i=i: rf.rollouts(lake, replace(plan), goal, 6, seed=i))[0] for i in range(12)]
    assert sum(map(len, kinds)) <= 1


class Lottery(rf.World):
    """One draw in 33 wins, and ends the episode."""

    state, action, horizon = rf.Discrete(2, "s"), rf.Discrete(2), 1

    def start(self, rng):
        return 0

    def sample(self, state, action, h, rng):
        won = rng.random(len(state)) < 0.03
        return won.astype(int), won


def test_few_episodes_of_a_lottery_are_no_contradiction(tmp_path):
    """Its prize ends the episode: nobody wins more than once, and no value is above the mean."""
    data = rf.explore(Lottery(), strategy=rf.Uniform(), transitions=1000, progress=False)
    plan = rf.plan(data, "next_s == 1")
    assert plan.returns == (0.0, 1.0)
    plan.save(tmp_path / "plan.npz")
    for played in (plan, rf.load_plan(tmp_path / "plan.npz")):
        heard = said(
            lambda p=played: [rf.rollouts(Lottery(), replace(p), "next_s == 1", 5, i) for i in range(20)]
        )
        assert heard[0] == []


class Jumps(rf.World):
    """It creeps, and one step in twenty jumps to 0.9."""

    state, action, horizon = rf.Box.of(x=(0.0, 1.0)), rf.Box.of(u=(-1.0, 1.0)), 2

    def start(self, rng):
        return rng.uniform(0.0, 0.2, 1)

    def sample(self, state, action, h, rng):
        jumps = rng.random((len(state), 1)) < 0.05
        return np.where(jumps, 0.9, 0.2 * rng.random(state.shape)), np.zeros(len(state), bool)


@pytest.mark.parametrize("clip", ["range", "paper"])
def test_few_episodes_of_rare_jumps_are_no_contradiction_of_regressed_values(clip):
    data = rf.explore(Jumps(), AUTO, rf.Uniform(), transitions=400, progress=False)
    plan = rf.plan(data, "next_x > 0.5", rf.Mean(clip=clip))
    heard = said(lambda: [rf.rollouts(Jumps(), replace(plan), "next_x > 0.5", 5, i) for i in range(20)])
    assert heard[0] == []


@pytest.mark.parametrize("told", [True, False])
def test_regressed_values_that_episodes_contradict_are_told_unless_optimistic(told):
    planner = rf.Mean(clip="range") if told else rf.Optimistic(5.0, clip="range")
    plan = rf.plan(fresh(), "x", planner)
    assert said(lambda: rf.rollouts(Linear(), plan, "x", 5))[0] == []
    assert (MissedReturn in said(lambda: rf.rollouts(Mirrored(), plan, "x", 5))[0]) == told


# --- how they are said ---


def test_a_doubt_points_at_the_line_that_called_the_package():
    with pytest.warns(ConstantReward) as raised:
        rf.plan(fresh(strategy=rf.Uniform()), "3")
    (only,) = [each for each in raised if issubclass(each.category, Doubt)]
    assert only.filename == __file__


def test_a_doubt_is_raised_once_for_each_kind_and_thing():
    one, other = Linear(), Linear()
    kinds, _ = said(
        lambda: [
            doubt(kind, "text", about) for kind in (LargeError, UnknownStates) for about in (one, other, one)
        ]
    )
    assert kinds == [LargeError, LargeError, UnknownStates, UnknownStates]
    assert said(lambda: [doubt(LargeError, "text"), doubt(LargeError, "text")])[0] == [LargeError] * 2


def test_doubts_can_be_silenced_and_made_errors():
    code = "import warnings, rewardfree as rf; warnings.simplefilter('error', rf.doubts.Doubt); "
    code += "rf.doubts.doubt(rf.doubts.LargeError, 'text')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "rewardfree.doubts.LargeError: text"


def test_commands_say_a_doubt_in_one_line(cli, tmp_path):
    explored(strategy=rf.Uniform()).save(tmp_path / "data.npz")
    code, _, complaints = cli("plan", tmp_path / "data.npz", "--reward", "3", "--out", tmp_path / "plan.npz")
    assert code == 0
    (line,) = complaints
    assert line.startswith("rewardfree: warning: the reward is 3 on all 60 steps")
    explored(Many, 40, rf.Uniform()).save(tmp_path / "many.npz")
    options = ("--reward=-a**2", "--horizon", 3, "--out", tmp_path / "plan.npz")
    _, _, (line,) = cli("plan", tmp_path / "many.npz", *options)
    assert "at most 4" in line and "--planner dynamics" in line and "rf." not in line


def test_evaluate_says_that_a_plan_does_not_keep_its_word(cli, tmp_path):
    explored("MountainCar-v0", 60, rf.Uniform()).save(tmp_path / "data.npz")
    reward = ("--reward", "where(position < -1, 1, 0)", "--horizon", 200)
    code, _, plan_said = cli("plan", tmp_path / "data.npz", *reward, "--out", tmp_path / "plan.npz")
    assert code == 0 and all(line.startswith("rewardfree: warning: ") for line in plan_said)
    code, said, (line,) = cli("evaluate", tmp_path / "plan.npz", "--episodes", 3)
    assert code == 0 and said[0].startswith("mean return 0 over 3 episodes")
    assert line.startswith("rewardfree: warning: 3 episodes returned 0 where the plan's model says 1")
