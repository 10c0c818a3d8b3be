"""Kernels and models from the data, from exploration to the plan, and exhaustive data on the hard worlds."""

import math

import numpy as np
import pytest

import reference
import rewardfree as rf
from reference_runs import recorded
from reference_scout import (
    BOTH,
    BY_STEP,
    CLOSE,
    EXPLORERS,
    MEAN,
    REWARD,
    RNG,
    TIMED,
    A,
    H,
    S,
    a_world,
    assert_same_plan,
    auto,
    coordinates,
    explored,
    model,
    same_data,
    textbook,
    textbook_run,
)
from rewardfree.estimates import FiniteEstimate
from rewardfree.kernels.fitting import Fit
from rewardfree.kernels.fitting.finite import next_state_features
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.studies.coverage import errors_of_run
from rewardfree.worlds.hard_suite import suite_names
from rewardfree.worlds.world import LabelledWorld

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
