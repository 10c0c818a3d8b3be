"""Errors of real plans in units of sigma, against the textbook, and what is said about many of them."""

import numpy as np
import pytest
from scipy import stats

import reference
import rewardfree as rf
from rewardfree.studies.coverage import Coverage, bound_curve, coverage_study, errors_of_run

KERNEL = rf.Matern(1.5, 0.3)
MODEL = rf.Model(KERNEL, ridge=0.2)


def small_world(seed=0):
    return rf.rkhs_world(KERNEL, 0.2, states=6, actions=5, horizon=4, coarse=3, seed=seed)


@pytest.mark.parametrize("kernel", [KERNEL, rf.kernels.Delta()], ids=repr)
@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1), rf.GreedyMaxVariance()])
def test_errors_are_those_of_the_plan(strategy, kernel):
    instance = small_world()
    world, reward = instance.world, instance.reward
    model = rf.Model(kernel, ridge=0.2)
    found = errors_of_run(world, reward, model, strategy, 7, seed=3)
    data = rf.explore(world, model, strategy, samples_per_step=7, seed=3)
    plan, points = rf.plan(data, reward, rf.Mean()), world.grid.points
    for h, rows in enumerate(data.designs()[:-1]):
        V, seen = plan.values[h + 1], points[data.points(rows)]
        truth = (world.P @ V).reshape(-1)
        mean = reference.mean(kernel, seen, 0.2, V[data.next_state[rows]], points)
        pulled = reference.mean(kernel, seen, 0.2, truth[data.points(rows)], points)
        sigma = np.sqrt(reference.variance(kernel, seen, 0.2, points))
        np.testing.assert_allclose(found.ratio[h], np.abs(truth - mean) / sigma, atol=1e-9)
        np.testing.assert_allclose(found.noise[h], (mean - pulled) / sigma, atol=1e-9)
    assert found.largest == found.ratio.max()
    if kernel is KERNEL:  # with a delta kernel errors where nothing was seen are alike
        assert found.covered(np.median(found.ratio)) == pytest.approx(0.5, abs=0.02)


def test_a_world_without_chance_has_no_noise():
    law = np.zeros((6, 5, 6))
    law[np.arange(6)[:, None], np.arange(5), (np.arange(6)[:, None] + np.arange(5)) % 6] = 1.0
    world = rf.FiniteWorld(law, 4, 0)
    reward = np.random.default_rng(0).random((6, 5))
    found = errors_of_run(world, reward, MODEL, rf.Online(0.1), 6)
    np.testing.assert_allclose(found.noise, 0.0, atol=1e-9)
    assert found.largest > 0.1


def made_up(largest, noise=None):
    largest = np.asarray(largest, float)
    return Coverage(largest, {}, np.zeros(len(largest)) if noise is None else np.asarray(noise))


def test_a_width_is_fitted_on_some_draws_and_tested_on_others():
    own = made_up([3, 1, 2, 5, 4, 9, 8, 7, 6, 10, 0.5, 10.5])
    assert own.fitted(10, 0.1) == 10.0  # the 10th of 10, since 0.9 * 11 = 9.9
    assert own.fitted(10, 0.5) == 6.0
    assert own.tested(10.0, 10) == 0.5
    assert np.isnan(own.tested(1.0, 12))


def test_too_few_draws_give_no_width():
    assert made_up([1.0, 2.0]).fitted(2, 0.1) == np.inf
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        made_up([1.0]).fitted(1, 1.0)


def test_bias_is_a_t_statistic():
    noise = np.random.default_rng(1).normal(0.1, 1.0, 20)
    mean, errors = made_up(np.ones(20), noise).bias
    assert mean == pytest.approx(noise.mean())
    assert errors == pytest.approx(stats.ttest_1samp(noise, 0.0).statistic)
    assert np.isnan(made_up([1.0], [0.3]).bias[1])


def test_a_study_is_its_runs():
    study = coverage_study(small_world, MODEL, {"online": rf.Online(0.1)}, 5, [2, 4], (0.5, 1.0))
    draws = [(seed, small_world(seed)) for seed in (2, 4)]
    runs = [errors_of_run(d.world, d.reward, MODEL, rf.Online(0.1), 5, seed) for seed, d in draws]
    assert study["online"].largest.tolist() == [run.largest for run in runs]
    assert study["online"].covered[0.5].tolist() == [run.covered(0.5) for run in runs]
    np.testing.assert_allclose(study["online"].noise, [run.noise.mean() for run in runs])


def test_the_bound_of_realised_uncertainty():
    instance = small_world()
    world, reward = instance.world, instance.reward
    curve = bound_curve(world, reward, MODEL, [2, 5], runs=3)
    gaps, points = [], world.grid.points
    for n in (2, 5):
        runs = rf.explore_many(world, MODEL, rf.Generative(), samples_per_step=n, seeds=range(3))
        gaps.append(np.mean([rf.gap(world, rf.plan(run, reward, rf.Mean()), reward).max for run in runs]))
        asked = points[rf.query_plan(MODEL, points, n)]
        sigma = np.sqrt(reference.variance(KERNEL, asked, 0.2, points))
        assert curve.realised[[2, 5].index(n)] == pytest.approx(2 * 3 * sigma.max())
    np.testing.assert_allclose(curve.measured, gaps, atol=1e-9)
