"""Mercer spectra: dense matrices, closed forms, known powers."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from reference_spectrum import (
    dense,
    even_grid,
    exponential_eigenpairs,
    gauss_hermite,
    gaussian_spectrum,
    spectrum_of,
)
from rewardfree.theory import spectrum as spectra

few = settings(deadline=None, max_examples=40)

pytestmark = pytest.mark.usefixtures("one_thread")


SIZES = [(1, 8), (1, 9), (2, 6), (2, 7), (3, 4), (3, 5)]


@pytest.mark.parametrize(("dim", "nodes"), SIZES)
@pytest.mark.parametrize("lengths", [(0.4, 0.4, 0.4), (0.3, 0.7, 1.1)])
@pytest.mark.parametrize("make", [lambda ls: rf.Matern(1.5, ls), rf.SquaredExponential])
@pytest.mark.parametrize("rule", [spectra.gauss_legendre, even_grid])
def test_folding_gives_the_eigenvalues_of_the_whole_matrix(rule, make, lengths, dim, nodes):
    kernel, rule = make(lengths[:dim]), rule(dim, nodes)
    got, (expected, _) = spectra.mercer_spectrum(kernel, rule), dense(kernel, rule)
    # Eigenvalues of matrices of norm below 1 are good to some 1e-15.
    kept = len(got.eigenvalues)
    np.testing.assert_allclose(got.eigenvalues, expected[:kept], rtol=0, atol=1e-14)
    assert np.all(expected[kept:] < 1.1e-13 * expected[0])
    assert np.all(np.diff(got.eigenvalues) <= 0.0)


@pytest.mark.parametrize(("dim", "nodes"), [(1, 8), (1, 9), (2, 6), (2, 7)])
def test_folding_gives_the_eigenfunctions_of_the_whole_matrix(dim, nodes):
    # Incommensurable lengthscales: equal eigenvalues would leave their eigenfunctions undecided.
    kernel, rule = rf.Matern(1.5, (0.31, 0.73)[:dim]), spectra.gauss_legendre(dim, nodes)
    got, (_, tops) = spectra.mercer_spectrum(kernel, rule), dense(kernel, rule)
    # An eigenvector is good to rounding over the gap between eigenvalues, which is above 1e-6 here.
    np.testing.assert_allclose(got.largest_value, np.maximum.accumulate(tops), rtol=1e-8)
    assert got.psi_max(3) == got.largest_value[2]
    assert got.psi_max(10**6) == got.largest_value[-1]


@pytest.mark.parametrize(("dim", "nodes"), SIZES)
@pytest.mark.parametrize("kernel", [rf.Matern(0.5, 0.4), rf.Matern(2.5, 0.2), 0.5 * rf.Matern(1.5, 0.3)])
def test_eigenvalues_sum_to_the_trace_and_eigenfunctions_exceed_one_somewhere(kernel, dim, nodes):
    spectrum = spectra.mercer_spectrum(kernel, spectra.gauss_legendre(dim, nodes))
    assert len(spectrum.eigenvalues) == nodes**dim
    assert spectrum.trace == pytest.approx(kernel.diag([[0.0] * dim]).item(), rel=1e-14)
    assert spectrum.eigenvalues.sum() == pytest.approx(spectrum.trace, rel=1e-13)
    # The mean of psi^2 is 1, so its maximum is no less; rounding may take an ulp or two.
    assert np.all(spectrum.largest_value >= 1.0 - 1e-12)


def test_without_functions_the_eigenvalues_are_the_same_and_psi_is_not_known():
    kernel, rule = rf.Matern(1.5, 0.3), spectra.gauss_legendre(2, 7)
    fast, full = (spectra.mercer_spectrum(kernel, rule, functions=f) for f in (False, True))
    np.testing.assert_allclose(fast.eigenvalues, full.eigenvalues, rtol=0, atol=1e-14)
    assert np.isnan(fast.largest_value).all()
    assert fast.trace == full.trace


@pytest.mark.parametrize("kernel", [rf.NeuralTangent(2, bias=0.1), rf.Matern(1.5, 0.3) * rf.Linear(bias=0.3)])
@pytest.mark.parametrize(("dim", "nodes"), [(1, 9), (2, 6)])
def test_kernels_that_see_signs_go_through_the_whole_matrix(kernel, dim, nodes):
    rule = spectra.gauss_legendre(dim, nodes)
    got, (expected, tops) = spectra.mercer_spectrum(kernel, rule), dense(kernel, rule)
    np.testing.assert_allclose(got.eigenvalues, expected[: len(got.eigenvalues)], rtol=0, atol=1e-14)
    assert got.largest_value[0] == pytest.approx(tops[0], rel=1e-10)


def test_nodes_that_are_not_their_own_mirror_image_are_not_folded():
    nodes, weights = np.array([0.0, 0.1, 0.5, 0.7, 1.0]), np.full(5, 0.2)
    crooked, heavy = (
        spectra.Rule((nodes,), (weights,)),
        spectra.Rule((np.linspace(0, 1, 5),), (np.array([0.1, 0.1, 0.2, 0.3, 0.3]),)),
    )
    for rule in (crooked, heavy):
        assert not rule.symmetric
        got = spectra.mercer_spectrum(rf.Matern(1.5, 0.3), rule).eigenvalues
        np.testing.assert_allclose(got, dense(rf.Matern(1.5, 0.3), rule)[0], rtol=0, atol=1e-14)


def test_a_linear_kernel_has_the_second_moments_of_its_features_as_spectrum():
    # k = phi.phi with phi = (x, y, sqrt(b)); the operator's eigenvalues are those of E[phi phi^T], and the
    # rule is exact for such polynomials.
    b = 0.3
    moments = np.array(
        [
            [1 / 3, 1 / 4, math.sqrt(b) / 2],
            [1 / 4, 1 / 3, math.sqrt(b) / 2],
            [math.sqrt(b) / 2, math.sqrt(b) / 2, b],
        ]
    )
    spectrum = spectra.mercer_spectrum(rf.Linear(bias=b), spectra.gauss_legendre(2, 7))
    np.testing.assert_allclose(spectrum.eigenvalues, np.linalg.eigvalsh(moments)[::-1], rtol=0, atol=1e-14)
    assert spectrum.trace == pytest.approx(2 / 3 + b, rel=1e-14)


@pytest.mark.parametrize("n", [10, 20])
def test_the_delta_kernel_has_the_weights_as_spectrum(n):
    spectrum = spectra.mercer_spectrum(rf.kernels.Delta(), even_grid(1, n))
    np.testing.assert_allclose(spectrum.eigenvalues, np.full(n, 1 / n), rtol=1e-14)


def test_the_delta_kernel_has_the_weights_as_spectrum_on_any_grid():
    for n in (11, 101):
        spectrum = spectra.mercer_spectrum(rf.kernels.Delta(), even_grid(1, n))
        np.testing.assert_allclose(spectrum.eigenvalues, np.full(n, 1 / n), rtol=1e-14)


@pytest.mark.parametrize("lengthscale", [0.1, 0.3, 2.0])
def test_the_exponential_kernel_on_an_interval_has_its_known_eigenvalues(lengthscale):
    (exact, tops), n = exponential_eigenpairs(lengthscale, 20), 200
    coarse, fine = (
        spectra.mercer_spectrum(rf.Matern(0.5, lengthscale), spectra.gauss_legendre(1, m)).eigenvalues[:20]
        for m in (n // 2, n)
    )
    # A kink of slope 2c inside a cell of width h costs 2c h^2/12, and h is pi/(2n) where nodes are rarest.
    kink = math.pi**2 / (24.0 * lengthscale * n**2)
    np.testing.assert_array_less(np.abs(fine - exact), 1.02 * kink)
    # The error falls as n^-2, so extrapolation removes most of it.
    np.testing.assert_array_less(np.abs((4.0 * fine - coarse) / 3.0 - exact), 0.1 * kink)
    # Between nodes a wave of 20 halves moves by less than (20 pi h)^2/2 of its height.
    spectrum = spectra.mercer_spectrum(rf.Matern(0.5, lengthscale), spectra.gauss_legendre(1, n))
    np.testing.assert_allclose(spectrum.largest_value[:20], np.maximum.accumulate(tops), rtol=0.02)


@pytest.mark.parametrize(("lengthscale", "scale"), [(0.7, 0.5), (1.0, 1.0), (2.0, 0.3)])
def test_closed_form_of_the_squared_exponential_is_its_numerical_spectrum(lengthscale, scale):
    spectrum = spectra.mercer_spectrum(rf.SquaredExponential(lengthscale), gauss_hermite(1, scale, 100))
    exact = gaussian_spectrum(lengthscale, scale, 1, 60)
    kept = len(spectrum.eigenvalues)
    assert kept >= 8
    np.testing.assert_allclose(spectrum.eigenvalues, exact[:kept], rtol=0, atol=1e-14)
    assert exact.sum() == pytest.approx(1.0, abs=1e-9)  # the trace, less a tail below (b/A)^60
    assert spectrum.trace == pytest.approx(1.0, rel=1e-13)


def test_closed_form_counts_multiplicities_in_two_dimensions():
    exact = gaussian_spectrum(1.0, 0.5, 2, 45)
    one = gaussian_spectrum(1.0, 0.5, 1, 12)
    products = np.sort(np.outer(one, one).ravel())[::-1][:45]
    np.testing.assert_allclose(exact, products, rtol=1e-12)
    groups = [len(list(group)) for _, group in itertools.groupby(exact)]
    assert groups == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    spectrum = spectra.mercer_spectrum(rf.SquaredExponential(1.0), gauss_hermite(2, 0.5, 30))
    np.testing.assert_allclose(spectrum.eigenvalues[:45], exact, rtol=0, atol=1e-14)


def test_rules_integrate_what_they_promise():
    legendre, hermite = spectra.gauss_legendre(2, 4), gauss_hermite(1, 0.7, 6)
    for power in range(8):
        got = sum(w * x**power for x, w in zip(legendre.nodes[0], legendre.weights[0], strict=True))
        assert got == pytest.approx(1.0 / (power + 1.0), rel=1e-13)
    x, w = hermite.nodes[0], hermite.weights[0]
    for power, moment in [(0, 1.0), (2, 0.49), (4, 3 * 0.49**2), (6, 15 * 0.49**3)]:
        assert w @ x**power == pytest.approx(moment, rel=1e-12)
    assert (legendre.dim, legendre.size) == (2, 16)
    even = even_grid(3, 4)
    assert even.size == 64
    np.testing.assert_allclose(even.weights[0], 0.25)
    assert spectra.gauss_legendre(3).size <= spectra.NODES


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("lengthscale", [0.1, 0.3])
def test_matern_eigenvalues_fall_with_the_known_power(nu, lengthscale):
    kernel = rf.Matern(nu, lengthscale)
    fine, coarse = (spectra.mercer_spectrum(kernel, spectra.gauss_legendre(1, n)) for n in (300, 225))
    trusted = spectra.agreement(fine, coarse)
    assert 30 <= trusted < 150
    law = spectra.fit_decay(fine.eigenvalues[:trusted], 1)
    assert law.kind == "polynomial"
    # Not yet the limit: at m of 100 the corner of the law, at m = 1/lengthscale, bends it by some percent.
    assert law.rate == pytest.approx(1.0 + 2.0 * nu, rel=0.1)
    assert spectra.known_exponent(kernel, 1) == 1.0 + 2.0 * nu
    assert law.r_squared > 0.99


@pytest.mark.parametrize(("dim", "nodes"), [(1, 100), (2, 24)])
def test_squared_exponential_eigenvalues_fall_exponentially(dim, nodes):
    spectrum = spectra.mercer_spectrum(rf.SquaredExponential(0.2), spectra.gauss_legendre(dim, nodes))
    best, other = (spectra.fit_decay(spectrum.eigenvalues, dim, kind) for kind in (None, "polynomial"))
    assert best.kind == "exponential"
    assert best.r_squared > other.r_squared
    assert spectra.known_exponent(rf.SquaredExponential(0.2), dim) == math.inf


def test_known_exponents_depend_on_smoothness_over_dimension():
    assert spectra.known_exponent(rf.Matern(2.5), 2) == 3.5
    assert spectra.known_exponent(rf.Matern(math.inf), 2) == math.inf
    assert spectra.known_exponent(rf.NeuralTangent(1), 2) is None


@given(rate=st.floats(1.1, 8.0), constant=st.floats(-3.0, 3.0), size=st.integers(10, 60))
@few
def test_a_power_is_recovered_from_its_own_values(rate, constant, size):
    m = np.arange(1.0, size + 1)
    law = spectra.fit_decay(np.exp(constant) * m**-rate, 1, "polynomial")
    # Least squares on exact logarithms: some hundred roundings.
    assert (law.rate, law.constant) == pytest.approx((rate, constant), abs=1e-10)
    assert law.r_squared == pytest.approx(1.0, abs=1e-10)
    assert law.first == max(1, law.last // 10)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_an_exponential_is_recovered_from_its_own_values_and_rounding_is_left_out(dim):
    m = np.arange(1.0, 101.0)
    values = np.exp(0.5 - 1.3 * m ** (1.0 / dim))
    law = spectra.fit_decay(np.where(values > 1e-11, values, 3e-12), dim)
    assert law.kind == "exponential"
    assert (law.rate, law.constant) == pytest.approx((1.3, 0.5), abs=1e-9)
    assert law.last == np.count_nonzero(values > 1e-10 * values[0])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: spectra.fit_decay([1.0, 0.5, 0.2], 1), "four eigenvalues"),
        (lambda: spectra.fit_decay([1.0, 0.5, np.nan, 0.1, 0.1], 1), "eigenvalues must be finite"),
        (lambda: spectra.fit_decay(np.ones(9), 1, "linear"), "kind must be one of polynomial, exponential"),
        (lambda: spectra.mercer_spectrum(rf.Matern(1.5), even_grid(1, 8002)), "4001 rows, more than"),
        (lambda: spectra.mercer_spectrum(rf.Matern(1.5), even_grid(2, 127)), "16129 nodes need"),
        (lambda: spectra.mercer_spectrum(rf.Linear(), even_grid(1, 4001)), "use fewer nodes"),
        (lambda: spectra.gauss_legendre(0), "dim must be a whole number"),
        (lambda: spectra.gauss_legendre(1, 0), "nodes must be a whole number"),
    ],
)
def test_spectra_refuse_what_they_cannot_do(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def test_agreement_counts_leading_eigenvalues_only():
    fine = spectrum_of([8.0, 4.0, 2.0, 1.0])
    assert spectra.agreement(fine, spectrum_of([8.0, 4.0, 2.0, 1.0])) == 4
    assert spectra.agreement(fine, spectrum_of([8.1, 4.05, 2.5, 1.0])) == 2
    assert spectra.agreement(fine, spectrum_of([9.0, 4.0, 2.0, 1.0])) == 0
    assert spectra.agreement(fine, spectrum_of([8.15, 3.88, 2.0, 1.0])) == 1  # 1.9% and 3% off
    assert spectra.agreement(fine, spectrum_of([8.0, 4.0])) == 2
    assert spectra.agreement(fine, spectrum_of([9.0, 4.0, 2.0, 1.0]), tolerance=0.2) == 4


@given(
    values=st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=30), missing=st.sampled_from([0.0, 1e-3, 2.0])
)
@few
def test_tails_fall_and_are_never_negative(values, missing):
    spectrum = spectrum_of(values, missing)
    tails = [spectrum.tail(m) for m in range(len(values) + 3)]
    assert tails[0] == spectrum.trace
    assert all(b <= a for a, b in itertools.pairwise(tails))
    assert min(tails) >= 0.0
    assert tails[-1] == pytest.approx(missing, abs=1e-14 * len(values))
    assert spectrum.head(2) == pytest.approx(math.fsum(spectrum.eigenvalues[:2]), rel=1e-15)


def test_a_sum_that_rounding_takes_above_the_trace_leaves_no_negative_tail():
    spectrum = dataclasses.replace(spectrum_of([0.7, 0.2, 0.1]), trace=1.0 - 1e-15)
    assert spectrum.head(3) > spectrum.trace
    assert spectrum.tail(3) == 0.0
