"""Information gain: enumeration of all multisets, eigenvalues, textbook Cholesky factors."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import lapack

import rewardfree as rf
from reference_spectrum import even_grid
from reference_theory import gain_of, grid, scattered
from rewardfree.theory import gain as gains
from rewardfree.theory import spectrum as spectra

few = settings(deadline=None, max_examples=40)

pytestmark = pytest.mark.usefixtures("one_thread")


KERNELS = st.sampled_from(
    [rf.SquaredExponential, lambda ls: rf.Matern(1.5, ls), lambda ls: rf.Matern(0.5, ls)]
)
LENGTHSCALES, RIDGES = st.floats(0.05, 2.0), st.floats(0.01, 10.0)


@given(make=KERNELS, lengthscale=LENGTHSCALES, ridge=RIDGES, m=st.integers(2, 5), n=st.integers(1, 4))
@few
def test_greedy_and_its_bounds_enclose_the_best_of_all_multisets(make, lengthscale, ridge, m, n):
    kernel, points = make(lengthscale), scattered(m, seed=m)
    best = max(
        gain_of(kernel, points[list(chosen)], ridge)
        for chosen in itertools.combinations_with_replacement(range(m), n)
    )
    greedy = gains.greedy_gain(kernel, points, ridge, n)
    more = gains.greedy_gain(kernel, points, ridge, 8)
    residuals = gains.residual_diagonal(kernel, points, m - 1)
    rounding = 1e-11 * best  # sums of a few logarithms
    assert greedy.gains[n] <= best + rounding
    assert greedy.n == n
    for upper in (
        gains.greedy_upper(greedy),
        gains.variance_upper(greedy, n),
        gains.variance_upper(more, n),
        gains.low_rank_law(residuals, ridge)(n),
        gains.low_rank_law(residuals, ridge, m)(n),
    ):
        assert best <= upper + rounding


@given(lengthscale=LENGTHSCALES, ridge=RIDGES, n=st.integers(1, 4))
@few
def test_the_spectrum_bounds_the_best_of_all_multisets_of_its_nodes(lengthscale, ridge, n):
    # On a finite domain psi_max is no estimate: the nodes are all there is.
    kernel, points = rf.Matern(1.5, lengthscale), grid(5, 1)
    law = gains.spectral_law(spectra.mercer_spectrum(kernel, even_grid(1, 5)), ridge)
    best = max(
        gain_of(kernel, points[list(chosen)], ridge)
        for chosen in itertools.combinations_with_replacement(range(5), n)
    )
    assert best <= law(n) * (1 + 1e-11)
    assert law(n) <= 2.5 * math.log1p(n / (5 * ridge)) * (1 + 1e-9)  # D = 5 leaves no tail


def test_greedy_share_of_the_best_is_one_for_one_query_and_falls_to_1_minus_1_over_e():
    def share(n):
        one = gains.GreedyGain(0.5, np.linspace(0.0, 1.0, n + 1), np.ones(n + 1), np.ones(n + 1))
        return gains.greedy_upper(one)

    assert gains.greedy_upper(gains.GreedyGain(0.5, np.zeros(1), np.ones(1), np.ones(1))) == 0.0
    assert share(1) == 1.0
    assert share(2) == pytest.approx(4 / 3)
    assert share(10**5) == pytest.approx(1 / (1 - math.exp(-1)), rel=1e-5)


@pytest.mark.parametrize(
    "kernel", [rf.Matern(2.5, 0.3), rf.SquaredExponential(0.2), 0.5 * rf.Matern(1.5, 0.2)]
)
@pytest.mark.parametrize("ridge", [0.01, 0.5])
def test_greedy_gain_is_that_of_the_query_plan(kernel, ridge):
    points, n = scattered(60), 25
    greedy = gains.greedy_gain(kernel, points, ridge, n)
    plan = rf.query_plan(rf.Model(kernel, ridge=ridge), points, n)
    for i in range(n + 1):
        chosen = points[plan[:i]]
        expected = gain_of(kernel, chosen, ridge) if i else 0.0
        assert greedy.gains[i] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        if i:
            assert gains.information_gain(kernel, chosen, ridge) == pytest.approx(expected, rel=1e-9)
        # sigma^2 from the textbook: K(Z,Z) - K(Z,X) (K + ridge I)^-1 K(X,Z).
        across = kernel(points, chosen) if i else np.zeros((60, 0))
        inverse = np.linalg.inv(kernel(chosen) + ridge * np.eye(i)) if i else np.zeros((0, 0))
        variance = kernel.diag(points) - np.einsum("ij,jk,ik->i", across, inverse, across)
        assert greedy.largest[i] == pytest.approx(variance.max(), rel=1e-9)


def test_greedy_gain_is_that_of_the_query_plan_where_ties_decide():
    kernel, points, n = rf.Matern(2.5, 0.1), grid(100, 2), 20
    plan = rf.query_plan(rf.Model(kernel, ridge=0.5), points, n)
    expected = gain_of(kernel, points[plan], 0.5)
    assert gains.greedy_gain(kernel, points, 0.5, n).gains[n] == pytest.approx(expected, rel=1e-9)


def test_gain_of_known_cases():
    # n copies of one point: K is all ones, with the one eigenvalue n.
    copies = np.zeros((7, 2))
    assert gains.information_gain(rf.Matern(1.5), copies, 0.3) == pytest.approx(0.5 * math.log1p(7 / 0.3))
    assert gains.information_gain(rf.kernels.Delta(), grid(3, 2), 0.3) == pytest.approx(
        4.5 * math.log1p(1 / 0.3)
    )
    greedy = gains.greedy_gain(rf.kernels.Delta(), grid(2, 2), 0.3, 8)
    assert greedy.gains[8] == pytest.approx(2.0 * math.log1p(2 / 0.3))
    assert greedy.largest[8] == pytest.approx(0.3 / 2.3)


@pytest.mark.parametrize("kernel", [rf.Matern(1.5, 0.3), rf.Matern(2.5, 0.5), 2.0 * rf.Matern(0.5, 0.2)])
def test_residuals_are_the_pivots_of_a_textbook_cholesky(kernel):
    points = scattered(30, seed=3)
    got = gains.residual_diagonal(kernel, points, 20)
    left, expected = kernel(points), []
    for _ in range(21):
        pivot = int(left.diagonal().argmax())
        expected.append(left[pivot, pivot])
        left = left - np.outer(left[:, pivot], left[pivot]) / left[pivot, pivot]
    # Rounding of the kernel, 1e-16, is what a residual of 1e-4 and more is good to.
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    factor, _, rank, info = lapack.dpstrf(kernel(points))
    assert (rank, info) == (30, 0)
    np.testing.assert_allclose(got[:20], factor.diagonal()[:20] ** 2, rtol=1e-9)
    assert np.all(np.diff(got) <= 0.0)


def test_residuals_stop_at_rounding_and_at_the_number_of_points():
    assert len(gains.residual_diagonal(rf.Matern(1.5), scattered(4), 10)) == 5
    full = gains.residual_diagonal(rf.Matern(1.5), scattered(4), 10)
    assert full[-1] <= 1e-14
    assert full[-1] > 0.0
    linear = gains.residual_diagonal(rf.Linear(), scattered(50), 10)  # of rank two
    assert len(linear) <= 4
    assert linear[2] <= 1e-14 * linear[0]
    assert np.all(np.diff(linear) <= 0.0)


def test_the_low_rank_bound_is_exact_for_points_that_know_nothing_of_each_other():
    residuals = gains.residual_diagonal(rf.kernels.Delta(), grid(2, 2), 4)
    np.testing.assert_allclose(residuals, [1, 1, 1, 1, 0], atol=1e-14)
    law = gains.low_rank_law(residuals, 0.3, 4)
    for rounds in (1, 5, 10**6):
        assert law(4 * rounds) == pytest.approx(2.0 * math.log1p(rounds / 0.3), rel=1e-12)


LARGE = np.unique(np.logspace(0, 15, 120).astype(int))


@pytest.mark.parametrize("ridge", [0.01, 0.5])
def test_laws_grow_and_those_of_bounds_are_concave(ridge):
    kernel, points = rf.Matern(1.5, 0.2), grid(8, 2)
    greedy = gains.greedy_gain(kernel, points, ridge, 50)
    spectrum = spectra.mercer_spectrum(kernel, even_grid(2, 8))
    bounds = {
        "low rank": gains.low_rank_law(gains.residual_diagonal(kernel, points, 30), ridge, len(points)),
        "spectral": gains.spectral_law(spectrum, ridge),
        "variance": lambda n: gains.variance_upper(greedy, n),
    }
    for law in (*bounds.values(), gains.rate_law(greedy, 2.5, 2), gains.rate_law(greedy, math.inf, 2)):
        values = np.array([law(int(n)) for n in LARGE])
        assert np.all(np.diff(values) >= 0.0)
        assert np.all(np.isfinite(values))
    for name in ("low rank", "spectral"):
        shares = np.array([bounds[name](int(n)) / n for n in LARGE])
        assert np.all(np.diff(shares) <= 1e-14 * shares[:-1])
    # For any n there is the bound of a finite domain: every point takes an equal share.
    finite = 32.0 * np.log1p(LARGE / (64 * ridge))
    assert np.all([bounds["low rank"](int(n)) for n in LARGE] <= finite * (1 + 1e-12))


@pytest.mark.parametrize(("p", "dim"), [(2.5, 1), (3.5, 2), (math.inf, 2)])
def test_a_rate_passes_through_the_last_greedy_value_and_grows_as_said(p, dim):
    greedy = gains.greedy_gain(rf.Matern(1.5, 0.2), scattered(40), 0.1, 30)
    law = gains.rate_law(greedy, p, dim)
    assert law(30) == pytest.approx(greedy.gains[30], rel=1e-14)
    logs = math.log(1 + 10**9) / math.log(31)
    power, exponent = (1.0, dim + 1) if math.isinf(p) else ((10**9 / 30) ** (1 / p), 1 - 1 / p)
    assert law(10**9) / law(30) == pytest.approx(power * logs**exponent, rel=1e-12)


def test_growth_is_the_slope_of_the_upper_half():
    n = np.arange(101.0)
    growth = gains.fit_growth(gains.GreedyGain(0.5, 3.0 * n**0.4, np.ones(101), np.ones(101)))
    assert (growth.exponent, growth.constant) == pytest.approx((0.4, math.log(3.0)), abs=1e-10)
    assert growth.r_squared == pytest.approx(1.0)
    crooked = np.where(n < 50, 7.0 * n, 3.0 * n**0.4 + np.sin(n) + (n == 100))
    x, y = np.log(n[50:]), np.log(crooked[50:])
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    got = gains.fit_growth(gains.GreedyGain(0.5, crooked, np.ones(101), np.ones(101)))
    assert got.exponent == pytest.approx(slope, rel=1e-9)
    assert got.r_squared == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2, rel=1e-9)


@given(make=KERNELS, lengthscale=LENGTHSCALES, ridge=RIDGES, scale=st.floats(0.1, 1.0), n=st.integers(1, 30))
@few
def test_the_potential_lemma_holds_for_greedy_queries(make, lengthscale, ridge, scale, n):
    greedy = gains.greedy_gain(scale * make(lengthscale), scattered(12), ridge, n)
    bound = gains.potential_bound(float(greedy.gains[n]), ridge, scale)
    assert greedy.largest[:n].sum() <= bound * (1 + 1e-12)


def test_the_potential_lemma_is_an_equality_for_independent_points_and_false_for_larger_kernels():
    greedy = gains.greedy_gain(rf.kernels.Delta(), grid(5, 1), 0.3, 5)
    assert gains.potential_bound(float(greedy.gains[5]), 0.3) == pytest.approx(5.0)
    double = gains.greedy_gain(2.0 * rf.kernels.Delta(), grid(5, 1), 0.3, 5)
    assert double.largest[:5].sum() > gains.potential_bound(float(double.gains[5]), 0.3)
    with pytest.raises(ValueError, match=r"k\(z,z\) <= 1, got 2"):
        gains.potential_bound(1.0, 0.3, prior=2.0)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: gains.information_gain(rf.kernels.Delta(), grid(3, 1), 0.0), "ridge must be positive"),
        (lambda: gains.greedy_gain(rf.kernels.Delta(), grid(3, 1), 0.1, -1), "n must be a whole number"),
        (
            lambda: gains.rate_law(gains.greedy_gain(rf.kernels.Delta(), grid(3, 1), 0.1, 0), 2.0, 1),
            "needs queries",
        ),
        (lambda: gains.rate_law(gains.greedy_gain(rf.kernels.Delta(), grid(3, 1), 0.1, 2), 1.0, 1), "p > 1"),
        (lambda: gains.fit_growth(gains.greedy_gain(rf.kernels.Delta(), grid(3, 1), 0.1, 7)), "8 queries"),
        (lambda: gains.low_rank_law([1.0], -1.0), "ridge must be positive"),
    ],
)
def test_gains_refuse_what_they_cannot_do(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()
