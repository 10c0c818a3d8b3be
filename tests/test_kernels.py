"""Every kernel against a second road, and what holds for all of them."""

import math

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from sklearn.gaussian_process import kernels as sk

import rewardfree as rf
from kernel_cases import EVERY, assert_close, named, points
from rewardfree.kernels import as_kernel

CLOSED = [0.5, 1.5, 2.5]
GENERAL = [0.3, 0.7, 1.0, 2.0, 3.7, 8.0]
LENGTHS = [0.8, (0.5, 1.0, 3.0)]


def with_copies(n=12, d=3):
    """Points among which the first few come twice."""
    x = points(n, d)
    return np.concatenate([x, x[:4]])


# --- stationary kernels ---

# Both sides are good to a few 1e-14: powers, Bessel and gamma functions lose some ulps each.
AGAINST_SKLEARN = 1e-12


@pytest.mark.parametrize("lengthscale", LENGTHS)
def test_squared_exponential_agrees_with_sklearn(lengthscale):
    x, y = points(20), points(15, seed=1)
    assert_close(rf.SquaredExponential(lengthscale)(x, y), sk.RBF(lengthscale)(x, y), AGAINST_SKLEARN)


@pytest.mark.parametrize("lengthscale", LENGTHS)
@pytest.mark.parametrize("nu", [*CLOSED, *GENERAL, math.inf])
def test_matern_agrees_with_sklearn(nu, lengthscale):
    x, y = points(20), points(15, seed=1)
    assert_close(rf.Matern(nu, lengthscale)(x, y), sk.Matern(lengthscale, nu=nu)(x, y), AGAINST_SKLEARN)


@pytest.mark.parametrize("nu", CLOSED)
def test_matern_closed_form_is_the_limit_of_its_neighbours(nu):
    # |dM/dnu| < 1 on these points, so moving nu by 1e-9 moves M by less than 1e-9.
    x = points(20)
    assert_close(rf.Matern(nu)(x), rf.Matern(nu + 1e-9)(x), atol=1e-9)


@pytest.mark.parametrize("lengthscale", LENGTHS)
def test_matern_of_infinite_order_is_the_squared_exponential(lengthscale):
    x, y = points(20), points(15, seed=1)
    got = rf.Matern(math.inf, lengthscale)(x, y)
    np.testing.assert_array_equal(got, rf.SquaredExponential(lengthscale)(x, y))


@pytest.mark.parametrize("nu", [1e2, 1e3, 1e4, 1e5])
def test_matern_approaches_the_squared_exponential_like_one_over_nu(nu):
    # Debye's expansion on paper: M = exp(-r^2/2) (1 + (r^4/8 - r^2/2)/nu + O(1/nu^2)). The second term
    # is below 1 in size; rounding, 1e-15, is magnified by nu.
    r = np.linspace(0.0, 6.0, 61)
    limit = np.exp(-0.5 * r**2)
    got = rf.Matern(nu)(r[:, None], [[0.0]])[:, 0]
    assert_close(nu * (got - limit), limit * (r**4 / 8 - r**2 / 2), atol=1.0 / nu + 1e-15 * nu)


@pytest.mark.parametrize(
    "make", [rf.SquaredExponential, *(lambda ls, nu=nu: rf.Matern(nu, ls) for nu in (1.5, 3.7))]
)
def test_anisotropic_is_isotropic_on_rescaled_points(make):
    # The same divisions in the same order: one ulp of slack.
    x, y, lengths = points(20), points(15, seed=1), (0.5, 1.3, 3.0)
    assert_close(make(lengths)(x, y), make(1.0)(x / lengths, y / lengths), atol=3e-16)


@pytest.mark.parametrize("kernel", [rf.SquaredExponential(), rf.Matern(0.5), rf.Matern(2.5), rf.Matern(0.7)])
def test_close_points_keep_their_digits_far_from_the_origin(kernel):
    # 2^-20 is exact beside 1000, and so is the distance; |x|^2 + |y|^2 - 2 x.y would lose most of it.
    far = kernel([[1000.0]], [[1000.0 + 2.0**-20]])
    assert_close(far, kernel([[0.0]], [[2.0**-20]]), atol=2e-16)


# --- neural tangent kernel ---


def relu_expectations(a, b, c):
    """2 E[relu(u) relu(v)] and 2 E[1(u>0) 1(v>0)] for (u, v) ~ N(0, [[a, c], [c, b]]), by quadrature.

    Over u alone: given u, v is Gaussian with mean m = c u/a and deviation s, and E[relu(v) | u] is
    m Phi(m/s) + s phi(m/s), P(v > 0 | u) is Phi(m/s).
    """
    slope, s = c / a, math.sqrt(max(b - c * c / a, 0.0))

    def density(t):
        return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)

    def ramp(m):
        return m * ndtr(m / s) + s * density(m / s) if s > 0.0 else max(m, 0.0)

    def step(m):
        return ndtr(m / s) if s > 0.0 else float(m > 0.0)

    root = math.sqrt(a)
    options = {"epsabs": 1e-13, "epsrel": 1e-13, "limit": 200}
    first, _ = quad(lambda t: root * t * ramp(slope * root * t) * density(t), 0.0, 12.0, **options)
    second, _ = quad(lambda t: step(slope * root * t) * density(t), 0.0, 12.0, **options)
    return 2.0 * first, 2.0 * second


def tangent_by_quadrature(x, y, depth, bias):
    """T_depth(x, y) for one pair, before normalisation."""
    u, v = np.append(x, 1.0), np.append(y, 1.0)
    a, b, c = u @ u + bias, v @ v + bias, u @ v + bias
    tangent = c
    for _ in range(depth):
        ramps, steps = relu_expectations(a, b, c)
        a, b, c = relu_expectations(a, a, a)[0] + bias, relu_expectations(b, b, b)[0] + bias, ramps + bias
        tangent = c + tangent * steps
    return tangent


@pytest.mark.parametrize("bias", [0.0, 0.3])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_neural_tangent_agrees_with_quadrature(depth, bias):
    # The quadrature asks for 1e-13 at each of three integrals a layer.
    x = np.array([[0.0, 0.0], [1.0, -0.5], [-1.0, 0.5], [3.0, 2.0], [1.0, -0.49]])
    norms = [tangent_by_quadrature(u, u, depth, bias) for u in x]
    expected = np.ones((5, 5))
    for i in range(5):
        for j in range(i):
            value = tangent_by_quadrature(x[i], x[j], depth, bias) / math.sqrt(norms[i] * norms[j])
            expected[i, j] = expected[j, i] = value
    assert_close(rf.NeuralTangent(depth, bias)(x), expected, atol=1e-11)


def finite_tangent(x, depth, bias, width, rng):
    """The gradient kernel at initialisation of one random ReLU network, as an (n,n) matrix.

    h_1 = W_1 (x, 1) + sqrt(bias) b_1, h_{l+1} = sqrt(2/width) W_{l+1} relu(h_l) + sqrt(bias) b_{l+1}; the
    output is h_{depth+1}, a number; all weights and biases are standard normal, and all are trained.
    """
    inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    layers, weights, gates = [inputs], [], []  # what enters each layer, its weights, its open units
    for layer in range(depth):
        scale = math.sqrt(2.0 / width) if layer else 1.0
        weights.append(scale * rng.normal(size=(layers[-1].shape[1], width)))
        h = layers[-1] @ weights[-1] + math.sqrt(bias) * rng.normal(size=width)
        gates.append(h > 0.0)
        layers.append(np.maximum(h, 0.0))
    weights.append(math.sqrt(2.0 / width) * rng.normal(size=(width, 1)))
    slope, kernel = np.ones((len(x), 1)), 0.0  # d output / d h_l, from the last layer back
    for layer in range(depth, -1, -1):
        scale = 2.0 / width if layer else 1.0
        kernel = kernel + (slope @ slope.T) * (scale * layers[layer] @ layers[layer].T + bias)
        if layer:
            slope = (slope @ weights[layer].T) * gates[layer - 1]
    return kernel


@pytest.mark.parametrize(("depth", "bias"), [(1, 0.0), (1, 0.3), (2, 0.3), (3, 0.0), (3, 0.3)])
def test_neural_tangent_is_the_gradient_kernel_of_a_wide_network(depth, bias):
    x = np.array([[0.0, 0.0], [1.0, -0.5], [-1.0, 0.5], [3.0, 2.0], [-2.0, -1.5]])
    rng, width, draws = np.random.default_rng(7), 500, []
    for _ in range(100):
        kernel = finite_tangent(x, depth, bias, width, rng)
        root = np.sqrt(np.diag(kernel))
        draws.append(kernel / np.outer(root, root))
    mean, spread = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1)
    # Five standard errors of the mean, and the bias of a finite width, of order depth/width.
    bound = 5.0 * spread / math.sqrt(len(draws)) + depth / width

    def agrees(kernel):
        return bool(np.all(np.abs(mean - kernel(x)) <= bound))

    assert agrees(rf.NeuralTangent(depth, bias))
    # The bound tells neighbours apart.
    assert not agrees(rf.NeuralTangent(depth, bias + 0.3))
    assert not agrees(rf.NeuralTangent(depth + 1, bias))


@pytest.mark.parametrize("bias", [0.0, 0.1, 0.3, 1.7])
@pytest.mark.parametrize("depth", [1, 2, 3, 6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neural_tangent_of_a_point_and_its_copy_is_exactly_one(dtype, depth, bias):
    x = points(40).astype(dtype)
    kernel = rf.NeuralTangent(depth, bias)
    np.testing.assert_array_equal(np.diagonal(kernel(x, x.copy())), np.ones(40, dtype))
    np.testing.assert_array_equal(kernel(np.concatenate([x, x]))[:40, 40:], kernel(x))


def test_neural_tangent_moves_with_the_length_of_a_point():
    # Without the embedding (x, 1), positive multiples of a point would be one and the same.
    assert rf.NeuralTangent(2)([[1.0, 1.0]], [[2.0, 2.0]]).item() < 0.99


# --- linear, delta ---


def test_linear_is_the_dot_product():
    x, y = points(20), points(15, seed=1)
    assert_close(rf.Linear()(x, y), x @ y.T, atol=1e-14)  # three terms of size below 10


def test_linear_divides_by_its_lengthscales_and_adds_its_bias():
    x, y, lengths = points(20), points(15, seed=1), np.array([0.5, 1.0, 3.0])
    expected = x @ np.diag(lengths**-2.0) @ y.T + 0.2
    assert_close(rf.Linear(lengths, bias=0.2)(x, y), expected, atol=1e-13)  # three terms of size below 40


def test_linear_agrees_with_sklearn():
    x, y = points(20), points(15, seed=1)
    assert_close(rf.Linear(bias=0.25)(x, y), sk.DotProduct(sigma_0=0.5)(x, y), atol=1e-14)


def test_delta_is_the_identity_on_distinct_points():
    np.testing.assert_array_equal(rf.kernels.Delta()(points(10)), np.eye(10))


def test_delta_is_one_between_copies():
    x = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0], [1.0, 1.0], [-0.0, 2.0]])
    expected = [[np.array_equal(u, v) for v in x] for u in x]
    np.testing.assert_array_equal(rf.kernels.Delta()(x), np.array(expected, dtype=float))


def test_delta_tells_neighbouring_floats_apart():
    assert rf.kernels.Delta()([[1.0]], [[np.nextafter(1.0, 2.0)]]).item() == 0.0


# --- what holds for all ---


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_kernel_is_symmetric(kernel):
    # Addition and multiplication commute in floating point, so the two orders agree to the last bit or two.
    x, y = with_copies(), points(9, seed=1)
    assert_close(kernel(x, y), kernel(y, x).T, atol=1e-15, rtol=1e-15)
    assert_close(kernel(x), kernel(x).T, atol=1e-15, rtol=1e-15)


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_diag_is_the_diagonal(kernel):
    x = with_copies()
    assert_close(kernel.diag(x), np.diagonal(kernel(x)), atol=1e-15, rtol=1e-15)


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_second_set_defaults_to_the_first(kernel):
    x = with_copies()
    np.testing.assert_array_equal(kernel(x), kernel(x, x))


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_points_are_left_as_they_were(kernel):
    x, y = points(5), points(4, seed=1)
    kernel(x, y), kernel.diag(x)
    np.testing.assert_array_equal(x, points(5))
    np.testing.assert_array_equal(y, points(4, seed=1))


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_whole_numbers_and_lists_count_as_float64(kernel):
    x = [[0, 1, 2], [1, 1, 0]]
    expected = kernel(np.array(x, dtype=float))
    np.testing.assert_array_equal(kernel(x), expected)
    np.testing.assert_array_equal(kernel(np.array(x)), expected)


@pytest.mark.parametrize("kernel", EVERY, ids=named)
@pytest.mark.parametrize(("n", "m"), [(0, 4), (4, 0), (0, 0)])
def test_no_points_give_an_empty_matrix(kernel, n, m):
    assert kernel(np.zeros((n, 3)), np.zeros((m, 3))).shape == (n, m)
    assert kernel.diag(np.zeros((n, 3))).shape == (n,)


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_float32_stays_float32_and_near_float64(kernel):
    # Rounding is 6e-8 for values and distances; exponents of up to 20 and three layers magnify it.
    x, y = points(20).astype(np.float32), points(15, seed=1).astype(np.float32)
    got = kernel(x, y)
    assert got.dtype == np.float32
    assert kernel.diag(x).dtype == np.float32
    assert_close(got, kernel(x.astype(np.float64), y.astype(np.float64)), atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("kernel", EVERY, ids=named)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_strict_arrays_give_what_numpy_gives(kernel, dtype):
    # The strict arrays compute with NumPy inside, so only the order of a sum could differ.
    x, y = with_copies().astype(dtype), points(9, seed=1).astype(dtype)
    strict_x, strict_y = array_api_strict.asarray(x), array_api_strict.asarray(y)
    for got, expected in [
        (kernel(strict_x, strict_y), kernel(x, y)),
        (kernel.diag(strict_x), kernel.diag(x)),
    ]:
        assert isinstance(got, type(strict_x))
        assert got.dtype == strict_x.dtype
        assert_close(np.asarray(got), expected, atol=1e-15, rtol=1e-15)


SMALL = [
    rf.SquaredExponential(),
    rf.Matern(0.5),
    rf.Matern(1.5),
    rf.Matern(2.5),
    rf.Matern(0.7),
    rf.Matern(3.7),
    rf.Matern(50.0),
    rf.Matern(0.5) * rf.Matern(1.5),
    1e-5 * rf.SquaredExponential(),
    as_kernel(sk.RBF()),
]


@pytest.mark.parametrize("kernel", SMALL, ids=named)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_value_is_denormal(dtype, kernel):
    # Kernels of falling tails pass the denormal range somewhere between r = 10 and r = 1000.
    r = np.linspace(0.0, 1000.0, 20001, dtype=dtype)[:, None]
    values = kernel(r, np.zeros((1, 1), dtype))
    assert np.all((values == 0.0) | (values >= np.finfo(dtype).smallest_normal))
    assert 0.0 < np.count_nonzero(values) < values.size


@pytest.mark.parametrize(("dtype", "lengthscale"), [(np.float64, 1 / 38), (np.float32, 1 / 14)])
def test_tiny_lengthscale_gives_zero_where_the_formula_is_denormal(dtype, lengthscale):
    r = np.linspace(0.0, 2.0, 401, dtype=dtype)[:, None]
    tiny = np.finfo(dtype).smallest_normal
    plain = np.exp(dtype(-0.5) * (r / dtype(lengthscale)) ** 2)
    assert np.any((plain > 0.0) & (plain < tiny))
    expected = np.where(plain < tiny, dtype(0.0), plain)
    # Near the edge the exponent is 708 (87 in float32), and its rounding is that much magnified.
    got = rf.SquaredExponential(lengthscale)(r, np.zeros((1, 1), dtype))
    np.testing.assert_allclose(got, expected, rtol=2000 * np.finfo(dtype).eps, atol=2 * tiny)
    assert np.all((got == 0.0) | (got >= tiny))


@pytest.mark.parametrize("nu", [*CLOSED, 0.7, 3.7, 50.0, math.inf])
@pytest.mark.parametrize(("dtype", "lengthscale"), [(np.float64, 1e-200), (np.float32, 1e-25)])
def test_points_too_far_apart_to_square_are_refused(dtype, lengthscale, nu):
    with pytest.raises(ValueError, match=r"x must stay below .*, got 1: rescale"):
        rf.Matern(nu, lengthscale)(np.array([[0.0], [1.0]], dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("kernel", "power"),
    [
        (rf.SquaredExponential(), 2),
        (rf.Matern(1.5), 2),
        (rf.Matern(0.7), 2),
        (rf.Linear(), 2),
        (rf.NeuralTangent(2), 4),
    ],
    ids=str,
)
def test_the_largest_points_that_are_taken_overflow_nowhere(kernel, power, dtype):
    size = 0.9e-3 * float(np.finfo(dtype).max) ** (1 / power)
    x = np.array([[-size, size], [size, size], [0.0, 1.0]], dtype)
    values = kernel(x)
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(np.diag(values), kernel.diag(x))
    with pytest.raises(ValueError, match="must stay below"):
        (kernel + rf.kernels.Delta())(2 * x)


def test_negative_denormal_values_vanish_too():
    assert rf.Linear()([[1e-160]], [[-1e-160]]).item() == 0.0


# --- positive semi-definite, whatever the parameters and points ---


lengths = st.floats(0.2, 5.0)
lengthscales = lengths | st.tuples(lengths, lengths)
biases = st.floats(0.0, 2.0)
bases = st.one_of(
    st.builds(rf.SquaredExponential, lengthscales),
    st.builds(rf.Matern, st.sampled_from([*CLOSED, math.inf]) | st.floats(0.05, 60.0), lengthscales),
    st.builds(rf.NeuralTangent, st.integers(1, 4), biases),
    st.builds(rf.Linear, lengthscales, biases),
    st.just(rf.kernels.Delta()),
    st.builds(lambda length: as_kernel(sk.RBF(length)), lengths),
)
kernels = st.recursive(
    bases,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, c: c * a, inner, st.floats(0.01, 10.0)),
    ),
    max_leaves=3,
)
# Coarse coordinates make copies and ties common; fine ones fill in between.
coordinates = st.integers(-3, 3).map(float) | st.floats(-3.0, 3.0)
point_sets = st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=12).map(np.array)


def smallest_eigenvalue(matrix):
    """Relative to the largest entry where that is above 1: rounding is."""
    return np.linalg.eigvalsh(matrix).min() / max(1.0, np.abs(matrix).max())


@settings(deadline=None, derandomize=True, max_examples=150)
@given(bases, point_sets)
def test_kernel_is_positive_semidefinite(kernel, x):
    # Entries are off by 1e-13 at most, eigenvalues by n times that.
    assert smallest_eigenvalue(kernel(x)) >= -1e-10 * len(x)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(kernels, point_sets)
def test_composition_is_positive_semidefinite_and_symmetric(kernel, x):
    matrix = kernel(x)
    assert smallest_eigenvalue(matrix) >= -1e-10 * len(x)
    assert_close(matrix, matrix.T, atol=1e-14, rtol=1e-14)
    assert_close(kernel.diag(x), np.diagonal(matrix), atol=1e-14, rtol=1e-14)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(bases.filter(lambda kernel: not isinstance(kernel, rf.Linear)), point_sets)
def test_unit_kernel_stays_within_one(kernel, x):
    # A few ulps: the tangent kernel divides by a square root, SciPy's Bessel function is good to 1e-14.
    assert np.abs(kernel(x)).max() <= 1.0 + 5e-14
