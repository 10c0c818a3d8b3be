"""Products of a kernel and weights, the weights of a design, and greedy choices: against dense algebra."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import rewardfree as rf
from rewardfree.posterior import products
from rewardfree.posterior.products import weighted

KERNELS = [
    rf.SquaredExponential((0.4, 0.7)),
    rf.Matern(0.5, 0.5),
    rf.Matern(1.5, 0.5),
    rf.Matern(2.5, (0.4, 0.7)),
    rf.Matern(math.inf, 0.5),
    rf.Matern(0.8, 0.5),
    rf.Linear((0.5, 2.0), bias=0.3),
    rf.NeuralTangent(depth=2, bias=0.1),
    rf.kernels.Delta(),
    0.7 * rf.Matern(2.5, 0.3) + 2.0 * rf.Linear(bias=1.0),
    rf.Matern(1.5, 0.4) * rf.Linear(bias=1.0),
]


def points(n, seed=0, dim=2):
    return np.random.default_rng(seed).random((n, dim))


# --- products of a kernel and weights ---


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_products_are_those_of_the_whole_matrix(kernel):
    x, y, weights = points(37), points(23, 1), np.random.default_rng(2).standard_normal((23, 3))
    # r^2 as a difference is good to 1e-15; t = sqrt(r^2) of the others is not used near 0 here.
    np.testing.assert_allclose(weighted(kernel, x, y, weights), kernel(x, y) @ weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_products_at_the_points_themselves_keep_half_the_digits_at_least(kernel):
    """r^2 = 1e-16 may stand for 0; the Matern kernels used here fall with r^2 there: 1 - k is as small."""
    x = 100.0 + points(30)
    weights = np.random.default_rng(2).standard_normal((30, 2))
    error = np.abs(weighted(kernel, x, x, weights) - kernel(x, x) @ weights)
    assert error.max() <= 1e-10 * np.abs(kernel(x, x)).max() * np.abs(weights).sum()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_products_do_not_depend_on_the_blocks(kernel, monkeypatch):
    x, y, weights = points(37), points(23, 1), np.random.default_rng(2).standard_normal((23, 3))
    whole = weighted(kernel, x, y, weights)
    monkeypatch.setattr(products, "BLOCK", 50)  # two rows at a time
    np.testing.assert_allclose(weighted(kernel, x, y, weights), whole, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_products_at_no_points_are_empty(kernel):
    assert weighted(kernel, np.empty((0, 2)), points(4), np.ones((4, 3))).shape == (0, 3)


# --- Design.weights and Design.greedy ---


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_weights_are_the_solution(kernel, columns):
    z, y = points(20), np.random.default_rng(1).standard_normal((20, columns))
    design = rf.posterior.Design(kernel, ridge=0.1)
    design.extend(z[:7])
    design.extend(z[7:])
    weights = design.weights(y)
    np.testing.assert_allclose(weights, reference.inverse(kernel, z, 0.1) @ y, rtol=0, atol=1e-10)
    q = points(9, 2)
    np.testing.assert_allclose(kernel(q, z) @ weights, design.mean(y, q), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_greedy_choices_are_the_query_plan(kernel):
    candidates = points(60)
    chosen, sigma = rf.posterior.Design(kernel, ridge=0.2).greedy(candidates, 15)
    model = rf.Model(kernel, ridge=0.2)
    np.testing.assert_array_equal(chosen, rf.query_plan(model, candidates, 15))
    path = rf.strategies.uncertainty_path(model, candidates, chosen)
    np.testing.assert_allclose(sigma, path.at_query, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sigma, path.largest[:-1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_greedy_choices_after_data_are_those_of_refits(kernel):
    seen, candidates, ridge = points(12, 3), points(40), 0.05
    design = rf.posterior.Design(kernel, ridge=ridge)
    design.extend(seen)
    chosen, sigma = design.greedy(candidates, 6)
    for index, claimed in zip(chosen, sigma, strict=True):
        variance = reference.variance(kernel, seen, ridge, candidates)
        assert variance[index] == pytest.approx(variance.max(), rel=1e-9)
        assert claimed == pytest.approx(math.sqrt(variance.max()), abs=1e-8)
        seen = np.concatenate([seen, candidates[index : index + 1]])
    assert len(design) == 12  # it only asked


def test_greedy_ties_go_to_the_lowest_index():
    chosen, _ = rf.posterior.Design(rf.kernels.Delta(), ridge=0.1).greedy(points(5), 7)
    np.testing.assert_array_equal(chosen, [0, 1, 2, 3, 4, 0, 1])


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(0, 6), st.integers(1, 12))
def test_greedy_sigma_never_rises(seed, known, queries):
    design = rf.posterior.Design(rf.Matern(1.5, 0.3), ridge=0.01)
    design.extend(points(known, seed % 1000 + 1))
    _, sigma = design.greedy(points(20, seed), queries)
    assert (np.diff(sigma) <= 1e-12).all()
