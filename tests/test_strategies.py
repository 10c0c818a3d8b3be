"""Query plans against the textbook, and what they leave uncertain."""

import numpy as np
import pytest

import rewardfree as rf

KERNELS = [rf.SquaredExponential(0.3), rf.Matern(1.5, 0.3), rf.Matern(2.5, 0.4), rf.Matern(0.8, 0.3)]


def points(m=50, dim=2, seed=0):
    return np.random.default_rng(seed).random((m, dim))


def square(side):
    axis = np.linspace(0.0, 1.0, side)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def sigma(kernel, z, seen, ridge):
    """sqrt(k(q,q) - k_n(q)^T (K_n + ridge I)^-1 k_n(q)) at all of z, by a dense inverse."""
    cross = kernel(z, z[seen])
    inverse = np.linalg.inv(kernel(z[seen], z[seen]) + ridge * np.eye(len(seen)))
    return np.sqrt(np.maximum(kernel.diag(z) - np.sum((cross @ inverse) * cross, axis=1), 0.0))


def textbook(kernel, z, n, ridge, tie=0.0):
    """Alg 2 line by line; also the smallest lead of a choice over the next best, the first choice aside."""
    plan, lead = [], np.inf
    for i in range(n):
        std = sigma(kernel, z, np.array(plan, int), ridge)
        plan.append(int(np.flatnonzero(std >= std.max() * (1.0 - tie))[0]))
        if i:
            best = np.sort(std)
            lead = min(lead, best[-1] - best[-2])
    return plan, lead


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("ridge", [0.5, 0.01])
def test_plan_is_the_textbooks(kernel, ridge):
    expected, lead = textbook(kernel, points(), 30, ridge)
    assert lead > 1e-8  # no ties: rounding decides nothing
    plan = rf.query_plan(rf.Model(kernel, ridge=ridge), points(), 30)
    assert plan.tolist() == expected
    assert plan.dtype == np.int64


@pytest.mark.parametrize("kernel", [*KERNELS, rf.NeuralTangent(2)], ids=repr)
def test_ties_go_to_the_lowest_index(kernel):
    expected, lead = textbook(kernel, square(5), 25, 0.1, tie=1e-12)
    assert lead < 1e-13
    assert rf.query_plan(rf.Model(kernel, ridge=0.1), square(5), 25).tolist() == expected


def test_corners_of_a_square_come_in_order():
    model = rf.Model(rf.SquaredExponential(0.4), ridge=0.1)
    assert rf.query_plan(model, square(3), 5).tolist() == [0, 8, 2, 6, 4]


def test_repeated_candidates_are_asked_at_the_first():
    z = np.concatenate([points(10), points(10)])
    plan = rf.query_plan(rf.Model(rf.Matern(1.5, 0.2), ridge=0.1), z, 30)
    assert plan.max() < 10


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_shorter_plan_is_the_beginning(kernel):
    model = rf.Model(kernel, ridge=0.1)
    long = rf.query_plan(model, points(), 20)
    assert rf.query_plan(model, points(), 10).tolist() == long[:10].tolist()


def test_no_queries():
    plan = rf.query_plan(rf.Model(rf.kernels.Delta(), ridge=1.0), points(), 0)
    assert plan.shape == (0,) and plan.dtype == np.int64


def test_plan_repeats_and_leaves_random_numbers_alone():
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.5)
    before = np.random.get_state(legacy=False)  # noqa: NPY002  the global state is what is looked at
    first, second = (rf.query_plan(model, square(20), 40) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert repr(np.random.get_state(legacy=False)) == repr(before)  # noqa: NPY002


def test_plan_leaves_the_candidates_alone():
    z = points()
    rf.query_plan(rf.Model(rf.Matern(1.5, 0.3), ridge=0.5), z, 10)
    assert np.array_equal(z, points())


def test_delta_visits_every_candidate_before_any_again():
    plan = rf.query_plan(rf.Model(rf.kernels.Delta(), ridge=0.3), points(17), 3 * 17)
    assert plan.reshape(3, 17).tolist() == [list(range(17))] * 3


def test_a_single_candidate_is_asked_again():
    assert rf.query_plan(rf.Model(rf.Matern(0.5), ridge=0.1), [[0.5]], 4).tolist() == [0, 0, 0, 0]


def test_candidates_may_be_lists_of_whole_numbers():
    assert rf.query_plan(rf.Model(rf.kernels.Delta(), ridge=0.1), [[0], [1], [2]], 4).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("kernel", [*KERNELS, 2.5 * rf.Matern(1.5, 0.2), rf.Linear(bias=1.0)], ids=repr)
@pytest.mark.parametrize("ridge", [0.5, 0.01])
def test_path_of_a_plan(kernel, ridge):
    model = rf.Model(kernel, ridge=ridge)
    plan = rf.query_plan(model, points(), 30)
    path = rf.strategies.uncertainty_path(model, points(), plan, map_after=[0, 7, 30])
    assert path.at_query.shape == (30,)
    assert path.largest.shape == path.information_gain.shape == (31,)
    np.testing.assert_allclose(path.at_query, path.largest[:-1], rtol=2e-12)
    assert np.all(np.diff(path.largest) <= 0.0)
    gains = np.cumsum(0.5 * np.log1p(path.at_query**2 / ridge))
    assert path.information_gain[0] == 0.0
    np.testing.assert_allclose(path.information_gain[1:], gains, rtol=1e-12)
    assert sorted(path.maps) == [0, 7, 30]
    for n, std in path.maps.items():
        assert std.max() == path.largest[n]
        np.testing.assert_allclose(std**2, sigma(kernel, points(), plan[:n], ridge) ** 2, atol=1e-12)


def test_gain_is_the_log_determinant():
    kernel, ridge = rf.Matern(2.5, 0.3), 0.2
    queries = [3, 1, 4, 1, 5, 9, 2, 6]
    path = rf.strategies.uncertainty_path(rf.Model(kernel, ridge=ridge), points(), queries)
    for n in range(9):
        z = points()[queries[:n]]
        expected = 0.5 * np.linalg.slogdet(np.eye(n) + kernel(z, z) / ridge)[1]
        np.testing.assert_allclose(path.information_gain[n], expected, rtol=1e-12, atol=1e-15)


def test_path_of_any_queries():
    kernel, queries = rf.SquaredExponential(0.2), [3, 1, 4, 1, 5]
    path = rf.strategies.uncertainty_path(rf.Model(kernel, ridge=0.2), points(), queries)
    expected = [sigma(kernel, points(), queries[:i], 0.2) for i in range(6)]
    np.testing.assert_allclose(path.at_query, [expected[i][q] for i, q in enumerate(queries)], rtol=1e-12)
    np.testing.assert_allclose(path.largest, [std.max() for std in expected], rtol=1e-12)
    assert path.maps == {}


def test_path_of_no_queries():
    path = rf.strategies.uncertainty_path(
        rf.Model(4.0 * rf.kernels.Delta(), ridge=1.0), points(), [], map_after=[0]
    )
    assert path.at_query.shape == (0,)
    assert path.largest.tolist() == [2.0] and path.information_gain.tolist() == [0.0]
    assert path.maps[0].tolist() == [2.0] * 50


@pytest.mark.parametrize("n", [-1, 2.5, True, "3", None, np.nan, np.inf])
def test_number_of_queries_must_be_whole(n):
    with pytest.raises(ValueError, match="n must be a whole number"):
        rf.query_plan(rf.Model(rf.kernels.Delta(), ridge=1.0), points(), n)


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        ([0.0, 1.0], r"candidates must have shape \(n, d\)"),
        ([[0.0], [np.nan]], "candidates must be finite"),
        (np.zeros((0, 2)), "candidates must hold at least one point"),
        (np.zeros((3, 0)), "candidates must have at least one coordinate"),
        ("everywhere", "candidates must be an array of numbers"),
    ],
)
def test_candidates_must_be_points(candidates, said):
    model = rf.Model(rf.kernels.Delta(), ridge=1.0)
    with pytest.raises(ValueError, match=said):
        rf.query_plan(model, candidates, 2)
    with pytest.raises(ValueError, match=said):
        rf.strategies.uncertainty_path(model, candidates, [0])


def test_lengthscales_must_fit_the_candidates():
    with pytest.raises(ValueError, match="lengthscale has 3 entries, the points have 2"):
        rf.query_plan(rf.Model(rf.Matern(1.5, (1.0, 2.0, 3.0)), ridge=1.0), points(), 2)


@pytest.mark.parametrize("query", [-1, 50])
def test_queries_must_be_candidates(query):
    with pytest.raises(ValueError):
        rf.strategies.uncertainty_path(rf.Model(rf.kernels.Delta(), ridge=1.0), points(), [0, query])


@pytest.mark.parametrize("moments", [[7], [-1], [0.5]])
def test_a_map_after_more_queries_than_there_are_is_refused(moments):
    model = rf.Model(rf.kernels.Delta(), ridge=1.0)
    with pytest.raises(ValueError, match=r"map_after must (lie in 0\.\.1|be a whole number)"):
        rf.strategies.uncertainty_path(model, np.eye(3), [0], moments)
