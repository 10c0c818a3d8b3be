"""The posterior through inducing points, against the exact one and textbook formulas."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.posterior import Design, engine
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra
from rewardfree.posterior.growing_factor import MOST_WAITING, GrowingFactor

KERNELS = [
    rf.Matern(1.5, (0.5, 1.0)),
    rf.Matern(2.5, 0.7) + 0.3 * rf.Linear(bias=1.0),
    rf.SquaredExponential(0.4),
]
over_kernels = pytest.mark.parametrize("kernel", KERNELS, ids=["matern15", "matern25+linear", "se"])


def points_of(n, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, 2)) + shift


def targets_of(points):
    return np.stack([np.sin(2.0 * points[:, 0]), points[:, 1] ** 2, points @ [1.0, -1.0]], axis=1)


def posteriors(kernel, ridge, points, inducing):
    exact, sparse = Design(kernel, ridge=ridge), rf.Sparse(kernel, ridge, inducing)
    for posterior in (exact, sparse):
        posterior.extend(points)
    return exact, sparse


class Textbook:
    """The formulas of the module with inverses, for inducing points that are given."""

    def __init__(self, kernel, ridge, points, inducing):
        self.kernel, self.ridge, self.inducing = kernel, ridge, inducing
        self.inner = np.linalg.inv(kernel(inducing) + 1e-12 * np.eye(len(inducing)))
        cross = kernel(inducing, points)
        self.cross = cross
        self.outer = np.linalg.inv(ridge * kernel(inducing) + cross @ cross.T)

    def mean(self, targets, at):
        return self.kernel(at, self.inducing) @ self.outer @ self.cross @ targets

    def variance(self, at):
        k = self.kernel(at, self.inducing)
        known = np.einsum("qm,mn,qn->q", k, self.inner - self.ridge * self.outer, k)
        return self.kernel.diag(at) - known


# Every point is inducing: the exact posterior


@over_kernels
@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_with_every_point_inducing_it_is_the_exact_posterior(kernel, ridge):
    points, at = points_of(60), points_of(25, seed=1)
    targets = targets_of(points)
    exact, sparse = posteriors(kernel, ridge, points, inducing=60)
    assert len(sparse) == len(exact) == 60 and sparse.inducing.shape == (60, 2)
    # The jitter of 1e-12 in K_mm, over the ridge, bounds what may differ.
    np.testing.assert_allclose(sparse.mean(targets, at), exact.mean(targets, at), rtol=0.0, atol=1e-7)
    np.testing.assert_allclose(sparse.std(at), exact.std(at), rtol=0.0, atol=1e-7)
    np.testing.assert_allclose(sparse.information_gain(), exact.information_gain(), rtol=1e-6)
    np.testing.assert_allclose(sparse.energy(targets), exact.energy(targets), rtol=1e-6)
    parts = [np.arange(0, 7), np.arange(20, 60), np.array([8])]
    for some in (None, parts):
        np.testing.assert_allclose(
            sparse.missed(targets, some), exact.missed(targets, some), rtol=0.0, atol=1e-6
        )
    chosen, sigma = sparse.greedy(at, 10)
    expected, expected_sigma = exact.greedy(at, 10)
    assert chosen.tolist() == expected.tolist()
    np.testing.assert_allclose(sigma, expected_sigma, atol=1e-7)


def test_without_points_it_is_the_prior():
    sparse, at = rf.Sparse(KERNELS[1], 0.1), points_of(8)
    np.testing.assert_allclose(sparse.std(at), np.sqrt(KERNELS[1].diag(at)))
    assert (sparse.mean(np.empty(0), at) == 0.0).all() and sparse.information_gain() == 0.0
    assert len(sparse) == 0 and sparse.sigma_factor == 1.0 and sparse.points.shape == (0, 0)
    assert sparse.greedy(at, 3)[0].tolist() == Design(KERNELS[1], ridge=0.1).greedy(at, 3)[0].tolist()


# Fewer inducing points: textbook formulas, and bounds


@over_kernels
def test_with_fewer_it_is_the_textbook_formula(kernel):
    points, at = points_of(80), points_of(25, seed=1)
    _, sparse = posteriors(kernel, 0.1, points, inducing=12)
    known = Textbook(kernel, 0.1, points, sparse.inducing)
    targets = targets_of(points)
    np.testing.assert_allclose(sparse.mean(targets, at), known.mean(targets, at), atol=1e-8)
    np.testing.assert_allclose(sparse.mean(targets[:, 0], at), known.mean(targets[:, 0], at), atol=1e-8)
    np.testing.assert_allclose(sparse.std(at) ** 2, known.variance(at), atol=1e-8)
    np.testing.assert_allclose(sparse.basis(at) @ sparse.weights(targets), sparse.mean(targets, at))
    left = kernel.diag(points) - np.einsum("nm,mk,nk->n", known.cross.T, known.inner, known.cross.T)
    assert sparse.left_out == pytest.approx(left.sum(), rel=1e-8)
    approximate = known.cross.T @ known.inner @ known.cross
    gain = 0.5 * np.linalg.slogdet(np.eye(80) + approximate / 0.1)[1]
    assert sparse.information_gain() == pytest.approx(gain, rel=1e-8)
    expected = np.einsum("nc,nc->c", targets, np.linalg.solve(approximate + 0.1 * np.eye(80), targets))
    np.testing.assert_allclose(sparse.energy(targets), expected, rtol=1e-8)


def test_inducing_points_are_those_of_largest_variance_given_the_earlier_ones():
    points, kernel = points_of(30), KERNELS[0]
    _, sparse = posteriors(kernel, 0.1, points, inducing=6)
    chosen = []
    for _ in range(6):
        left = kernel.diag(points)
        if chosen:
            cross = kernel(points, points[chosen])
            left = left - np.einsum("nm,nm->n", cross, np.linalg.solve(kernel(points[chosen]), cross.T).T)
        chosen.append(int(np.argmax(left)))
    np.testing.assert_array_equal(sparse.inducing, points[chosen])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 60),
    m=st.integers(1, 20),
    ridge=st.sampled_from([1e-3, 0.1, 10.0]),
    kernel=st.sampled_from(KERNELS),
)
def test_sigma_is_within_its_factor_of_the_exact_one(seed, n, m, ridge, kernel):
    points, at = points_of(n, seed), points_of(30, seed + 1) * 1.5
    exact, sparse = posteriors(kernel, ridge, points, m)
    factor = sparse.sigma_factor * (1.0 + 1e-6)  # of rounding
    true, said = exact.std(at), sparse.std(at)
    assert (true <= factor * said + 1e-6).all() and (said <= factor * true + 1e-6).all()
    assert sparse.information_gain() <= exact.information_gain() + 1e-6
    assert sparse.left_out >= 0.0 and len(sparse.inducing) <= m


def test_more_inducing_points_leave_less():
    points = points_of(200)
    left = [posteriors(KERNELS[0], 0.1, points, m)[1].left_out for m in (5, 20, 80, 200)]
    assert left == sorted(left, reverse=True) and left[-1] < 1e-9 < left[0]


def test_points_that_tell_nothing_new_are_not_inducing():
    points = np.repeat(points_of(7), 5, axis=0)
    exact, sparse = posteriors(KERNELS[0], 0.1, points, inducing=35)
    assert len(sparse.inducing) == 7
    np.testing.assert_allclose(sparse.std(points), exact.std(points), atol=1e-7)


# Points that come later


@over_kernels
def test_points_that_come_one_by_one_are_as_good_as_all_at_once(kernel):
    points, more, at = points_of(400), points_of(90, seed=2), points_of(15, seed=1)
    targets = targets_of(np.concatenate([points, more]))
    _, at_once = posteriors(kernel, 0.1, points, inducing=30)
    one_by_one = rf.Sparse(kernel, 0.1, 30)
    one_by_one.extend(points)
    at_once.extend(more)
    for i, point in enumerate(more, start=1):
        one_by_one.extend(point[None])
        if i in (1, 10, MOST_WAITING + 1, len(more)):  # while few wait, and after they were taken in
            known = Textbook(kernel, 0.1, one_by_one.points, one_by_one.inducing)
            np.testing.assert_allclose(one_by_one.std(at) ** 2, known.variance(at), atol=1e-8)
            mean = one_by_one.mean(targets[: 400 + i], at)
            np.testing.assert_allclose(mean, known.mean(targets[: 400 + i], at), atol=1e-7)
    np.testing.assert_array_equal(one_by_one.inducing, at_once.inducing)
    np.testing.assert_allclose(one_by_one.std(at), at_once.std(at), atol=1e-9)
    np.testing.assert_allclose(one_by_one.information_gain(), at_once.information_gain(), rtol=1e-9)
    np.testing.assert_allclose(one_by_one.left_out, at_once.left_out, rtol=1e-9)


def test_inducing_points_are_chosen_again_where_much_is_new():
    kernel, near = rf.Matern(2.5, 1.0), points_of(100)
    _, sparse = posteriors(kernel, 0.1, near, inducing=25)
    before = sparse.inducing
    sparse.extend(points_of(20, seed=3, shift=30.0))  # too few
    np.testing.assert_array_equal(sparse.inducing, before)
    far = points_of(20, seed=4, shift=30.0)
    known_before = sparse.std(far)
    sparse.extend(far)
    assert sparse.inducing.max() > 20.0 and len(sparse) == 140
    assert (sparse.std(far) < 0.8 * known_before).all()
    fresh = rf.Sparse(kernel, 0.1, 25)
    fresh.extend(sparse.points)
    np.testing.assert_allclose(sparse.std(far), fresh.std(far), atol=1e-9)


def test_they_stay_where_more_of_the_same_comes():
    _, sparse = posteriors(KERNELS[0], 0.1, points_of(400), inducing=25)
    before = sparse.inducing
    sparse.extend(points_of(400, seed=5))
    np.testing.assert_array_equal(sparse.inducing, before)


def test_what_is_missed_of_parts_is_that_of_a_regression_without_them():
    kernel, points = KERNELS[0], points_of(60)
    targets = targets_of(points)
    _, sparse = posteriors(kernel, 0.1, points, inducing=10)
    parts = [np.arange(3), np.arange(10, 45), np.array([50])]  # one of them larger than 10
    expected = []
    for rows in parts:
        rest = np.setdiff1d(np.arange(60), rows)
        known = Textbook(kernel, 0.1, points[rest], sparse.inducing)
        expected.append(targets[rows] - known.mean(targets[rest], points[rows]))
    np.testing.assert_allclose(sparse.missed(targets, parts), np.concatenate(expected), atol=1e-8)
    each = sparse.missed(targets, [np.array([i]) for i in range(60)])
    np.testing.assert_allclose(sparse.missed(targets), each, atol=1e-8)


def test_what_the_exact_posterior_misses_of_parts_is_that_of_a_regression_without_them():
    kernel, points = KERNELS[1], points_of(40)
    targets = targets_of(points)
    exact = Design(kernel, ridge=0.1)
    exact.extend(points)
    parts = [np.arange(5), np.array([30, 7])]
    for rows, missed in zip(parts, np.split(exact.missed(targets, parts), [5]), strict=True):
        rest = np.setdiff1d(np.arange(40), rows)
        matrix = kernel(points[rest]) + 0.1 * np.eye(len(rest))
        mean = kernel(points[rows], points[rest]) @ np.linalg.solve(matrix, targets[rest])
        np.testing.assert_allclose(missed, targets[rows] - mean, atol=1e-9)


# The matrix of features


def test_a_growing_factor_answers_as_the_matrix_itself():
    rng = np.random.default_rng(0)
    growing, matrix = GrowingFactor(LinearAlgebra(), 5, 0.3), 0.3 * np.eye(5)
    columns, rows = rng.normal(size=(5, 3)), rng.normal(size=(4, 5))
    for size in (3, 1, 1, MOST_WAITING, 1, 200, 2):
        added = rng.normal(size=(size, 5))
        growing.add(added)
        matrix += added.T @ added
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(growing.solve(columns), inverse @ columns, rtol=1e-9)
        expected = np.einsum("bm,mk,bk->b", rows, inverse, rows)
        np.testing.assert_allclose(growing.quadratic(rows.copy()), expected, rtol=1e-9)
    white = growing.white(rows.copy())
    np.testing.assert_allclose(white @ white.T, rows @ inverse @ rows.T, rtol=1e-9)
    assert growing.half_logdet() == pytest.approx(0.5 * np.linalg.slogdet(matrix / 0.3)[1], rel=1e-9)


def test_targets_that_are_changed_in_place_are_other_targets():
    _, sparse = posteriors(KERNELS[0], 0.1, points_of(30), inducing=10)
    targets = targets_of(points_of(30))
    before = sparse.weights(targets)
    targets *= 2.0
    np.testing.assert_allclose(sparse.weights(targets), 2.0 * before)


# Refusals


@pytest.mark.parametrize("inducing", [0, -3, 2.5, None, True, "many"])
def test_a_number_of_inducing_points_that_is_none_is_refused(inducing):
    with pytest.raises(ValueError, match="inducing must be a whole number"):
        rf.Sparse(rf.Matern(1.5), 0.1, inducing)


def test_bad_points_change_nothing():
    _, sparse = posteriors(KERNELS[0], 0.1, points_of(30), inducing=10)
    at = points_of(5, seed=1)
    before = sparse.std(at)
    for points, words in (
        (np.full((2, 2), np.nan), "points must be finite"),
        (np.zeros((2, 3)), "points must have 2 coordinates, got 3"),
        (np.zeros(2), r"points must have shape \(n, d\)"),
    ):
        with pytest.raises(ValueError, match=words):
            sparse.extend(points)
    with pytest.raises(ValueError, match="targets must have shape"):
        sparse.mean(np.zeros(29), at)
    with pytest.raises(ValueError, match="ridge must be positive"):
        rf.Sparse(rf.Matern(1.5), -1.0)
    assert len(sparse) == 30
    np.testing.assert_array_equal(sparse.std(at), before)


def test_a_device_without_torch_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails
    monkeypatch.delitem(sys.modules, "rewardfree.posterior.engine.backend_torch", raising=False)
    monkeypatch.delattr(engine, "backend_torch", raising=False)
    with pytest.raises(ValueError, match=r"needs torch, which is not installed: use device=.cpu."):
        rf.Sparse(KERNELS[0], 0.1, device="cuda")


def test_single_precision_agrees_within_its_digits():
    points, at = points_of(200), points_of(25, seed=1)
    _, double = posteriors(KERNELS[1], 0.1, points, inducing=30)
    single = rf.Sparse(KERNELS[1], 0.1, 30, dtype=np.float32)
    single.extend(points)
    targets = targets_of(points)
    for one, other in (
        (single.mean(targets, at), double.mean(targets, at)),
        (single.std(at), double.std(at)),
        (single.missed(targets), double.missed(targets)),
    ):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("dtype", [np.int64, "float16", "no type"])
def test_a_dtype_that_is_none_is_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        rf.Sparse(KERNELS[0], 0.1, dtype=dtype)


def test_a_sparse_posterior_says_what_it_is():
    _, sparse = posteriors(rf.Matern(1.5), 0.5, points_of(30), inducing=10)
    assert repr(sparse) == "Sparse(Matern(nu=1.5, lengthscale=1.0), ridge=0.5, 30 points, 10 inducing)"
    assert isinstance(sparse, rf.posterior.Posterior) and isinstance(sparse, rf.posterior.PointPosterior)
