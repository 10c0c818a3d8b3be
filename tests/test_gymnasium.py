"""Gymnasium's environments, and worlds of a user's own, against stepping them by hand."""

import math
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gym_spaces
from gymnasium.utils.env_checker import check_env

import rewardfree as rf
from environments import MODEL, OnlyOne, rng_of, uniform
from reference_runs import newest
from rewardfree.worlds import GymnasiumWorld

CLASSIC = ["Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "CartPole-v1", "Acrobot-v1"]
by_task = pytest.mark.parametrize("name", CLASSIC)


def swinging(env, rng):
    """An action that adds energy nine times out of ten, so that episodes also end."""
    if rng.random() < 0.1 or "Cart" in type(env).__name__:
        return env.action_space.sample()
    state = np.asarray(env.state)
    up = bool(state[-1] >= 0)
    if isinstance(env.action_space, gym_spaces.Discrete):
        return np.int64(2 if up else 0)
    return env.action_space.high * np.float32(rng.uniform(0.5, 1.0)) * np.float32(1 if up else -1)


def stepped(name, steps=600, episode=250):
    """State, action, next state, terminated and observation of the real environment's steps, as columns."""
    env, rng, rows = gymnasium.make(name).unwrapped, rng_of(1), []
    env.action_space.seed(1)
    number = 0
    while len(rows) < steps:
        env.reset(seed=number)
        number += 1
        for _ in range(episode):
            before, action = np.array(env.state, np.float64), swinging(env, rng)
            seen, _, terminated, _, _ = env.step(action)
            rows.append((before, action, np.array(env.state, np.float64), terminated, seen))
            if terminated or len(rows) == steps:
                break
    assert number > 1
    return [np.array(column) for column in zip(*rows, strict=True)]


# The classic-control tasks.


@by_task
def test_any_state_in_any_order_gives_what_stepping_gives_bit_for_bit(name):
    state, action, next_state, terminated, _ = stepped(name)
    assert terminated.any() or name == "Pendulum-v1"
    world = rf.from_gymnasium(name)
    assert isinstance(world, GymnasiumWorld) and world.generative
    order = rng_of(0).permutation(len(state))
    alone, ended = world.sample(state[order], action[order], 0, rng_of(0))
    assert alone.dtype == np.float64 and ended.dtype == bool
    assert np.array_equal(alone, next_state[order])
    assert np.array_equal(ended, terminated[order])
    one, end = world.sample(state[7:8], action[7:8], 5, rng_of(3))  # alone, at another step
    assert np.array_equal(one[0], next_state[7]) and end[0] == terminated[7]


@by_task
def test_no_state_has_no_next_state(name):
    world = rf.from_gymnasium(name)
    empty = np.zeros((0, world.state.size))
    next_state, ended = world.sample(empty, world.action.candidates(9)[:0], 0, rng_of(0))
    assert next_state.shape == empty.shape and ended.shape == (0,)


@by_task
def test_what_a_sensor_shows_is_the_environments_own_observation(name):
    _, _, next_state, _, seen = stepped(name, steps=300, episode=100)
    world = rf.from_gymnasium(name)
    shown = world.observe(next_state)
    assert shown.dtype == seen.dtype == np.float32
    assert np.array_equal(shown, seen)


@by_task
def test_the_state_behind_an_observation_is_found_again(name):
    _, _, next_state, _, seen = stepped(name, steps=300, episode=100)
    world = rf.from_gymnasium(name)
    state = world.observation.state(world.state, seen)
    np.testing.assert_allclose(world.state.change(state, next_state), 0.0, atol=2e-6)


@by_task
def test_states_have_names_and_stay_in_their_bounds(name):
    state, *_ = stepped(name, steps=300, episode=100)
    box = rf.from_gymnasium(name).state
    names = {
        "Pendulum-v1": ("theta", "omega"),
        "CartPole-v1": ("x", "v", "theta", "omega"),
        "Acrobot-v1": ("theta1", "theta2", "omega1", "omega2"),
    }
    assert box.names == names.get(name, ("position", "velocity"))
    assert [variable for variable, angle in zip(box.names, box.angles, strict=True) if angle] == {
        "Pendulum-v1": ["theta"],
        "Acrobot-v1": ["theta1", "theta2"],
    }.get(name, [])
    wrapped = box.wrapped(state)
    # CartPole's theta is no angle to it: an episode ends at 12 degrees.
    assert (wrapped >= np.array(box.low) - 1e-7).all() and (wrapped <= np.array(box.high) + 1e-7).all()


def test_the_bounds_are_those_that_gymnasium_declares():
    for name in ("MountainCar-v0", "MountainCarContinuous-v0", "CartPole-v1"):
        declared = gymnasium.make(name).observation_space
        box = rf.from_gymnasium(name).state
        for ours, theirs in ((box.low, declared.low), (box.high, declared.high)):
            np.testing.assert_allclose(ours, theirs.astype(float), rtol=1e-6)
    for name, columns in (("Pendulum-v1", [2]), ("Acrobot-v1", [4, 5])):
        declared, box = gymnasium.make(name).observation_space, rf.from_gymnasium(name).state
        straight = [i for i, angle in enumerate(box.angles) if not angle]
        np.testing.assert_allclose(np.array(box.high)[straight], declared.high[columns], rtol=1e-6)
        np.testing.assert_allclose(np.array(box.low)[straight], declared.low[columns], rtol=1e-6)


def test_actions_and_horizons_are_the_environments():
    worlds = {name: rf.from_gymnasium(name) for name in CLASSIC}
    assert [worlds[name].horizon for name in CLASSIC] == [200, 200, 999, 500, 500]
    assert worlds["Pendulum-v1"].action == rf.Box.of(torque=(-2, 2))
    assert worlds["MountainCar-v0"].action == rf.Discrete(3, "push")
    assert worlds["MountainCarContinuous-v0"].action == rf.Box.of(force=(-1, 1))
    assert worlds["CartPole-v1"].action == rf.Discrete(2, "push")
    assert worlds["Acrobot-v1"].action == rf.Discrete(3, "torque")
    assert rf.from_gymnasium("Pendulum-v1", horizon=37).horizon == 37
    assert repr(worlds["Pendulum-v1"]) == "GymnasiumWorld('Pendulum-v1', horizon 200, any state)"
    assert worlds["Pendulum-v1"].provenance == {"gymnasium": "Pendulum-v1", "options": {}, "horizon": 200}


@by_task
def test_an_exploration_is_what_the_real_environment_does(name):
    """Replayed step by step, from the start states and with the actions of the data."""
    data = uniform(rf.from_gymnasium(name, horizon=40), 130, seed=3)
    env = gymnasium.make(name).unwrapped
    assert data.episodes > 2
    for episode in range(data.episodes):
        rows = np.flatnonzero(data.episode == episode)
        env.reset(seed=0)
        env.state = data.state[rows[0]].copy()  # ordinary stepping from there
        assert np.array_equal(data.starts[episode], data.state[rows[0]])
        for t in rows:
            action = data.action[t]
            _, _, terminated, _, _ = env.step(action if action.ndim == 0 else action.astype(np.float32))
            assert np.array_equal(np.array(env.state, np.float64), data.next_state[t])
            assert terminated == data.terminated[t] and data.h[t] == t - rows[0]
        assert data.terminated[rows[-1]] or len(rows) == 40 or episode == data.episodes - 1


@by_task
def test_the_environment_is_left_as_gymnasium_wants_it(name):
    env = gymnasium.make(name)
    uniform(rf.from_gymnasium(env), 60)
    rf.explore(rf.from_gymnasium(env), MODEL, rf.Generative(), transitions=70)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own about infinite bounds
        check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=5)
    fresh = gymnasium.make(name)
    fresh.reset(seed=5)
    env.action_space.seed(2)
    for _ in range(20):
        action = env.action_space.sample()
        one, other = env.step(action), fresh.step(action)
        assert np.array_equal(one[0], other[0]) and one[1:] == other[1:]
        if one[2]:
            break


def test_options_go_to_gymnasium_and_the_law_is_the_changed_one():
    state, action = np.array([[1.0, 0.5]]), np.array([[0.3]])
    heavy = rf.from_gymnasium("Pendulum-v1", g=20.0)
    (next_state,), _ = heavy.sample(state, action, 0, rng_of(0))
    omega = 0.5 + (3 * 20.0 / 2 * math.sin(1.0) + 3.0 * float(np.float32(0.3))) * 0.05
    np.testing.assert_allclose(next_state, [1.0 + omega * 0.05, omega], rtol=1e-6)
    assert heavy.provenance["options"] == {"g": 20.0}
    assert np.array_equal(heavy.copy().sample(state, action, 0, rng_of(0))[0][0], next_state)


def test_a_copy_plays_beside_its_world():
    for world in (rf.from_gymnasium("Pendulum-v1"), rf.from_gymnasium(gymnasium.make("Pendulum-v1"))):
        twin = world.copy()
        first = world.reset(rng_of(0))
        twin.reset(rng_of(1))
        twin.step(np.array([1.0]))
        assert np.array_equal(world.env.unwrapped.state, first)
        assert twin.spaces == world.spaces and twin.horizon == world.horizon
        again = twin.reset(rng_of(0))
        assert np.array_equal(again, first)


def test_a_system_that_there_is_only_one_of_has_no_copy():
    class Rig(OnlyOne):
        def __deepcopy__(self, memo):
            raise TypeError("a socket")

    assert rf.from_gymnasium(Rig(), horizon=5).copy() is None
    assert rf.from_gymnasium(OnlyOne(), horizon=5).copy() is not None


# Toy text.


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("FrozenLake-v1", {}),
        ("FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}),
        (newest("CliffWalking"), {"horizon": 30}),
        (newest("Taxi"), {}),
    ],
)
def test_a_toy_text_environment_is_the_finite_world_of_its_table(name, options):
    world = rf.from_gymnasium(name, **options)
    given_ = {key: value for key, value in options.items() if key != "horizon"}
    env = gymnasium.make(name, **given_)
    table, s, a = env.unwrapped.P, int(env.observation_space.n), int(env.action_space.n)
    assert isinstance(world, rf.FiniteWorld) and world.P.shape == (s, a, s)
    assert world.horizon == options.get("horizon", env.spec.max_episode_steps)
    ends = {
        next_state
        for actions in table.values()
        for outcomes in actions.values()
        for _, next_state, _, ended in outcomes
        if ended
    }
    assert ends and np.flatnonzero(world.ends).tolist() == sorted(ends)
    for state in range(s):
        for action in range(a):
            law = dict.fromkeys(range(s), 0.0)
            for probability, next_state, _, _ in table[state][action]:
                law[state if state in ends else next_state] += probability
            np.testing.assert_allclose(world.P[state, action], list(law.values()), atol=1e-12)
    np.testing.assert_allclose(world.start, env.unwrapped.initial_state_distrib, atol=1e-15)
    assert world.grid.labelled and world.grid.rule == (
        f"s is a label, 0 .. {s - 1}, action is a label, 0 .. {a - 1}"
    )


def test_a_lake_is_walked_as_gymnasium_walks_it():
    world = rf.from_gymnasium("FrozenLake-v1", is_slippery=False)
    data = rf.explore(world, rf.Model(rf.kernels.Delta(), ridge=0.1), rf.Uniform(), episodes=40, seed=1)
    env, ended = gymnasium.make("FrozenLake-v1", is_slippery=False), 0
    for episode in range(40):
        rows = np.flatnonzero(data.episode == episode)
        at, _ = env.reset(seed=0)
        terminated = False
        for t in rows:  # with a model for each step all of these are made: it stays where it has ended
            assert data.state[t] == at
            if not terminated:
                at, _, terminated, _, _ = env.step(int(data.action[t]))
            assert data.next_state[t] == at
        ended += terminated
    assert ended > 0


def test_the_best_policy_of_the_lake_reaches_the_goal():
    """The reward that Gymnasium keeps to itself, given now: 1 for the step from 14 to the goal."""
    world = rf.from_gymnasium("FrozenLake-v1", is_slippery=False)
    reward = np.zeros((16, 4))
    reward[14, 2] = 1.0
    assert float(world.start @ rf.optimal_value(world, reward)[0]) == pytest.approx(1.0)


def test_blackjack_has_no_table_and_says_what_to_do():
    with pytest.raises(ValueError, match=r"must be a Box or Discrete, got Tuple\(.*wrap the environment"):
        rf.from_gymnasium("Blackjack-v1", horizon=10)
    flat = gymnasium.wrappers.FlattenObservation(gymnasium.make("Blackjack-v1"))
    world = rf.from_gymnasium(flat, horizon=10)
    assert not world.generative and world.state.size == 45
    data = uniform(world)
    assert len(data) == 60 and data.terminated.any()


class Turned(gymnasium.ActionWrapper):
    def action(self, action):
        return 3 - action if isinstance(self.action_space, gym_spaces.Discrete) else -action


def test_a_wrapped_lake_is_not_the_lake_inside():
    lake = rf.from_gymnasium("FrozenLake-v1", is_slippery=False)
    try:
        world = rf.from_gymnasium(Turned(gymnasium.make("FrozenLake-v1", is_slippery=False)))
    except ValueError:
        return  # to refuse it would be honest too
    assert not isinstance(world, rf.FiniteWorld) or not np.array_equal(world.P, lake.P)


# Wrapped environments.


def test_a_wrapped_environment_is_online_only():
    world = rf.from_gymnasium(Turned(gymnasium.make("Pendulum-v1")))
    assert not world.generative and world.horizon == 200 and world.observation is None
    assert world.state.names == ("s0", "s1", "s2") and world.action == rf.Box.of(action=(-2, 2))
    with pytest.raises(ValueError, match=r"cannot be put into any state.*Generative.*use Scout\(\)"):
        rf.explore(world, MODEL, rf.Generative(), transitions=100)
    with pytest.raises(NotImplementedError, match=r"cannot be put into a state: .*rf\.Scout\(\)"):
        world.sample(np.zeros((1, 3)), np.zeros((1, 1)), 0, rng_of(0))
    assert "online" in repr(world)


def test_a_wrapped_environment_is_stepped_through_its_wrapper():
    wrapped = uniform(rf.from_gymnasium(Turned(gymnasium.make("Pendulum-v1"))), seed=4)
    plain = rf.from_gymnasium("Pendulum-v1")
    states = plain.observation.state(plain.state, wrapped.state)
    next_state, _ = plain.sample(states, -wrapped.action, 0, rng_of(0))
    np.testing.assert_allclose(plain.observe(next_state), wrapped.next_state, atol=1e-5)
    assert 1.9 < np.abs(wrapped.action).max() <= 2.0  # uniform between the bounds


def test_an_online_world_can_be_scouted():
    world = rf.from_gymnasium(Turned(gymnasium.make("Pendulum-v1")), horizon=30)
    data = rf.explore(world, MODEL, rf.Scout(), transitions=100)
    assert len(data) == 100 and data.fitted is not None and data.observation is None


def test_wrappers_that_change_nothing_leave_any_state_possible():
    plain = rf.from_gymnasium(gymnasium.make("Pendulum-v1").unwrapped, horizon=10)
    limited = rf.from_gymnasium(gymnasium.wrappers.TimeLimit(gymnasium.make("Pendulum-v1").unwrapped, 25))
    assert plain.generative and limited.generative
    assert (plain.horizon, limited.horizon) == (10, 25)
    watched = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("Pendulum-v1"))
    assert rf.from_gymnasium(watched).generative


def test_an_environment_derived_from_a_known_one_may_do_anything():
    from gymnasium.envs.classic_control import PendulumEnv

    class Sticky(PendulumEnv):
        def step(self, action):
            return super().step(0.5 * action)

    world = rf.from_gymnasium(Sticky(), horizon=20)
    assert not world.generative and world.state.names == ("s0", "s1", "s2")
    assert len(uniform(world)) == 60


def test_a_time_limit_cuts_an_episode_and_does_not_end_it():
    env = gymnasium.make("Pendulum-v1", max_episode_steps=7)
    data = uniform(rf.from_gymnasium(env), 30)
    assert data.h.max() == 6 and not data.terminated.any()
    assert data.episode.tolist() == [t // 7 for t in range(30)]
    with pytest.raises(ValueError, match="this environment cuts episodes after 7 steps"):
        rf.from_gymnasium(env, horizon=8)
    assert rf.from_gymnasium(env, horizon=7).horizon == 7
    longer = rf.from_gymnasium("Pendulum-v1", horizon=300)  # by its id the limit is set
    assert longer.horizon == 300 and uniform(longer, 250).h.max() == 249
