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
from rewardfree.kernels.fitting import autokernel, evenly, likelihood, on_bounds, whole_parts
from rewardfree.kernels.fitting.likelihood import Fit, Likelihood, leave_one_out
from rewardfree.studies.doubling.worlds import Pusher
from rewardfree.worlds import Scaling, StateChange

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
    assert fit.left_out < 10 * likelihood.LEAST_NOISE


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


def pusher_moves(seed, n=180):
    """Random moves of a cart that now and then meets a block: points, targets, groups and episodes."""
    model = rf.Model(rf.Matern(2.5, 1.0), ridge=0.1, pooled=True)
    data = rf.explore(Pusher(), model, rf.Uniform(), transitions=n, seed=seed, progress=False)
    features = data.spaces.features(data.state, data.action)
    change = StateChange.of(data.spaces, data.state, data.next_state)
    return Scaling.of_data(features)(features), change.targets, data.spaces.groups, data.episode


@pytest.mark.parametrize("seed", [0, 4])
def test_a_doubtful_fit_is_compared_with_others(seed, monkeypatch):
    """The block changes in few steps, and the usual start leads to a fit that says nothing of it."""
    *moves, episode = pusher_moves(seed)
    fit = rf.AutoKernel().fit(*moves, episode=episode)
    monkeypatch.setattr(autokernel, "DOUBTFUL", math.inf)
    usual = rf.AutoKernel().fit(*moves, episode=episode)
    assert usual.left_out > 0.1
    assert fit.left_out < 0.5 * usual.left_out


def test_a_fit_on_a_bound_is_doubted_however_well_it_predicts(monkeypatch):
    x, y = draw((0.8, 2.0), 0.001, 60)
    asked = []
    monkeypatch.setattr(autokernel, "Likelihood", recording(asked))
    rf.AutoKernel().fit(x, y)
    alone = len(asked)
    monkeypatch.setattr(Fit, "on_bounds", property(lambda fit: ("lengthscale",)))
    rf.AutoKernel().fit(x, y)
    assert (alone, len(asked)) == (1, 1 + 4)


def recording(asked):
    """A likelihood that notes what points and targets it is of."""

    class Recording(Likelihood):
        def __init__(self, points, targets, *others):
            asked.append((points, targets))
            super().__init__(points, targets, *others)

    return Recording


def test_a_doubtful_fit_is_compared_with_the_hard_targets_and_with_the_fit_before_data_doubled(monkeypatch):
    x, y = draw((0.8, 2.0), 0.001, 60)
    y[:, 1] = np.random.default_rng(5).standard_normal(60)  # nothing can be predicted of the second target
    asked = []
    monkeypatch.setattr(autokernel, "Likelihood", recording(asked))
    fit = rf.AutoKernel(most=40).fit(x, y)
    assert fit.left_out > autokernel.DOUBTFUL and fit.shares[1] > 0.8 > 0.4 > max(fit.shares[::2])
    half = np.linspace(0, 59, 20).round().astype(int)
    _, *more = asked
    for (points, targets), (rows, columns) in zip(
        more, [(half, [0, 1, 2]), (half, [1]), (half[:10], [0, 1, 2])], strict=True
    ):
        np.testing.assert_array_equal(points, x[rows])
        np.testing.assert_array_equal(targets, y[rows][:, columns])


@pytest.mark.parametrize("earlier_is_better", [True, False])
def test_an_earlier_fit_is_kept_where_it_predicts_better(earlier_is_better, monkeypatch):
    """Descent ends at a good optimum from the first half of the data alone, or from all of them alone."""
    x, y = draw((0.8, 2.0), 0.01, 60)
    good, bad = (np.log([*lengths, 0.001, 0.01]) for lengths in ((0.8, 2.0), (0.06, 0.06)))

    def minimised(problem, nu, start):
        return good if (len(problem.x) == 30) == earlier_is_better else bad

    monkeypatch.setattr(Likelihood, "minimised", minimised)
    monkeypatch.setattr(autokernel, "DOUBTFUL", -1.0)
    fit = rf.AutoKernel().fit(x, y)
    assert stationary(fit.kernel).lengthscale == pytest.approx((0.8, 2.0))
    monkeypatch.setattr(autokernel, "DOUBTFUL", math.inf)
    alone = rf.AutoKernel().fit(x, y)
    assert (fit.left_out < 0.5 * alone.left_out) == earlier_is_better


# --- whole episodes ---


def test_with_episodes_fits_are_judged_by_refits_without_each_of_them():
    x, y = draw((0.8, 2.0), 0.05, 36)
    episode = np.repeat([4, 7, 8, 10, 11, 13], 6)
    fit = rf.AutoKernel(families=(1.5,)).fit(x, y, episode=episode)
    matrix, square = fit.kernel(x, x) + fit.ridge * np.eye(36), np.zeros(3)
    for number in np.unique(episode):
        left, rest = episode == number, episode != number
        predicted = matrix[np.ix_(left, rest)] @ np.linalg.solve(matrix[np.ix_(rest, rest)], y[rest])
        square += ((y[left] - predicted) ** 2).sum(axis=0)
    assert fit.left_out == pytest.approx(square.sum() / (y**2).sum(), rel=1e-6)
    assert fit.shares == pytest.approx(square / (y**2).sum(axis=0), rel=1e-6)


@settings(max_examples=30)
@given(st.lists(st.integers(-1, 8), min_size=1, max_size=60))
def test_parts_hold_every_row_once_and_episodes_whole(episode):
    episode = np.sort(episode)
    parts = whole_parts(episode)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(episode)))
    numbers = set(episode.tolist())
    if -1 in numbers or len(numbers) < 5:
        assert len(parts) == min(5, len(episode))
        assert np.ptp([len(part) for part in parts]) <= 1
    else:
        assert [set(episode[part].tolist()) for part in parts] == [{number} for number in sorted(numbers)]


# --- the least noise ---


@pytest.mark.parametrize("nu", FAMILIES)
def test_a_target_with_less_noise_than_the_least_has_that_variance(nu):
    """Of y ~ N(0, v K) where v is LEAST_NOISE / ridge instead of y' K^-1 y / n; less the same constants."""
    x, y = data()
    n, ridge = len(x), 1e-6
    y[:, 1] = x @ [0.3, -0.2, 0.5]  # known exactly by the linear part
    theta = np.log([3.0, 3.0, 3.0, 2.0, ridge])
    family = rf.SquaredExponential(3.0) if nu == math.inf else rf.Matern(nu, 3.0)
    matrix = family(x, x) + 4.0 * (1.0 + x @ x.T) + ridge * np.eye(n)
    energy = [column @ np.linalg.solve(matrix, column) / n for column in y.T]
    least = likelihood.LEAST_NOISE / ridge
    assert energy[1] < least < energy[0]
    negative = 0.0
    for column, scale in zip(y.T, (energy[0], least), strict=True):
        law = multivariate_normal(np.zeros(n), scale * matrix)
        negative -= law.logpdf(column) + 0.5 * n * (math.log(2.0 * math.pi) + 1.0)
    assert Likelihood(x, y, (0, 1, 2), None).loss(theta, nu)[0] == pytest.approx(negative / (2 * n), abs=1e-8)


@pytest.mark.parametrize("nu", FAMILIES)
def test_the_gradient_holds_for_a_target_with_the_least_noise(nu):
    x, y = data()
    y[:, 1] = x @ [0.3, -0.2, 0.5]
    problem = Likelihood(x, y, (0, 1, 2), None)
    theta = np.log([3.0, 3.0, 3.0, 2.0, 1e-6])
    expected = approx_fprime(theta, lambda t: problem.loss(t, nu)[0], 1e-6)
    np.testing.assert_allclose(problem.loss(theta, nu)[1], expected, rtol=1e-3, atol=1e-4)


def test_without_a_linear_part_there_is_no_least_noise():
    x, y = data()
    theta, one = np.log([0.7, 1.3, 2.0, 1.0, 1e-4]), Likelihood(x, y, (0, 1, 2), None, linear=False)
    assert one.loss(theta, 2.5)[0] == Likelihood(x, y, (0, 1, 2), 1e-4, linear=False).loss(theta, 2.5)[0]


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


@pytest.mark.parametrize(("variance", "expected"), [(0.0009, ("ridge",)), (9.0, ("ridge",)), (20.0, ())])
def test_a_large_ridge_beside_a_larger_linear_part_may_be_noise(variance, expected):
    assert on_bounds(rf.Matern(2.5, (1.0, 3.0)) + variance * rf.Linear(bias=1.0), 10.0) == expected


def test_noise_about_a_line_is_no_concern():
    """A walk that is shaken: all that is not linear is noise, and a fit must not be distrusted for it."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    fit = rf.AutoKernel().fit(x, x[:, 1:] + 0.5 * rng.standard_normal((300, 1)))
    assert fit.on_bounds == () and fit.left_out == pytest.approx(0.2, rel=0.2)


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


def test_a_change_that_an_even_selection_misses_is_fitted_to():
    points, targets = np.random.default_rng(0).random((1500, 2)), np.zeros((1500, 1))
    missed = np.setdiff1d(np.arange(1500), evenly(1500, 600))[100]
    targets[missed] = 1.0
    fit = rf.AutoKernel().fit(points, (targets - targets.mean()) / targets.std())
    assert np.isfinite(fit.loss) and fit.ridge > 0.0


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
