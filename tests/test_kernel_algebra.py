"""Sums, products and multiples of kernels, kernels from outside, kernels as values, and what is refused."""

import dataclasses
import math

import array_api_strict
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import rewardfree as rf
from kernel_cases import EVERY, OURS, assert_close, named, points
from rewardfree.kernels import Foreign, as_kernel

# --- algebra ---


A, B, C = rf.Matern(1.5, 0.7), rf.NeuralTangent(2, 0.1), rf.Linear(bias=0.3)


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (A + B, lambda a, b, c: a + b),
        (A * B, lambda a, b, c: a * b),
        (2.0 * A, lambda a, b, c: 2.0 * a),
        (A * 3, lambda a, b, c: 3.0 * a),
        (np.float64(2.0) * A, lambda a, b, c: 2.0 * a),
        (A * np.float32(0.5), lambda a, b, c: 0.5 * a),
        (A + B + C, lambda a, b, c: a + b + c),
        (2.0 * (A + B * 3.0) * C, lambda a, b, c: 2.0 * (a + 3.0 * b) * c),
        (A * (B + C), lambda a, b, c: a * b + a * c),
    ],
    ids=named,
)
def test_kernels_add_multiply_and_scale(kernel, formula):
    x, y = points(8), points(6, seed=1)
    # Values are below 100 and go through a handful of operations.
    assert_close(kernel(x, y), formula(A(x, y), B(x, y), C(x, y)), atol=1e-13)
    assert_close(kernel.diag(x), formula(A.diag(x), B.diag(x), C.diag(x)), atol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (A + sk.RBF(0.7), lambda a, s: a + s),
        (A * sk.RBF(0.7), lambda a, s: a * s),
        (2.0 * (A + sk.RBF(0.7)), lambda a, s: 2.0 * (a + s)),
        (A + 2.0 * sk.RBF(0.7), lambda a, s: a + 2.0 * s),
        (rf.kernels.Sum(sk.RBF(0.7), A), lambda a, s: a + s),
        (rf.kernels.Product(sk.RBF(0.7), A), lambda a, s: a * s),
        (rf.kernels.Scaled(sk.RBF(0.7), 3.0), lambda a, s: 3.0 * s),
    ],
    ids=named,
)
def test_sklearn_kernels_join_in(kernel, formula):
    x, y = points(8), points(6, seed=1)
    s = sk.RBF(0.7)
    assert_close(kernel(x, y), formula(A(x, y), s(x, y)), atol=1e-15)
    assert_close(kernel.diag(x), formula(A.diag(x), s.diag(x)), atol=1e-15)


def test_adding_a_delta_adds_to_the_diagonal():
    x = points(8)
    np.testing.assert_array_equal((A + 0.5 * rf.kernels.Delta())(x), A(x) + 0.5 * np.eye(8))


class Cosine:
    """A user's kernel: just the two methods."""

    def __call__(self, x, y):
        return np.cos(x[:, :1] - y[:, 0])

    def diag(self, x):
        return np.ones(len(x))


class OneRow(Cosine):
    def __call__(self, x, y):
        return super().__call__(x, y)[:1]


class NotANumber(Cosine):
    def __call__(self, x, y):
        return np.nan * super().__call__(x, y)


class LongDiagonal(Cosine):
    def diag(self, x):
        return np.ones(len(x) + 1)


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_as_kernel_passes_our_kernels_through(kernel):
    assert as_kernel(kernel) is kernel


def test_as_kernel_wraps_a_sklearn_kernel():
    x, y = points(8), points(6, seed=1)
    kernel = as_kernel(sk.RationalQuadratic(0.7, 1.3))
    assert isinstance(kernel, Foreign)
    np.testing.assert_array_equal(kernel(x, y), sk.RationalQuadratic(0.7, 1.3)(x, y))


def test_as_kernel_wraps_any_object_with_the_two_methods():
    x, y = points(8), points(6, seed=1)
    np.testing.assert_array_equal(as_kernel(Cosine())(x, y), np.cos(x[:, :1] - y[:, 0]))
    np.testing.assert_array_equal(as_kernel(Cosine()).diag(x), np.ones(8))


@pytest.mark.parametrize("kernel", [sk.WhiteKernel(), sk.RBF() + sk.WhiteKernel(1e-3)], ids=named)
def test_white_noise_is_sent_to_the_ridge(kernel):
    with pytest.raises(ValueError, match="white-noise term out of the kernel and pass it as ridge"):
        as_kernel(kernel).diag(points(3))


@pytest.mark.parametrize("other", [None, "rbf", 3.0, np.ones((2, 2)), sk.RBF, rf.Matern, math.cos, object()])
def test_what_is_no_kernel_is_refused(other):
    with pytest.raises(ValueError, match=r"a kernel must offer k\(x, y\) and k.diag\(x\), got"):
        as_kernel(other)


@pytest.mark.parametrize(
    "compose",
    [lambda: A + 1.0, lambda: 1.0 + A, lambda: A * "2", lambda: A * True, lambda: rf.kernels.Sum(A, None)],
)
def test_what_is_no_kernel_cannot_be_composed(compose):
    with pytest.raises(ValueError, match="a kernel must offer"):
        compose()


def test_foreign_kernel_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"must give finite values of shape \(4, 3\), got \(1, 3\)"):
        as_kernel(OneRow())(points(4), points(3))


def test_foreign_kernel_that_gives_nan_is_refused():
    with pytest.raises(ValueError, match="must give finite values"):
        as_kernel(NotANumber())(points(4))


def test_foreign_diagonal_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"must give finite values of shape .*, got"):
        as_kernel(LongDiagonal()).diag(points(4))


# --- kernels as values ---


@pytest.mark.parametrize("kernel", EVERY, ids=named)
def test_kernel_is_frozen(kernel):
    for name in [field.name for field in dataclasses.fields(kernel)]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(kernel, name, 2.0)


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (rf.SquaredExponential(), rf.SquaredExponential(1)),
        (rf.SquaredExponential([1, 2]), rf.SquaredExponential((1.0, 2.0))),
        (rf.SquaredExponential(np.array([1, 2])), rf.SquaredExponential((1.0, 2.0))),
        (rf.Matern(1.5), rf.Matern(np.float64(1.5), np.float32(1.0))),
        (rf.Matern(math.inf, 2), rf.Matern(np.inf, 2.0)),
        (rf.NeuralTangent(2), rf.NeuralTangent(2.0, 0)),
        (rf.Linear(), rf.Linear(1, 0)),
        (rf.kernels.Delta(), rf.kernels.Delta()),
        (2 * A + B, 2.0 * A + B),
        (A * 2, 2 * A),
    ],
    ids=named,
)
def test_kernels_are_equal_and_hash_by_value(one, same):
    assert one == same
    assert hash(one) == hash(same)
    assert {one: "found"}[same] == "found"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (rf.SquaredExponential(), rf.SquaredExponential(2.0)),
        (rf.SquaredExponential(1.0), rf.SquaredExponential((1.0, 1.0))),
        (rf.Matern(1.5), rf.Matern(2.5)),
        (rf.Matern(math.inf), rf.SquaredExponential()),
        (rf.NeuralTangent(1), rf.NeuralTangent(1, 0.1)),
        (A + B, A * B),
        (A + B, B + A),
        (A, 2.0 * A),
        (as_kernel(sk.RBF()), as_kernel(sk.RBF(2.0))),
    ],
    ids=named,
)
def test_different_kernels_are_unequal(one, other):
    assert one != other


@pytest.mark.parametrize("kernel", OURS, ids=named)
def test_repr_reads_back(kernel):
    names = {name: getattr(rf.kernels, name) for name in rf.kernels.__all__} | {"inf": math.inf}
    assert eval(repr(kernel), names) == kernel


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (rf.SquaredExponential(), "SquaredExponential(lengthscale=1.0)"),
        (rf.Matern(1.5, [1, 2]), "Matern(nu=1.5, lengthscale=(1.0, 2.0))"),
        (rf.NeuralTangent(2), "NeuralTangent(depth=2, bias=0.0)"),
        (2 * rf.kernels.Delta(), "Scaled(kernel=Delta(), variance=2.0)"),
        (rf.kernels.Delta() + sk.RBF(), "Sum(left=Delta(), right=Foreign(kernel=RBF(length_scale=1)))"),
    ],
    ids=named,
)
def test_repr_says_what_the_kernel_is(kernel, text):
    assert repr(kernel) == text


# --- what is refused ---


@pytest.mark.parametrize("make", [rf.SquaredExponential, lambda ls: rf.Matern(1.5, ls), rf.Linear])
@pytest.mark.parametrize(
    ("lengthscale", "message"),
    [
        (0, "lengthscale must be positive, got 0"),
        (-1.0, "lengthscale must be positive, got -1.0"),
        ((1.0, 0.0), "lengthscale must be positive, got 0.0"),
        (math.nan, "lengthscale must be finite, got nan"),
        (math.inf, "lengthscale must be finite, got inf"),
        ([1.0, math.nan], "lengthscale must be finite, got nan"),
        ([], "lengthscale must hold one number per dimension, got none"),
        ((1.0, "a"), "lengthscale must be a number, got 'a'"),
        ([[1.0, 2.0]], "lengthscale must be a number"),
    ],
)
def test_bad_lengthscale_is_refused(make, lengthscale, message):
    with pytest.raises(ValueError, match=message):
        make(lengthscale)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rf.Matern(0), "nu must be positive, got 0"),
        (lambda: rf.Matern(-0.5), "nu must be positive, got -0.5"),
        (lambda: rf.Matern(math.nan), "nu must be finite, got nan"),
        (lambda: rf.Matern(-math.inf), "nu must be finite, got -inf"),
        (lambda: rf.Matern("rough"), "nu must be a number, got 'rough'"),
        (lambda: rf.NeuralTangent(0), "depth must be a whole number of at least 1, got 0"),
        (lambda: rf.NeuralTangent(1.5), "depth must be a whole number of at least 1, got 1.5"),
        (lambda: rf.NeuralTangent(None), "depth must be a whole number, got None"),
        (lambda: rf.NeuralTangent(1, -0.1), "bias must be at least 0, got -0.1"),
        (lambda: rf.NeuralTangent(1, math.nan), "bias must be finite, got nan"),
        (lambda: rf.Linear(bias=-0.1), "bias must be at least 0, got -0.1"),
        (lambda: 0 * A, "variance must be positive, got 0"),
        (lambda: A * -1.0, "variance must be positive, got -1.0"),
        (lambda: rf.kernels.Scaled(A, math.inf), "variance must be finite, got inf"),
        (lambda: rf.kernels.Scaled(None, 1.0), "a kernel must offer"),
    ],
)
def test_bad_parameter_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


BAD_POINTS = [
    ([[0.0, np.nan]], "must be finite, got 1 NaN or infinite of 2 values"),
    ([[np.inf, -np.inf]], "must be finite, got 2 NaN or infinite of 2 values"),
    (np.zeros(3), r"must have shape \(n, d\), got \(3,\): .* use x.reshape\(-1, 1\)"),
    (np.zeros((3, 0)), "must have at least one coordinate"),
    (np.zeros((2, 2, 2)), r"must have shape \(n, d\), got \(2, 2, 2\)"),
    ("abc", "must be an array of numbers"),
    ([["a", "b"]], "must be an array of numbers"),
    (np.array([["a", "b"]]), "must be float64 or float32, got <U1"),
    (np.zeros((3, 2), dtype=complex), "must be float64 or float32, got complex128"),
    ([[0.0], [1.0, 2.0]], "must be an array of numbers"),
]
REFUSING = [rf.Matern(1.5), rf.NeuralTangent(1), rf.kernels.Delta(), 2.0 * A + sk.RBF()]


@pytest.mark.parametrize("kernel", REFUSING, ids=named)
@pytest.mark.parametrize(("bad", "message"), BAD_POINTS)
def test_bad_points_are_refused(kernel, bad, message):
    with pytest.raises(ValueError, match="^x " + message):
        kernel(bad)
    with pytest.raises(ValueError, match="^x " + message):
        kernel.diag(bad)
    with pytest.raises(ValueError, match="^y " + message):
        kernel(np.zeros((3, 2)), bad)


@pytest.mark.parametrize("kernel", REFUSING, ids=named)
def test_points_of_two_dimensions_are_refused(kernel):
    with pytest.raises(ValueError, match="y must have 2 coordinates, got 3"):
        kernel(np.zeros((4, 2)), np.zeros((4, 3)))


@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: 2.0 * k, lambda k: A + k, lambda k: k * A])
@pytest.mark.parametrize("make", [rf.SquaredExponential, lambda ls: rf.Matern(3.7, ls), rf.Linear])
def test_wrong_number_of_lengthscales_is_refused(make, wrap):
    kernel = wrap(make((1.0, 2.0)))
    for call in (kernel, kernel.diag):
        with pytest.raises(ValueError, match="lengthscale has 2 entries, the points have 3 coordinates"):
            call(points(4))


@pytest.mark.parametrize("kernel", REFUSING, ids=named)
def test_mixed_kinds_of_array_are_refused(kernel):
    x = points(3)
    for one, other in [(x, array_api_strict.asarray(x)), (array_api_strict.asarray(x), x)]:
        with pytest.raises(ValueError, match="y must be the same kind of array as x"):
            kernel(one, other)


def test_kernel_without_formulas_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        rf.kernels.Kernel()
