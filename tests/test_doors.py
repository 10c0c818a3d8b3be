"""What a newcomer tries first: an environment as it is, names for its variables, a plan in its loop."""

import inspect

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gym_spaces

import rewardfree as rf
from reference_runs import newest

MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)


def uniform(world):
    return rf.explore(world, MODEL, rf.Uniform(), transitions=60, seed=2)


# The doors take an environment as it is.


def test_exploring_takes_an_id_and_an_environment():
    world = rf.from_gymnasium("Pendulum-v1")
    made = rf.explore(world, transitions=60)
    for door in ("Pendulum-v1", gymnasium.make("Pendulum-v1")):
        data = rf.explore(door, transitions=60)
        assert np.array_equal(data.next_state, made.next_state) and data.spaces == made.spaces
    assert rf.explore("Pendulum-v1", transitions=60).provenance == world.provenance
    lake = rf.explore("FrozenLake-v1", transitions=20)
    assert isinstance(lake, rf.Transitions)
    again = rf.explore("Pendulum-v1", transitions=80, resume=made)
    assert np.array_equal(again.next_state[:60], made.next_state)


def test_playing_takes_an_id_and_an_environment():
    plan = rf.plan(rf.explore("Pendulum-v1", transitions=60), "-theta**2", horizon=10)
    expected = rf.rollouts(rf.from_gymnasium("Pendulum-v1"), plan, "-theta**2", 3).returns
    for door in ("Pendulum-v1", gymnasium.make("Pendulum-v1")):
        assert np.array_equal(rf.rollouts(door, plan, "-theta**2", 3).returns, expected)


def test_a_door_says_what_it_takes():
    vector = gymnasium.make_vec("Pendulum-v1", num_envs=3, vectorization_mode="sync")
    for door in (rf.from_gymnasium, lambda env: rf.explore(env, transitions=5)):
        with pytest.raises(ValueError, match=r"this is a vector of 3 environments: give one of them"):
            door(vector)
    vector.close()
    with pytest.raises(ValueError, match=r"no time limit: give horizon=, .*rf\.from_gymnasium takes it"):
        rf.explore(newest("CliffWalking"), transitions=5)
    for wrong in (3, Heading, None):
        with pytest.raises(ValueError, match="world must be a FiniteWorld, a World, or a Gymnasium env"):
            rf.explore(wrong, transitions=5)


def test_where_no_mesh_fits_exploration_is_uniform():
    flat = gymnasium.wrappers.FlattenObservation(gymnasium.make("Blackjack-v1"))
    world = rf.from_gymnasium(flat, horizon=10)
    data = rf.explore(world, transitions=20)
    assert data.strategy == rf.Uniform() and len(data) == 20
    with pytest.raises(ValueError, match="takes up to 4 real state variables"):
        rf.explore(world, strategy=rf.Scout(), transitions=80)


class Heading(gymnasium.Env):
    """A cart that turns and drives; its heading goes round and round."""

    observation_space = gym_spaces.Box(np.float32([-1, -1, -np.inf]), np.float32([1, 1, np.inf]))
    action_space = gym_spaces.Box(np.float32([0, -1]), np.float32([1, 1]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-0.5, 0.5, 3)
        return self.at.astype(np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        heading = self.at[2] + 0.3 * action[1]
        move = 0.1 * action[0] * np.array([np.cos(heading), np.sin(heading)])
        self.at = np.append(np.clip(self.at[:2] + move, -1, 1), heading)
        return self.at.astype(np.float32), 0.0, False, False, {}


class Turned(gymnasium.ActionWrapper):
    def action(self, action):
        return 3 - action


NAMES = ("x", "y", "phi", "speed", "turn")


def test_variables_get_names_and_angles():
    world = rf.from_gymnasium(Heading(), horizon=20, names=NAMES, angles=("phi",))
    assert world.state == rf.Box.of(x=(-1, 1), y=(-1, 1), phi="angle")
    assert world.action == rf.Box.of(speed=(0, 1), turn=(-1, 1))
    assert world.provenance["names"] == NAMES and world.provenance["angles"] == ("phi",)
    some = rf.from_gymnasium(Heading(), horizon=20, names=NAMES[:3], bounds={"phi": (-4, 4)})
    assert some.state.names == NAMES[:3] and some.action.names == ("action0", "action1")
    assert some.state.high == (1.0, 1.0, 4.0)
    alone = rf.from_gymnasium(Heading(), horizon=20, angles=["s2"])
    assert alone.state.angles == (False, False, True)
    turned = rf.from_gymnasium(Turned(gymnasium.make("FrozenLake-v1")), names=["place", "way"])
    assert (turned.state, turned.action) == (rf.Discrete(16, "place"), rf.Discrete(4, "way"))
    reward = "exp(-(x - 0.5)**2) + cos(phi) - 0.1*turn**2"
    plan = rf.plan(rf.explore(world, transitions=60), reward, rf.DynamicsPlanner(sides=9), horizon=5)
    assert rf.rollouts(world, plan, "x + cos(phi)", 2).lengths.tolist() == [5, 5]


def test_names_and_angles_survive_files(tmp_path):
    world = rf.from_gymnasium(Heading(), horizon=20, names=list(NAMES), angles=["phi"])
    rf.explore(world, strategy=rf.Uniform(), transitions=30).save(tmp_path / "data.npz")
    part = rf.load(tmp_path / "data.npz")
    assert part.provenance == world.provenance and part.spaces == world.spaces
    assert len(rf.explore(world, strategy=rf.Uniform(), transitions=40, resume=part)) == 40


@pytest.mark.parametrize(
    ("env", "options", "said"),
    [
        (Heading(), {"names": ("x", "y")}, r"names must be a list of 3 for s0, s1, s2, or of 5 with action0"),
        (Heading(), {"names": "phi"}, r"names must be a list of names, got 'phi': write \['phi'\]"),
        (Heading(), {"names": ("x", "x", "phi")}, "every variable must have a name of its own"),
        (Heading(), {"names": ("x", "y", "h")}, "a variable cannot be called h"),
        (Heading(), {"names": ("x", "y", "my phi")}, "a variable's name must be a word"),
        (Heading(), {"angles": ("phi",)}, r"angles must be a list of some of s0, s1, s2, got \('phi',\)"),
        (Heading(), {"angles": "s2"}, "angles must be a list"),
        (Heading(), {"angles": ("s2",), "bounds": {"s2": (0, 1)}}, "s2 is an angle"),
        ("Pendulum-v1", {"names": ("a", "b")}, "these variables have names, theta, omega, torque: leave out"),
        (
            "Pendulum-v1",
            {"angles": ("theta",)},
            "it is known which variables .* leave out angles=",
        ),
        ("FrozenLake-v1", {"names": ("cell",)}, "names=, angles=, bounds= and pilot= are for real variables"),
    ],
)
def test_names_and_angles_that_make_no_sense_are_refused(env, options, said):
    with pytest.raises(ValueError, match=said):
        rf.from_gymnasium(env, horizon=20, **options)


class Watched(gymnasium.Wrapper):
    """Looks on."""

    def close(self):
        return super().close()


class Shaped(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2.0 * reward


class Slow(gymnasium.Wrapper):
    def step(self, action):
        return super().step(0.5 * action)


class Resets(gymnasium.Wrapper):
    def reset(self, **options):
        answer = super().reset(**options)
        self.unwrapped.state = np.zeros(2)
        return answer


class TimeLimit(gymnasium.Wrapper):
    """Not Gymnasium's own."""

    def step(self, action):
        return super().step(-action)


WRAPPERS = gymnasium.wrappers


@pytest.mark.parametrize(
    "wrapped",
    [
        Watched,
        Shaped,
        WRAPPERS.RecordEpisodeStatistics,
        WRAPPERS.NormalizeReward,
        lambda env: WRAPPERS.TransformReward(env, lambda reward: -reward),
        lambda env: Watched(Shaped(WRAPPERS.ClipReward(env, 0, 1))),
    ],
)
def test_a_wrapper_that_cannot_change_a_step_keeps_names_and_states(wrapped):
    plain = rf.from_gymnasium("Pendulum-v1")
    world = rf.from_gymnasium(wrapped(gymnasium.make("Pendulum-v1")))
    assert world.generative and world.spaces == plain.spaces and world.observation == plain.observation
    assert np.array_equal(uniform(world).next_state, uniform(plain).next_state)
    asked, expected = (rf.explore(one, MODEL, rf.Generative(), transitions=60) for one in (world, plain))
    assert np.array_equal(asked.next_state, expected.next_state)


@pytest.mark.parametrize(
    "wrapped",
    [
        Slow,
        Resets,
        TimeLimit,
        WRAPPERS.Autoreset,
        WRAPPERS.NormalizeObservation,
        WRAPPERS.TimeAwareObservation,
        lambda env: WRAPPERS.RescaleAction(env, np.float32(-1.0), np.float32(1.0)),
        lambda env: WRAPPERS.StickyAction(env, 0.2),
        lambda env: Watched(Slow(env)),
        lambda env: Slow(Watched(env)),
    ],
)
def test_a_wrapper_that_may_change_a_step_is_online(wrapped):
    world = rf.from_gymnasium(wrapped(gymnasium.make("Pendulum-v1")))
    assert not world.generative and world.observation is None and world.state.names[0] == "s0"


# A plan acts in its environment.


@pytest.mark.parametrize("planner", [None, rf.Mean(clip="range")], ids=["mesh", "sampled"])
@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0", "CartPole-v1"])
def test_an_action_is_one_that_the_environment_takes(name, planner, tmp_path):
    env, data = gymnasium.make(name), rf.explore(name, strategy=rf.Uniform(), transitions=60)
    plan = rf.plan(data, f"-{data.spaces.state.names[0]}**2", planner, horizon=3)
    plan.save(tmp_path / "plan.npz")
    data.save(tmp_path / "data.npz")
    again = rf.plan(rf.load(tmp_path / "data.npz"), "1", planner, horizon=3)
    seen, _ = env.reset(seed=0)
    for one in (plan, rf.load_plan(tmp_path / "plan.npz"), again):
        assert env.action_space.contains(one.act(observation=seen))
        assert all(env.action_space.contains(action) for action in one.act(data.state[:5], 1))
    env.close()


def test_actions_of_a_users_own_environment_have_its_dtype():
    world = rf.from_gymnasium(Heading(), horizon=20, names=NAMES, bounds={"speed": (0.1, 0.7)})
    data = rf.explore(world, strategy=rf.Uniform(), transitions=40)
    plan = rf.plan(data, "-speed", rf.DynamicsPlanner(sides=9), horizon=3)
    env = Heading()
    env.step(plan.act(env.reset(seed=0)[0]))  # which asserts that it is in the space


def test_an_observation_in_the_place_of_a_state_hears_where_it_goes():
    data = rf.explore("Pendulum-v1", strategy=rf.Uniform(), transitions=40)
    for planner in (None, rf.Mean(clip="range")):
        plan = rf.plan(data, "-theta**2", planner, horizon=3)
        seen = rf.from_gymnasium("Pendulum-v1").observe(data.state[:4])
        for method in (plan.act, plan.value):
            for misplaced in (seen[0], seen):
                with pytest.raises(ValueError, match=r"sin theta, omega\): give it as observation="):
                    method(misplaced)
        states = rf.from_gymnasium("Pendulum-v1").observation.state(data.spaces.state, seen)
        np.testing.assert_array_equal(plan.act(observation=seen), plan.act(states))
        np.testing.assert_array_equal(plan.value(observation=seen), plan.value(states))
        with pytest.raises(ValueError, match="state must have shape"):
            plan.act(np.zeros(5))
        with pytest.raises(ValueError, match="not both"):
            plan.act(data.state[0], observation=seen[0])


def test_every_plan_acts_by_the_same_signature():
    lake = rf.plan(rf.explore("FrozenLake-v1", transitions=20), "s")
    data = rf.explore("Pendulum-v1", strategy=rf.Uniform(), transitions=40)
    plans = [lake, *(rf.plan(data, "-theta**2", p, horizon=3) for p in (None, rf.Mean(clip="range")))]
    for method in ("act", "value"):
        signatures = [inspect.signature(getattr(plan, method), eval_str=True) for plan in plans]
        assert len({str(list(signature.parameters.values())) for signature in signatures}) == 1
    assert lake.act(observation=3) == lake.act(3) and lake.value(observation=3, h=1) == lake.value(3, 1)
    with pytest.raises(ValueError, match=r"give a state \(.*\), .* or observation=.*, and not both: got"):
        lake.act()
