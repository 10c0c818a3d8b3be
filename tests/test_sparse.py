"""The posterior through inducing points, against the exact one and textbook formulas."""

import copy
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.posterior import Design, engine, inducing, projected
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra
from rewardfree.posterior.growing_factor import GrowingFactor

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


class WithRecent:
    """Kernel ridge regression on covariances of which those of the first points are through inducing ones."""

    def __init__(self, kernel, ridge, points, seen, inducing):
        self.kernel, self.points, self.seen = kernel, points, seen
        self.inner, self.inducing = np.linalg.inv(kernel(inducing) + 1e-12 * np.eye(len(inducing))), inducing
        known = self.through(points, points)
        known[seen:, seen:] = kernel(points[seen:])
        self.outer = np.linalg.inv(known + ridge * np.eye(len(points)))

    def through(self, x, y):
        return self.kernel(x, self.inducing) @ self.inner @ self.kernel(self.inducing, y)

    def cross(self, at):
        cross = self.through(at, self.points)
        cross[:, self.seen :] = self.kernel(at, self.points[self.seen :])
        return cross

    def mean(self, targets, at):
        return self.cross(at) @ self.outer @ targets

    def variance(self, at):
        cross = self.cross(at)
        return self.kernel.diag(at) - np.einsum("qn,nk,qk->q", cross, self.outer, cross)


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
def test_points_that_come_one_by_one_are_conditioned_on_exactly_until_they_are_many(kernel):
    points, more, at = points_of(400), points_of(90, seed=2), points_of(15, seed=1)
    everything = np.concatenate([points, more])
    targets = targets_of(everything)
    sparse = rf.Sparse(kernel, 0.1, 30)
    sparse.extend(points)
    for i, point in enumerate(more, start=1):
        sparse.extend(point[None])
        if i in (
            1,
            10,
            30,
            31,
            62,
            80,
        ):  # 30 wait; the next one, and all of them, are then seen through others
            n, seen = 400 + i, 400 + 31 * (i // 31)
            known = WithRecent(kernel, 0.1, everything[:n], seen, sparse.inducing)
            np.testing.assert_allclose(sparse.std(at) ** 2, known.variance(at), atol=1e-8)
            np.testing.assert_allclose(sparse.mean(targets[:n], at), known.mean(targets[:n], at), atol=1e-7)
            weighted = sparse.basis(at) @ sparse.weights(targets[:n])
            np.testing.assert_allclose(weighted, known.mean(targets[:n], at), atol=1e-7)
            np.testing.assert_array_equal(sparse.basis(at), kernel(at, sparse.basis_points))
            assert len(sparse.basis_points) == len(sparse.inducing) + n - seen
            through = Textbook(kernel, 0.1, everything[:n], sparse.inducing)
            known = through.cross.T @ through.inner @ through.cross
            gain = 0.5 * np.linalg.slogdet(np.eye(n) + known / 0.1)[1]
            assert sparse.information_gain() == pytest.approx(gain, rel=1e-8)
            inverse = np.linalg.inv(known + 0.1 * np.eye(n))
            energy = np.einsum("nc,nk,kc->c", targets[:n], inverse, targets[:n])
            np.testing.assert_allclose(sparse.energy(targets[:n]), energy, rtol=1e-8)
            missed = (inverse @ targets[:n]) / np.diag(inverse)[:, None]
            np.testing.assert_allclose(sparse.missed(targets[:n]), missed, atol=1e-7)


@over_kernels
def test_the_next_queries_count_on_recent_points(kernel):
    _, sparse = posteriors(kernel, 0.1, points_of(200), inducing=30)
    sparse.extend(points_of(20, seed=3, shift=3.0))
    candidates = points_of(50, seed=4, shift=2.0)
    known = WithRecent(kernel, 0.1, sparse.points, 200, sparse.inducing)
    # The covariance of the candidates, from that of all of them at once.
    cross = known.cross(candidates)
    covariance = kernel(candidates) - cross @ known.outer @ cross.T
    chosen, sigma = [], []
    for _ in range(8):
        i = int(np.argmax(np.diag(covariance)))
        chosen.append(i)
        sigma.append(np.sqrt(covariance[i, i]))
        covariance = covariance - np.outer(covariance[i], covariance[i]) / (covariance[i, i] + 0.1)
    rows, said = sparse.greedy(candidates, 8)
    assert rows.tolist() == chosen
    np.testing.assert_allclose(said, sigma, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 60),
    sizes=st.lists(st.integers(1, 12), max_size=8),
    m=st.integers(1, 20),
    ridge=st.sampled_from([1e-3, 0.1, 10.0]),
    kernel=st.sampled_from(KERNELS),
)
def test_however_points_come_sigma_is_within_its_factor_of_the_exact_one(seed, n, sizes, m, ridge, kernel):
    exact, sparse = posteriors(kernel, ridge, points_of(n, seed), m)
    at = points_of(30, seed + 1) * 1.5
    for i, size in enumerate(sizes):
        before, chosen = sparse.std(at), sparse.inducing
        for posterior in (exact, sparse):
            posterior.extend(points_of(size, seed + 2 + i, shift=1.0))
        if len(sparse.basis_points) > m:  # the new ones are recent, and tell all that they can
            assert (sparse.std(at) <= before + 1e-6).all()
            np.testing.assert_array_equal(sparse.inducing, chosen)
    factor = sparse.sigma_factor * (1.0 + 1e-6)  # of rounding
    true, said = exact.std(at), sparse.std(at)
    assert (true <= factor * said + 1e-6).all() and (said <= factor * true + 1e-6).all()
    assert sparse.information_gain() <= exact.information_gain() + 1e-6


def test_with_few_more_points_than_inducing_ones_it_stays_exact():
    exact, sparse = Design(KERNELS[0], ridge=0.1), rf.Sparse(KERNELS[0], 0.1, 100)
    points, at = points_of(100), points_of(25, seed=1)
    targets = targets_of(points)
    for i in range(100):
        for posterior in (exact, sparse):
            posterior.extend(points[i : i + 1])
        if i % 13 == 0:
            np.testing.assert_allclose(sparse.std(at), exact.std(at), atol=1e-7)
            np.testing.assert_allclose(
                sparse.mean(targets[: i + 1], at), exact.mean(targets[: i + 1], at), atol=1e-7
            )
            np.testing.assert_allclose(
                sparse.energy(targets[: i + 1]), exact.energy(targets[: i + 1]), rtol=1e-6
            )
            assert sparse.information_gain() == pytest.approx(exact.information_gain(), rel=1e-6)
    assert sparse.left_out < 1e-8


def test_exploring_one_by_one_where_inducing_points_tell_nothing_goes_on():
    kernel, rng = rf.Matern(2.5, 0.15), np.random.default_rng(0)
    candidates = rng.uniform(size=(200, 2)) * [2.0, 1.0]
    _, sparse = posteriors(kernel, 0.01, rng.uniform(size=(600, 2)), inducing=100)
    asked, largest = [], []
    for _ in range(60):
        sigma = sparse.std(candidates)
        asked.append(int(np.argmax(sigma)))
        largest.append(sigma.max())
        sparse.extend(candidates[asked[-1]][None])
    assert len(set(asked)) == 60 and largest[-1] < 0.5 * largest[0]


def test_many_new_points_where_nothing_was_known_bring_new_inducing_points():
    kernel = rf.Matern(2.5, 1.0)
    _, sparse = posteriors(kernel, 0.1, points_of(2000), inducing=60)
    far = points_of(61, seed=4, shift=20.0)  # 3% more
    for point in far:
        sparse.extend(point[None])
    assert (sparse.inducing.max(axis=1) > 15.0).any()
    assert (sparse.std(far) < 0.8).all()


def test_inducing_points_are_chosen_again_where_much_is_new():
    kernel, near = rf.Matern(2.5, 1.0), points_of(100)
    _, sparse = posteriors(kernel, 0.1, near, inducing=25)
    before = sparse.inducing
    sparse.extend(points_of(20, seed=3, shift=30.0))  # too few
    np.testing.assert_array_equal(sparse.inducing, before)
    far = points_of(20, seed=4, shift=30.0)
    sparse.extend(far)
    assert sparse.inducing.max() > 20.0 and len(sparse) == 140
    assert (sparse.std(far) < 0.8 * np.sqrt(kernel.diag(far))).all()
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
    for size in (3, 1, 64, 200, 2):
        added = rng.normal(size=(size, 5))
        before, other = growing.half_logdet(), growing.copy()
        other.add(added)
        assert growing.half_logdet() == before  # a copy has its own
        growing = other
        matrix += added.T @ added
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(growing.solve(columns), inverse @ columns, rtol=1e-9)
        expected = np.einsum("bm,mk,bk->b", rows, inverse, rows)
        np.testing.assert_allclose(growing.quadratic(rows.copy()), expected, rtol=1e-9)
    white = growing.white(rows.copy())
    np.testing.assert_allclose(white @ white.T, rows @ inverse @ rows.T, rtol=1e-9)
    np.testing.assert_allclose(growing.white(rows[:1].copy()), white[:1], rtol=1e-9)
    assert growing.half_logdet() == pytest.approx(0.5 * np.linalg.slogdet(matrix / 0.3)[1], rel=1e-9)


def test_features_that_are_not_kept_are_computed_again(monkeypatch):
    points, at = points_of(200), points_of(25, seed=1)
    targets, parts = targets_of(np.concatenate([points, at])), [np.arange(3), np.arange(90, 190)]
    _, kept = posteriors(KERNELS[0], 0.1, points, inducing=20)
    kept.extend(at)
    monkeypatch.setattr(projected, "KEPT", 4000)
    _, again = posteriors(KERNELS[0], 0.1, points, inducing=20)
    assert again._seen.features is not None
    again.extend(at)
    assert again._seen.features is None and kept._seen.features.shape == (225, 20)
    for ask in (
        lambda posterior: posterior.mean(targets, at),
        lambda posterior: posterior.missed(targets),
        lambda posterior: posterior.missed(targets, parts),
        lambda posterior: posterior.energy(targets),
        lambda posterior: posterior.std(at),
    ):
        np.testing.assert_allclose(ask(again), ask(kept), rtol=1e-9, atol=1e-9)


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


class Breaks:
    """A kernel that is no number beyond 50."""

    def __call__(self, x, y):
        values = np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=-1))
        values[np.abs(x[:, 0]) > 50.0] = np.nan
        return values

    def diag(self, x):
        return np.ones(len(x))


def test_a_kernel_that_breaks_in_a_later_block_changes_nothing(monkeypatch):
    monkeypatch.setattr(LinearAlgebra, "block", 1000)  # 50 points
    sparse, at = rf.Sparse(Breaks(), 0.1, 20), points_of(5, seed=1)
    broken = np.concatenate([points_of(200, seed=2), [[99.0, 0.0]]])
    with pytest.raises(ValueError, match="finite"):
        sparse.extend(broken)
    assert len(sparse) == 0 and sparse.information_gain() == 0.0 and sparse.points.shape == (0, 0)
    sparse.extend(points_of(100))
    sparse.extend(points_of(7, seed=3))
    said = sparse.std(at), sparse.mean(targets_of(sparse.points), at), sparse.information_gain()
    for more in (broken, broken[-3:]):  # through inducing points, and as recent ones
        with pytest.raises(ValueError, match="finite"):
            sparse.extend(more)
        assert len(sparse) == 107
        np.testing.assert_array_equal(sparse.std(at), said[0])
        np.testing.assert_array_equal(sparse.mean(targets_of(sparse.points), at), said[1])
        assert sparse.information_gain() == said[2]


@pytest.mark.parametrize("error", [np.linalg.LinAlgError("no factor"), MemoryError()], ids=repr)
def test_where_no_other_inducing_points_can_be_had_the_earlier_ones_stay(monkeypatch, error):
    _, sparse = posteriors(KERNELS[0], 0.1, points_of(50), inducing=10)
    before, far = sparse.inducing, points_of(50, seed=1, shift=30.0)

    def fails(*_):
        raise error

    monkeypatch.setattr(projected.InducingPoints, "chosen", fails)
    sparse.extend(far)
    np.testing.assert_array_equal(sparse.inducing, before)
    assert len(sparse) == 100
    known, at = Textbook(KERNELS[0], 0.1, sparse.points, before), points_of(9, seed=2)
    np.testing.assert_allclose(sparse.std(at) ** 2, known.variance(at), atol=1e-8)


def test_what_is_written_to_its_points_changes_nothing():
    _, sparse = posteriors(KERNELS[0], 0.1, points_of(40), inducing=10)
    sparse.extend(points_of(3, seed=1))
    at, targets = points_of(9, seed=2), targets_of(points_of(43))
    said = sparse.std(at), sparse.mean(targets, at)
    for points in (sparse.points, sparse.inducing, sparse.basis_points):
        points[:] = 0.0
    np.testing.assert_array_equal(sparse.std(at), said[0])
    np.testing.assert_allclose(sparse.mean(2.0 * targets, at), 2.0 * said[1])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_it_is_copied_and_sent_to_processes(again):
    _, sparse = posteriors(KERNELS[1], 0.1, points_of(40), inducing=10)
    sparse.extend(points_of(3, seed=1))
    at, other = points_of(9, seed=2), again(sparse)
    np.testing.assert_array_equal(other.std(at), sparse.std(at))
    other.extend(at)
    assert len(other) == 52 and len(sparse) == 43


def test_before_any_point_all_is_empty():
    sparse, at = rf.Sparse(KERNELS[0], 0.1), points_of(4)
    assert sparse.basis(at).shape == (4, 0) and sparse.basis_points.shape == (0, 0)
    assert sparse.weights(np.zeros((0, 2))).shape == (0, 2) and sparse.missed(np.zeros((0, 2))).shape == (
        0,
        2,
    )
    assert sparse.energy(np.zeros((0, 2))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["weights", "energy", "missed"])
def test_one_column_of_targets_hears_how_to_be_one(name):
    _, sparse = posteriors(KERNELS[0], 0.1, points_of(9), inducing=5)
    with pytest.raises(ValueError, match=r"shape \(9, c\), got \(9,\): write targets\[:, None\]"):
        getattr(sparse, name)(np.zeros(9))


def test_more_inducing_points_than_the_pool_has_are_refused():
    with pytest.raises(ValueError, match=r"inducing must be at most 10,000.*got 20,000: an exact posterior"):
        rf.Sparse(KERNELS[0], 0.1, 20_000)
    assert rf.Sparse(KERNELS[0], 0.1, inducing.POOL).most == 10_000


def test_where_every_kernel_value_is_zero_one_point_stands_for_all():
    sparse, exact, at = rf.Sparse(rf.Linear(), 0.1, 10), Design(rf.Linear(), ridge=0.1), points_of(5)
    for points in (np.zeros((20, 2)), np.ones((3, 2))):
        for posterior in (sparse, exact):
            posterior.extend(points)
        np.testing.assert_allclose(sparse.std(at), exact.std(at), atol=1e-9)
    np.testing.assert_allclose(sparse.mean(np.ones(23), at), exact.mean(np.ones(23), at), atol=1e-9)


@pytest.mark.parametrize("ridge", [1e-14, 1e-16, 1e-20])
@over_kernels
def test_a_ridge_below_rounding_is_as_one_of_the_jitter(kernel, ridge):
    points = np.random.default_rng(0).uniform(size=(400, 2))
    targets = targets_of(np.concatenate([points, points[:15]]))
    tiny, known = rf.Sparse(kernel, ridge, 20), rf.Sparse(kernel, 1e-12, 20)
    for posterior in (tiny, known):
        posterior.extend(points)
        posterior.extend(points[:15])
    np.testing.assert_allclose(tiny.std(points), known.std(points), rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(tiny.mean(targets, points), known.mean(targets, points), rtol=0.0, atol=0.05)


class Indefinite:
    def __call__(self, x, y):
        return np.tanh(3.0 * (x @ y.T) - 1.0)

    def diag(self, x):
        return np.tanh(3.0 * (x * x).sum(axis=1) - 1.0)


def test_a_kernel_that_is_none_hears_what_can_be_done():
    with pytest.raises(np.linalg.LinAlgError, match=r"positive semi-definite.*inducing=None") as said:
        rf.Sparse(Indefinite(), 0.01, 50).extend(points_of(300))
    assert "ridge 1e-" not in str(said.value) and "float64" not in str(said.value)


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


def test_large_weights_are_multiplied_with_kernel_values_in_double_precision():
    rng = np.random.default_rng(0)
    kernel = rf.SquaredExponential(2.0) + 1.5 * rf.Linear(bias=1.0)
    points, at = rng.uniform(-1.0, 1.0, (2000, 4)), rng.uniform(-1.0, 1.0, (200, 4))
    targets = np.sin(2.0 * points[:, :1]) + 0.03 * rng.normal(size=(2000, 1))
    double, single = rf.Sparse(kernel, 1e-6, 300), rf.Sparse(kernel, 1e-6, 300, dtype=np.float32)
    for posterior in (double, single):
        posterior.extend(points)
    expected = double.mean(targets, at)
    assert np.abs(single.weights(targets)).sum() > 1e5 * np.abs(expected).max()
    for said in (single.mean(targets, at), single.basis(at) @ single.weights(targets)):
        np.testing.assert_allclose(said, expected, rtol=0.0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.int64, "float16", "no type"])
def test_a_dtype_that_is_none_is_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        rf.Sparse(KERNELS[0], 0.1, dtype=dtype)


def test_a_sparse_posterior_says_what_it_is():
    _, sparse = posteriors(rf.Matern(1.5), 0.5, points_of(30), inducing=10)
    assert repr(sparse) == "Sparse(Matern(nu=1.5, lengthscale=1.0), ridge=0.5, 30 points, 10 inducing)"
    assert isinstance(sparse, rf.posterior.Posterior) and isinstance(sparse, rf.posterior.PointPosterior)
