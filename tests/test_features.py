"""The posterior in the space of features against its kernel form phi(z)^T phi(z')."""

import math

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.posterior import BasisPosterior, FeatureDesign, FeatureLattice, Posterior, Posteriors
from strict_backend import StrictBackend

#: Asked for; rounding alone lies between two solves of matrices of condition 100.
CLOSE = {"rtol": 0, "atol": 1e-10}


class KernelOf:
    """phi(z)^T phi(z')."""

    def __init__(self, features):
        self.features = features

    def __call__(self, x, y=None):
        return self.features(x) @ self.features(x if y is None else y).T

    def diag(self, x):
        return (self.features(x) ** 2).sum(axis=1)


def waves(z):
    return np.concatenate([np.cos(3.0 * z), np.sin(5.0 * z), np.ones((len(z), 1))], axis=1)


MAPS = [rf.posterior.PolynomialFeatures(3), waves]
RIDGES = [1.0, 0.05]


def points(m, seed=0):
    return np.random.default_rng(seed).random((m, 2))


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("features", MAPS)
def test_a_feature_design_is_the_kernel_form(features, ridge):
    z, at, y = points(30), points(20, 1), np.random.default_rng(2).standard_normal((30, 3))
    ours = FeatureDesign(features, ridge=ridge)
    kernel = rf.posterior.Design(KernelOf(features), ridge=ridge)
    assert (
        isinstance(ours, Posterior)
        and isinstance(ours, BasisPosterior)
        and isinstance(kernel, BasisPosterior)
    )
    np.testing.assert_allclose(ours.std(at), kernel.std(at), **CLOSE)  # the prior
    assert ours.mean(np.empty((0, 3)), at).shape == (20, 3)
    for part in (slice(0, 1), slice(1, 12), slice(12, 30)):
        ours.extend(z[part])
        kernel.extend(z[part])
    np.testing.assert_allclose(ours.mean(y, at), kernel.mean(y, at), **CLOSE)
    np.testing.assert_allclose(ours.mean(y[:, 0], at), kernel.mean(y[:, 0], at), **CLOSE)
    np.testing.assert_allclose(ours.std(at), kernel.std(at), **CLOSE)
    np.testing.assert_allclose(ours.information_gain(), kernel.information_gain(), **CLOSE)
    np.testing.assert_allclose(ours.basis(at) @ ours.weights(y), kernel.mean(y, at), **CLOSE)
    assert len(ours) == 30


@pytest.mark.parametrize("backend", ["numpy", "strict"])
@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("features", MAPS)
def test_a_feature_lattice_is_the_kernel_form(features, ridge, backend):
    z, rng = points(25), np.random.default_rng(3)
    ours = FeatureLattice(features, z, ridge=ridge, designs=3, capacity=2)
    if backend == "strict":
        ours._backend = StrictBackend()
        ours._build(ours._backend.array(z), 3, 2)
    kernel = rf.posterior.Lattice(KernelOf(features), z, ridge=ridge, designs=3)
    assert isinstance(ours, Posteriors)
    for move in range(8):
        for posteriors, added in zip((ours, kernel), [rng.integers(0, 25, (3, 4))] * 2, strict=True):
            if move % 3 == 0:
                posteriors.extend_each(added)
            elif move % 3 == 1:
                posteriors.append([2, 0], added[:2, 0])
            else:
                posteriors.append(None, added[:, 0])
        for designs in ([2, 0], slice(1, 3), None):
            n = ours.length(designs)
            assert n == kernel.length(designs)
            y = rng.standard_normal((3 if designs is None else 2, n, 2))
            for where in ({}, {"rows": np.array([3, 3, 24])}, {"at": z[[5, 6]]}):
                for ask in ("mean", "std"):
                    given = (y,) if ask == "mean" else ()
                    found = (getattr(each, ask)(*given, designs=designs, **where) for each in (ours, kernel))
                    np.testing.assert_allclose(*map(np.asarray, found), **CLOSE)
        gains = np.asarray(ours.information_gain()), kernel.information_gain()
        np.testing.assert_allclose(*gains, **CLOSE)


def test_a_lattice_of_no_points_is_the_prior():
    z = points(9)
    ours = FeatureLattice(waves, z, designs=2)
    np.testing.assert_allclose(ours.std()[1], np.linalg.norm(waves(z), axis=1), **CLOSE)
    assert ours.mean(np.zeros((2, 0, 3))).shape == (2, 9, 3)
    assert ours.mean(np.zeros((2, 0))).tolist() == [[0.0] * 9] * 2


def test_a_table_is_the_map_at_every_candidate():
    z = points(12)
    by_map, by_table = FeatureLattice(waves, z), FeatureLattice(waves(z), z)
    for lattice in (by_map, by_table):
        lattice.extend(z[[3, 1, 3]])
    np.testing.assert_array_equal(by_map.std(), by_table.std())


def test_polynomials_are_all_monomials_and_at_most_one_long():
    z = points(50)
    phi = rf.posterior.PolynomialFeatures(2)(z)
    x, y = z.T
    expected = np.stack([np.ones(50), x, y, x * x, x * y, y * y], axis=1) / math.sqrt(6)
    np.testing.assert_allclose(phi, expected, rtol=1e-15)
    assert np.linalg.norm(phi, axis=1).max() <= 1.0
    assert rf.posterior.PolynomialFeatures(0)(z).tolist() == [[1.0]] * 50


def test_waves_are_all_products_of_cosines_and_at_most_one_long():
    z = points(50)
    phi = rf.posterior.FourierFeatures(2)(z)
    x, y = np.pi * z.T
    products = [np.ones(50), np.cos(x), np.cos(y), np.cos(2 * x), np.cos(x) * np.cos(y), np.cos(2 * y)]
    np.testing.assert_allclose(phi, np.stack(products, axis=1) / math.sqrt(6), rtol=0, atol=1e-15)
    assert np.linalg.norm(rf.posterior.FourierFeatures(4)(10.0 * z - 5.0), axis=1).max() <= 1.0
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(np.linalg.norm(rf.posterior.FourierFeatures(5)(corners), axis=1), 1.0)


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (
            rf.posterior.PolynomialFeatures,
            r"got the class PolynomialFeatures: call it, as in PolynomialFeatures",
        ),
        ("abc", "rows of numbers, all of one length, or a function"),
        ([[1.0, 2.0], [3.0]], "rows of numbers, all of one length, or a function"),
        (np.ones((2, 2), complex), "features must be float64 or float32, got complex128$"),
    ],
)
def test_what_is_no_map_and_no_table_is_told_what_to_do(features, said):
    with pytest.raises(ValueError, match=said):
        rf.baselines.LinearRewardFree(features, 0.1)


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (lambda z: z[:, 0], "features must map points of shape"),
        (lambda z: z[:3], "features must map points of shape"),
        (lambda z: z[:, :0], "features must map points of shape"),
        (lambda z: z * np.nan, "features must be finite"),
        (lambda z: ["a"] * len(z), "features must be an array of numbers"),
        (np.ones((5, 2)), "features must have a row for each of 9 pairs"),
    ],
)
def test_features_of_the_wrong_shape_are_refused(features, said):
    with pytest.raises(ValueError, match=said):
        FeatureLattice(features, points(9))
    if callable(features):
        with pytest.raises(ValueError, match=said):
            FeatureDesign(features).extend(points(9))


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="must be a function"):
        FeatureDesign(np.ones((3, 2)))
    with pytest.raises(ValueError, match="ridge must be positive"):
        FeatureDesign(waves, ridge=0)
    with pytest.raises(ValueError, match="degree must be a whole number"):
        rf.posterior.PolynomialFeatures(1.5)
    with pytest.raises(ValueError, match="at most 4096 features"):
        rf.posterior.PolynomialFeatures(90)(points(3))
    with pytest.raises(ValueError, match=r"points must have shape \(n, d\), got \(2,\)"):
        rf.posterior.PolynomialFeatures(2)([0.1, 0.2])
    design = FeatureDesign(waves)
    design.extend(points(3))
    with pytest.raises(ValueError, match="points must have 2 coordinates"):
        design.std(np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"targets must have shape \(3,\)"):
        design.mean(np.zeros(2), points(3))
