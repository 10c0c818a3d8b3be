"""How [PV] is estimated: the fields of a model and what it makes of them."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sklearn_kernels

import rewardfree as rf

Z = np.random.default_rng(0).random((12, 2))


def test_fields():
    model = rf.Model(rf.Matern(1.5, 0.1), ridge=0.5)
    assert (model.kernel, model.ridge, model.pooled, model.centred) == (
        rf.Matern(1.5, 0.1),
        0.5,
        False,
        False,
    )
    model = rf.Model(rf.kernels.Delta(), 2, pooled=True, centred=True)
    assert (model.ridge, model.pooled, model.centred) == (2.0, True, True)
    assert isinstance(model.ridge, float)


def test_model_is_a_value():
    model = rf.Model(rf.Matern(1.5, 0.1), ridge=0.5)
    assert model == rf.Model(rf.Matern(1.5, 0.1), ridge=np.float64(0.5))
    assert model != rf.Model(rf.Matern(1.5, 0.1), ridge=0.5, centred=True)
    assert hash(model) == hash(rf.Model(rf.Matern(1.5, 0.1), ridge=0.5))
    with pytest.raises(FrozenInstanceError):
        model.ridge = 1.0


def test_kernels_of_others_are_taken():
    model = rf.Model(sklearn_kernels.Matern(length_scale=0.3, nu=1.5), ridge=0.5)
    assert isinstance(model.kernel, rf.kernels.Kernel)
    np.testing.assert_allclose(model.kernel(Z), rf.Matern(1.5, 0.3)(Z), rtol=1e-12)


@pytest.mark.parametrize("kernel", [None, "matern", rf.Matern, lambda x, y: x @ y.T, 1.0])
def test_kernel_must_be_one(kernel):
    with pytest.raises(ValueError, match="a kernel must offer"):
        rf.Model(kernel, ridge=0.5)


def test_ridge_must_be_given():
    with pytest.raises(ValueError, match="ridge must be given with a fixed kernel, got None: for example"):
        rf.Model(rf.kernels.Delta())
    with pytest.raises(ValueError, match="ridge must be given"):
        rf.Model(rf.kernels.Delta(), ridge=None)


@pytest.mark.parametrize("ridge", [0, 0.0, -0.0, -1.0])
def test_ridge_must_be_positive(ridge):
    with pytest.raises(ValueError, match=f"ridge must be positive, got {ridge}"):
        rf.Model(rf.kernels.Delta(), ridge=ridge)


@pytest.mark.parametrize("ridge", [np.nan, np.inf, -np.inf])
def test_ridge_must_be_finite(ridge):
    with pytest.raises(ValueError, match="ridge must be finite, got"):
        rf.Model(rf.kernels.Delta(), ridge=ridge)


@pytest.mark.parametrize("ridge", ["much", [1.0, 2.0], 1j])
def test_ridge_must_be_a_number(ridge):
    with pytest.raises(ValueError, match="ridge must be a number"):
        rf.Model(rf.kernels.Delta(), ridge=ridge)


def test_one_regression_per_step_or_one_for_all():
    assert rf.Model(rf.kernels.Delta(), ridge=1.0).regressions(7) == 7
    assert rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=True).regressions(7) == 1


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("horizon", [0, -1, 2.5, None, True])
def test_horizon_must_be_whole(pooled, horizon):
    with pytest.raises(ValueError, match="horizon must be a whole number"):
        rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=pooled).regressions(horizon)


def test_design_has_kernel_and_ridge():
    design = rf.Model(rf.Matern(1.5, 0.3), ridge=0.25).design(dtype=np.float32)
    assert isinstance(design, rf.posterior.Design) and isinstance(design, rf.posterior.Posterior)
    assert (design.kernel, design.ridge, len(design)) == (rf.Matern(1.5, 0.3), 0.25, 0)
    assert design.dtype == np.float32


def test_lattice_has_kernel_and_ridge():
    lattice = rf.Model(rf.Matern(1.5, 0.3), ridge=0.25).lattice(Z, designs=3, capacity=2)
    assert isinstance(lattice, rf.posterior.Lattice) and isinstance(lattice, rf.posterior.Posterior)
    assert (lattice.kernel, lattice.ridge, lattice.batch) == (rf.Matern(1.5, 0.3), 0.25, (3,))
    assert lattice.counts.tolist() == [0, 0, 0]
    assert np.array_equal(lattice.candidates, Z)


def test_design_and_lattice_agree():
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.25)
    design, lattice = model.design(), model.lattice(Z)
    design.extend(Z[:5])
    lattice.extend(Z[:5])
    y = np.arange(5.0)
    np.testing.assert_allclose(lattice.mean(y[None])[0], design.mean(y, Z), atol=1e-13)
    np.testing.assert_allclose(lattice.std()[0], design.std(Z), atol=1e-13)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (2, 0, 5), (4, 1)])
def test_centre_is_zero_or_the_midrange(shape):
    values = np.random.default_rng(1).normal(size=shape)
    plain = rf.Model(rf.kernels.Delta(), ridge=1.0).centre(values)
    assert np.shape(plain) == shape[:-1] and np.all(plain == 0.0)
    centre = rf.Model(rf.kernels.Delta(), ridge=1.0, centred=True).centre(values)
    assert np.shape(centre) == shape[:-1]
    np.testing.assert_allclose(centre, (values.min(axis=-1) + values.max(axis=-1)) / 2, rtol=1e-15)


def test_centre_of_a_list():
    assert rf.Model(rf.kernels.Delta(), ridge=1.0, centred=True).centre([0, 1, 5]) == 2.5
    assert rf.Model(rf.kernels.Delta(), ridge=1.0).centre([0, 1, 5]) == 0.0


def test_centre_keeps_single_precision():
    values = np.array([[0.0, 1.0]], np.float32)
    assert rf.Model(rf.kernels.Delta(), ridge=1.0, centred=True).centre(values).dtype == np.float32
    assert rf.Model(rf.kernels.Delta(), ridge=1.0).centre(values).dtype == np.float32


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("values", [[0.0, np.nan], [0.0, np.inf]])
def test_centre_wants_finite_values(centred, values):
    with pytest.raises(ValueError, match="values must be finite, got 1 NaN or infinite of 2 values"):
        rf.Model(rf.kernels.Delta(), ridge=1.0, centred=centred).centre(values)


def estimate(model, value, next_states, at):
    """c + mean(V(s') - c): [PV] by the regression of V at the next states seen, on a lattice and a design."""
    centre = model.centre(value)
    targets = value[next_states] - centre
    lattice, design = model.lattice(Z), model.design()
    lattice.extend(Z[: len(next_states)])
    design.extend(Z[: len(next_states)])
    return centre + lattice.mean(targets[None], rows=at)[0], centre + design.mean(targets, Z[at])


def test_centred_regression_of_a_constant_is_exact():
    value, seen, at = np.full(6, 7.3), np.array([0, 3, 5, 3]), np.arange(12)
    for centred in (False, True):
        model = rf.Model(rf.Matern(1.5, 0.2), ridge=0.5, centred=centred)
        for found in estimate(model, value, seen, at):
            assert np.all(found == 7.3) == centred
            assert (np.abs(found - 7.3).max() > 1.0) == (not centred)


def test_centring_moves_with_the_value():
    value, seen, at = np.random.default_rng(2).random(6), np.array([0, 3, 5, 3]), np.arange(12)
    model = rf.Model(rf.Matern(1.5, 0.2), ridge=0.5, centred=True)
    for low, high in zip(
        estimate(model, value, seen, at), estimate(model, value + 4.0, seen, at), strict=True
    ):
        np.testing.assert_allclose(high, low + 4.0, rtol=1e-13)


@pytest.mark.parametrize("values", [[], 3.0])
def test_the_centre_of_nothing_is_refused(values):
    with pytest.raises(ValueError, match="values must hold V at one state or more"):
        rf.Model(rf.kernels.Delta(), ridge=1.0, centred=True).centre(values)
