"""Kernels fitted to data against scipy's densities, explicit inverses, refits, and draws that are known."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgError
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

import rewardfree as rf
from rewardfree.kernels.fitting import autokernel, likelihood, on_bounds
from rewardfree.kernels.fitting.likelihood import Fit, Likelihood, leave_one_out
from rewardfree.worlds import Scaling, Spaces, StateChange

FAMILIES = [math.inf, 2.5, 1.5]


@pytest.fixture(autouse=True)
def _one_thread():
    with rf.threads.one_blas_thread():
        yield


def data(n=25, f=3, c=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, f)), rng.standard_normal((n, c))


def draw(lengthscales, ridge, n, c=3, nu=2.5, seed=0):
    """Points, and c functions drawn from a Matern prior with noise of variance `ridge`."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (n, len(lengthscales)))
    matrix = rf.Matern(nu, lengthscales)(x, x) + ridge * np.eye(n)
    return x, np.linalg.cholesky(matrix) @ rng.standard_normal((n, c))


def stationary(kernel):
    """The part of family + w^2 (1 + x.x') that has lengthscales."""
    assert isinstance(kernel, rf.kernels.Sum)
    return kernel.left


# --- the likelihood ---


@pytest.mark.parametrize("nu", FAMILIES)
@pytest.mark.parametrize("groups", [(0, 1, 2), (0, 0, 1), (0, 0, 0)], ids=str)
def test_gradient_is_that_of_finite_differences(nu, groups):
    problem = Likelihood(*data(), groups, None)
    theta = np.array([*np.linspace(-0.3, 0.6, len(set(groups))), -0.5, math.log(0.05)])
    expected = approx_fprime(theta, lambda t: problem.loss(t, nu)[0], 1e-6)
    # A step of 1e-6 leaves 1e-6 of curvature and 1e-16/1e-6 of rounding.
    np.testing.assert_allclose(problem.loss(theta, nu)[1], expected, rtol=0, atol=1e-5)


@settings(max_examples=20)
@given(st.sampled_from(FAMILIES), st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4))
def test_gradient_is_that_of_finite_differences_anywhere(nu, start):
    problem = Likelihood(*data(12, 2), (0, 1), None)
    theta = np.array(start) - [0.0, 0.0, 0.0, 3.0]
    expected = approx_fprime(theta, lambda t: problem.loss(t, nu)[0], 1e-6)
    np.testing.assert_allclose(problem.loss(theta, nu)[1], expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("nu", FAMILIES)
def test_loss_is_the_textbooks_with_the_best_scale_of_each_target(nu):
    """Of y ~ N(0, v K) with v = y' K^-1 y / n, the v of largest likelihood; less its constants."""
    x, y = data()
    n, c = y.shape
    problem = Likelihood(x, y, (0, 1, 2), None)
    theta = np.log([0.7, 1.3, 2.0, 0.4, 0.1])
    family = rf.Matern(nu, (0.7, 1.3, 2.0))
    matrix = family(x, x) + 0.16 * (1.0 + x @ x.T) + 0.1 * np.eye(n)
    negative = 0.0
    for column in y.T:
        scale = column @ np.linalg.inv(matrix) @ column / n
        law = multivariate_normal(np.zeros(n), scale * matrix)
        negative -= law.logpdf(column) + 0.5 * n * (math.log(2.0 * math.pi) + 1.0)
    assert problem.loss(theta, nu)[0] == pytest.approx(negative / (n * c), abs=1e-12)


def test_loss_does_not_depend_on_the_units_of_a_target_but_for_a_constant():
    x, y = data()
    theta = np.log([0.7, 1.3, 2.0, 0.4, 0.1])
    one, same = (Likelihood(x, each, (0, 1, 2), None).loss(theta, 2.5) for each in (y, y * [10.0, 1.0]))
    assert same[0] - one[0] == pytest.approx(0.5 * math.log(10.0), abs=1e-12)
    np.testing.assert_allclose(same[1], one[1], rtol=0, atol=1e-12)


def test_a_matrix_that_cannot_be_factorised_is_no_minimum(monkeypatch):
    problem = Likelihood(*data(), (0, 1, 2), None)

    def fail(*_, **__):
        raise LinAlgError

    monkeypatch.setattr(likelihood, "cholesky", fail)
    value, gradient = problem.loss(np.zeros(5), 2.5)
    assert value >= 1e9
    assert not gradient.any()


@pytest.mark.parametrize("nu", FAMILIES)
def test_what_is_found_is_a_minimum(nu):
    x, y = draw((0.8, 2.0), 0.05, 60)
    problem = Likelihood(x, y, (0, 1), None)
    found = problem.minimised(nu, problem.starts[0])
    least, gradient = problem.loss(found, nu)
    lengthscale, weight = likelihood.BOUNDS["lengthscale"], likelihood.BOUNDS["weight"]
    low, high = np.array([lengthscale, lengthscale, weight, likelihood.RIDGE]).T
    free = (found > low + 1e-9) & (found < high - 1e-9)
    assert np.abs(gradient[free]).max() < 5e-3
    rng = np.random.default_rng(0)
    for shift in 0.3 * rng.standard_normal((20, 4)):
        assert problem.loss(np.clip(found + shift, low, high), nu)[0] > least - 1e-4


# --- leaving out ---


@pytest.mark.parametrize(
    "kernel", [rf.Matern(1.5, 0.8), rf.SquaredExponential(1.0), rf.Linear(bias=1.0)], ids=str
)
def test_leave_one_out_is_that_of_refits(kernel):
    x, y = data(15)
    matrix = kernel(x, x) + 0.1 * np.eye(15)
    expected = np.empty_like(y)
    for i in range(15):
        rest = np.delete(np.arange(15), i)
        design = rf.posterior.Design(kernel, ridge=0.1)
        design.extend(x[rest])
        expected[i] = y[i] - design.mean(y[rest], x[i : i + 1])[0]
    np.testing.assert_allclose(leave_one_out(matrix, y), expected, rtol=0, atol=1e-10)


def test_a_fit_reports_the_errors_of_refits_in_units_of_the_targets():
    x, y = draw((0.8, 2.0), 0.05, 30)
    fit = rf.AutoKernel(families=(1.5,)).fit(x, y)
    matrix = fit.kernel(x, x) + fit.ridge * np.eye(30)
    square = 0.0
    for i in range(30):
        rest = np.delete(np.arange(30), i)
        prediction = matrix[i, rest] @ np.linalg.inv(matrix[np.ix_(rest, rest)]) @ y[rest]
        square += ((y[i] - prediction) ** 2).sum()
    assert fit.left_out == pytest.approx(square / (y**2).sum(), rel=1e-6)


# --- what is found ---


@pytest.mark.parametrize("seed", range(4))
def test_lengthscales_and_ridge_of_a_draw_are_recovered_within_a_factor_of_two(seed):
    lengthscales, ridge = (0.6, 1.8), 0.02
    x, y = draw(lengthscales, ridge, 200, c=4, seed=seed)
    fit = rf.AutoKernel(families=(2.5,)).fit(x, y)
    found = np.array(stationary(fit.kernel).lengthscale)
    assert np.abs(np.log2(found / lengthscales)).max() < 1.0
    assert abs(math.log2(fit.ridge / ridge)) < 1.0


def test_a_feature_that_does_not_matter_gets_a_long_lengthscale():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((120, 2))
    fit = rf.AutoKernel().fit(x, np.sin(2.0 * x[:, :1]))
    matters, idle = stationary(fit.kernel).lengthscale
    assert idle > 5.0 * matters


@pytest.mark.parametrize("family", FAMILIES)
def test_features_of_one_group_share_a_lengthscale(family):
    x, y = data(40, 4)
    kernel = stationary(rf.AutoKernel(families=(family,)).fit(x, y, groups=(7, 7, 2, 7)).kernel)
    first, second, alone, third = kernel.lengthscale
    assert first == second == third != alone
    assert isinstance(kernel, rf.SquaredExponential if family == math.inf else rf.Matern)


@pytest.mark.parametrize("ridge", [0.3, 1e-4, 50.0])
def test_a_ridge_that_is_given_stays(ridge):
    x, y = draw((0.8, 2.0), 0.05, 40)
    fit = rf.AutoKernel().fit(x, y, ridge=ridge)
    assert fit.ridge == pytest.approx(ridge, rel=1e-12)
    model = rf.Model(rf.AutoKernel(), ridge=ridge).fitted(x, y)
    assert model.ridge == pytest.approx(ridge, rel=1e-12)
    assert model.kernel == fit.kernel
    assert not model.automatic


def test_a_wall_is_not_given_to_the_squared_exponential():
    """Likelihood would: what is left out decides."""
    rng = np.random.default_rng(9)
    x = rng.uniform(-1.5, 1.5, (120, 2))
    y = np.where(np.abs(x[:, :1]) > 1.2, -x[:, :1], 0.3 * np.sin(2.0 * x[:, 1:]))
    alone = {family: rf.AutoKernel(families=(family,)).fit(x, y) for family in FAMILIES}
    assert min(alone, key=lambda family: alone[family].loss) == math.inf
    fit = rf.AutoKernel().fit(x, y)
    assert isinstance(stationary(fit.kernel), rf.Matern)
    assert fit.left_out < 0.8 * alone[math.inf].left_out
    assert fit.left_out <= 1.05 * min(each.left_out for each in alone.values())


def test_a_smooth_function_is_given_to_the_squared_exponential():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, (80, 2))
    fit = rf.AutoKernel().fit(x, np.sin(x[:, :1]) * np.cos(x[:, 1:]))
    assert isinstance(stationary(fit.kernel), rf.SquaredExponential)
    assert fit.left_out < 1e-6


def test_targets_that_stay_are_left_out_of_the_fit():
    x, y = draw((0.8, 2.0), 0.05, 50)
    with_still = np.concatenate([y, np.full((50, 1), 3.0)], axis=1)
    assert rf.AutoKernel().fit(x, with_still) == rf.AutoKernel().fit(x, y)


def test_of_many_points_an_even_selection_is_used(monkeypatch):
    monkeypatch.setattr(autokernel, "DOUBTFUL", math.inf)
    x, y = draw((0.8, 2.0), 0.05, 90)
    rows = np.linspace(0, 89, 30).round().astype(int)
    few = rf.AutoKernel(most=30)
    for nu in few.families:  # of one family from one start, so that nothing is judged
        one, all_of = rf.AutoKernel((nu,), most=30), rf.AutoKernel((nu,))
        found, expected = one.fit(x, y), all_of.fit(x[rows], y[rows])
        assert (found.kernel, found.ridge, found.loss) == (expected.kernel, expected.ridge, expected.loss)


def unicycle_moves(seed):
    """300 moves on a walled plane, often at rest: points, targets and groups as a fit sees them."""
    spaces = Spaces(rf.Box.of(x=(-1, 1), y=(-1, 1), phi="angle"), rf.Box.of(speed=(0, 1), turn=(-1, 1)))
    rng = np.random.default_rng(seed)
    states, actions, next_states = [], [], []
    for step in range(300):
        if step % 80 == 0:
            state = np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-np.pi, np.pi)])
        if step % 80 % 5 == 0:
            action = np.array([rng.choice([0.0, 1.0], p=[0.65, 0.35]), rng.choice([-1, -0.5, 0, 0.5, 1])])
        phi = state[2] + 0.3 * action[1]
        place = state[:2] + 0.1 * action[0] * np.array([np.cos(phi), np.sin(phi)])
        states.append(state)
        actions.append(action)
        state = np.array([*np.clip(place, -1, 1), (phi + np.pi) % (2 * np.pi) - np.pi])
        next_states.append(state)
    state, action, next_state = map(np.array, (states, actions, next_states))
    features = spaces.features(state, action)
    return (
        Scaling.of_data(features)(features),
        StateChange.of(spaces, state, next_state).targets,
        spaces.groups,
    )


def test_a_doubtful_fit_is_tried_from_other_starts(monkeypatch):
    """The turn is known exactly, and the likelihood is large for kernels that predict nothing else."""
    moves = unicycle_moves(7)
    fit = rf.AutoKernel().fit(*moves)
    monkeypatch.setattr(autokernel, "DOUBTFUL", math.inf)
    usual = rf.AutoKernel().fit(*moves)
    assert usual.left_out > 0.4
    assert fit.left_out < 0.05


def test_families_are_judged_on_twice_as_many_points():
    x, y = draw((0.8, 2.0), 0.05, 90)
    fits = [rf.AutoKernel((nu,), most=30).fit(x, y) for nu in rf.AutoKernel().families]
    fits.append(rf.AutoKernel(most=30).fit(x, y))
    judges = np.linspace(0, 89, 60).round().astype(int)
    for fit in fits:
        matrix = fit.kernel(x[judges], x[judges]) + fit.ridge * np.eye(60)
        inverse = np.linalg.inv(matrix)
        errors = (inverse @ y[judges]) / np.diagonal(inverse)[:, None]
        assert fit.left_out == pytest.approx((errors**2).mean() / (y[judges] ** 2).mean(), rel=1e-6)


def test_the_same_data_give_the_same_kernel():
    x, y = draw((0.8, 2.0), 0.05, 50)
    assert rf.AutoKernel().fit(x, y) == rf.AutoKernel().fit(x.copy(), y.copy())


def test_data_are_left_alone():
    x, y = draw((0.8, 2.0), 0.05, 30)
    before = x.copy(), y.copy()
    rf.AutoKernel().fit(x, y)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


# --- bounds ---


@pytest.mark.parametrize(
    ("lengthscale", "ridge", "expected"),
    [
        ((1.0, 0.05), 1e-4, ("lengthscale",)),
        ((1.0, 0.0504), 1e-4, ("lengthscale",)),
        ((1.0, 0.06), 1e-4, ()),
        ((1.0, 30.0), 1e-8, ()),
        ((1.0, 3.0), 10.0, ("ridge",)),
        ((0.05, 3.0), 9.95, ("lengthscale", "ridge")),
    ],
    ids=str,
)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("linear", [True, False])
def test_only_short_lengthscales_and_large_ridges_are_bounds_that_matter(
    family, lengthscale, ridge, expected, linear
):
    kernel = rf.SquaredExponential(lengthscale) if family == math.inf else rf.Matern(family, lengthscale)
    kernel = kernel + 0.3 * rf.Linear(bias=1.0) if linear else kernel
    assert on_bounds(kernel, ridge) == expected
    assert Fit(kernel, ridge, 0.0, 0.0, (0.0,)).on_bounds == expected


def test_a_kernel_without_lengthscales_sits_on_no_bound_but_the_ridges():
    assert on_bounds(rf.Linear(bias=1.0), 1e-3) == ()
    assert on_bounds(rf.Linear(bias=1.0), 10.0) == ("ridge",)


def test_a_draw_with_ordinary_parameters_is_fitted_within_bounds():
    assert rf.AutoKernel().fit(*draw((0.6, 1.8), 0.02, 100)).on_bounds == ()


# --- refusals ---


def test_a_model_without_data_has_no_design():
    model = rf.Model(rf.AutoKernel())
    assert model.automatic
    with pytest.raises(
        ValueError, match=r"AutoKernel\(\) is fitted to transitions: give a kernel and a ridge"
    ):
        model.design()
    with pytest.raises(ValueError, match=r"AutoKernel\(\) is fitted to transitions"):
        model.lattice(np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"AutoKernel\(\) is fitted to transitions"):
        rf.query_plan(model, np.zeros((3, 1)), 2)


@pytest.mark.parametrize("n", [1, 20])
def test_states_that_never_change_are_refused(n):
    with pytest.raises(ValueError, match="states that never change"):
        rf.AutoKernel().fit(np.random.default_rng(0).random((n, 2)), np.ones((n, 2)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"families": ()}, "families must be some of"),
        ({"families": (0.5,)}, "families must be some of"),
        ({"families": (1.5, 3.5)}, "families must be some of"),
        ({"most": 9}, "most must be"),
        ({"most": 100.5}, "most must be"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        rf.AutoKernel(**options)


@pytest.mark.parametrize("ridge", [0.0, -1.0, math.nan])
def test_a_ridge_must_be_positive_also_with_an_automatic_kernel(ridge):
    with pytest.raises(ValueError, match="ridge must be"):
        rf.Model(rf.AutoKernel(), ridge=ridge)


def test_a_fixed_kernel_needs_a_ridge_and_stays_as_it_is():
    with pytest.raises(ValueError, match="ridge must be given with a fixed kernel"):
        rf.Model(rf.Matern(1.5, 0.3))
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
    assert model.fitted(*data()) is model
    assert dataclasses.replace(model, kernel=rf.AutoKernel()).automatic
