"""What goes beyond the paper: planning by range, steps as a coordinate, kernels from data, and Scout."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import reference_runs
import rewardfree as rf
from reference_runs import recorded, small_world
from rewardfree.autokernel import Fit
from rewardfree.dynamics import Curiosity
from rewardfree.kernelfit import candidates, fitted_model, next_state_features
from rewardfree.objectives import OBJECTIVES
from rewardfree.regressions import Regressions
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.explore import default_model
from rewardfree.streams import stream
from rewardfree.worlds.spaces import Spaces
from rewardfree.worlds.suite import suite_names

CLOSE = {"rtol": 0, "atol": 1e-9}
S, A, H = 8, 5, 4
KERNEL = rf.Matern(1.5, 0.3)
TIMED = rf.Matern(1.5, (0.6, 0.3, 0.4))
AUTO = rf.AutoKernel()
EXPLORERS = [rf.Scout(), rf.GreedyMaxVariance(), rf.Generative(), rf.Online(0.3), rf.Qiu(0.2), rf.Uniform()]
RANGE = [rf.Mean(clip="range"), rf.Optimistic(0.4, clip="range"), rf.Pessimistic(0.4, clip="range")]
RNG = np.random.default_rng(3)
REWARD, BY_STEP = RNG.random((S, A)), 3.0 * RNG.random((H, S, A)) - 1.0


def model(kernel=KERNEL, ridge=0.3, pooled=True, **options):
    return rf.Model(kernel, ridge, pooled=pooled, **options)


TIME = model(TIMED, centred=True, timed=True)
MODELS = [model(), model(centred=True), model(pooled=False, centred=True), TIME]


def a_world(each_step=False, start=None, seed=0):
    return small_world(each_step, start, seed, irregular=True, states=S, actions=A)


@functools.cache
def explored(model, strategy=EXPLORERS[-1], episodes=8, seed=5, each_step=True):
    size = {"steps": H * episodes} if strategy.generative else {"episodes": episodes}
    return rf.explore(a_world(each_step), model, strategy, seed=seed, **size)


def same_data(one, other):
    return recorded(one) == recorded(other) and (one.model, one.strategy) == (other.model, other.strategy)


# --- the textbook: every step its own dense inverse ---


def coordinates(grid, horizon, timed):
    """What a kernel sees of every (h,z), (h,z,f), in plain loops."""
    return np.array(
        [
            [[*[h / max(1, horizon - 1)] * timed, *s, *a] for s in grid.states for a in grid.actions]
            for h in range(horizon)
        ]
    )


def textbook(data, reward, planner, model, horizon=None, discount=1.0):
    """Actions and values (h,s) for a reward (s,a) or (h,s,a), and every Q before its clip."""
    horizon, (s, a) = horizon or data.horizon, data.grid.shape
    x, z = coordinates(data.grid, data.horizon, model.timed), data.state * a + data.action
    rewards = np.broadcast_to(reward, (horizon, s, a))
    weight = {"Mean": 0.0, "Optimistic": 1.0, "Pessimistic": -1.0}[type(planner).__name__] * planner.beta
    actions, values, tables = np.zeros((horizon, s), int), np.zeros((horizon + 1, s)), []
    low = high = 0.0
    for h in reversed(range(horizon)):
        rows = data.kept & (model.pooled | (data.h == h))
        seen, at = x[data.h[rows], z[rows]], x[min(h, data.horizon - 1)]
        value = values[h + 1]
        c = 0.5 * (value.min() + value.max()) if model.centred else 0.0
        mean = c + reference.mean(model.kernel, seen, model.ridge, value[data.next_state[rows]] - c, at)
        sigma = np.sqrt(np.maximum(reference.variance(model.kernel, seen, model.ridge, at), 0.0))
        low, high = rewards[h].min() + discount * low, rewards[h].max() + discount * high
        ends = (0.0, float(horizon)) if planner.clip == "paper" else (low, high)
        bonus = np.clip(weight * sigma, ends[0] - ends[1], ends[1] - ends[0])
        tables.append(rewards[h] + (discount * mean + bonus).reshape(s, a))
        q = np.clip(tables[-1], *ends)
        values[h] = q.max(axis=1)
        actions[h] = (q >= (values[h] - 1e-12 * np.abs(values[h]))[:, None]).argmax(axis=1)
    return actions, values[:horizon], np.array(tables[::-1])


def assert_textbook(found, data, reward, planner, model, **options):
    actions, values, _ = textbook(data, reward, planner, model, **options)
    np.testing.assert_allclose(found.values, values, **CLOSE)
    assert found.actions.tolist() == actions.tolist()


def assert_same_plan(one, other, atol=1e-9):
    np.testing.assert_allclose(one.values, other.values, rtol=0, atol=atol)
    assert one.actions.tolist() == other.actions.tolist()


class TimedRun(reference_runs.Run):
    """A textbook run whose one regression is over (h,z)."""

    def sigma(self, h):
        return self._of_step(h, reference_runs.sigma_of(self.model, self._x, self.samples[0]))

    def mean(self, h, value):
        return self._of_step(h, reference_runs.mean_of(self.model, self._x, self.samples[0], value))

    def keep(self, h, state, action, following):
        self.samples[0].append((h * S * A + state * A + action, following))

    def _of_step(self, h, values):
        return (0.0 if self.is_zero(h) else 1.0) * values.reshape(H, S, A)[h]

    @property
    def _x(self):
        return coordinates(self.world.grid, H, timed=True).reshape(H * S * A, -1)


GAINS = {
    "sigma": lambda sigma, ridge: sigma,
    "variance": lambda sigma, ridge: sigma**2,
    "information": lambda sigma, ridge: 0.5 * np.log(1.0 + sigma**2 / ridge),
}


def scout_tables(run):
    """E_h = clip(gain_h + mean_h[max_a E_{h+1}], 0, the most that is left to gain), (h,s,a)."""
    tables, value, most = {}, None, 0.0
    for h in reversed(range(H)):
        own = GAINS[run.strategy.objective or "variance"](run.sigma(h), run.model.ridge)
        most += own.max()
        unclipped = own if value is None else own + run.mean(h, value)
        run.largest = max(run.largest, (unclipped - most).max())
        tables[h] = np.clip(unclipped, 0.0, most)
        value = list(tables[h].max(axis=1))
    return tables


def scout(run):
    reference_runs.whole_episodes(
        run,
        lambda tables, n, h, state: run.choose(list(tables[h][state]), n, h),
        lambda: scout_tables(run),
    )


def textbook_run(world, model, strategy, rounds, seed):
    steps = H * (H + 1) // 2 if isinstance(strategy, rf.Online) else H
    run = (TimedRun if model.timed else reference_runs.Run)(world, model, strategy, seed, rounds, steps)
    {**reference_runs.EXPLORERS, "Scout": scout}[type(strategy).__name__](run)
    return run


# --- planning by range ---


@pytest.mark.parametrize("planner", RANGE, ids=repr)
@pytest.mark.parametrize("reward", [REWARD, BY_STEP, (REWARD > 0.5) * 1.0, -7.0 * REWARD], ids=range(4))
@pytest.mark.parametrize("each", [model(), model(centred=True), model(pooled=False), TIME], ids=range(4))
def test_plans_by_range_are_the_textbooks(planner, reward, each):
    data = explored(each)
    for discount in (1.0, 0.8):
        found = rf.plan(data, reward, planner, discount=discount)
        assert_textbook(found, data, reward, planner, each, discount=discount)


@pytest.mark.parametrize(("make", "side"), [(rf.Optimistic, 1.0), (rf.Pessimistic, 0.0)])
def test_values_end_at_what_the_remaining_steps_can_pay(make, side):
    """With a reward of range [0,1] at most H - h from step h on; the paper's clip is at H throughout."""
    reward = (REWARD - REWARD.min()) / np.ptp(REWARD)
    found = rf.plan(explored(model()), reward, make(1e3, clip="range"))
    np.testing.assert_array_equal(found.values, side * np.arange(H, 0, -1.0)[:, None] * np.ones(S))
    paper = rf.plan(explored(model()), reward, make(1e3, clip="paper"))
    np.testing.assert_array_equal(paper.values, side * H)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    planner=st.sampled_from([*RANGE, rf.Optimistic(5.0, clip="range"), rf.Pessimistic(5.0, clip="range")]),
    constant=st.floats(-20.0, 20.0),
    discount=st.sampled_from([1.0, 0.7]),
    by_step=st.booleans(),
    each=st.sampled_from([model(centred=True), model(pooled=False, centred=True), TIME]),
)
def test_what_is_paid_anyway_changes_no_policy(seed, planner, constant, discount, by_step, each):
    data = explored(each, seed=seed % 7)
    reward = np.random.default_rng(seed).random((H, S, A) if by_step else (S, A))
    one, other = (rf.plan(data, r, planner, discount=discount) for r in (reward, reward + constant))
    paid = constant * np.array([sum(discount**k for k in range(H - h)) for h in range(H)])
    np.testing.assert_allclose(other.values, one.values + paid[:, None], rtol=0, atol=1e-8)
    assert one.actions.tolist() == other.actions.tolist()


def test_without_centring_what_is_paid_anyway_does_matter():
    data, planner = explored(model()), rf.Mean(clip="range")
    one, other = (rf.plan(data, r, planner) for r in (REWARD, REWARD + 20.0))
    assert one.actions.tolist() != other.actions.tolist()


def test_the_papers_clip_stays_the_papers():
    assert {planner.clip for planner in (rf.Mean(), rf.Optimistic(1.0), rf.Pessimistic(1.0))} == {"paper"}
    with pytest.raises(ValueError, match=r"\[0, ?1\]"):
        rf.plan(explored(model()), 2.0 * REWARD, rf.Mean())


# --- centring and pooling ---


def test_centring_is_the_regression_of_what_differs_from_the_midrange():
    data, values = explored(model()), 5.0 + RNG.random((1, S, 2))
    plain, centred = (filled(model(centred=yes), data) for yes in (False, True))
    z, c = data.state * A + data.action, 0.5 * (values.min(axis=1) + values.max(axis=1))
    x = data.grid.points
    expected = c + reference.mean(KERNEL, x[z], 0.3, values[0, data.next_state] - c, x)
    symmetric = values - c[:, None]
    for h in range(H):
        np.testing.assert_allclose(centred.mean(h, values)[0], expected.T, **CLOSE)
        np.testing.assert_allclose(centred.mean(h, symmetric), plain.mean(h, symmetric), rtol=0, atol=1e-14)
        assert np.abs(centred.mean(h, values) - plain.mean(h, values)).max() > 0.1


def filled(model, *runs):
    """The regressions of runs whose designs are pooled."""
    own = Regressions(model, runs[0].grid, H, runs=len(runs), capacity=len(runs[0]))
    every = [run.points(np.arange(len(run)), model.timed) for run in runs]
    own.load([every], [[run.next_state for run in runs]])
    return own


def test_with_data_of_one_step_pooling_changes_nothing():
    data = dataclasses.replace(explored(model()), h=np.zeros(8 * H, int))
    for each in (model(), TIME):
        pooled, alone = each, dataclasses.replace(each, pooled=False, timed=False)
        alone = (
            dataclasses.replace(alone, kernel=rf.Matern(1.5, each.kernel.lengthscale[1:]))
            if each.timed
            else alone
        )
        for planner, horizon in ((rf.Mean(clip="range"), 1 if each.timed else 2), (rf.Optimistic(0.5), 1)):
            plans = [rf.plan(data, REWARD, planner, model=m, horizon=horizon) for m in (pooled, alone)]
            assert_same_plan(*plans, atol=1e-12)


# --- steps as a coordinate ---


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_exploring_and_planning_with_a_timed_model_are_the_textbooks(strategy):
    for seed in (0, 1):
        data = rf.explore(a_world(True, seed=seed), TIME, strategy, transitions=3 * H, seed=seed)
        run = textbook_run(a_world(True, seed=seed), TIME, strategy, 3, seed)
        assert recorded(data) == recorded(run)
        for planner in (rf.Optimistic(0.5), rf.Mean(), *RANGE):
            assert_textbook(rf.plan(data, REWARD, planner), data, REWARD, planner, TIME)


@pytest.mark.parametrize(
    ("step", "other"), [(1e6, model()), (1e-3, model(pooled=False))], ids=["pooled", "per step"]
)
def test_a_timed_model_lies_between_one_regression_and_one_for_each_step(step, other):
    timed = model(rf.Matern(1.5, (step, 0.3, 0.3)), timed=True)
    data = explored(model())
    for planner in RANGE:
        plans = [rf.plan(data, BY_STEP, planner, model=each) for each in (timed, other)]
        assert_same_plan(*plans, atol=1e-8)


@pytest.mark.parametrize("timed", [False, True])
def test_a_question_about_some_rows_is_one_about_all(timed):
    each = TIME if timed else model(centred=True)
    runs = [explored(each, seed=seed) for seed in (1, 2)]
    own, values = filled(each, *runs), RNG.random((2, S, 3))
    rows = np.array([[0, 7, 39], [12, 12, 3]])
    for h in range(H):
        std, mean = own.std(h), own.mean(h, values)
        assert std.shape == (2, S * A) and mean.shape == (2, 3, S * A)
        np.testing.assert_allclose(own.std(h, rows), np.take_along_axis(std, rows, 1), **CLOSE)
        some = np.stack([mean[b][:, rows[b]] for b in (0, 1)])
        np.testing.assert_allclose(own.mean(h, values, rows), some, **CLOSE)


def test_a_shorter_plan_counts_steps_as_the_data_do():
    data = explored(TIME)
    for horizon in (1, 2, 3):
        found = rf.plan(data, REWARD, RANGE[1], horizon=horizon)
        assert_textbook(found, data, REWARD, RANGE[1], TIME, horizon=horizon)


def test_an_episode_of_one_step_can_be_timed():
    world = rf.FiniteWorld(a_world().P, 1)
    data = rf.explore(world, TIME, rf.Scout(), episodes=6)
    assert_textbook(rf.plan(data, REWARD, RANGE[1]), data, REWARD, RANGE[1], TIME)


def test_what_a_timed_model_cannot_do_is_refused():
    with pytest.raises(ValueError, match="needs pooled=True"):
        rf.Model(TIMED, 0.3, timed=True)
    with pytest.raises(ValueError, match="timed must be True or False, got 1"):
        rf.Model(TIMED, 0.3, pooled=True, timed=1)
    data = explored(TIME)
    for planner in (None, rf.Mean()):
        with pytest.raises(ValueError, match="at most the 4 steps of these data, got 5"):
            rf.plan(data, REWARD, planner, horizon=H + 1)
    assert rf.plan(data, REWARD, model=model(), horizon=H + 1).horizon == H + 1
    with pytest.raises(ValueError, match="timed=True is for finite worlds"):
        rf.explore(Line(), rf.Model(AUTO, pooled=True, timed=True), rf.Uniform(), steps=5)


class Line(rf.World):
    """A point on a line that an action pushes."""

    state, action, horizon = rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(push=(-1.0, 1.0)), 5

    def start(self, rng):
        return np.zeros(1)

    def sample(self, state, action, h, rng):
        return 0.9 * state + 0.3 * action, np.zeros(len(state), bool)


# --- Scout ---


@pytest.mark.parametrize("each", MODELS, ids=repr)
@pytest.mark.parametrize("objective", [*OBJECTIVES, None])
def test_scouts_are_the_textbooks(objective, each):
    strategy, world = rf.Scout(objective), a_world(each.timed)
    for seed in (0, 1):
        run = textbook_run(world, each, strategy, 6, seed)
        assert recorded(rf.explore(world, each, strategy, episodes=6, seed=seed)) == recorded(run)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_curiosity_is_clipped_to_what_can_be_gained(objective, centred):
    """Number by number, with a smooth kernel that promises more than that."""
    about = (a_world(), model(rf.SquaredExponential(0.8), 1e-5, centred=centred), rf.Scout(objective))
    arena = Arena(*about, [3], 6)
    assert list(arena.play())[-1] == 1.0
    found, run = arena.curiosity(OBJECTIVES[objective]), textbook_run(*about, 6, 3)
    run.largest = 0.0
    tables = scout_tables(run)
    assert run.largest > 1e-3
    for h in range(H):
        np.testing.assert_allclose(found[h].reshape(S, A), tables[h], rtol=0, atol=1e-6)


def test_before_there_are_data_scout_acts_at_random():
    world, seeds = a_world(start=2), range(40)
    actions = [rf.explore(world, model(), rf.Scout(), episodes=1, seed=seed).action for seed in seeds]
    expected = [np.floor(A * stream(seed, "ties").random((1, H))[0]) for seed in seeds]
    np.testing.assert_array_equal(actions, expected)
    assert set(np.ravel(actions)) == set(range(A))


@pytest.mark.parametrize("each", [model(), TIME, rf.Model(AUTO, pooled=True)], ids=range(3))
def test_runs_of_scout_do_not_depend_on_who_plays_beside_them(each):
    world, options = a_world(True, start=1), {"episodes": 6}
    runs = rf.explore_many(world, each, rf.Scout(), seeds=[4, 0, 4, 9], **options)
    for run, seed in zip(runs, (4, 0, 4, 9), strict=True):
        assert run.seed == seed
        assert same_data(run, rf.explore(world, each, rf.Scout(), seed=seed, **options))
    assert not same_data(runs[0], runs[1])


@pytest.mark.parametrize("each", [model(), TIME, rf.Model(AUTO, pooled=True, timed=True)], ids=range(3))
def test_a_scouts_run_begins_as_a_shorter_one(each):
    world = a_world(True)
    whole = rf.explore(world, each, rf.Scout(), episodes=10, seed=2)
    for sizes in ({"episodes": 3}, {"episodes": 9}, {"steps": 7}, {"transitions": 18}):
        assert same_data(whole.first(**sizes), rf.explore(world, each, rf.Scout(), seed=2, **sizes))


CORRIDOR = rf.corridor_world(states=20, actions=8, horizon=8)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "each", [model(rf.Matern(1.5, 0.2), 0.1), rf.Model(AUTO, pooled=True)], ids=["fixed", "auto"]
)
def test_scout_finds_the_end_of_a_corridor_where_chance_does_not(each, objective):
    world, reward = CORRIDOR
    optimal = rf.optimal_value(world, reward)[0] @ world.start

    def lost(strategy):
        runs = rf.explore_many(world, each, strategy, seeds=range(4), episodes=15)
        return np.mean([rf.gap(world, rf.plan(run, reward), reward).start for run in runs]) / optimal

    assert lost(rf.Scout(objective)) < 0.25
    assert lost(rf.Uniform()) > 0.6


@pytest.mark.parametrize("objective", ["entropy", None, 1, "Sigma", ["sigma"]])
def test_an_unknown_objective_is_refused(objective):
    with pytest.raises(ValueError, match="objective must be one of sigma, variance, information, got "):
        rf.Scout(objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_gain_of_curiosity_on_real_states(objective):
    spaces, rng = Spaces(Line.state, Line.action), np.random.default_rng(0)
    state, action = rng.uniform(-1.0, 1.0, (2, 30, 1))
    about = (spaces, model(rf.Matern(2.5, 0.5), 0.02), state, action, 0.9 * state + 0.3 * action)
    found = Curiosity(*about, np.zeros(30, bool), worth=OBJECTIVES[objective])
    at = rng.uniform(-1.0, 1.0, (2, 9, 1))
    sigma = found.sigma(*at)
    assert sigma.min() > 0.0
    np.testing.assert_allclose(found.gain(*at), GAINS[objective](sigma, 0.02), rtol=1e-12)
    q, following = found.choices(at[0])
    beyond = 0.98 * found.mesh.at(found.value, following[2])
    tried = np.repeat(found.actions[2:3], 9, axis=0)
    np.testing.assert_allclose(q[2], GAINS[objective](found.sigma(at[0], tried), 0.02) + beyond, rtol=1e-9)


# --- kernels from data ---


def drawn(lengths, n=300, columns=6, noise=0.01, seed=0):
    """Targets (n,c) of a Matern process with those lengthscales at standardised points."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), (n, len(lengths)))
    covariance = rf.Matern(2.5, lengths)(x, x) + noise * np.eye(n)
    return x, np.linalg.cholesky(covariance) @ rng.standard_normal((n, columns))


def test_lengthscales_and_ridge_of_a_draw_are_recovered_without_a_linear_part():
    x, y = drawn((0.5, 1.5, 25.0))
    fit = rf.AutoKernel(families=(2.5,)).fit(x, y, linear=False)
    assert isinstance(fit.kernel, rf.Matern)
    found = np.array(fit.kernel.lengthscale)
    assert np.abs(np.log(found[:2] / (0.5, 1.5))).max() < math.log(1.5)
    assert found[2] > 5.0 * found[:2].max()
    assert abs(math.log(fit.ridge / 0.01)) < math.log(1.5)


def test_leave_one_out_without_a_linear_part_is_that_of_refits():
    x, y = drawn((0.5, 1.0), n=30, columns=2)
    for family, kind in ((2.5, rf.Matern), (math.inf, rf.SquaredExponential)):
        fit = rf.AutoKernel(families=(family,)).fit(x, y, linear=False)
        assert isinstance(fit.kernel, kind)
        errors = []
        for i in range(len(x)):
            others = np.arange(len(x)) != i
            errors.append(y[i] - reference.mean(fit.kernel, x[others], fit.ridge, y[others], x[i : i + 1])[0])
        assert fit.leave_one_out == pytest.approx((np.array(errors) ** 2).sum() / (y**2).sum(), rel=1e-6)


def steady(dependence, seed=0, n=120, shift=0.0, scale=1.0):
    """Transitions on a grid of 12 x 6 that lead near `dependence` of s, a in [0,1]: points, z, states, s'."""
    rng, (s, a) = np.random.default_rng(seed), (12, 6)
    grid = rf.FiniteWorld(np.full((s, a, s), 1 / s), H, states=shift + scale * np.linspace(0, 1, s)).grid
    z = rng.integers(s * a, size=n)
    to = dependence(z // a / (s - 1), z % a / (a - 1)) + 0.03 * rng.standard_normal(n)
    return grid.points, z, grid.states, np.clip(np.round((s - 1) * to), 0, s - 1).astype(int)


def test_a_coordinate_that_does_not_matter_gets_a_long_lengthscale():
    by_state = fitted_model(rf.Model(AUTO), *steady(lambda s, a: 0.5 + 0.5 * np.sin(4.0 * s)))
    by_action = fitted_model(rf.Model(AUTO), *steady(lambda s, a: 0.5 + 0.5 * np.sin(4.0 * a)))
    lengths = np.array([by_state.kernel.lengthscale, by_action.kernel.lengthscale])
    assert lengths[0, 1] > 4.0 * lengths[0, 0] and lengths[1, 0] > 4.0 * lengths[1, 1]


def test_other_units_give_other_lengthscales_and_nothing_else():
    def moved(s, a):
        return np.clip(s + 0.4 * (a - 0.5), 0, 1)

    one, other = (
        fitted_model(rf.Model(AUTO, centred=True), *steady(moved, shift=shift, scale=scale))
        for shift, scale in ((0.0, 1.0), (-40.0, 12.5))
    )
    assert type(one.kernel) is type(other.kernel) and one.centred and other.centred
    lengths = np.array(other.kernel.lengthscale) / one.kernel.lengthscale
    np.testing.assert_allclose(lengths, (12.5, 1.0), rtol=0.01)
    assert other.ridge == pytest.approx(one.ridge, rel=0.01)


def test_next_states_that_differ_have_features_that_differ():
    states = rf.rooms_world(side=4, moves=2).states
    for each in (states, np.linspace(0, 1, 40)[:, None]):
        features = next_state_features(5.0 * each - 2.0)
        np.testing.assert_allclose(features, next_state_features(each), atol=1e-9)
        apart = np.abs(features[:, None] - features[None]).max(axis=2)
        assert apart[~np.eye(len(each), dtype=bool)].min() > 1e-3
    expected = [math.cos(math.pi * k / 39 * 7) for k in range(1, 7)]
    np.testing.assert_allclose(features[7], expected, atol=1e-12)


def test_only_laws_that_change_make_steps_matter():
    """Of a timed model: the lengthscale of h is long where one law serves every step."""

    def of_steps(drift):
        world = rf.tide_world(states=12, actions=5, horizon=6, stride=0.2, drift=drift)
        data = rf.explore(world, rf.Model(AUTO, pooled=True, timed=True), rf.Uniform(), episodes=30)
        z = data.points(np.arange(len(data)), timed=True)
        found = fitted_model(
            data.model, candidates(data.model, data.grid, 6), z, data.grid.states, data.next_state
        )
        return found.kernel.lengthscale[0]

    assert of_steps(0.0) > 3.0 > 1.5 > of_steps(0.25)


# --- automatic models, from the exploration to the plan ---


@pytest.fixture
def fits(monkeypatch):
    """The kernels that are asked for: how many points there were, and the most that were to be used."""
    calls = []

    def fit(self, points, targets, groups=None, ridge=None, rows=None, linear=True):
        assert not linear and len(points) == len(targets)
        calls.append((len(points), self.most))
        return Fit(rf.Matern(1.5, (0.7,) * points.shape[1]), 0.2 if ridge is None else ridge, 0.0, 0.0)

    monkeypatch.setattr(rf.AutoKernel, "fit", fit)
    return calls


def test_kernels_are_found_after_four_rounds_and_whenever_data_doubled(fits):
    data = rf.explore(a_world(), rf.Model(AUTO, pooled=True), rf.Scout(), episodes=40)
    assert fits == [(n * H, 300) for n in (4, 8, 16, 32)]
    rf.plan(data, REWARD)
    assert fits[4:] == [(40 * H, 600)]


def test_planning_finds_the_kernel_again_on_every_transition(fits):
    """Of Alg 3 a tenth to a half is kept; the default plan uses all, another planner what was kept."""
    data = rf.explore(a_world(), rf.Model(AUTO, pooled=True), rf.Online(0.1), transitions=6 * H)
    assert len(data) == 60 > data.kept.sum() == 24 and fits == [(16, 300)]
    rf.plan(data, REWARD)
    rf.plan(data, REWARD, rf.Mean())
    rf.plan_runs([data, data.first(transitions=H)], [REWARD, 1.0 - REWARD])
    assert fits[1:] == [(60, 600), (24, 600), (60, 600), (10, 600)]


@pytest.mark.parametrize("each_step", [False, True], ids=["one law", "a law for each step"])
def test_with_no_model_kernel_and_ridge_come_from_the_data(each_step, tmp_path):
    world = a_world(each_step)
    data = rf.explore(world, steps=40, seed=3)
    assert data.strategy == rf.Scout()
    assert data.model == rf.Model(AUTO, pooled=True, centred=True, timed=each_step) == default_model(world)
    data.save(tmp_path / "data.npz")
    again = rf.load(tmp_path / "data.npz")
    assert same_data(data, again) and again.stopped_by == "steps"
    known = coordinates(data.grid, H, each_step)[: H if each_step else 1].reshape(-1, 2 + each_step)
    z = data.state * A + data.action + (data.h * S * A if each_step else 0)
    found = fitted_model(data.model, known, z, data.grid.states, data.next_state)
    assert found.ridge != 0.1 and np.shape(found.kernel.lengthscale) == (2 + each_step,)
    reward = 9.0 * BY_STEP
    for run in (data, again):
        assert_textbook(rf.plan(run, reward), data, reward, rf.Mean(clip="range"), found)


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_every_strategy_explores_with_a_first_guess_until_there_are_data(strategy):
    """A lengthscale of a fifth of each coordinate's range and a ridge of 0.1, for four rounds."""
    world = a_world(True)
    lengths = [0.2 * np.ptp(x) for x in (np.arange(2), world.states, world.actions)]
    guess = model(rf.Matern(1.5, tuple(lengths)), 0.1, timed=True)
    data = rf.explore(world, rf.Model(AUTO, pooled=True, timed=True), strategy, transitions=5 * H, seed=1)
    run = textbook_run(world, guess, strategy, 4, 1)
    assert recorded(data.first(transitions=4 * H)) == recorded(run)
    assert np.isfinite(rf.plan(data, REWARD).values).all()


def test_too_few_data_leave_the_first_guess():
    data = rf.explore(a_world(), rf.Model(AUTO, pooled=True), rf.Uniform(), steps=1)
    lengths = tuple(0.2 * np.ptp(x) for x in (data.grid.states, data.grid.actions))
    guess = model(rf.Matern(1.5, lengths), 0.1, centred=True)
    assert_textbook(rf.plan(data, REWARD), data, REWARD, rf.Mean(clip="range"), guess)


@pytest.mark.parametrize("timed", [False, True])
def test_a_world_that_stands_still_has_nothing_to_fit(timed):
    """The state never changes; or it does once, long before the end."""
    world = rf.FiniteWorld(np.broadcast_to(np.eye(S)[:, None], (S, A, S)), H, start=3)
    data = rf.explore(world, rf.Model(AUTO, pooled=True, timed=timed), rf.Scout(), episodes=9)
    assert set(data.next_state) == {3}
    assert np.isfinite(rf.plan(data, REWARD).values).all()


def test_a_ridge_that_is_given_stays(monkeypatch):
    for ridge, n in ((0.3, 40), (0.3, 1), (None, 40)):
        data = rf.explore(a_world(), rf.Model(AUTO, ridge, pooled=True), rf.Uniform(), steps=n)
        z = data.state * A + data.action
        found = fitted_model(data.model, data.grid.points, z, data.grid.states, data.next_state)
        assert (found.ridge == 0.3) == (ridge is not None)


def test_default_planning_leaves_a_given_kernel_alone(fits):
    """Every transition, centred; a model that is given with the plan is used as it is."""
    data = explored(model(pooled=False), rf.Online(0.2), each_step=False)
    assert data.kept.sum() < len(data)
    used = dataclasses.replace(data, kept=np.ones(len(data), bool))
    centred, default = model(pooled=False, centred=True), rf.Mean(clip="range")
    found = rf.plan(data, 5.0 * BY_STEP)
    assert found.planner == default
    assert_textbook(found, used, 5.0 * BY_STEP, default, centred)
    assert_textbook(rf.plan(data, BY_STEP, model=model()), used, BY_STEP, default, model())
    assert_same_plan(found, rf.plan(data.using_all(), 5.0 * BY_STEP, default, model=centred))
    assert fits == []


def test_using_all_keeps_what_a_strategy_passed_by():
    data = explored(model(pooled=False), rf.Online(0.2))
    every = data.using_all()
    assert every.kept.all() and len(every) == len(data) and not data.kept.all()
    assert every.samples.tolist() == [8, 6, 4, 2] != data.samples.tolist() == [2, 2, 2, 2]
    names = ("episode", "h", "state", "action", "next_state", "model", "seed", "stopped_by")
    assert all(np.array_equal(getattr(data, name), getattr(every, name)) for name in names)


def test_several_runs_with_kernels_of_their_own_are_not_played_at_once():
    with pytest.raises(ValueError, match="one at a time"):
        Arena(a_world(), rf.Model(AUTO), rf.Scout(), [0, 1], 3)


@pytest.mark.parametrize("clip", ["none", None, True, "Range"])
@pytest.mark.parametrize(
    "make",
    [rf.Mean, functools.partial(rf.Optimistic, 1.0), functools.partial(rf.Pessimistic, 1.0)],
    ids=range(3),
)
def test_an_unknown_clip_is_refused(make, clip):
    with pytest.raises(ValueError, match='clip must be "paper" or "range", got '):
        make(clip=clip)


# --- exhaustive data on the hard worlds ---

SMALL = {"states": 12, "actions": 6, "horizon": 5}
SHARP = {
    "matern-1.5": (rf.Matern(1.5, 0.1), 10.0),
    "matern-2.5": (rf.Matern(2.5, 0.1), 20.0),
    "squared-exponential": (rf.SquaredExponential(0.1), 5.0),
    "misspecified": (rf.SquaredExponential(0.3), 5.0),
}


def small_instance(name):
    if name in SHARP:
        kernel, sharpness = SHARP[name]
        return rf.sharpened_world(kernel, sharpness=sharpness, start=0, coarse=6, **SMALL)
    if name == "corridor":
        return rf.corridor_world(**SMALL)
    world = {
        "portal": lambda: rf.portal_world(**SMALL),
        "rooms": lambda: rf.rooms_world(side=4, moves=3, stride=0.4, door=0.5, horizon=5),
        "tide": lambda: rf.tide_world(**SMALL),
    }[name]()
    return world, rf.bumps(world, 1, low=0.5, width=0.2, seed=1)[0]


def exhaustive(world, model, times=24):
    """Every (h,s,a) so many times, the next states spread evenly over the law."""
    (s, a), steps = world.grid.shape, 1 if world.stationary else world.horizon
    h, state, action, k = (x.ravel() for x in np.indices((steps, s, a, times)))
    following = np.zeros(len(h), int)
    for step in range(steps):
        rows = h == step
        following[rows] = world.sample(state[rows], action[rows], step, (k[rows] + 0.5) / times)
    yes = np.ones(len(h), bool)
    about = (world.grid, world.horizon, model, rf.Generative(), 0, -np.ones(len(h), int))
    return rf.Transitions(*about, h, state, action, following, ~yes, yes)


@pytest.mark.parametrize("name", suite_names())
def test_on_small_hard_worlds_exhaustive_data_are_enough_for_every_planner(name):
    world, reward = small_instance(name)
    optimal = rf.optimal_value(world, reward)
    each = model(rf.Delta(), 1e-6, pooled=world.stationary, centred=True)
    data = exhaustive(world, each)
    planners = [
        make(clip=clip)
        for make in (rf.Mean, Beta(rf.Optimistic), Beta(rf.Pessimistic))
        for clip in ("paper", "range")
    ]
    for planner in [None, *planners]:
        found = rf.plan(data, reward, planner)
        assert rf.gap(world, found, reward).max < 0.02 * optimal[0].max()
        np.testing.assert_allclose(found.values, optimal, rtol=0, atol=0.06 * optimal[0].max())


def Beta(make):
    return functools.partial(make, 1.0)
