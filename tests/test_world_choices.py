"""What strategies choose on real states: by the textbook, by the query plan, and without any reward."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import reference
import rewardfree as rf
from reference_runs import pick, small_world
from reference_slide import (
    AUTO,
    BOX,
    FIXED,
    PER_STEP,
    SOBOL,
    STRATEGIES,
    Slide,
    assert_same,
    cart,
    pendulum,
    world_named,
)
from rewardfree.strategies import generative
from rewardfree.strategies.current import PILOT
from rewardfree.streams import stream
from rewardfree.worlds import LabelledWorld

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("world", ["pendulum", "cart", "slide"])
def test_online_keeps_the_last_step_of_each_episode_and_no_other(world, fresh):
    data = rf.explore(world_named(world), FIXED, rf.Online(0.5, fresh=fresh), episodes=40)
    last = np.append(data.episode[1:] != data.episode[:-1], True)
    np.testing.assert_array_equal(data.kept, last)
    H = data.horizon
    wanted = np.arange(40) % H  # the step that each episode is for
    reached = data.h[last]
    assert (reached <= wanted).all()
    np.testing.assert_array_equal(reached < wanted, data.terminated[last] & (reached < wanted))
    assert world != "slide" or (reached < wanted).any()  # some ended earlier


class _Textbook:
    """Q of the next episode on a finite world by plain loops, from the samples (h, z, s') known by then."""

    def __init__(self, world, model, samples):
        self.world, self.model, self.samples, self.H = world, model, samples, world.horizon

    def posterior(self, h, value):
        rows = [(z, s) for step, z, s in self.samples if self.model.pooled or step == h]
        Z, kernel, ridge = self.world.grid.points, self.model.kernel, self.model.ridge
        if not rows:
            return np.zeros(len(Z)), np.sqrt(kernel.diag(Z)), 0
        seen, y = Z[[z for z, _ in rows]], value[[s for _, s in rows]]
        variance = np.maximum(reference.variance(kernel, seen, ridge, Z), 0.0)
        return reference.mean(kernel, seen, ridge, y, Z), np.sqrt(variance), len(rows)

    def q(self, target, bonus, empty):
        value, by_step = np.zeros(len(self.world.states)), {}
        for h in reversed(range(target + 1)):
            mean, sigma, n = self.posterior(h, value)
            q = np.clip(mean + bonus(sigma), 0.0, self.H) if n or empty == "prior" else 0.0 * sigma
            by_step[h] = q.reshape(self.world.grid.shape)
            value = by_step[h].max(axis=1)
        return by_step


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize(
    "strategy",
    [
        rf.Online(0.6),
        rf.Online(0.6, fresh=True),
        rf.Online(0.6, empty="prior"),
        rf.Qiu(0.6),
        rf.Qiu(9.0, empty="prior"),
        rf.GreedyMaxVariance(),
        rf.GreedyMaxVariance(empty="prior"),
    ],
    ids=repr,
)
def test_actions_are_the_textbooks(strategy, pooled):
    world = small_world(irregular=True, start=None)
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1, pooled=pooled)
    data, H = rf.explore(LabelledWorld(world), model, strategy, episodes=16), world.horizon
    samples, known, before = [], [], None
    for i in range(len(data)):
        episode, h, state = int(data.episode[i]), int(data.h[i]), int(data.state[i])
        if episode != before:  # what is known when an episode, or a round of episodes, begins
            if not isinstance(strategy, rf.Online) or strategy.fresh or episode % H == 0:
                known = list(samples)
            before = episode
        if isinstance(strategy, rf.GreedyMaxVariance):
            _, sigma, n = _Textbook(world, model, samples).posterior(h, np.zeros(len(world.states)))
            at = sigma.reshape(world.grid.shape)[state]
            expected = pick(list(at)) if n or strategy.empty == "prior" else 0
        else:
            book, beta = _Textbook(world, model, known), strategy.beta
            if isinstance(strategy, rf.Qiu):
                target, bonus = H - 1, lambda s, beta=beta: np.minimum(beta * s, H) * (1.0 + 1.0 / H)
            else:
                target, bonus = episode % H, lambda s, beta=beta: beta * s
            expected = pick(list(book.q(target, bonus, strategy.empty)[h][state]))
        assert data.action[i] == expected, f"step {i}"
        if data.kept[i]:
            samples.append((h, state * world.grid.shape[1] + int(data.action[i]), int(data.next_state[i])))


def test_queries_on_a_finite_world_are_those_of_the_finite_strategy():
    world = small_world()  # a regular grid, with ties
    data = rf.explore(LabelledWorld(world), PER_STEP, rf.Generative(), samples_per_step=12)
    finite = rf.explore(world, PER_STEP, rf.Generative(), samples_per_step=12)
    for name in ("episode", "h", "state", "action", "terminated", "kept"):
        np.testing.assert_array_equal(getattr(data, name), getattr(finite, name), err_msg=name)
    plan = rf.query_plan(PER_STEP, world.grid.points, 12)
    np.testing.assert_array_equal(data.state * 5 + data.action, np.repeat(plan, world.horizon))


def test_queries_of_a_pooled_model_on_a_finite_world_are_the_query_plan():
    world = small_world()
    data = rf.explore(LabelledWorld(world), FIXED, rf.Generative(), transitions=70)  # more than one batch
    np.testing.assert_array_equal(data.state * 5 + data.action, rf.query_plan(FIXED, world.grid.points, 70))
    finite = rf.explore(world, FIXED, rf.Generative(), transitions=70)
    np.testing.assert_array_equal(data.state * 5 + data.action, finite.points(slice(None)))


@pytest.mark.parametrize("model", [FIXED, PER_STEP], ids=["pooled", "per step"])
@pytest.mark.parametrize("strategy", [SOBOL, BOX], ids=repr)
def test_queries_lie_in_the_bounds_and_are_far_apart(strategy, model):
    data = rf.explore(pendulum(), model, strategy, steps=60)
    assert (data.episode == -1).all()
    assert data.kept.all()
    assert (np.abs(data.state[:, 0]) <= np.pi).all()
    assert (np.abs(data.state[:, 1]) <= 8.0).all()
    assert (np.abs(data.action) <= 2.0).all()
    rows = slice(None) if model.pooled else data.h == 0
    design, random = model.design(), model.design()
    scaling = data.fitted.scaling
    design.extend(scaling(data.spaces.features(data.state[rows], data.action[rows])))
    rng = np.random.default_rng(0)
    n = len(design)
    state, action = rng.uniform((-np.pi, -8.0), (np.pi, 8.0), (n, 2)), rng.uniform(-2.0, 2.0, (n, 1))
    random.extend(scaling(data.spaces.features(state, action)))
    assert design.information_gain() > random.information_gain()
    if not model.pooled:
        for h in range(1, data.horizon):
            np.testing.assert_array_equal(data.state[data.h == h], data.state[rows])


def test_queries_from_a_sobol_set_are_greedy_over_it():
    data = rf.explore(pendulum(), FIXED, SOBOL, steps=30, seed=3)
    states, actions = generative._candidates(_Asked(data), "sobol", 0)
    points = data.fitted.scaling(data.spaces.features(states, actions))
    chosen = rf.query_plan(FIXED, points, 30)
    np.testing.assert_array_equal(data.state, states[chosen])
    np.testing.assert_array_equal(data.action, actions[chosen])


class _Asked:
    """As much of a run as a set of candidates needs."""

    def __init__(self, data):
        self.spaces, self._seed = data.spaces, data.seed

    def rng(self, *names):
        return stream(self._seed, *names)


def test_queries_of_labels_for_actions_are_labels():
    data = rf.explore(cart(), FIXED, SOBOL, steps=40)
    assert set(data.action) == {0, 1}
    assert data.action.dtype == np.int64


def test_reachable_queries_begin_with_a_pilot_and_then_belong_to_no_episode():
    data = rf.explore(cart(), AUTO, rf.Generative(), steps=80)
    assert (data.episode[:PILOT] >= 0).all()
    assert (data.episode[PILOT:] == -1).all()
    assert data.kept.all()


@pytest.mark.parametrize("seed", range(2))
def test_queries_and_scouts_reach_more_of_the_mountain_car_than_random_actions(seed):
    def cells(strategy):
        world = rf.from_gymnasium("MountainCar-v0", horizon=200)
        data = rf.explore(world, AUTO, strategy, steps=400, seed=seed)
        place = (data.next_state - [-1.2, -0.07]) / [1.8, 0.14]
        return len(np.unique(np.clip((20 * place).astype(int), 0, 19), axis=0))

    uniform = cells(rf.Uniform())
    assert cells(rf.Generative()) > 1.5 * uniform
    assert cells(rf.Scout()) > 1.2 * uniform


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_no_reward_is_ever_read(strategy, monkeypatch):
    class Poison:
        def __getattribute__(self, name):
            raise AssertionError(f"somebody looked at a reward: {name}")

        def __float__(self):
            raise AssertionError("somebody looked at a reward")

        __add__ = __radd__ = __mul__ = __bool__ = __array__ = __float__

    expected = rf.explore(pendulum(), FIXED, strategy, steps=60)
    plain = PendulumEnv.step
    monkeypatch.setattr(
        PendulumEnv, "step", lambda self, u: (lambda o, r, *rest: (o, Poison(), *rest))(*plain(self, u))
    )
    assert_same(rf.explore(pendulum(disable_env_checker=True), FIXED, strategy, steps=60), expected)


def test_episodes_are_whole_and_states_follow_each_other():
    for strategy in (rf.Uniform(), rf.Scout(), rf.Qiu(0.5)):
        data = rf.explore(Slide(), AUTO, strategy, steps=80)
        for i in range(79):
            if data.episode[i] == data.episode[i + 1]:
                assert data.h[i + 1] == data.h[i] + 1
                np.testing.assert_array_equal(data.next_state[i], data.state[i + 1])
                assert not data.terminated[i]
            else:
                assert data.episode[i + 1] == data.episode[i] + 1
                assert data.terminated[i] or data.h[i] == Slide.horizon - 1
        np.testing.assert_array_equal(data.terminated, data.next_state[:, 0] > Slide.edge)
        np.testing.assert_array_equal(data.starts, data.state[data.h == 0])


def test_transitions_of_gymnasium_are_gymnasiums_own():
    data = rf.explore(pendulum(), FIXED, rf.Uniform(), steps=20)
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    for state, action, next_state in zip(data.state, data.action, data.next_state, strict=True):
        env.state = state.copy()
        env.step(action.astype(np.float32))  # as its space wants it
        np.testing.assert_array_equal(env.state, next_state)
