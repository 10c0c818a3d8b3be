"""Environments whose spaces can and cannot be taken, and those that fail on the way."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gym_spaces

import rewardfree as rf
from environments import FIXED, MODEL, OnlyOne, uniform
from reference_runs import newest

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
        (
            {"action_space": gym_spaces.Box(-np.inf, np.inf, (1,))},
            r"an action needs bounds, and action has none: give bounds=\{'action': \(low, high\)\}$",
        ),
        ({"action_space": gym_spaces.MultiDiscrete([2, 2])}, r"got MultiDiscrete.*gymnasium\.ActionWrapper"),
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
        (
            OnlyOne(),
            {"horizon": 5, "names": "ab"},
            r"names must be a list of names, got 'ab': write \['ab'\]",
        ),
        (OnlyOne(), {"horizon": 5, "names": 3}, "names must be a list of names, got 3"),
        (OnlyOne(), {"horizon": 5, "names": [3, 4]}, r"names must be a list of names, got \[3, 4\]"),
        (OnlyOne(), {"horizon": 5, "angles": "s0"}, "angles must be a list of names, got 's0'"),
        (
            OnlyOne(),
            {"horizon": 5, "names": ("h", "v")},
            "a variable cannot be called h: formulas and tables",
        ),
        ("Blackjack-v1", {}, r"must be a Box or Discrete, got Tuple\(.*wrap the environment"),
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


def test_names_and_angles_may_come_one_after_the_other():
    world = rf.from_gymnasium(
        OnlyOne(), horizon=5, names=(name for name in "xv"), angles=(name for name in ["x"])
    )
    assert world.state.names == ("x", "v") and world.state.angles == (True, False)
    assert world.provenance["names"] == ("x", "v") and world.provenance["angles"] == ("x",)


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


@pytest.mark.parametrize(
    ("method", "changed", "said"),
    [
        (
            "step",
            lambda outcome: (*outcome[:3], {}),
            "step must return .observation, reward, .*, got 4 values",
        ),
        ("step", lambda outcome: None, "step must return .observation, reward, .*, got NoneType"),
        ("reset", lambda outcome: outcome[0], "reset must return .observation, info., .*, got ndarray"),
    ],
    ids=["the old step", "no step", "the old reset"],
)
def test_an_environment_that_returns_something_else_hears_what_is_wanted(monkeypatch, method, changed, said):
    real = getattr(Mined, method)
    monkeypatch.setattr(Mined, method, lambda *given, **options: changed(real(*given, **options)))
    with pytest.raises(rf.WorldFailed, match=said):
        uniform(rf.from_gymnasium(Mined(), horizon=10))


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
