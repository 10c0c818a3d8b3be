"""Episodes that are played: against exact values, the environments' own rewards, and one by one."""

import math

import gymnasium
import numpy as np
import pytest
from scipy import stats

import rewardfree as rf
from reference_runs import small_world
from rewardfree.evaluation.rollouts import Score
from rewardfree.rewards import RewardFunction, ends_of
from rewardfree.streams import stream
from rewardfree.studies.control.specification import TASKS

NAMES = [task.name for task in TASKS]


class Drift(rf.World):
    """A shaken walk that ends beyond 1."""

    state, action, horizon = rf.Box.of(x=(-3.0, 3.0)), rf.Box.of(u=(-0.2, 0.2)), 12

    def start(self, rng):
        return rng.uniform(-0.1, 0.1, 1)

    def sample(self, state, action, h, rng):
        next_state = np.clip(state + action + 0.1 * rng.standard_normal(state.shape), -3.0, 3.0)
        return next_state, next_state[:, 0] > 1.0


class Copied(Drift):
    def copy(self):
        return type(self)()


class Right:
    """A policy of our own: `act` is all that is asked."""

    def act(self, state, h):
        assert state.ndim == 2 and 0 <= h < 12
        return np.full((len(state), 1), 0.2)


class Bound:
    """Actions that a rule gives for states (n,d)."""

    def __init__(self, rule):
        self.rule = rule

    def act(self, state, h):
        return np.array([self.rule(one, h) for one in state])


# --- finite worlds: the exact value ---


@pytest.mark.parametrize("each_step", [False, True])
def test_the_mean_return_on_a_finite_world_is_the_policys_value(each_step):
    world = small_world(each_step=each_step)
    rng = np.random.default_rng(1)
    actions = rng.integers(5, size=(4, 6))
    reward = rng.random((4, 6, 5)) * 10.0 - 3.0

    class Policy:
        def act(self, state, h):
            return actions[h][state]

    score = rf.rollouts(world, Policy(), reward, 3000, seed=7)
    low, high = score.interval(0.9999)
    assert low < world.start @ rf.policy_value(world, actions, reward)[0] < high
    assert high - low < 0.1 * np.ptp(score.returns)
    assert (score.lengths == 4).all() and not score.terminated.any()


def test_a_plan_of_a_finite_world_is_played():
    world = small_world()
    data = rf.explore(world, rf.Model(rf.Matern(1.5, 0.3), ridge=0.1), rf.Generative(), samples_per_step=20)
    plan = rf.plan(data, "s")
    score = rf.rollouts(world, plan, "s", 2000)
    low, high = score.interval(0.9999)
    assert low < world.start @ rf.policy_value(world, plan, "s")[0] < high


# --- Gymnasium's own rewards, which only a test may read ---


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_its_own_reward_and_end_are_the_environments_step_by_step(task):
    """By rules that bring every task but the pendulum, which has none, to an end."""
    world = rf.from_gymnasium(task.env)
    env = gymnasium.make(task.env)
    reward = RewardFunction(task.rewards["own"], world.spaces)
    ended = (
        (lambda s: np.zeros(len(s), bool))
        if task.terminated is None
        else ends_of(task.terminated, world.spaces)[0]
    )
    rng = np.random.default_rng(0)
    ends = 0
    for episode in range(6):
        env.reset(seed=episode)
        over, h = False, 0
        while not over and h < 300:
            state = np.array(env.unwrapped.state, np.float64)
            action = _pumped(task.name, state, rng)
            _, gained, terminated, truncated, _ = env.step(action)
            next_state = np.array(env.unwrapped.state, np.float64)
            ours = (
                np.atleast_1d(np.asarray(action, np.float64)) if isinstance(world.action, rf.Box) else action
            )
            claimed = reward(h, state[None], np.array([ours]), next_state[None])[0]
            # The environments compute in float32 here and there, the pendulum with angles near pi.
            assert claimed == pytest.approx(float(gained), rel=1e-5, abs=1e-6)
            if abs(_margin(task, next_state)) > 1e-6:
                assert bool(ended(next_state[None])[0]) == terminated
            ends += int(terminated)
            over, h = terminated or truncated, h + 1
    env.close()
    assert (ends > 0) == (task.name != "Pendulum")


def _pumped(name, state, rng):
    """Actions that reach an end: with the speed, or at random."""
    if name == "Pendulum":
        return rng.uniform(-2.0, 2.0, 1).astype(np.float32)
    if name == "MountainCar":
        return 2 if state[1] >= 0 else 0
    if name == "MountainCarContinuous":
        return np.array([rng.uniform(0.5, 1.0) * (1.0 if state[1] >= 0 else -1.0)], np.float32)
    if name == "CartPole":
        return int(rng.integers(2))
    return 2 if state[3] > 0 else 0  # the Acrobot: with the speed of the second link


def _margin(task, state):
    """How far a state is from the line where the task ends; roundings decide on it."""
    if task.name == "Pendulum":
        return math.inf
    if task.name.startswith("MountainCar"):
        return (
            min((abs(state[0] - (0.5 if task.name == "MountainCar" else 0.45)), abs(state[1])), key=abs)
            or 1.0
        )
    if task.name == "CartPole":
        return min(abs(abs(state[0]) - 2.4), abs(abs(state[2]) - 12 * math.pi / 180))
    return -math.cos(state[0]) - math.cos(state[0] + state[1]) - 1.0


@pytest.mark.parametrize("name", ["Pendulum-v1", "CartPole-v1", "MountainCarContinuous-v0"])
def test_returns_are_the_sums_that_the_environment_itself_reports(name):
    task = next(task for task in TASKS if task.env == name)
    world = rf.from_gymnasium(name, horizon=60)
    rule = {
        "Pendulum-v1": lambda s, h: [math.sin(h)],
        "CartPole-v1": lambda s, h: int(s[2] > 0),
        "MountainCarContinuous-v0": lambda s, h: [1.0 if s[1] >= 0 else -1.0],
    }[name]
    score = rf.rollouts(world, Bound(rule), task.rewards["own"], 3, seed=4)
    env = gymnasium.make(name)
    for i in range(3):
        env.reset(seed=int(stream(4, "rollout", i).integers(2**31)))
        total, h, terminated = 0.0, 0, False
        while h < 60 and not terminated:
            action = rule(np.array(env.unwrapped.state, np.float64), h)
            given = action if name == "CartPole-v1" else np.array(action, np.float32)
            _, gained, terminated, _, _ = env.step(given)
            total, h = total + float(gained), h + 1
        assert score.returns[i] == pytest.approx(total, rel=1e-5)
        assert (score.lengths[i], bool(score.terminated[i])) == (h, terminated)
    env.close()


# --- one episode does not know of the others ---


def test_the_same_seed_gives_the_same_returns_and_another_seed_others():
    one, again, other = (rf.rollouts(Copied(), Right(), "x", 8, seed=seed).returns for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


@pytest.mark.parametrize("world", [Drift, Copied])
def test_a_return_does_not_depend_on_how_many_others_are_played(world):
    many = rf.rollouts(world(), Right(), "x", 9, seed=3)
    few = rf.rollouts(world(), Right(), "x", 4, seed=3)
    np.testing.assert_array_equal(many.returns[:4], few.returns)
    np.testing.assert_array_equal(many.lengths[:4], few.lengths)


def test_a_world_that_cannot_be_copied_is_played_one_by_one_with_the_same_result():
    alone, together = (rf.rollouts(world(), Right(), "x - u", 9, seed=3) for world in (Drift, Copied))
    for name in ("returns", "lengths", "terminated"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(together, name))
    assert len(set(alone.lengths)) > 1 and alone.terminated.any()


def test_an_environment_that_cannot_be_copied_is_played_one_by_one():
    class Only(gymnasium.Wrapper):
        def __deepcopy__(self, memo):
            raise TypeError("there is only one")

    policy = Bound(lambda s, h: int(s[2] > 0))
    only = rf.from_gymnasium(Only(gymnasium.make("CartPole-v1")), horizon=30)
    many = rf.from_gymnasium(gymnasium.make("CartPole-v1"), horizon=30)
    assert only.copy() is None and many.copy() is not None
    one, other = (rf.rollouts(world, policy, "x", 4) for world in (only, many))
    np.testing.assert_array_equal(one.lengths, other.lengths)
    np.testing.assert_array_equal(one.returns, other.returns)


def test_a_return_is_the_sum_of_the_rewards_of_its_steps():
    """By hand, from the same streams."""
    score = rf.rollouts(Drift(), Right(), "x + 10*next_x - u + 100*h", 5, seed=2)
    for i in range(5):
        world, total = Drift(), 0.0
        state, ended, h = world.reset(stream(2, "rollout", i)), False, 0
        while h < 12 and not ended:
            next_state, ended, _ = world.step(np.array([0.2]))
            total += state[0] + 10 * next_state[0] - 0.2 + 100 * h
            state, h = next_state, h + 1
        assert score.returns[i] == pytest.approx(total, rel=1e-12)
        assert score.lengths[i] == h and score.terminated[i] == ended


def planned(horizon):
    """A plan for so many steps, which goes left."""
    data = rf.explore(Drift(), rf.Model(rf.AutoKernel(), pooled=True), rf.Uniform(), steps=60)
    return rf.plan(data, "-x", rf.DynamicsPlanner(sides=11, noise=False), horizon=horizon)


def test_an_episode_is_as_long_as_the_plan_or_as_was_said():
    assert (rf.rollouts(Drift(), planned(3), "x", 2).lengths == 3).all()
    assert (rf.rollouts(Drift(), planned(3), "x", 2, horizon=2).lengths == 2).all()
    assert (rf.rollouts(Drift(), Right(), "x", 2, horizon=5).lengths == 5).all()
    assert (rf.rollouts(Drift(), Bound(lambda s, h: [-0.2]), "x", 2).lengths == 12).all()  # as the world's


def test_a_time_limit_is_no_end():
    world = rf.from_gymnasium("Pendulum-v1", max_episode_steps=7)
    score = rf.rollouts(world, Bound(lambda s, h: [0.0]), "-theta**2", 2)
    assert (score.lengths == 7).all() and not score.terminated.any()


def test_a_plan_longer_than_the_episodes_of_the_world_is_refused():
    with pytest.raises(ValueError, match="13 steps were asked for, and episodes of this world have 12"):
        rf.rollouts(Drift(), planned(13), "x", 2)
    with pytest.raises(ValueError, match="20 steps were asked for"):
        rf.rollouts(Drift(), Right(), "x", 2, horizon=20)
    assert (rf.rollouts(Drift(), planned(13), "-10 + 0*x", 2, horizon=4).lengths == 4).all()


def test_a_discount_counts_later_rewards_less():
    plain, less = (rf.rollouts(Copied(), Right(), "1 + 0*x", 6, discount=g) for g in (1.0, 0.5))
    np.testing.assert_array_equal(plain.returns, plain.lengths)
    np.testing.assert_allclose(less.returns, 2.0 * (1.0 - 0.5**less.lengths), rtol=1e-12)


# --- what is said of them ---


def test_the_interval_is_students():
    score = rf.rollouts(Copied(), Right(), "x", 11)
    for confidence in (0.5, 0.95, 0.99):
        expected = stats.t.interval(
            confidence, 10, loc=np.mean(score.returns), scale=stats.sem(score.returns)
        )
        assert score.interval(confidence) == pytest.approx(expected, rel=1e-12)
    assert score.mean == pytest.approx(np.mean(score.returns))
    assert score.interval() == score.interval(0.95)
    assert repr(score).startswith(f"Score({score.mean:.4g} in ") and repr(score).endswith("11 episodes)")


def test_an_interval_does_not_leave_the_range_of_the_returns():
    """Student's t alone goes beyond 0, for a reward that is never positive."""
    returns = np.array([-262.0, -130.0, -1.5, -0.5])
    score = Score(returns, np.ones(4, int), np.zeros(4, bool))
    low, high = score.interval()
    students = stats.t.interval(0.95, 3, loc=returns.mean(), scale=stats.sem(returns))
    assert students[1] > 0.0 and (low, high) == (-262.0, -0.5)
    assert score.interval(0.2) == pytest.approx(
        stats.t.interval(0.2, 3, loc=returns.mean(), scale=stats.sem(returns))
    )
    same = Score(np.full(3, 0.1), np.ones(3, int), np.zeros(3, bool))
    assert same.interval() == (0.1, 0.1)


def test_one_episode_has_no_interval():
    score = rf.rollouts(Copied(), Right(), "x", 1)
    with pytest.raises(ValueError, match="one episode has no interval: play at least two"):
        score.interval()
    assert repr(score) == f"Score({score.mean:.4g}, 1 episode)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes must be"),
        ({"episodes": 1.5}, "episodes must be"),
        ({"seed": -1}, "seed must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"reward": "y"}, "no variable 'y' here"),
        ({"reward": np.zeros(3)}, "a reward on real states must be"),
        ({"reward": "log(x - 10)"}, "what the reward returns"),
        ({"world": 3}, "world must be"),
        ({"world": "Nowhere-v1"}, "there is no environment 'Nowhere-v1'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    arguments = {"world": Drift(), "plan": Right(), "reward": "x", "episodes": 2, **options}
    with pytest.raises(ValueError, match=message):
        rf.rollouts(**arguments)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_a_confidence_lies_between_0_and_1(confidence):
    with pytest.raises(ValueError, match="confidence"):
        rf.rollouts(Copied(), Right(), "x", 3).interval(confidence)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda state: state * np.nan, "a state that is not finite"),
        (lambda state: state * (1 + 0j), "a state that is no real numbers"),
        (lambda state: np.full_like(state, 1e101), r"a state that must stay below 1e\+100"),
        (lambda state: np.array(["far"]), "a state that is no real numbers"),
        (lambda state: np.zeros(2 if state > 0.7 else 1), "states of several shapes"),
    ],
    ids=["nan", "complex", "far", "text", "ragged"],
)
@pytest.mark.parametrize("where", ["at step 0", "at the beginning of an episode"])
def test_what_is_no_state_is_a_world_that_fails_as_it_is_in_exploring(made, said, where):
    class Broken(Copied):
        """Its episodes begin at 0.5 and at 1 by turns."""

        def reset(self, rng):
            self.now = np.array([rng.choice([0.5, 1.0])])
            return self.now if where == "at step 0" else made(self.now)

        def step(self, action):
            return made(self.now), False, False

    with pytest.raises(rf.WorldFailed, match=f"the world returned {said} {where}") as failed:
        rf.rollouts(Broken(), Right(), "1", 8)
    assert failed.value.data is None


@pytest.mark.parametrize(
    ("method", "where"), [("start", "at the beginning of an episode"), ("sample", "at step 1")]
)
def test_a_world_that_fails_is_named_as_exploring_names_it(method, where):
    class Broken(Drift):
        asked = 0

        def start(self, rng):
            return self.failing("start", super().start(rng))

        def sample(self, state, action, h, rng):
            return self.failing("sample", super().sample(state, action, h, rng))

        def failing(self, name, outcome):
            self.asked += name == method
            if self.asked == (1 if method == "start" else 2):
                raise KeyError("no licence")
            return outcome

    with pytest.raises(rf.WorldFailed, match=f"the world failed {where}: KeyError.'no licence'.$") as failed:
        rf.rollouts(Broken(), Right(), "1", 1)
    assert failed.value.data is None and isinstance(failed.value.__cause__, KeyError)


@pytest.mark.parametrize("returned", [1.0, None, np.zeros((1, 1)), {0: 1, 1: 1}])
def test_a_policy_that_returns_no_actions_is_not_called_a_world_that_fails(returned):
    class Wrong:
        def act(self, state, h):
            return returned

    with pytest.raises(ValueError, match="act must return an action for each of 2 states, got"):
        rf.rollouts(Copied(), Wrong(), "1", 2)


@pytest.mark.parametrize("plan", ["notaplan", None, Right().act])
def test_what_is_no_plan_is_refused(plan):
    with pytest.raises(TypeError, match=r"plan must be a plan, or a policy with act\(state, h\), got"):
        rf.rollouts(Drift(), plan, "1")
