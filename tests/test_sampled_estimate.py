"""[P_h V] on real states: against the finite estimate, plain loops and the textbook."""

import numpy as np
import pytest

import reference
import rewardfree as rf
from reference_runs import small_world
from rewardfree.data import Row, Samples
from rewardfree.estimates import Backup, SampledEstimate, SampledRecursion
from rewardfree.estimates.backups import alg1_q
from rewardfree.worlds import LabelledWorld, Spaces
from rewardfree.worlds.scaling import ScaledModel


def backup(limits, beta=0.0, discount=1.0, empty="prior"):
    """Alg 1's line, with a bonus that is not cut."""
    return Backup(
        lambda reward, mean, sigma, to_go: alg1_q(reward, mean, sigma, beta, np.inf, discount),
        limits,
        empty=empty,
    )


def nothing_known(spaces, model, horizon, actions=5):
    return SampledEstimate(spaces, ScaledModel.of_bounds(spaces, model), horizon, np.arange(actions))


def at(data, rows):
    """Some steps of a finite run."""
    return Samples(data.state[rows], data.action[rows], data.next_state[rows], data.terminated[rows])


def estimate_of(data, world):
    """All kept steps of a finite run, in the regressions of a world of any states."""
    estimate = nothing_known(LabelledWorld(world).spaces, data.model, data.horizon, data.grid.shape[1])
    for h, rows in enumerate(data.designs()):
        if len(rows):
            estimate.load(h, at(data, rows))
    return estimate


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1), rf.Uniform()], ids=repr)
def test_values_are_those_of_the_lattice(strategy, pooled):
    world = small_world(irregular=True)
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1, pooled=pooled)
    data = rf.explore(world, model, strategy, steps=80)
    reward = np.random.default_rng(5).random((world.horizon, *world.grid.shape))
    plan = rf.plan(data, reward, rf.Mean())
    H, states = world.horizon, np.arange(len(world.states))
    recursion = SampledRecursion(
        estimate_of(data, world),
        H - 1,
        backup(lambda to_go: (0.0, float(H))),
        reward=lambda h, s, a: reward[h][s, a],
    )
    for h in range(H):
        np.testing.assert_allclose(recursion.value(h, states), plan.values[h], rtol=0, atol=1e-8)
        np.testing.assert_array_equal(recursion.q(h, states).argmax(axis=0), plan.actions[h])
    np.testing.assert_array_equal(recursion.value(H, states), 0.0)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
def test_values_with_a_bonus_and_a_discount_are_those_of_plain_loops(pooled):
    world, beta, discount = small_world(irregular=True), 0.4, 0.9
    model = rf.Model(rf.Matern(2.5, 0.4), ridge=0.2, pooled=pooled, centred=True)
    data = rf.explore(world, model, rf.Uniform(), steps=60)
    reward = np.random.default_rng(5).random(world.grid.shape)
    H, (S, A), Z = world.horizon, world.grid.shape, world.grid.points
    value = np.zeros(S)
    expected = {}
    for h in reversed(range(H)):
        rows = data.designs()[0 if pooled else h]
        y = discount * value[data.next_state[rows]]
        centre = 0.5 * (y.min() + y.max())
        seen = Z[data.points(rows)]
        mean = centre + reference.mean(model.kernel, seen, 0.2, y - centre, Z)
        sigma = np.sqrt(reference.variance(model.kernel, seen, 0.2, Z))
        q = np.clip((mean + beta * sigma).reshape(S, A) + reward, 0.0, H - h)
        expected[h] = q
        value = q.max(axis=1)
    recursion = SampledRecursion(
        estimate_of(data, world),
        H - 1,
        backup(lambda to_go: (0.0, float(to_go)), beta, discount),
        reward=lambda h, s, a: reward[s, a],
    )
    for h in range(H):
        np.testing.assert_allclose(recursion.q(h, np.arange(S)).T, expected[h], rtol=0, atol=1e-8)


@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_nothing_follows_an_end_and_gained_rewards_are_regressed(discount):
    world = small_world(irregular=True)
    model = rf.Model(rf.Matern(2.5, 0.4), ridge=0.2, pooled=True)
    data, Z = rf.explore(world, model, rf.Uniform(), steps=40), world.grid.points
    estimate = nothing_known(LabelledWorld(world).spaces, model, 2)
    ended = data.next_state % 2 == 0
    estimate.load(0, Samples(data.state, data.action, data.next_state, ended))
    gained = np.random.default_rng(0).random(40)
    recursion = SampledRecursion(
        estimate, 1, backup(lambda to_go: (-9.0, 9.0)), gained=lambda h: gained, discount=discount
    )
    seen = Z[data.points(slice(None))]
    last = reference.mean(model.kernel, seen, 0.2, gained, Z).reshape(6, 5).max(axis=1)
    y = gained + discount * np.where(ended, 0.0, last[data.next_state])
    expected = reference.mean(model.kernel, seen, 0.2, y, Z).reshape(6, 5)
    np.testing.assert_allclose(recursion.q(0, np.arange(6)).T, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("empty", ["zero", "prior"])
def test_a_step_without_data_is_worth_nothing_or_the_prior(empty):
    world = small_world()
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1)
    estimate = nothing_known(LabelledWorld(world).spaces, model, world.horizon)
    recursion = SampledRecursion(estimate, 3, backup(lambda to_go: (0.0, 4.0), beta=0.5, empty=empty))
    np.testing.assert_allclose(recursion.q(2, np.arange(6)), 0.0 if empty == "zero" else 0.5)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
def test_transitions_one_by_one_or_all_at_once_are_the_same(pooled):
    world = small_world(irregular=True)
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1, pooled=pooled)
    data = rf.explore(world, model, rf.Uniform(), steps=40)
    at_once = estimate_of(data, world)
    one_by_one = SampledEstimate(at_once.spaces, at_once.scaled, world.horizon, at_once.actions)
    line = backup(lambda to_go: (0.0, 4.0), beta=0.1)
    columns = (data.episode, data.h, data.state, data.action, data.next_state, data.terminated, data.kept)
    rows = [Row(*row) for row in zip(*columns, strict=True)]
    for i in np.concatenate(data.designs()):
        one_by_one.add(rows[i])
        if i % 9 == 0:  # what was known earlier must not be remembered
            SampledRecursion(one_by_one, 3, line).value(0, np.arange(6))
    assert [one_by_one.count(h) for h in range(4)] == [at_once.count(h) for h in range(4)]
    values = [
        SampledRecursion(estimate, 3, line).value(0, np.arange(6)) for estimate in (at_once, one_by_one)
    ]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-10)


def test_states_need_not_be_labels():
    """On a line of states the recursion is the textbook's, at states never seen too."""
    spaces = Spaces(rf.Box.of(x=(0.0, 1.0)), rf.Discrete(2))
    model = rf.Model(rf.Matern(2.5, 0.5), ridge=0.1, pooled=True)
    rng = np.random.default_rng(0)
    state, action, next_state = rng.random((20, 1)), rng.integers(2, size=20), rng.random((20, 1))
    estimate = nothing_known(spaces, model, 2, actions=2)
    estimate.load(0, Samples(state, action, next_state, np.zeros(20, bool)))
    recursion = SampledRecursion(
        estimate, 1, backup(lambda to_go: (0.0, 2.0)), reward=lambda h, s, a: s[:, 0] * (a == 1)
    )
    z = np.concatenate([state, np.eye(2)[action]], axis=1)
    asked = rng.random((7, 1))
    value = next_state[:, 0]  # the last step: the best reward
    for chosen, q in enumerate(recursion.q(0, asked)):
        new = np.concatenate([asked, np.eye(2)[np.full(7, chosen)]], axis=1)
        mean = reference.mean(model.kernel, z, 0.1, value, new)
        np.testing.assert_allclose(q, np.clip(mean + chosen * asked[:, 0], 0.0, 2.0), rtol=0, atol=1e-9)
