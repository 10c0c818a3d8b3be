"""The Matern correlation against mpmath, and its two roads against each other."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardfree.kernels.matern import LARGE_ORDER, _by_expansion, _by_recurrence, matern_correlation

RADII = [0.0, 1e-150, 1e-100, 1e-50, 1e-20, 1e-8, 1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 14.0]
ORDERS = [0.05, 0.1, 0.3, 0.5, 0.7, 0.99, 1.0, 1.01, 1.5, 2.0, 2.5, 3.7, 8.0, 20.0, 33.3]
ORDERS += [39.9, 40.0, 40.1, 100.0, 1e3, 1e4, 1e5]

# A few ulps from each of the power, the Bessel and the gamma function: SciPy's K_nu is good to about 1e-14.
ACCURACY = 5e-14


def exact(nu: float, r: float) -> float:
    """2^(1-nu)/Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) r, from 35 digits."""
    if r == 0.0:
        return 1.0
    with mpmath.workdps(35):
        order = mpmath.mpf(nu)
        t = mpmath.sqrt(2 * order) * mpmath.mpf(r)
        return float(2 ** (1 - order) / mpmath.gamma(order) * t**order * mpmath.besselk(order, t))


@pytest.mark.parametrize("nu", ORDERS)
def test_correlation_agrees_with_mpmath(nu):
    expected = [exact(nu, r) for r in RADII]
    np.testing.assert_allclose(matern_correlation(nu, np.array(RADII)), expected, rtol=0, atol=ACCURACY)


@pytest.mark.parametrize("nu", [0.05, 0.7, 2.0, 39.5, LARGE_ORDER, 1e5])
def test_correlation_is_exactly_one_at_distance_zero(nu):
    assert matern_correlation(nu, np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("nu", [0.05, 0.7, 1.0, 2.0, 3.7, 39.5, LARGE_ORDER, 1e5])
def test_correlation_vanishes_far_away(nu):
    # t = sqrt(2 nu) r is far past the last K_nu that float64 holds; no warning, no NaN.
    assert matern_correlation(nu, np.array([1e6])).tolist() == [0.0]


@pytest.mark.parametrize("shape", [(0,), (2, 3), (2, 0)])
@pytest.mark.parametrize("nu", [0.7, 3.7, 50.0])
def test_correlation_keeps_the_shape(nu, shape):
    assert matern_correlation(nu, np.ones(shape)).shape == shape


@pytest.mark.parametrize(
    "nu", [LARGE_ORDER - 4.7, LARGE_ORDER - 0.1, LARGE_ORDER, LARGE_ORDER + 0.1, 47.0, 60.3]
)
def test_two_roads_agree_around_the_switch(nu):
    # The expansion leaves out terms of order nu^-9, about 1e-14 at nu = 35.
    r = np.concatenate([[0.0, 1e-150, 1e-20], np.linspace(1e-3, 14.0, 400)])
    np.testing.assert_allclose(_by_recurrence(nu, r), _by_expansion(nu, r), rtol=0, atol=ACCURACY)


@pytest.mark.parametrize("near", [0.3, 1.0, 2.0, 5.0, LARGE_ORDER])
def test_correlation_is_continuous_in_the_order(near):
    # The number of recurrence steps jumps at every whole nu; |dM/dnu| < 2 here, so 1e-10 moves M by < 2e-10.
    r = np.linspace(0.01, 10.0, 200)
    below, above = matern_correlation(near - 5e-11, r), matern_correlation(near + 5e-11, r)
    np.testing.assert_allclose(below, above, rtol=0, atol=2e-10)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    log_nu=st.floats(np.log(0.05), np.log(1e5)),
    radii=st.lists(st.floats(0.0, 14.0), min_size=2, max_size=20),
)
def test_correlation_falls_from_one_to_zero(log_nu, radii):
    values = matern_correlation(float(np.exp(log_nu)), np.sort(radii))
    assert np.all(np.diff(values) <= ACCURACY)
    assert np.all((values >= 0.0) & (values <= 1.0 + ACCURACY))


@settings(deadline=None, derandomize=True, max_examples=100)
@given(log_nu=st.floats(np.log(0.05), np.log(1e5)), near=st.floats(0.01, 5.0), step=st.floats(1e-3, 5.0))
def test_correlation_strictly_falls_over_a_visible_step(log_nu, near, step):
    near_value, far_value = matern_correlation(float(np.exp(log_nu)), np.array([near, near + step]))
    assert far_value < near_value
