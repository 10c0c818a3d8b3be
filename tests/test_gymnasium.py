"""Gymnasium's environments, and worlds of a user's own, against stepping them by hand."""

import copy
import math
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gym_spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from reference_runs import newest
from rewardfree.worlds import GymnasiumWorld, LabelledWorld

MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FIXED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
CLASSIC = ["Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "CartPole-v1", "Acrobot-v1"]
by_task = pytest.mark.parametrize("name", CLASSIC)
rng_of = np.random.default_rng


def uniform(world, transitions=60, **options):
    return rf.explore(world, MODEL, rf.Uniform(), transitions=transitions, **options)


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


class OnlyOne(gymnasium.Env):
    """A walk on a line, which can be changed by giving it other spaces."""

    observation_space = gym_spaces.Box(-5.0, 5.0, (2,))
    action_space = gym_spaces.Discrete(3)

    def __init__(self, **spaces):
        vars(self).update(spaces)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-1, 1, 2)
        return self._seen(), {}

    def step(self, action):
        self.at = np.clip(self.at + 0.1 * (np.sum(action) - 1) + [0.0, 0.02 * self.at[0]], -5, 5)
        return self._seen(), self.reward(), bool(self.at[0] > 1.2), False, {}

    def _seen(self):
        return self.at.astype(np.float32)

    def reward(self):
        return 0.0


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


# Spaces that can and cannot be taken.


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"observation_space": gym_spaces.Dict(x=gym_spaces.Box(-1, 1))}, "the observation space must be"),
        ({"observation_space": gym_spaces.Tuple([gym_spaces.Discrete(2)])}, "the observation space must be"),
        ({"observation_space": gym_spaces.MultiBinary(4)}, "the observation space must be a Box or Discrete"),
        ({"action_space": gym_spaces.MultiDiscrete([2, 3])}, "the action space must be a Box or Discrete"),
        ({"action_space": gym_spaces.Dict()}, "the action space must be a Box or Discrete"),
        (
            {"observation_space": gym_spaces.Box(0, 255, (96, 96, 3), np.uint8)},
            r"the observation space has 27648 numbers, of shape \(96, 96, 3\): images are not states",
        ),
        ({"observation_space": gym_spaces.Box(-1.0, 1.0, (65,))}, "has 65 numbers.*at most 64 variables"),
        (
            {"observation_space": gym_spaces.Box(np.float32([-1, 3, 0]), np.float32([1, 3, 1]))},
            "variable 1 of the observation space is constant: leave it out",
        ),
        ({"action_space": gym_spaces.Box(-np.inf, np.inf, (1,))}, "an action needs bounds, and action"),
    ],
)
def test_a_space_that_cannot_be_learnt_from_is_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        rf.from_gymnasium(OnlyOne(**changed), horizon=5)


@pytest.mark.parametrize(
    ("env", "options", "said"),
    [
        ("Nowhere-v1", {}, "there is no environment 'Nowhere-v1' to be made"),
        ("Pendulum-v7", {}, "there is no environment 'Pendulum-v7' to be made"),
        ("no such id", {}, "there is no environment 'no such id' to be made: Malformed"),
        (
            newest("CliffWalking"),
            {},
            "this environment has no time limit: give horizon=, the steps of an episode",
        ),
        (OnlyOne(), {}, "this environment has no time limit: give horizon="),
        (OnlyOne(), {"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        (OnlyOne(), {"horizon": 2.5}, "horizon must be a whole number"),
        (OnlyOne(), {"horizon": 5, "g": 1.0}, "g goes to gymnasium.make: give an id, not an environment"),
        (OnlyOne(), {"horizon": 5, "bounds": {"x": (0, 1)}}, "bounds names x, and there is s0, s1"),
        (OnlyOne(), {"horizon": 5, "bounds": {"s0": (1, 0)}}, "s0 must have low < high"),
        (OnlyOne(), {"horizon": 5, "bounds": {"s0": 4}}, 's0 must be "angle"'),
        (OnlyOne(), {"horizon": 5, "pilot": 0}, "pilot must be a whole number of at least 1, got 0"),
        (None, {}, "env must be a Gymnasium environment or its id, got None"),
        (OnlyOne, {"horizon": 5}, "env must be a Gymnasium environment or its id"),
    ],
)
def test_what_is_no_environment_is_refused(env, options, said):
    with pytest.raises(ValueError, match=said):
        rf.from_gymnasium(env, **options)


@pytest.mark.parametrize(("env", "options"), [("Pendulum-v1", {"colour": 1}), ("no_such_module:Own-v0", {})])
def test_what_cannot_be_made_is_refused_in_one_way(env, options):
    with pytest.raises(ValueError, match="to be made"):
        rf.from_gymnasium(env, **options)


def test_a_remedy_that_is_named_works():
    env = OnlyOne(action_space=gym_spaces.Box(-np.inf, np.inf, (1,)))
    assert rf.from_gymnasium(env, horizon=5, bounds={"action": (-1, 1)}).action.bounded


def test_bounds_for_an_angle_are_not_passed_over():
    with pytest.raises(ValueError, match="theta"):
        rf.from_gymnasium("Pendulum-v1", bounds={"theta": (-1, 1)})


def test_numbers_are_named_and_labels_begin_at_zero():
    single = rf.from_gymnasium(OnlyOne(observation_space=gym_spaces.Box(-5.0, 5.0, ())), horizon=5)
    assert single.state == rf.Box.of(s=(-5, 5))
    many = rf.from_gymnasium(OnlyOne(observation_space=gym_spaces.Box(-5.0, 5.0, (2, 2))), horizon=5)
    assert many.state.names == ("s0", "s1", "s2", "s3")
    assert many.action == rf.Discrete(3, "action")


class Ring(gymnasium.Env):
    """Labels 5..9 in a ring, by actions 2..4; a label is no number to compute with."""

    observation_space = gym_spaces.Discrete(5, start=5)
    action_space = gym_spaces.Discrete(3, start=2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 5 + int(self.np_random.integers(5))
        return self.at, {}

    def step(self, action):
        assert action in (2, 3, 4) and isinstance(action, int)
        self.at = 5 + (self.at - 5 + action - 3) % 5
        return self.at, 0.0, False, False, {}


class FromZero(gymnasium.Wrapper):
    """The ring with labels from 0."""

    def __init__(self):
        super().__init__(Ring())
        self.observation_space, self.action_space = gym_spaces.Discrete(5), gym_spaces.Discrete(3)

    def reset(self, **options):
        seen, info = super().reset(**options)
        return seen - 5, info

    def step(self, action):
        seen, *rest = super().step(action + 2)
        return seen - 5, *rest


def test_labels_that_begin_elsewhere_are_refused_and_may_be_shifted_by_a_wrapper():
    with pytest.raises(ValueError, match=r"labels of the action space must begin at 0, got .*start=2"):
        rf.from_gymnasium(Ring(), horizon=6)
    world = rf.from_gymnasium(FromZero(), horizon=6)
    assert world.state == rf.Discrete(5, "s") and world.action == rf.Discrete(3, "action")
    data = uniform(world)
    assert data.state.dtype == data.next_state.dtype == np.int64
    assert np.array_equal((data.state + data.action - 1) % 5, data.next_state)
    assert set(data.action.tolist()) == {0, 1, 2}


def test_infinite_bounds_are_taken_and_may_be_replaced():
    largest = np.finfo(np.float32).max
    env = OnlyOne(
        observation_space=gym_spaces.Box(np.float32([-np.inf, -largest]), np.float32([5.0, largest]))
    )
    world = rf.from_gymnasium(env, horizon=5)
    assert world.state == rf.Box.of(s0=(-math.inf, 5), s1=None) and not world.state.bounded
    assert len(uniform(world)) == 60  # a kernel that is found from data needs none
    with pytest.raises(ValueError, match="a kernel that is fixed needs bounds, and s0, s1 has none"):
        rf.explore(world, FIXED, rf.Uniform(), transitions=10)
    given_ = rf.from_gymnasium(env, horizon=5, bounds={"s1": (-2, 2), "s0": (-3, 3)})
    assert given_.state == rf.Box.of(s0=(-3, 3), s1=(-2, 2)) and given_.pilot_steps == 0
    assert len(rf.explore(given_, FIXED, rf.Uniform(), transitions=10)) == 10


def test_a_pilot_measures_infinite_bounds_alone():
    world = rf.from_gymnasium("CartPole-v1", pilot=300)
    assert world.pilot_steps == 300 and world.state.bounded
    free = rf.from_gymnasium("CartPole-v1").state
    for i in (0, 2):
        assert (world.state.low[i], world.state.high[i]) == (free.low[i], free.high[i])
    assert world.state == rf.from_gymnasium("CartPole-v1", pilot=300).state  # the same on every day
    seen = uniform(world, 200).state
    for i in (1, 3):
        width = world.state.high[i] - world.state.low[i]
        assert np.ptp(seen[:, i]) / 3 < width < 3 * np.ptp(seen[:, i])


def test_a_pilot_with_given_bounds_leaves_these_alone():
    world = rf.from_gymnasium("CartPole-v1", bounds={"v": (-9, 9)}, pilot=200)
    assert (world.state.low[1], world.state.high[1]) == (-9.0, 9.0)
    assert (
        math.isfinite(world.state.low[3]) and rf.from_gymnasium(FromZero(), horizon=3, pilot=5).state.n == 5
    )


def test_a_pilot_that_sees_no_movement_says_so():
    env = OnlyOne(observation_space=gym_spaces.Box(-np.inf, np.inf, (2,)))
    env._seen = lambda: np.float32([env.at[0], 3.0])
    with pytest.raises(ValueError, match="s1 did not move in 20 random steps: give its bounds="):
        rf.from_gymnasium(env, horizon=5, pilot=20)


def test_an_exploration_repeats_itself_and_differs_by_its_seed():
    one, two, other = (uniform(rf.from_gymnasium("CartPole-v1"), seed=seed) for seed in (3, 3, 4))
    for name in ("episode", "h", "state", "action", "next_state", "terminated", "kept", "starts"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(one.state, other.state)


# Rewards, and worlds that fail.


def explosive():
    """A value that cannot be used for anything."""

    def explode(*_, **__):
        raise AssertionError("somebody read the reward")

    kinds = (float, complex, str, list, np.float64, np.ndarray)
    kept = {"__new__", "__init__", "__class__", "__getattribute__", "__init_subclass__", "__subclasshook__"}
    names = {name for kind in kinds for name in dir(kind) if callable(getattr(kind, name))} - kept
    names |= {"__bool__", "__float__", "__int__", "__index__", "__array__", "__getattr__", "__deepcopy__"}
    return type("Explosive", (), dict.fromkeys(names, explode))()


class Mined(OnlyOne):
    mine = explosive()

    def reward(self):
        return self.mine


@pytest.mark.parametrize("strategy", [rf.Uniform(), rf.Scout(), rf.GreedyMaxVariance()], ids=repr)
def test_a_reward_is_never_read(strategy):
    with pytest.raises(AssertionError, match="somebody read"):
        float(Mined.mine)
    env = Mined()
    data = rf.explore(rf.from_gymnasium(env, horizon=10, pilot=20), MODEL, strategy, transitions=60)
    assert len(data) == 60
    plain = rf.explore(rf.from_gymnasium(OnlyOne(), horizon=10, pilot=20), MODEL, strategy, transitions=60)
    assert np.array_equal(data.next_state, plain.next_state)


class Breaking(OnlyOne):
    """Works for `whole` steps."""

    def __init__(self, whole, how):
        self.whole, self.how = whole, how

    def step(self, action):
        self.whole -= 1
        if self.whole >= 0:
            return super().step(action)
        if isinstance(self.how, Exception):
            raise self.how
        return self.how, 0.0, False, False, {}


FAILURES = [
    (OSError("the cable"), r"OSError\('the cable'\)"),
    (np.array([0.0, np.nan]), "a state must be 2 finite numbers \\(s0, s1\\)"),
    (np.array([np.inf, 0.0]), "a state must be 2 finite numbers"),
    (np.zeros(3), "a state must be 2 finite numbers"),
    (np.array(["a", "b"]), "could not convert"),
    (None, "a state must be 2 finite numbers"),
]


@pytest.mark.parametrize(("how", "said"), FAILURES, ids=lambda value: repr(value)[:30])
@pytest.mark.parametrize("whole", [0, 1, 23])
def test_a_world_that_fails_leaves_all_earlier_steps(whole, how, said):
    world = rf.from_gymnasium(Breaking(whole, how), horizon=10)
    with pytest.raises(rf.WorldFailed, match=f"at step {whole}: .*{said}.*the {whole} step") as failed:
        uniform(world)
    data, before = failed.value.data, uniform(rf.from_gymnasium(OnlyOne(), horizon=10))
    assert len(data) == whole and data.stopped_by == "error" and data.fitted is None
    for name in ("episode", "h", "state", "action", "next_state", "terminated", "kept"):
        column, expected = getattr(data, name), getattr(before, name)
        assert np.array_equal(column, expected[:whole]) and column.dtype == expected.dtype
    assert failed.value.__cause__ is not None


def test_a_generative_world_that_fails_leaves_all_earlier_queries():
    class Failing(rf.World):
        state, action, horizon, left = rf.Box.of(x=(-1, 1)), rf.Discrete(3), 10, 65

        def start(self, rng):
            return rng.uniform(-1, 1, 1)

        def sample(self, state, action, h, rng):
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("out of licence")
            return np.clip(state + 0.1 * (action[:, None] - 1), -1, 1), np.zeros(len(state), bool)

    with pytest.raises(rf.WorldFailed, match=r"the world failed at step 65: .*out of licence") as failed:
        rf.explore(Failing(), MODEL, rf.Generative(), transitions=100)
    data = failed.value.data
    assert len(data) == 65 and (data.episode == -1).sum() == 15
    moved = np.clip(data.state[:, 0] + 0.1 * (data.action - 1), -1, 1)
    assert np.array_equal(moved, data.next_state[:, 0])


def test_a_world_that_cannot_begin_an_episode_leaves_the_ones_before():
    class Once(OnlyOne):
        starts = 0

        def reset(self, **options):
            self.starts += 1
            if self.starts > 2:
                raise OSError("no power")
            return super().reset(**options)

    with pytest.raises(rf.WorldFailed, match=r"the world failed at step 10: .*no power") as failed:
        uniform(rf.from_gymnasium(Once(), horizon=5))
    assert failed.value.data.episode.tolist() == [0] * 5 + [1] * 5


def test_a_world_that_fails_when_asked_for_first_states_leaves_its_pilot():
    class Tired(rf.World):
        state, action, horizon, resets = rf.Box.of(x=(-1, 1)), rf.Discrete(3), 50, 0

        def reset(self, rng):
            self.resets += 1
            if self.resets > 5:
                raise OSError("no power")
            return super().reset(rng)

        def start(self, rng):
            return rng.uniform(-1, 1, 1)

        def sample(self, state, action, h, rng):
            return np.clip(state + 0.1 * (action[:, None] - 1), -1, 1), np.zeros(len(state), bool)

    with pytest.raises(rf.WorldFailed) as failed:
        rf.explore(Tired(), MODEL, rf.Generative(), transitions=100)
    assert len(failed.value.data) == 50


def test_a_world_in_which_nothing_moves_still_gives_its_data():
    class Still(rf.World):
        state, action, horizon = rf.Box.of(x=(-1, 1)), rf.Discrete(2), 5

        def start(self, rng):
            return np.zeros(1)

        def sample(self, state, action, h, rng):
            return state, np.zeros(len(state), bool)

    assert len(uniform(Still())) == 60


# A world of a user's own.


class Slope(rf.World):
    state = rf.Box.of(x=(-1, 1), v=(-1, 1))
    action = rf.Box.of(u=(-1, 1))
    horizon = 20

    def start(self, rng):
        return np.array([rng.uniform(-0.2, 0.2), 0.0])

    def sample(self, state, action, h, rng):
        x, v = state.T
        v = np.clip(v + 0.2 * action[:, 0] - 0.1 * x, -1, 1)
        x = np.clip(x + 0.2 * v, -1, 1)
        return np.stack([x, v], axis=1), x >= 1.0


@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Scout()], ids=repr)
def test_a_world_of_fourteen_lines_explores_and_plans(strategy):
    world = Slope()
    data = rf.explore(world, MODEL, strategy, transitions=120, seed=1)
    next_state, ended = world.sample(data.state, data.action, 0, None)
    assert np.array_equal(next_state, data.next_state) and np.array_equal(ended, data.terminated)
    assert data.provenance == {"world": "Slope"}
    plan = rf.plan(data, "x")
    gained = {}
    for name, act in (("plan", lambda s, h: plan.act(s, h)), ("rest", lambda s, h: np.zeros(1))):
        state, gained[name] = world.reset(rng_of(0)), 0.0
        for h in range(world.horizon):
            gained[name] += state[0]
            state, over, _ = world.step(act(state, h))
            if over:
                break
    assert gained["plan"] > gained["rest"] + 1.0


def test_reset_and_step_follow_from_start_and_sample():
    world, rng = Slope(), rng_of(7)
    state = world.reset(rng_of(7))
    assert np.array_equal(state, [rng.uniform(-0.2, 0.2), 0.0])
    for action in (0.3, -1.0, 1.0):
        expected, ended = world.sample(state[None], np.array([[action]]), 0, None)
        state, terminated, cut = world.step(np.array([action]))
        assert np.array_equal(state, expected[0]) and terminated is bool(ended[0]) and cut is False


def test_random_worlds_are_told_the_step_and_given_the_episodes_numbers():
    class Noisy(Slope):
        def sample(self, state, action, h, rng):
            self.asked.append(h)
            return state + rng.normal(size=state.shape), np.zeros(len(state), bool)

    world = Noisy()
    world.asked = []
    first = uniform(world, 45)
    assert world.asked == [t % 20 for t in range(45)]
    assert np.array_equal(first.next_state, uniform(world, 45).next_state)


def test_a_world_says_what_it_can():
    class Stepped(rf.World):
        state, action, horizon = rf.Box.of(x=(-1, 1)), rf.Discrete(2), 4

        def reset(self, rng):
            self.x = rng.uniform(-0.1, 0.1, 1)
            return self.x

        def step(self, action):
            self.x = self.x + 0.1 * action
            return self.x, False, bool(self.x > 0.25)

    assert Slope().generative and not Stepped().generative
    assert Slope().copy() is None and Slope().observe(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]
    assert Slope().features(np.zeros((3, 2)), np.ones((3, 1))).tolist() == [[0.0, 0.0, 1.0]] * 3
    data = uniform(Stepped())
    for t in range(59):
        same = data.episode[t] == data.episode[t + 1]
        assert same == (data.h[t] < 3 and data.next_state[t, 0] <= 0.25)
    assert not data.terminated.any() and (data.h[np.flatnonzero(data.next_state[:, 0] > 0.25)] < 4).all()
    with pytest.raises(NotImplementedError, match="Stepped has no start: give start and sample"):
        Stepped().start(None)
    with pytest.raises(NotImplementedError, match="Stepped cannot be put into a state: it has no sample"):
        Stepped().sample(None, None, 0, None)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": None}, r"a world must declare state as a Box or Discrete, such as state = rf\.Box\.of"),
        ({"action": (0, 1)}, r"a world must declare action as a Box or Discrete, .* got \(0, 1\)"),
        ({"state": gym_spaces.Box(-1, 1)}, "a world must declare state"),
        ({"horizon": None}, "a world's horizon, the steps of an episode, must be a whole number, got None"),
        (
            {"horizon": 0},
            "a world's horizon, the steps of an episode, must be a whole number of at least 1, got 0",
        ),
        ({"start": rf.World.start}, "Changed must give start and sample, or reset and step"),
    ],
)
def test_a_world_that_does_not_say_what_it_is_is_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        uniform(type("Changed", (Slope,), changed)())


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (rf.Box.of(x=(-1, 1), v=(-1, 1)), rf.Box.of(x=(-1, 1))),
        (rf.Discrete(3), rf.Discrete(2)),
        (rf.Box.of(x=(-1, 1), next_x=(-1, 1)), rf.Box.of(u=(-1, 1))),
        (rf.Box.of(x=(-1, 1), h=(-1, 1)), rf.Box.of(u=(-1, 1))),
    ],
    ids=["x twice", "labels", "next_x", "h"],
)
def test_one_name_for_two_things_is_refused(state, action):
    with pytest.raises(ValueError, match="name"):

        class Doubled(Slope):
            pass

        Doubled.state, Doubled.action = state, action
        if isinstance(state, rf.Discrete):
            Doubled.start = lambda self, rng: np.int64(rng.integers(3))
            Doubled.sample = lambda self, s, a, h, rng: ((s + a) % 3, np.zeros(len(s), bool))
        uniform(Doubled())


# What a sensor shows.


@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-8, 8)), min_size=1, max_size=6))
@settings(max_examples=50)
def test_an_observation_turns_states_into_columns_and_back(rows):
    box, state = rf.Box.of(theta="angle", omega=(-8, 8)), np.array(rows)
    seen = rf.worlds.Observation((("is", "omega"), ("sin", "theta"), ("cos", "theta")), "float64")
    shown = seen.of(box, state)
    np.testing.assert_array_equal(shown, [[o, math.sin(t), math.cos(t)] for t, o in rows])
    back = seen.state(box, shown)
    np.testing.assert_allclose(box.change(back, state), 0.0, atol=1e-13)


def test_an_observation_of_other_columns_is_refused():
    world = rf.from_gymnasium("Pendulum-v1")
    for wrong in (np.zeros((2, 2)), np.zeros(3)):
        with pytest.raises(ValueError, match=r"must have 3 columns \(cos theta, sin theta, omega\), got"):
            world.observation.state(world.state, wrong)


# A finite world as one of any states.


def finite(steps=None):
    shape = (5, 3, 5) if steps is None else (steps, 5, 3, 5)
    P = rng_of(0).random(shape) ** 3
    return rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), 6, [0.5, 0.0, 0.5, 0.0, 0.0])


def test_an_enumerated_world_has_labels_at_the_coordinates_of_the_grid():
    inner = finite()
    world = LabelledWorld(inner)
    assert world.generative and world.horizon == 6 and (world.state.n, world.action.n) == (5, 3)
    z = [(s, a) for s in range(5) for a in range(3)]
    features = world.features(np.array([s for s, _ in z]), np.array([a for _, a in z]))
    assert np.array_equal(features, inner.grid.points)
    assert world.spaces.names == ("s", "a", "next_s")


@pytest.mark.parametrize("steps", [None, 6])
def test_an_enumerated_world_draws_from_the_law(steps):
    inner = finite(steps)
    world = LabelledWorld(inner)
    state, action = np.repeat(np.arange(5), 3), np.tile(np.arange(3), 5)
    for h in (0, 3):
        counts = np.zeros((15, 5))
        rng = rng_of(h)
        for _ in range(2000):
            next_state, ended = world.sample(state, action, h, rng)
            assert not ended.any()
            counts[np.arange(15), next_state] += 1
        np.testing.assert_allclose(counts / 2000, inner.law(h).reshape(15, 5), atol=0.05)
    assert {int(world.start(rng)) for _ in range(50)} == {0, 2}


@pytest.mark.parametrize("strategy", [rf.Uniform(), rf.Generative(), rf.GreedyMaxVariance()], ids=repr)
def test_an_enumerated_world_is_explored(strategy):
    inner = finite()
    data = rf.explore(LabelledWorld(inner), FIXED, strategy, transitions=50)
    assert data.state.shape == data.action.shape == (50,) and data.state.dtype == np.int64
    assert (inner.P[data.state, data.action, data.next_state] > 0.0).all()
    if not strategy.generative:
        assert set(data.state[data.h == 0].tolist()) <= {0, 2}
        inside = (data.h[1:] > 0).nonzero()[0]
        assert np.array_equal(data.state[inside + 1], data.next_state[inside])


def test_a_copy_of_an_enumerated_world_is_another():
    world = LabelledWorld(finite())
    twin = world.copy()
    assert twin is not world and twin.finite is world.finite and twin.spaces == world.spaces
    assert copy.copy(twin).horizon == 6


def test_queries_of_an_enumerated_world_are_those_of_the_finite_one():
    """Alg 2 on the same candidates: sigma depends on where one looked alone."""
    inner = finite()
    plan = rf.query_plan(FIXED, inner.grid.points, 12)
    data = rf.explore(LabelledWorld(inner), FIXED, rf.Generative(), transitions=12)
    assert (data.state * 3 + data.action).tolist() == plan.tolist()
