"""The worlds on which methods are compared: what they promise, and that a policy must plan on them."""

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.evaluation.description import reachable_states
from rewardfree.worlds.hard import as_instance, noisy_law

NAMES = (
    "matern-1.5",
    "matern-2.5",
    "squared-exponential",
    "misspecified",
    "portal",
    "corridor",
    "rooms",
    "tide",
)


@pytest.mark.parametrize("name", NAMES)
def test_who_looks_at_the_reward_alone_loses(name):
    (instance,) = rf.hard_suite([name])
    world = instance.world
    assert len(instance.rewards) >= 5
    assert instance.rewards.min() >= 0.0 and instance.rewards.max() <= 1.0
    optimal = [rf.optimal_value(world, reward)[0] @ world.start for reward in instance.rewards]
    losses = [rf.evaluation.myopic_gap(world, reward).start for reward in instance.rewards]
    assert np.mean(losses) >= 0.2 * np.mean(optimal)
    assert np.mean(np.array(losses) / optimal) >= 0.2


def test_the_suite_is_the_same_every_time_and_says_what_it_has():
    assert tuple(each.name for each in rf.hard_suite()) == NAMES
    one, other = (rf.hard_suite(["matern-1.5"])[0] for _ in range(2))
    np.testing.assert_array_equal(one.world.P, other.world.P)
    np.testing.assert_array_equal(one.rewards, other.rewards)
    with pytest.raises(ValueError, match=r"portal.*got 'maze'"):
        rf.hard_suite(["maze"])


def test_one_world_changes_with_the_step_and_one_is_not_the_learners():
    (tide,) = rf.hard_suite(["tide"])
    assert not tide.world.stationary
    assert [each.name for each in rf.hard_suite() if not each.world.stationary] == ["tide"]
    (wrong,) = rf.hard_suite(["misspecified"])
    assert wrong.model.kernel == rf.Matern(nu=1.5, lengthscale=0.1)  # the draw was another


def test_the_right_half_is_entered_through_the_portal_alone():
    world = rf.worlds.portal_world(gate=0.1)
    s, a = world.states[:, 0], world.actions[:, 0]
    into_right = world.P[:, :, s >= 0.5].sum(axis=-1)
    gate = (s > 0.3 - 1e-6) & (s <= 0.4 + 1e-6)
    through = gate[:, None] & (a > 0.7)[None, :]
    left = s < 0.5
    np.testing.assert_allclose(into_right[through], 1.0)
    np.testing.assert_array_equal(into_right[left[:, None] & ~through], 0.0)
    np.testing.assert_allclose(into_right[s > 0.95], 0.0)


def test_a_narrower_gate_has_fewer_ways_in():
    wide, narrow = (rf.worlds.portal_world(gate=gate).P[:50, :, 50:].sum() for gate in (0.2, 0.05))
    assert narrow < 0.5 * wide


def test_nobody_walks_through_a_wall():
    world = rf.worlds.rooms_world(door=0.2)
    x, y = world.states.T
    across = world.P[:, :, x >= 0.5].sum(axis=-1)[x < 0.5]  # (s,a)
    behind_wall = np.abs(y[x < 0.5] - 0.5) > 0.1 + 0.2  # no step of 0.2 reaches the door from there
    assert behind_wall.any()
    np.testing.assert_array_equal(across[behind_wall], 0.0)
    assert across.max() > 0.99  # but there is a door


def test_the_tide_turns():
    world = rf.worlds.tide_world(drift=0.1, noise=0.01)
    s, middle = world.states[:, 0], 25
    moved = [world.law(h)[middle, 24] @ s - s[middle] for h in range(10)]
    expected = 0.1 * np.cos(2 * np.pi * np.arange(10) / 10) + 0.12 * (2 * 24 / 49 - 1)
    np.testing.assert_allclose(moved, expected, atol=0.011)


def test_noise_far_below_the_spacing_still_gives_a_law():
    states = np.linspace(0, 1, 5)[:, None]
    law = noisy_law(states, np.array([[0.3], [2.0]]), 1e-200)
    np.testing.assert_array_equal(law, np.eye(5)[[1, 4]])


def test_bumps_lie_where_they_should():
    world = rf.worlds.rooms_world()
    rewards = rf.worlds.bumps(world, 30, width=0.1, low=(0.5, 0.0), high=(1.0, 0.2), only_states=True, seed=3)
    assert rewards.shape == (30, *world.grid.shape)
    assert (rewards == rewards[:, :, :1]).all()
    tops = world.states[rewards[:, :, 0].argmax(axis=1)]
    spacing = 1 / 11
    assert (tops[:, 0] >= 0.5 - spacing).all() and (tops[:, 1] <= 0.2 + spacing).all()
    assert len(np.unique(tops, axis=0)) > 10


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (rf.worlds.portal_world, {"gate": 0.0}),
        (rf.worlds.portal_world, {"gate": 0.005}),
        (rf.worlds.portal_world, {"noise": -1.0}),
        (rf.worlds.rooms_world, {"door": float("nan")}),
        (rf.worlds.rooms_world, {"side": 2}),
        (rf.worlds.tide_world, {"stride": 0.0}),
        (rf.worlds.tide_world, {"drift": -0.1}),
    ],
)
def test_refused(make, options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        make(**options)


def by_enumeration(world):
    """The best chance of every state, policy by policy."""
    s, a = world.grid.shape
    best = world.start.copy()
    policies = np.stack(np.meshgrid(*[np.arange(a)] * (s * (world.horizon - 1)), indexing="ij"), -1)
    for policy in policies.reshape(-1, world.horizon - 1, s):
        at = world.start
        for h in range(world.horizon - 1):
            at = at @ world.law(h)[np.arange(s), policy[h]]
            best = np.maximum(best, at)
    return best


@pytest.mark.parametrize("by_step", [False, True])
def test_what_can_be_reached_is_what_some_policy_reaches(by_step):
    rng = np.random.default_rng(4)
    shape = (3, 3, 2, 3) if by_step else (3, 2, 3)
    law = rng.random(shape) ** 6
    law[..., 2] *= 0.2
    world = rf.FiniteWorld(law / law.sum(-1, keepdims=True), 3, start=0)
    np.testing.assert_array_equal(reachable_states(world), by_enumeration(world) >= 1 / 3)
    assert rf.describe(world, np.zeros((3, 2))).reachable == reachable_states(world).mean()


def test_a_wall_holds_when_noise_is_small():
    world = rf.worlds.rooms_world(side=3, stride=0.4, noise=0.01)
    assert np.isfinite(world.P).all()


def test_one_name_is_enough():
    assert [each.name for each in rf.hard_suite("portal")] == ["portal"]


def test_a_hard_world_is_one_of_the_suite_with_one_of_its_rewards():
    (portal,) = rf.hard_suite("portal")
    for options, chosen in (({}, 0), ({"reward": 3}, 3)):
        instance = rf.worlds.hard_world("portal", **options)
        np.testing.assert_array_equal(instance.reward, portal.rewards[chosen])
        np.testing.assert_array_equal(instance.world.P, portal.world.P)
        assert instance.name == f"portal, reward {chosen}" and instance.model == portal.model
    for wrong in (5, -1, 0.5):
        with pytest.raises(ValueError, match="reward must be"):
            rf.worlds.hard_world("portal", reward=wrong)
    with pytest.raises(ValueError, match=r"portal.*got 'maze'"):
        rf.worlds.hard_world("maze")


def test_an_instance_is_a_world_with_its_rewards():
    world, rewards = rf.worlds.garnet_world(states=4, actions=3), np.random.default_rng(0).random((2, 4, 3))
    one, two = rf.Instance("one", "", world, rewards[:1]), rf.Instance("two", "", world, rewards)
    np.testing.assert_array_equal(one.reward, rewards[0])
    assert one.model == rf.Model(rf.AutoKernel())
    assert repr(one).startswith("Instance('one', FiniteWorld(4 states, 3 actions, ") and "1 reward, " in repr(
        one
    )
    assert "2 rewards, Model(" in repr(two)
    with pytest.raises(ValueError, match=r"instance 'two' has 2 rewards: choose one, such as .*rewards\[0\]"):
        _ = two.reward
    with pytest.raises(TypeError):
        _world, _reward = one


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"rewards": np.zeros((4, 3))},
            r"rewards must have shape \(c, 4, 3\), .*got \(4, 3\): use reward\[None\]",
        ),
        ({"rewards": np.zeros((0, 4, 3))}, r"rewards must have shape .*got \(0, 4, 3\)"),
        ({"rewards": np.zeros((1, 3, 4))}, r"rewards must have shape .*got \(1, 3, 4\)"),
        ({"rewards": np.full((1, 4, 3), np.nan)}, "rewards must be finite"),
        ({"rewards": "s"}, "rewards must be an array of numbers"),
        ({"world": None}, "world must be a FiniteWorld"),
        ({"model": rf.Matern(1.5, 0.1)}, r"model must be rf.Model\(kernel, ridge\), got Matern"),
    ],
)
def test_an_instance_is_checked(changed, said):
    given = {"world": rf.worlds.garnet_world(states=4, actions=3), "rewards": np.zeros((1, 4, 3)), **changed}
    with pytest.raises(ValueError, match=said):
        rf.Instance("mine", "", **given)


def test_who_passes_an_instance_is_told_what_to_pass():
    instance = rf.worlds.corridor_world(states=4, actions=3)
    said = r"world must be a FiniteWorld \(pass instance.world of an Instance\), got Instance\('corridor'"
    for call in (
        lambda: rf.explore(instance, instance.model, rf.Uniform(), episodes=3),
        lambda: rf.explore(instance, steps=30),
        lambda: rf.optimal_value(instance, instance.reward),
        lambda: rf.describe(instance, instance.reward),
        lambda: rf.worlds.bump_world(instance),
        lambda: rf.Instance("mine", "", instance, instance.rewards),
    ):
        with pytest.raises(ValueError, match=said):
            call()


SMALL = {"states": 5, "actions": 4}
OPTIONS = {
    "rkhs_world": {"kernel": rf.Matern(1.5, 0.3), "coarse": 3, **SMALL},
    "sharpened_world": {"coarse": 3, **SMALL},
    "portal_world": {"states": 20, "actions": 5},
    "rooms_world": {"side": 3},
    "riverswim_world": {},
    "bump_world": {"world": rf.worlds.riverswim_world(), "low": 1.0, "width": 0.3},
    "hard_world": {"instance": "corridor"},
}


@pytest.mark.parametrize("name", rf.worlds.FACTORIES)
def test_every_factory_takes_keywords_and_makes_one_problem(name):
    assert getattr(rf.worlds, name) is rf.worlds.FACTORIES[name]
    made = rf.worlds.FACTORIES[name](**OPTIONS.get(name, {**SMALL, "horizon": 4}))
    instance = as_instance(made)
    world = instance.world
    assert instance is made or world is made
    assert instance.reward.shape == world.grid.shape and instance.reward.min() >= 0.0
    assert 0.0 < instance.reward.max() <= 1.0
    data = rf.explore(world, rf.Model(rf.kernels.Delta(), 0.5), rf.Uniform(), episodes=2)
    assert rf.gap(world, rf.plan(data, instance.reward, rf.Mean()), instance.reward).start >= -1e-12


def test_a_bump_world_has_the_bump_that_was_asked_for():
    world = rf.worlds.portal_world(states=20, actions=5)
    options = {"low": 0.55, "high": 0.95, "width": 0.2, "seed": 4}
    instance = rf.worlds.bump_world(world, **options)
    np.testing.assert_array_equal(instance.rewards, rf.worlds.bumps(world, 1, **options))
    np.testing.assert_array_equal(as_instance(world).rewards, rf.worlds.bumps(world, 1))
    with pytest.raises(
        ValueError, match=r"a world of a sweep must be an rf.Instance or an rf.FiniteWorld, got \("
    ):
        as_instance((world, instance.reward))


def test_bumps_want_an_end_for_each_coordinate():
    with pytest.raises(ValueError, match="low must be a number or one for each of 1 coordinates"):
        rf.worlds.bumps(rf.worlds.portal_world(), 2, low=(0.0, 0.0))
