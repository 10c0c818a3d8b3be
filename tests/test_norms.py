"""Norms on finite sets: linear solves, closed forms, all corners of the values."""

import itertools
import math

import numpy as np
import pytest

import rewardfree as rf
from reference_theory import grid, scattered
from rewardfree.theory import norms

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    "kernel", [rf.Matern(1.5, 0.3), rf.Matern(0.5, 0.2), 3.0 * rf.Matern(1.5, 0.3)], ids=str
)
def test_norms_approach_that_of_a_known_function_from_below(kernel):
    points, rng = scattered(25, seed=2), np.random.default_rng(0)
    a = rng.normal(size=(8, 3))
    exact = np.sqrt(np.einsum("ic,ij,jc->c", a, kernel(points[:8]), a))
    curve = norms.norm_curve(kernel, points, kernel(points, points[:8]) @ a)
    assert curve.norms.shape == (len(norms.JITTERS), 3)
    assert np.all(np.diff(curve.jitters) < 0.0)
    assert np.all(np.diff(curve.norms, axis=0) >= -1e-12 * exact)
    assert np.all(curve.norms <= exact * (1 + 1e-9))
    # A jitter j takes a share j/lambda of each component; the smallest eigenvalue is above 1e-5 here.
    np.testing.assert_allclose(curve.norms[-1], exact, rtol=1e-6)
    assert np.all(curve.norms[0] < 0.999 * exact)
    np.testing.assert_allclose(curve.grows, 1.0, atol=1e-4)


def test_norms_are_those_of_a_linear_solve():
    kernel, points, f = 2.0 * rf.Matern(2.5, 0.4), scattered(12), np.sin(9.0 * scattered(12)[:, 0])
    curve = norms.norm_curve(kernel, points, f, jitters=[1e-3, 1e-1, 1e-2])
    np.testing.assert_array_equal(curve.jitters, [1e-1, 1e-2, 1e-3])
    # Jitters are relative to the largest entry, which is 2.
    expected = [
        math.sqrt(f @ np.linalg.solve(kernel(points) + 2.0 * j * np.eye(12), f)) for j in curve.jitters
    ]
    np.testing.assert_allclose(curve.norms[:, 0], expected, rtol=1e-11)
    np.testing.assert_allclose(curve.grows, [expected[2] / expected[1]], rtol=1e-11)


def test_the_norm_of_a_constant_under_the_exponential_kernel():
    # A Markov chain of correlation rho = exp(-h/l): 1^T K^-1 1 = 1 + (n-1) tanh(h/(2l)), up to 1 + 1/(2l).
    for n, length in ((2, 0.5), (50, 0.1), (300, 0.1)):
        curve = norms.norm_curve(rf.Matern(0.5, length), grid(n, 1), np.ones(n))
        exact = math.sqrt(1.0 + (n - 1) * math.tanh(0.5 / (length * (n - 1))))
        assert curve.norms[-1, 0] == pytest.approx(exact, rel=1e-9)
        assert exact < math.sqrt(1.0 + 0.5 / length)


def test_the_constant_of_the_published_kernels_has_norm_five_and_none_under_the_squared_exponential():
    points = grid(21, 2)
    for nu in (1.5, 2.5):
        curve = norms.norm_curve(rf.Matern(nu, 0.1), points, np.ones(441))
        assert curve.norms[-1, 0] == pytest.approx(5.0, abs=0.1)
        assert curve.grows[0] < 1.001
    smooth = norms.norm_curve(rf.SquaredExponential(0.3), points, np.ones(441))
    assert smooth.grows[0] > 1.02


def test_zero_has_norm_zero_and_grows_like_nothing():
    curve = norms.norm_curve(rf.Matern(1.5), scattered(5), np.zeros((5, 2)))
    np.testing.assert_array_equal(curve.norms, 0.0)
    np.testing.assert_array_equal(curve.grows, 1.0)
    alone = norms.norm_curve(rf.Matern(1.5), scattered(5), np.ones(5), jitters=[1e-3])
    np.testing.assert_array_equal(alone.grows, [1.0])


@pytest.mark.parametrize("concentration", [0.1, 1.0, 50.0])
@pytest.mark.parametrize(
    "kernel", [rf.Matern(1.5, 0.3), rf.SquaredExponential(0.2), 0.5 * rf.kernels.Delta()], ids=str
)
def test_norms_of_laws_bound_the_norm_of_every_expectation(kernel, concentration):
    rng, points = np.random.default_rng(0), scattered(15)
    law = rng.dirichlet(np.full(6, concentration), size=15)
    laws = norms.law_norms(kernel, points, law)
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
    values = np.concatenate([corners, rng.uniform(size=(50, 6))])
    top = kernel(points).max()
    for i, jitter in enumerate(laws.jitters):
        K = kernel(points) + jitter * top * np.eye(15)
        # Rounding of the kernel over the jitter: 1e-4 of the smallest one's part at worst.
        tolerance = 1e-12 + 1e-15 / jitter

        def norm(f, K=K):
            return np.sqrt((f * np.linalg.solve(K, f)).sum(axis=0))

        sizes = norm(law @ values.T)
        assert sizes.max() <= laws.bound[i] * (1 + tolerance)
        assert laws.one[i] == pytest.approx(norm(np.ones((15, 1)))[0], rel=tolerance)
        assert laws.one[i] <= laws.bound[i] * (1 + tolerance)
        assert laws.largest[i] == pytest.approx(norm(law).max(), rel=tolerance)
        assert laws.total[i] == pytest.approx(norm(law).sum(), rel=tolerance)
        G = law.T @ np.linalg.solve(K, law)
        assert laws.root[i] == pytest.approx(math.sqrt(np.abs(G).sum()), rel=tolerance)
    np.testing.assert_array_equal(laws.bound, np.minimum(laws.total, laws.root))


def test_a_law_that_forgets_where_it_came_from_has_the_norm_of_the_constant():
    laws = norms.law_norms(rf.Matern(1.5, 0.3), scattered(10), np.tile([0.5, 0.3, 0.2], (10, 1)))
    for bound in (laws.total, laws.root, laws.bound):
        np.testing.assert_allclose(bound, laws.one, rtol=1e-10)
    np.testing.assert_allclose(laws.largest, 0.5 * laws.one, rtol=1e-10)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: norms.norm_curve(rf.kernels.Delta(), np.zeros((4001, 1)), np.ones(4001)),
            "at most 4000 points",
        ),
        (
            lambda: norms.norm_curve(rf.kernels.Delta(), scattered(4), np.ones(3)),
            "one row for each of 4 points",
        ),
        (lambda: norms.norm_curve(rf.kernels.Delta(), scattered(4), np.ones((4, 1, 1))), "one row for each"),
        (
            lambda: norms.norm_curve(rf.kernels.Delta(), scattered(4), [1, 2, np.nan, 0]),
            "values must be finite",
        ),
        (
            lambda: norms.norm_curve(rf.kernels.Delta(), scattered(4), np.ones(4), [1e-3, 0.0]),
            "jitters must be pos",
        ),
        (
            lambda: norms.norm_curve(rf.kernels.Delta(), scattered(4), np.ones(4), [-1e-3]),
            "jitters must be positive",
        ),
        (
            lambda: norms.norm_curve(rf.kernels.Delta(), scattered(4), np.ones(4), []),
            "jitters must be positive",
        ),
        (
            lambda: norms.law_norms(rf.kernels.Delta(), scattered(4), np.ones((4, 2, 1))),
            "law must have one row",
        ),
        (lambda: norms.law_norms(rf.kernels.Delta(), scattered(4), np.ones((5, 2))), "law must have one row"),
    ],
)
def test_norms_refuse_what_they_cannot_do(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()
