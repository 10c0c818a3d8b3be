"""Alg 1 on samples of real states: on a finite world it is the lattice's, state by state."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_runs
import rewardfree as rf
from reference_runs import small_world
from rewardfree.data import COLUMNS, Experience
from rewardfree.estimates import SampledEstimate
from rewardfree.worlds import LabelledWorld
from rewardfree.worlds.scaling import ScaledModel, Scaling

pytestmark = pytest.mark.usefixtures("one_thread")

PER_STEP = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
POOLED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
MODELS = {"per step": PER_STEP, "pooled": POOLED}
ALL_MODELS = {
    **MODELS,
    **{f"{name}, centred": replace(model, centred=True) for name, model in MODELS.items()},
}
PLANNERS = [rf.Mean(), rf.Optimistic(0.4), rf.Pessimistic(0.4), rf.Pessimistic(40.0)]
RANGE = rf.Mean(clip="range")
AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)


def as_experience(data, world):
    """The columns of a finite run, as those of a world of labels whose kernel sees the same coordinates."""
    labelled = LabelledWorld(world)
    width = len(labelled.spaces.groups)
    names = ("horizon", "model", "strategy", "seed", *COLUMNS)
    return Experience(
        spaces=labelled.spaces,
        starts=np.array([2]),
        fitted=ScaledModel(data.model, Scaling(np.zeros(width), np.ones(width))),
        **{name: getattr(data, name) for name in names},
    )


def both(world, model, strategy=None, samples=12, seed=0):
    """A finite run, and the same as an Experience."""
    sizes = {"transitions": samples * world.horizon} if model.pooled else {"samples_per_step": samples}
    data = rf.explore(world, model, strategy or rf.Uniform(), seed=seed, progress=False, **sizes)
    return data, as_experience(data, world)


def both_with_every_state(model):
    """A world, a finite run in which every step led to every state, and the same as an Experience.

    On real states a centre is the midrange of V at the next states seen, on a finite world that of all.
    """
    law = np.random.default_rng(0).dirichlet(np.full(6, 2.0), (6, 5))
    rng = np.random.default_rng(1)
    world = rf.FiniteWorld(law, 4, 2, states=rng.random(6), actions=rng.random(5))
    data, experience = both(world, model, samples=40)
    assert all(len(np.unique(data.next_state[rows])) == 6 for rows in data.designs())
    return world, data, experience


def assert_alike(sampled, finite):
    states = np.arange(finite.grid.shape[0])
    for h in range(finite.horizon):
        np.testing.assert_allclose(sampled.value(states, h), finite.value(states, h), rtol=0, atol=1e-8)
        np.testing.assert_array_equal(sampled.act(states, h), finite.act(states, h))


def unit_reward(world, seed=0, each_step=False):
    s, a = world.grid.shape
    return np.random.default_rng(seed).random(((world.horizon,) if each_step else ()) + (s, a))


def looked_up(table):
    """A reward function of labels out of a table (s,a)."""
    return lambda state, action: table[state, action]


@pytest.mark.parametrize("planner", PLANNERS, ids=repr)
@pytest.mark.parametrize("model", ALL_MODELS)
def test_on_a_finite_world_it_is_the_lattice(model, planner):
    """Two roads: regressions of V at the next states seen, and means at every pair by a lattice."""
    world, data, experience = both_with_every_state(ALL_MODELS[model])
    reward = unit_reward(world)
    finite, sampled = rf.plan(data, reward, planner), rf.plan(experience, looked_up(reward), planner)
    assert type(sampled) is rf.planning.SampledPlan and sampled.horizon == finite.horizon
    assert (sampled.planner, sampled.model, sampled.transitions) == (
        finite.planner,
        finite.model,
        finite.transitions,
    )
    assert_alike(sampled, finite)


@pytest.mark.parametrize("planner", [rf.Mean, rf.Optimistic, rf.Pessimistic])
@pytest.mark.parametrize("model", ALL_MODELS)
@pytest.mark.parametrize("discount", [None, 0.8])
def test_rewards_of_any_range_are_clipped_and_cut_as_on_a_finite_world(model, planner, discount):
    """With rewards of both signs: on real states an episode may end, and 0 is always within the limits."""
    world, data, experience = both_with_every_state(ALL_MODELS[model])
    reward = 7.0 * unit_reward(world) - 3.0
    for beta in (0.5, 20.0):
        options = {} if planner is rf.Mean else {"beta": beta}
        line = planner(**options, clip="range")
        finite = rf.plan(data, reward, line, discount=discount)
        assert_alike(rf.plan(experience, looked_up(reward), line, discount=discount), finite)


@settings(max_examples=12)
@given(st.integers(0, 1000), st.booleans(), st.sampled_from([0.0, 0.2, 1.5]), st.sampled_from([-1.0, 1.0]))
def test_it_is_the_textbook_for_any_run(seed, pooled, beta, sign):
    """The textbook inverts dense matrices, in plain loops."""
    world = small_world(seed=seed % 7, irregular=True, states=5, actions=3, horizon=3)
    data, experience = both(world, POOLED if pooled else PER_STEP, rf.Uniform(), 6, seed)
    planner = rf.Optimistic(beta) if sign > 0 else rf.Pessimistic(beta)
    reward = unit_reward(world, seed)
    _, values, _ = reference_runs.plan(data, reward, planner)
    plan = rf.plan(experience, looked_up(reward), planner)
    for h in range(3):
        np.testing.assert_allclose(plan.value(np.arange(5), h), values[h], rtol=0, atol=1e-8)


def test_a_discount_and_another_horizon_are_those_of_the_lattice():
    world = small_world(irregular=True)
    data, experience = both(world, POOLED)
    reward, states = unit_reward(world), np.arange(world.grid.shape[0])
    for options in ({"discount": 0.7}, {"horizon": 9}, {"horizon": 2, "discount": 0.5}):
        finite = rf.plan(data, reward, rf.Optimistic(0.3), **options)
        sampled = rf.plan(experience, looked_up(reward), rf.Optimistic(0.3), **options)
        assert sampled.horizon == finite.horizon
        np.testing.assert_allclose(sampled.value(states), finite.value(states, 0), rtol=0, atol=1e-9)


def test_a_model_of_its_own_replaces_that_of_the_data():
    """A fixed kernel sees labels at their coordinates, scaled by the bounds these have: here [0, 1]."""
    world = small_world()  # on a regular grid of [0, 1]
    data, experience = both(world, PER_STEP)
    other, reward = rf.Model(rf.SquaredExponential(0.5), ridge=0.3), unit_reward(world)
    finite = rf.plan(data, reward, rf.Mean(), other)
    sampled = rf.plan(experience, looked_up(reward), rf.Mean(), other)
    states = np.arange(world.grid.shape[0])
    np.testing.assert_allclose(sampled.value(states), finite.value(states, 0), rtol=0, atol=1e-9)


def test_a_formula_speaks_of_labels_and_of_the_step():
    world = small_world(irregular=True)
    data, experience = both(world, PER_STEP)
    table = np.stack([np.broadcast_to(0.1 * h + 0.05 * np.arange(6)[:, None], (6, 5)) for h in range(4)])
    finite = rf.plan(data, table, rf.Mean())
    sampled = rf.plan(experience, "0.1*h + 0.05*s", rf.Mean())
    np.testing.assert_allclose(sampled.value(np.arange(6)), finite.value(np.arange(6), 0), rtol=0, atol=1e-9)


def test_rewards_of_any_range_are_planned_for():
    """r -> a r + b moves V by b for each step to go, where the estimate is exact for constants."""
    centred = rf.Model(rf.Matern(1.5, 0.3), ridge=1e-6, pooled=True, centred=True)
    world = small_world(irregular=True)
    _, experience = both(world, centred, samples=60)
    reward, states = unit_reward(world), np.arange(6)
    plain = rf.plan(experience, looked_up(reward), RANGE)
    for scale, shift in ((7.0, 0.0), (3.0, -20.0), (1.0, -0.5)):
        other = rf.plan(experience, looked_up(scale * reward + shift), RANGE)
        for h in (0, 2, 3):
            expected = scale * plain.value(states, h) + shift * (4 - h)
            np.testing.assert_allclose(other.value(states, h), expected, rtol=0, atol=0.02 * scale)
            assert (other.act(states, h) == plain.act(states, h)).mean() > 0.8


def test_values_never_leave_what_the_steps_to_go_can_give():
    world = small_world(irregular=True)
    _, experience = both(world, PER_STEP, samples=3)
    states = np.arange(6)
    for planner in (rf.Optimistic(50.0, clip="range"), rf.Pessimistic(50.0, clip="range")):
        for discount in (1.0, 0.6):
            plan = rf.plan(experience, looked_up(unit_reward(world) * 6.0 - 5.0), planner, discount=discount)
            for h in range(4):
                steps = sum(discount**k for k in range(4 - h))
                assert (plan.value(states, h) <= steps * 1.0 + 1e-12).all()
                assert (plan.value(states, h) >= steps * -5.0 - 1e-12).all()


@pytest.mark.parametrize("planner", [rf.Mean(), rf.Optimistic(0.3), rf.Pessimistic(0.3)], ids=repr)
def test_rewards_outside_0_to_1_are_refused_where_values_are_clipped_as_in_the_paper(planner):
    """As on a finite world."""
    world = small_world(irregular=True)
    data, experience = both(world, PER_STEP)
    message = "needs rewards in .0, 1., got .*use clip="
    for table in (unit_reward(world) - 0.5, 1.5 * unit_reward(world)):
        for run, reward in ((data, table), (experience, looked_up(table))):
            with pytest.raises(ValueError, match=message):
                rf.plan(run, reward, planner)
    rf.plan(experience, looked_up(unit_reward(world)), planner)
    with pytest.raises(ValueError, match=message):
        rf.plan(slope(), "next_x", planner)


def test_per_step_data_say_nothing_of_later_steps():
    world = small_world()
    _, experience = both(world, PER_STEP)
    with pytest.raises(ValueError, match="only a pooled model that is not timed can go beyond them"):
        rf.plan(experience, "1", horizon=5)


def test_many_rewards_share_one_factorisation(monkeypatch):
    loads, load = [], SampledEstimate.load
    monkeypatch.setattr(SampledEstimate, "load", lambda *args: loads.append(1) or load(*args))
    _, experience = both(small_world(), POOLED)
    plans = rf.plan_many(experience, ["0.1*s", "0.2*s", "0.1*a"], rf.Mean())
    assert len(plans) == 3 and plans[1].value(3) > plans[0].value(3)
    assert len(loads) == 1


# --- real states ---


class Slope(rf.World):
    """A ball on a line that is over beyond 1."""

    state, action, horizon = rf.Box.of(x=(-1.5, 1.5)), rf.Box.of(u=(-0.5, 0.5)), 5

    def start(self, rng):
        return rng.uniform(-0.5, 0.5, 1)

    def sample(self, state, action, h, rng):
        next_state = np.clip(state + action, -1.5, 1.5)
        return next_state, next_state[:, 0] > 1.0


def slope(transitions=80):
    return rf.explore(Slope(), AUTO, rf.Generative(), transitions=transitions, progress=False)


def test_on_real_states_it_is_close_to_dynamic_programming():
    """x' = x + u exactly; a smooth reward, horizon 3, and 11 actions as the planner has."""
    plan = rf.plan(slope(150), "exp(-4*x**2)", rf.Mean(), horizon=3)
    x = np.array([-0.6, -0.3, 0.0, 0.4])
    actions = np.linspace(-0.5, 0.5, 11)

    def value(x, k):
        r = np.exp(-4.0 * x**2)
        return r if k == 1 else r + max(value(x + u, k - 1) for u in actions)

    expected = [value(place, 3) for place in x]
    np.testing.assert_allclose(plan.value(x[:, None]), expected, rtol=0, atol=0.1)


def test_nothing_is_gained_after_an_end():
    """What ends is seen in the data, or said: a reward of 1 each step is worth what is survived."""
    data = slope()
    for terminated in (None, "x > 1", lambda s: s[:, 0] > 1.0):
        plan = rf.plan(data, "1 + 0*x", rf.Mean(), terminated=terminated)
        assert plan.value([0.0]) == pytest.approx(5.0, abs=0.3)
        assert plan.act([0.95])[0] < 0.06
    over = rf.plan(data, "1", rf.Mean(), terminated="x > -9")
    assert over.value([0.0]) == pytest.approx(1.0, abs=1e-6)


def test_a_termination_sees_angles_between_minus_pi_and_pi():
    world = rf.from_gymnasium("Pendulum-v1", horizon=100)
    data = rf.explore(world, AUTO, rf.Uniform(), transitions=100, seed=3, progress=False)
    assert np.abs(data.next_state[:, 0]).max() > math.pi  # Gymnasium's angles are not wrapped
    seen = []

    def ended(state):
        seen.append(np.abs(state[:, 0]).max())
        return np.zeros(len(state), bool)

    rf.plan(data, "-theta**2", RANGE, horizon=2, terminated=ended)
    assert max(seen) <= math.pi


def test_a_termination_must_answer_for_every_state():
    with pytest.raises(ValueError, match=r"terminated\(state\) must return"):
        rf.plan(slope(), "1", rf.Mean(), terminated=lambda s: s)


def test_a_reward_of_the_next_state_is_regressed():
    """x' = x + u: next_x at the last step is that sum itself."""
    plan = rf.plan(slope(150), "next_x", RANGE, horizon=1)
    x = np.array([[-0.4], [0.0], [0.4]])
    np.testing.assert_allclose(plan.value(x), x[:, 0] + 0.5, rtol=0, atol=0.02)
    assert plan.act(x).ravel().tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("model", [*MODELS, "automatic"])
def test_a_plan_for_a_formula_comes_back_exactly(model, tmp_path):
    if model == "automatic":
        data, states = slope(), np.linspace(-1.0, 0.9, 20)[:, None]
        planner = rf.Pessimistic(0.1, clip="range")
        plan = rf.plan(data, "-(x - 0.2)**2", planner, terminated="x > 1", discount=0.9)
    else:
        _, data = both(small_world(irregular=True), MODELS[model])
        plan, states = rf.plan(data, "0.1*s", rf.Optimistic(0.3)), np.arange(6)
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    assert type(again) is rf.planning.SampledPlan and repr(again) == repr(plan)
    for h in range(plan.horizon):
        np.testing.assert_allclose(again.value(states, h), plan.value(states, h), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(again.act(states, h), plan.act(states, h))
    assert again.planner == plan.planner and again.provenance == plan.provenance


def test_a_reward_that_is_a_function_cannot_be_written(tmp_path):
    plan = rf.plan(slope(), lambda s, a: -(s[:, 0] ** 2), RANGE)
    with pytest.raises(ValueError, match=r'no file can hold: plan with a formula instead, such as "-x\*\*2"'):
        plan.save(tmp_path / "plan.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["centres", "centre", "scale", "actions", "about"])
def test_a_file_without_one_of_its_arrays_is_refused(name, tmp_path):
    path = tmp_path / "plan.npz"
    rf.plan(slope(), "-x**2", RANGE).save(path)
    with np.load(path) as archive:
        arrays = {other: archive[other] for other in archive.files if other != name}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="does not hold a plan"):
        rf.load_plan(path)


def test_labels_are_refused_where_they_are_none():
    _, experience = both(small_world(), PER_STEP)
    plan = rf.plan(experience, "0.1*s")
    assert isinstance(plan.planner, rf.Mean) and type(plan.act(3)) is int
    for state in (6, -1, [0.5], [[1]], "one"):
        with pytest.raises(ValueError, match="state must"):
            plan.act(state)
    with pytest.raises(ValueError, match="h must lie in"):
        plan.act(3, 4)
    with pytest.raises(ValueError, match=r"dynamics of labels cannot be regressed"):
        rf.plan(experience, "0.1*s", rf.DynamicsPlanner())
