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
from rewardfree.data import Samples
from rewardfree.dynamics import ExplorationValue
from rewardfree.estimates import FiniteEstimate
from rewardfree.estimates.backups import OBJECTIVES
from rewardfree.kernels.fitting import Fit
from rewardfree.kernels.fitting.finite import next_state_features
from rewardfree.model import MODEL_POSTERIORS, SeparatePosteriors
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.studies.coverage import errors_of_run
from rewardfree.worlds.hard_suite import suite_names
from rewardfree.worlds.spaces import Spaces
from rewardfree.worlds.world import LabelledWorld

CLOSE = {"rtol": 0, "atol": 1e-9}
S, A, H = 8, 5, 4
EXPLORERS = [rf.Scout(), rf.GreedyMaxVariance(), rf.Generative(), rf.Online(0.3), rf.Qiu(0.2), rf.Uniform()]
BOTH = (rf.Optimistic, rf.Pessimistic)
RANGE = [rf.Mean(clip="range"), *(make(beta, clip="range") for beta in (0.4, 5.0) for make in BOTH)]
MEAN, SURE = RANGE[:2]
KERNEL = rf.Matern(1.5, 0.3)
RNG = np.random.default_rng(3)
REWARD, BY_STEP = RNG.random((S, A)), 15.0 * RNG.random((H, S, A)) - 5.0


def model(kernel=KERNEL, ridge=0.3, pooled=True, **options):
    return rf.Model(kernel, ridge, pooled=pooled, **options)


def auto(pooled=True, **options):
    return rf.Model(rf.AutoKernel(), pooled=pooled, **options)


TIMED = model(rf.Matern(1.5, (0.6, 0.3, 0.4)), centred=True, timed=True)
MODELS = [model(), model(centred=True), model(pooled=False, centred=True), TIMED]


def a_world(each_step=False, start=None, seed=0):
    return small_world(each_step, start, seed, irregular=True, states=S, actions=A)


@functools.cache
def explored(model, strategy=EXPLORERS[-1], steps=8 * H, seed=5, each_step=True):
    return rf.explore(a_world(each_step), model, strategy, seed=seed, steps=steps)


def same_data(one, other):
    return (recorded(one), one.model, one.strategy) == (recorded(other), other.model, other.strategy)


def assert_same_plan(one, other, atol=1e-9):
    np.testing.assert_allclose(one.values, other.values, rtol=0, atol=atol)
    assert one.actions.tolist() == other.actions.tolist()


# --- the textbook: a dense inverse for every step ---


def coordinates(grid, horizon, timed):
    """What a kernel sees of every (h,z), (h,z,f), in plain loops."""
    places = [[*s, *a] for s in grid.states for a in grid.actions]
    return np.array([[[h / max(1, horizon - 1)] * timed + z for z in places] for h in range(horizon)])


def textbook(data, reward, planner, model, horizon=None, discount=1.0):
    """Actions and values (h,s) for a reward (s,a) or (h,s,a)."""
    horizon, (s, a) = horizon or data.horizon, data.grid.shape
    x, z = coordinates(data.grid, data.horizon, model.timed), data.state * a + data.action
    rewards = np.broadcast_to(reward, (horizon, s, a))
    weight = {"Mean": 0.0, "Optimistic": 1.0, "Pessimistic": -1.0}[type(planner).__name__] * planner.beta
    actions, values = np.zeros((horizon, s), int), np.zeros((horizon + 1, s))
    low = high = 0.0
    for h in reversed(range(horizon)):
        rows, value = data.kept & (model.pooled | (data.h == h)), values[h + 1]
        about = (model.kernel, x[data.h[rows], z[rows]], model.ridge)
        c = 0.5 * (value.min() + value.max()) if model.centred else 0.0
        mean = c + reference.mean(*about, value[data.next_state[rows]] - c, x[h])
        sigma = np.sqrt(np.maximum(reference.variance(*about, x[h]), 0.0))
        low, high = rewards[h].min() + discount * low, rewards[h].max() + discount * high
        ends = (0.0, float(horizon)) if planner.clip == "paper" else (low, high)
        bonus = np.clip(weight * sigma, ends[0] - ends[1], ends[1] - ends[0])
        q = np.clip(rewards[h] + (discount * mean + bonus).reshape(s, a), *ends)
        values[h] = q.max(axis=1)
        actions[h] = (q >= (values[h] - 1e-12 * np.abs(values[h]))[:, None]).argmax(axis=1)
    used = int(data.kept.sum())
    about = (data.grid, horizon, planner, model, used, discount)
    return rf.planning.FinitePlan(*about, actions, values[:horizon])


class TimedRun(reference_runs.Run):
    """A textbook run whose one regression is over (h,z)."""

    def sigma(self, h):
        return self._at(h, reference_runs.sigma_of)

    def mean(self, h, value):
        return self._at(h, reference_runs.mean_of, value)

    def keep(self, h, state, action, following):
        self.samples[0].append((h * S * A + state * A + action, following))

    def _at(self, h, ask, *about):
        x = coordinates(self.world.grid, H, timed=True).reshape(H * S * A, -1)
        found = ask(self.model, x, self.samples[0], *about).reshape(H, S, A)[h]
        return (0.0 if self.is_zero(h) else 1.0) * found


GAINS = {
    "sigma": lambda sigma, ridge: sigma,
    "variance": lambda sigma, ridge: sigma**2,
    "information": lambda sigma, ridge: 0.5 * np.log(1.0 + sigma**2 / ridge),
}


def scout_tables(run):
    """E_h = clip(gain_h + mean_h[max_a E_{h+1}], 0, the most that is left to gain); and what was clipped."""
    tables, clipped, value, most = {}, np.zeros(2), None, 0.0
    for h in reversed(range(H)):
        own = GAINS[run.strategy.objective or "variance"](run.sigma(h), run.model.ridge)
        most += own.max()
        whole = own if value is None else own + run.mean(h, value)
        clipped = np.maximum(clipped, (-whole.min(), whole.max() - most))
        tables[h] = np.clip(whole, 0.0, most)
        value = list(tables[h].max(axis=1))
    return tables, clipped


def scout(run):
    def act(tables, n, h, state):
        return run.choose(list(tables[h][state]), n, h)

    reference_runs.whole_episodes(run, act, lambda: scout_tables(run)[0])


def textbook_run(world, model, strategy, rounds, seed):
    steps = H * (H + 1) // 2 if isinstance(strategy, rf.Online) else H
    run = (TimedRun if model.timed else reference_runs.Run)(world, model, strategy, seed, rounds, steps)
    {**reference_runs.EXPLORERS, "Scout": scout}[type(strategy).__name__](run)
    return run


# --- planning by range ---


@pytest.mark.parametrize("planner", RANGE, ids=repr)
@pytest.mark.parametrize("each", MODELS, ids=repr)
def test_plans_by_range_are_the_textbooks(planner, each):
    for reward in (REWARD, BY_STEP, (REWARD > 0.5) * 1.0, -7.0 * REWARD):
        for discount in (1.0, 0.8):
            found = rf.plan(explored(each), reward, planner, discount=discount)
            assert_same_plan(found, textbook(explored(each), reward, planner, each, discount=discount))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    planner=st.sampled_from(RANGE),
    constant=st.floats(-20.0, 20.0),
    discount=st.sampled_from([1.0, 0.7]),
    by_step=st.booleans(),
    each=st.sampled_from(MODELS[1:]),
)
def test_what_is_paid_anyway_changes_no_policy(seed, planner, constant, discount, by_step, each):
    data = explored(each, seed=seed % 7)
    reward = np.random.default_rng(seed).random((H, S, A) if by_step else (S, A))
    one, other = (rf.plan(data, r, planner, discount=discount) for r in (reward, reward + constant))
    paid = constant * np.array([sum(discount**k for k in range(H - h)) for h in range(H)])
    np.testing.assert_allclose(other.values, one.values + paid[:, None], rtol=0, atol=1e-8)
    assert one.actions.tolist() == other.actions.tolist()


def test_without_centring_what_is_paid_anyway_does_matter():
    one, other = (rf.plan(explored(model()), r, MEAN).actions for r in (REWARD, REWARD + 20.0))
    assert one.tolist() != other.tolist()


def test_a_bonus_is_at_most_the_range_of_what_can_be_paid():
    """It shows where a mean is far beyond that: here a linear kernel's, with two samples of each step."""
    each, data = model(rf.Linear(), 1e-3, pooled=False), explored(model(), seed=0).first(steps=2 * H)
    for make, reward in zip(BOTH, (REWARD, -7.0 * REWARD), strict=True):
        planner = make(50.0, clip="range")
        assert_same_plan(rf.plan(data, reward, planner, each), textbook(data, reward, planner, each))


# --- centring, pooling, and steps as a coordinate ---


def filled(model, *runs, **options):
    """The one regression of each of some runs."""
    own = FiniteEstimate(model, runs[0].grid, H, runs=len(runs), capacity=len(runs[0]), **options)
    z = [run.points(np.arange(len(run)), model.timed) for run in runs]
    own.load([z], [[run.next_state for run in runs]])
    return own


def test_centring_is_the_regression_of_what_differs_from_the_midrange():
    data, values = explored(model()), 5.0 + RNG.random((1, S, 2))
    plain, centred = (filled(model(centred=yes), data) for yes in (False, True))
    x, c = data.grid.points, 0.5 * (values.min(axis=1) + values.max(axis=1))
    seen, symmetric = x[data.state * A + data.action], values - c[:, None]
    expected = c + reference.mean(KERNEL, seen, 0.3, symmetric[0, data.next_state], x)
    for h in range(H):
        np.testing.assert_allclose(centred.mean(h, values)[0], expected.T, **CLOSE)
        np.testing.assert_allclose(centred.mean(h, symmetric), plain.mean(h, symmetric), rtol=0, atol=1e-14)
        assert np.abs(centred.mean(h, values) - plain.mean(h, values)).max() > 0.1


def test_with_data_of_one_step_pooling_changes_nothing():
    data = dataclasses.replace(explored(model()), h=np.zeros(8 * H, int))
    for planner, horizon in ((MEAN, 2), (rf.Optimistic(0.5), 1)):  # the other steps have no data
        plans = [rf.plan(data, REWARD, planner, model(pooled=each), horizon) for each in (True, False)]
        assert_same_plan(*plans, atol=1e-12)


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_exploring_and_planning_with_a_timed_model_are_the_textbooks(strategy):
    for seed in (0, 1):
        data = rf.explore(a_world(True, seed=seed), TIMED, strategy, transitions=3 * H, seed=seed)
        assert recorded(data) == recorded(textbook_run(a_world(True, seed=seed), TIMED, strategy, 3, seed))
        for planner in (rf.Optimistic(0.5), *RANGE):
            assert_same_plan(rf.plan(data, REWARD, planner), textbook(data, REWARD, planner, TIMED))


@pytest.mark.parametrize(("length", "other"), [(1e6, model()), (1e-3, model(pooled=False))], ids=repr)
def test_a_timed_model_lies_between_one_regression_and_one_for_each_step(length, other):
    timed = model(rf.Matern(1.5, (length, 0.3, 0.3)), timed=True)
    for planner in RANGE:
        plans = [rf.plan(explored(model()), BY_STEP, planner, model=each) for each in (timed, other)]
        assert_same_plan(*plans, atol=1e-7)


@pytest.mark.parametrize(
    "source", [MODEL_POSTERIORS, SeparatePosteriors(rf.Model.design)], ids=["lattice", "designs"]
)
@pytest.mark.parametrize("each", [TIMED, model(centred=True)], ids=repr)
def test_a_question_about_some_rows_is_one_about_all(each, source):
    runs, values = [explored(each, seed=seed) for seed in (1, 2)], RNG.random((2, S, 3))
    own, rows = filled(each, *runs, source=source), np.array([[0, 7, 39], [12, 12, 3]])
    for h in range(H):
        std, mean = own.std(h), own.mean(h, values)
        assert std.shape == (2, S * A) and mean.shape == (2, 3, S * A)
        np.testing.assert_allclose(own.std(h, rows), np.take_along_axis(std, rows, 1), **CLOSE)
        some = np.take_along_axis(mean, rows[:, None], 2)
        np.testing.assert_allclose(own.mean(h, values, rows), some, **CLOSE)


def test_a_plan_counts_steps_as_the_data_do():
    """Also for fewer of them, and where an episode has one."""
    for horizon in (1, 2, 3):
        found = rf.plan(explored(TIMED), REWARD, SURE, horizon=horizon)
        assert_same_plan(found, textbook(explored(TIMED), REWARD, SURE, TIMED, horizon=horizon))
    data = rf.explore(rf.FiniteWorld(a_world().P, 1), TIMED, rf.Scout(), episodes=6)
    assert_same_plan(rf.plan(data, REWARD, SURE), textbook(data, REWARD, SURE, TIMED))
    assert rf.plan(explored(TIMED), REWARD, SURE, model(), H + 1).horizon == H + 1


# --- Scout ---


@pytest.mark.parametrize("each", MODELS, ids=repr)
@pytest.mark.parametrize("objective", [*OBJECTIVES, None])
def test_scouts_are_the_textbooks(objective, each):
    """By default the variance, on finite worlds. The first episode is all ties, drawn from their stream."""
    strategy, world = rf.Scout(objective), a_world(each.timed)
    for seed in (0, 1):
        run = textbook_run(world, each, strategy, 6, seed)
        assert recorded(rf.explore(world, each, strategy, episodes=6, seed=seed)) == recorded(run)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_exploration_value_is_clipped_to_what_can_be_gained(objective):
    """Number by number, with a smooth kernel that promises more than that, or less than nothing."""
    clipped = np.zeros(2)
    for rounds, seed, centred in ((1, 3, False), (1, 3, True), (2, 8, True), (2, 6, True)):
        about = (a_world(), model(rf.SquaredExponential(0.8), 1e-3, centred=centred), rf.Scout(objective))
        batch = RunBatch(*about, [seed], rounds)
        assert list(batch.play())[-1] == 1.0
        tables, now = scout_tables(textbook_run(*about, rounds, seed))
        for h, found in batch.exploration(OBJECTIVES[objective]).items():
            np.testing.assert_allclose(found.reshape(S, A), tables[h], rtol=0, atol=1e-8)
        clipped = np.maximum(clipped, now)
    assert (clipped > 1e-3).all()


@pytest.mark.parametrize("each", [model(), TIMED, auto(), auto(timed=True)], ids=repr)
def test_runs_of_scout_are_their_own_and_begin_as_shorter_ones(each):
    world = a_world(True, start=1)
    runs = rf.explore_many(world, each, rf.Scout(), seeds=[4, 0, 4], episodes=9)
    for run in runs:
        assert same_data(run, rf.explore(world, each, rf.Scout(), seed=run.seed, episodes=9))
        for sizes in ({"episodes": 3}, {"steps": 7}, {"transitions": 33}):
            assert same_data(run.first(**sizes), rf.explore(world, each, rf.Scout(), seed=run.seed, **sizes))
    assert same_data(runs[0], runs[2]) and not same_data(runs[0], runs[1])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("each", [model(rf.Matern(1.5, 0.2), 0.1), auto()], ids=["fixed", "auto"])
def test_scout_finds_the_end_of_a_corridor_where_chance_does_not(each, objective):
    instance = rf.worlds.corridor_world(states=20, actions=8, horizon=8)
    world, reward = instance.world, instance.reward

    def lost(strategy):
        runs = rf.explore_many(world, each, strategy, seeds=range(4), episodes=15)
        gaps = [rf.gap(world, rf.plan(run, reward), reward).start for run in runs]
        return np.mean(gaps) / (rf.optimal_value(world, reward)[0] @ world.start)

    assert lost(rf.Scout(objective)) < 0.25
    assert lost(rf.Uniform()) > 0.6


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_on_real_states_the_gain_of_exploration_is_its_objectives(objective):
    rng = np.random.default_rng(0)
    (state, action), at = rng.uniform(-1.0, 1.0, (2, 30, 1)), rng.uniform(-1.0, 1.0, (2, 9, 1))
    seen = Samples(state, action, 0.9 * state + 0.3 * action, np.zeros(30, bool))
    spaces = Spaces(rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(push=(-1.0, 1.0)))
    found = ExplorationValue(spaces, model(rf.Matern(2.5, 0.5), 0.02), seen, OBJECTIVES[objective])
    expected = GAINS[objective](found.sigma(*at), 0.02)
    assert expected.min() > 0.0
    np.testing.assert_allclose(found.gain(*at), expected, rtol=1e-12)
    q, _ = found.choices(found.mesh.nodes)  # E solves its equation
    np.testing.assert_allclose(q.max(axis=0), found.value, rtol=0, atol=1e-3 * found.value.max())


# --- kernels from data ---


def drawn(lengths, n, columns):
    """Standardised points, and targets (n,c) of a Matern process with those lengthscales and some noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), (n, len(lengths)))
    covariance = rf.Matern(2.5, lengths)(x, x) + 0.01 * np.eye(n)
    return x, np.linalg.cholesky(covariance) @ rng.standard_normal((n, columns))


def test_lengthscales_and_ridge_of_a_draw_are_recovered_without_a_linear_part():
    fit = rf.AutoKernel(families=(2.5,)).fit(*drawn((0.5, 1.5, 25.0), 300, 6), linear=False)
    assert isinstance(fit.kernel, rf.Matern)
    found = np.array([*fit.kernel.lengthscale, fit.ridge])[[0, 1, 3]]
    assert np.abs(np.log(found / (0.5, 1.5, 0.01))).max() < math.log(1.5)
    assert fit.kernel.lengthscale[2] > 5.0 * max(fit.kernel.lengthscale[:2])


def test_without_a_linear_part_loss_and_leave_one_out_are_the_textbooks():
    """Of refits without each point; the targets have a trend, which a linear part would take."""
    x, y = drawn((0.5, 1.0), 30, 2)
    y += 5.0 * x[:, :1]
    fit, square = rf.AutoKernel(families=(math.inf,)).fit(x, y, linear=False), 0.0
    assert isinstance(fit.kernel, rf.SquaredExponential)
    for i, others in enumerate(~np.eye(30, dtype=bool)):
        told = reference.mean(fit.kernel, x[others], fit.ridge, y[others], x[i : i + 1])[0]
        square += ((y[i] - told) ** 2).sum()
    assert fit.left_out == pytest.approx(square / (y**2).sum(), rel=1e-6)
    inverse = reference.inverse(fit.kernel, x, fit.ridge)
    energy = [column @ inverse @ column for column in y.T]
    loss = 15.0 * np.log(np.array(energy) / 30).sum() - np.linalg.slogdet(inverse)[1]
    assert fit.loss == pytest.approx(loss / 60, rel=1e-6)


def steered(to, shift=0.0, scale=1.0):
    """120 transitions on a grid of 12 x 6 that lead near to(s,a) in [0,1]: its points, z, states, s'."""
    rng, (s, a), states = np.random.default_rng(0), (12, 6), np.linspace(0, 1, 12)
    grid = rf.FiniteWorld(np.full((s, a, s), 1 / s), H, states=shift + scale * states).grid
    z = rng.integers(s * a, size=120)
    following = to(states[z // a], z % a / (a - 1)) + 0.03 * rng.standard_normal(120)
    return grid.points, z, grid.states, np.abs(following[:, None] - states).argmin(axis=1)


def test_a_coordinate_that_does_not_matter_gets_a_long_lengthscale():
    waves = (lambda s, a: 0.5 + 0.5 * np.sin(4.0 * s), lambda s, a: 0.5 + 0.5 * np.sin(4.0 * a))
    by_state, by_action = (auto().fitted_to_next_states(*steered(to)).kernel.lengthscale for to in waves)
    assert by_state[1] > 4.0 * by_state[0] and by_action[0] > 4.0 * by_action[1]


def test_other_units_give_other_lengthscales_and_nothing_else():
    def found(**units):
        return auto(centred=True).fitted_to_next_states(*steered(lambda s, a: s + 0.4 * (a - 0.5), **units))

    one, other = found(), found(shift=-40.0, scale=12.5)
    assert other.kernel.lengthscale == pytest.approx(np.array(one.kernel.lengthscale) * (12.5, 1.0), rel=0.01)
    assert other.ridge == pytest.approx(one.ridge, rel=0.01)
    assert (type(other.kernel), other.pooled, other.centred) == (type(one.kernel), True, True)


def test_only_laws_that_change_make_steps_matter():
    """The lengthscale of h is long where one law serves every step."""

    def of_steps(drift):
        world = rf.worlds.tide_world(states=12, actions=5, horizon=6, stride=0.2, drift=drift)
        data = rf.explore(world, auto(timed=True), rf.Uniform(), episodes=30)
        inputs, z = data.model.inputs(data.grid.points, 6), data.points(slice(None), timed=True)
        fitted = data.model.fitted_to_next_states(inputs, z, data.grid.states, data.next_state)
        return fitted.kernel.lengthscale[0]

    assert of_steps(0.0) > 3.0 > 1.5 > of_steps(0.25)


# --- automatic models, from the exploration to the plan ---


@pytest.fixture
def fits(monkeypatch):
    """The kernels that are asked for: how many points there were, and the most that were to be used."""
    calls = []

    def fit(self, points, targets, groups=None, ridge=None, linear=True):
        assert not linear and len(points) == len(targets)
        calls.append((len(points), self.most))
        return Fit(rf.Matern(1.5, (0.7,) * points.shape[1]), 0.2 if ridge is None else ridge, 0.0, 0.0)

    monkeypatch.setattr(rf.AutoKernel, "fit", fit)
    return calls


def test_kernels_are_found_when_data_doubled_and_again_for_a_plan(fits):
    """For a default plan on what Alg 3 passed by too."""
    rf.plan(rf.explore(a_world(), auto(), rf.Scout(), episodes=50), REWARD)
    assert fits == [*((n * H, 300) for n in (4, 8, 16, 32)), (50 * H, 600)]
    data = rf.explore(a_world(), auto(), rf.Online(0.1), transitions=6 * H)
    rf.plan(data, REWARD)
    rf.plan(data, REWARD, rf.Mean())
    rf.planning.plan_runs([data, data.first(transitions=H)], [REWARD, 1.0 - REWARD])
    assert fits[5:] == [(16, 300), (60, 600), (24, 600), (60, 600), (10, 600)]


@pytest.mark.parametrize("each_step", [False, True], ids=["one law", "a law for each step"])
def test_with_no_model_kernel_and_ridge_come_from_the_data(each_step, tmp_path):
    world = a_world(each_step)
    data = rf.explore(world, steps=40, seed=3)
    assert (data.strategy, data.model) == (rf.Scout(), auto(centred=True, timed=each_step))
    assert data.model == rf.default_model(world)
    data.save(tmp_path / "data.npz")
    again = rf.load(tmp_path / "data.npz")
    assert same_data(data, again)
    known = coordinates(data.grid, H if each_step else 1, each_step).reshape(-1, 2 + each_step)
    z = data.state * A + data.action + data.h * S * A * each_step
    found = data.model.fitted_to_next_states(known, z, data.grid.states, data.next_state)
    assert found.ridge != 0.1
    for run in (data, again):
        assert_same_plan(rf.plan(run, BY_STEP), textbook(data, BY_STEP, MEAN, found), atol=1e-6)
    batch, early = RunBatch(world, data.model, rf.Scout(), [3], 5), slice(4 * H)
    assert list(batch.play())[-1] == 1.0
    known = data.model.fitted_to_next_states(known, z[early], data.grid.states, data.next_state[early])
    assert batch.estimate.ridge == pytest.approx(known.ridge) != 0.1


def first_guess(world, **options):
    """A lengthscale of a fifth of each coordinate's range and a ridge of 0.1."""
    ranges = [[0.0, 1.0], world.grid.states, world.grid.actions][0 if options.get("timed") else 1 :]
    return model(rf.Matern(1.5, tuple(0.2 * np.ptp(x) for x in ranges)), 0.1, **options)


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_every_strategy_explores_with_a_first_guess_and_then_with_a_kernel_from_its_data(strategy, fits):
    """Found after four rounds, here as 0.7 in units of each coordinate's deviation, with a ridge of 0.2."""
    world, values = a_world(True), RNG.random(S)
    batch = RunBatch(world, auto(timed=True), strategy, [1], 6)
    assert list(batch.play())[-1] == 1.0
    (data,), own = batch.data(), batch.settled()
    run = textbook_run(world, first_guess(world, timed=True), strategy, 4, 1)
    assert recorded(data.first(transitions=4 * H)) == recorded(run)
    x = coordinates(data.grid, H, timed=True)
    kernel = rf.Matern(1.5, tuple(0.7 * x.reshape(H * S * A, 3).std(axis=0)))
    seen = x[data.h, data.state * A + data.action][data.kept]
    for h in range(H):
        mean = reference.mean(kernel, seen, 0.2, values[data.next_state[data.kept]], x[h])
        np.testing.assert_allclose(own.mean(h, values[None, :, None])[0, 0], mean, **CLOSE)
        variance = reference.variance(kernel, seen, 0.2, x[h])
        np.testing.assert_allclose(own.std(h)[0] ** 2, variance, **CLOSE)


def test_too_few_data_leave_the_first_guess():
    """One transition, or a world that stands still."""
    still = rf.FiniteWorld(np.broadcast_to(np.eye(S)[:, None], (S, A, S)), H, start=3)
    for world, steps in ((a_world(), 1), (still, 9 * H)):
        data = rf.explore(world, auto(), rf.Scout(), steps=steps)
        expected = textbook(data, REWARD, MEAN, first_guess(world, centred=True))
        assert_same_plan(rf.plan(data, REWARD), expected)


@pytest.mark.parametrize("ridge", [0.3, None])
@pytest.mark.parametrize("steps", [1, 40])
def test_a_ridge_that_is_given_stays(ridge, steps):
    data = rf.explore(a_world(), auto(ridge=ridge), rf.Uniform(), steps=steps)
    known = (data.grid.points, data.points(slice(None)), data.grid.states, data.next_state)
    assert (data.model.fitted_to_next_states(*known).ridge == 0.3) == (ridge is not None)


def test_default_planning_uses_every_transition_and_the_kernel_that_is_given(fits):
    data = explored(model(pooled=False), rf.Online(0.2), 60, each_step=False)
    every, own, centred = data.using_all(), model(pooled=False), model(centred=True)
    assert every.samples.tolist() == [24, 18, 12, 6] and data.samples.tolist() == [6] * H
    assert {**recorded(every), "kept": recorded(data)["kept"]} == recorded(data)
    found = rf.plan(data, BY_STEP)
    assert found.planner == MEAN == rf.Mean(clip="range")
    assert_same_plan(found, textbook(every, BY_STEP, MEAN, own))
    assert_same_plan(found, rf.plan(every, BY_STEP, MEAN, model=own))
    assert_same_plan(rf.plan(data, BY_STEP, model=model()), textbook(every, BY_STEP, MEAN, centred))
    assert fits == []


REFUSED = {
    "clip must be": [lambda: rf.Mean(clip="none"), lambda: rf.Optimistic(1.0, clip=None)],
    "timed must be True or False, got 1": [lambda: model(timed=1)],
    "timed=True .* needs pooled=True": [lambda: model(pooled=False, timed=True)],
    "timed=True is for finite worlds": [
        lambda: rf.explore(LabelledWorld(a_world()), auto(timed=True), steps=5)
    ],
    "at most the 4 steps of these data, got 5": [
        lambda: rf.plan(explored(TIMED), REWARD, horizon=H + 1),
        lambda: rf.plan(explored(model()), REWARD, rf.Mean(), TIMED, H + 1),
    ],
    "objective must be one of": [lambda: rf.Scout("entropy"), lambda: rf.Scout(1), lambda: rf.Scout("")],
    "one at a time": [lambda: RunBatch(a_world(), auto(), rf.Scout(), [0, 1], 3)],
    "give exactly one budget": [lambda: rf.explore(a_world())],
}


@pytest.mark.parametrize("said", REFUSED)
def test_refused(said):
    for make in REFUSED[said]:
        with pytest.raises(ValueError, match=said):
            make()


# --- exhaustive data on the hard worlds ---

SMALL = {"states": 10, "actions": 4, "horizon": 5}
SHARP = {
    "matern-1.5": rf.Matern(1.5, 0.1),
    "matern-2.5": rf.Matern(2.5, 0.1),
    "squared-exponential": rf.SquaredExponential(0.1),
    "misspecified": rf.SquaredExponential(0.3),
}


def small_instance(name):
    if name in SHARP:
        return rf.worlds.sharpened_world(SHARP[name], start=0, coarse=4, **SMALL)
    options = {"side": 4, "moves": 2, "stride": 0.4, "door": 0.5} if name == "rooms" else SMALL
    world = getattr(rf.worlds, f"{name}_world")(**options)
    return world if name == "corridor" else rf.worlds.bump_world(world, low=0.5, width=0.2, seed=1)


def exhaustive(world, model, times=20):
    """Every (s,a) of every law so many times, the next states spread evenly over it."""
    (s, a), steps = world.grid.shape, 1 if world.stationary else world.horizon
    h, state, action, k = np.indices((steps, s, a, times))
    at = [world.sample(state[i], action[i], i, (k[i] + 0.5) / times) for i in range(steps)]
    h, state, action, following = (np.ravel(x) for x in (h, state, action, at))
    yes = np.ones(len(h), bool)
    about = (world.grid, world.horizon, model, rf.Generative(), 0, -np.ones(len(h), int))
    return rf.Transitions(*about, h, state, action, following, ~yes, yes)


@pytest.mark.parametrize("name", suite_names())
def test_on_small_hard_worlds_exhaustive_data_are_enough_for_every_planner(name):
    instance = small_instance(name)
    world, reward = instance.world, instance.reward
    optimal = rf.optimal_value(world, reward)
    data = exhaustive(world, model(rf.kernels.Delta(), 1e-6, pooled=world.stationary, centred=True))
    bonus = [make(1.0, clip=clip) for make in BOTH for clip in ("paper", "range")]
    for planner in (None, rf.Mean(), *bonus):
        found = rf.plan(data, reward, planner)
        assert rf.gap(world, found, reward).max < 0.02 * optimal[0].max()
        np.testing.assert_allclose(found.values, optimal, rtol=0, atol=0.06 * optimal[0].max())


def test_a_state_that_changes_once_between_the_points_of_a_fit_leaves_the_first_guess():
    world = rf.FiniteWorld(np.full((8, 5, 8), 1 / 8), 2)
    grid, following = world.grid, np.zeros(1000, int)
    following[1] = 3  # not among the 600 that a kernel is fitted to
    model = rf.Model(rf.AutoKernel(), pooled=True)
    z = np.arange(1000) % 40
    found = model.fitted_to_next_states(grid.points, z, grid.states, following)
    assert found == rf.Model(rf.Matern(1.5, (0.2, 0.2)), 0.1, pooled=True)


def test_many_coordinates_of_a_state_cost_no_more_than_few():
    features = next_state_features(np.eye(40))
    assert features.shape == (40, 60)
    square = next_state_features(np.stack(np.meshgrid([0.0, 0.5, 1.0], [0.0, 1.0]), -1).reshape(-1, 2))
    assert square.shape == (6, 27)  # every product of cosines up to frequency 6


def test_errors_of_a_timed_model_are_not_measured():
    instance = rf.worlds.corridor_world(states=5, actions=4, horizon=2)
    world, reward = instance.world, instance.reward
    model = rf.Model(rf.Matern(1.5, 0.3), 0.2, pooled=True, timed=True)
    with pytest.raises(ValueError, match="timed"):
        errors_of_run(world, reward, model, rf.Uniform(), 3)


def test_one_design_of_many_runs_keeps_no_law_for_each():
    runs = rf.explore_many(a_world(), model(), rf.Generative(), transitions=12, seeds=range(5))
    together = rf.planning.plan_runs(runs, [REWARD], MEAN)
    for run, (plan,) in zip(runs, together, strict=True):
        assert_same_plan(plan, textbook(run, REWARD, MEAN, model()))
    shared = FiniteEstimate(model(), a_world().grid, H, runs=5, capacity=4, same_runs=True)
    assert shared._laws == []


def test_single_precision_gets_a_ridge_that_it_can_bear():
    world = rf.worlds.rooms_world(side=6, moves=3, horizon=4, noise=1e-3)
    data = rf.explore(world, steps=120, dtype=np.float32)
    plan = rf.plan(data, rf.worlds.bumps(world, 1)[0], dtype=np.float32)
    assert np.isfinite(plan.values).all()


def test_many_runs_have_the_defaults_of_one():
    one = rf.explore(a_world(), steps=8, seed=3)
    (other,) = rf.explore_many(a_world(), steps=8, seeds=[3])
    assert recorded(one) == recorded(other) and one.strategy == rf.Scout()


def test_steps_of_real_states_that_were_not_kept_are_fitted_again():
    """A fit to all kept steps stays where there are no others."""
    world = rf.from_gymnasium("Pendulum-v1")
    automatic = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
    some, every = (
        rf.explore(world, automatic, each, transitions=9) for each in (rf.Online(0.1), rf.Uniform())
    )
    assert some.fitted is not None and some.using_all().fitted is None
    assert not some.kept.all() and some.using_all().kept.all()
    assert every.fitted is not None and every.using_all() is every
