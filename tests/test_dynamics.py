"""Learnt dynamics against dense algebra, refits one by one, and scikit-learn; and where episodes end."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

import reference
import rewardfree as rf
from reference_swing import MODEL, SPACES, samples, swings, unstopped
from rewardfree.dynamics import Dynamics, GivenTermination, ObservedTermination
from rewardfree.worlds import ScaledModel, Spaces, StateChange

# --- the next state as a regression ---


def test_a_prediction_is_the_textbooks_regression_of_the_state_change():
    known = unstopped(swings())
    state, action = known.state, known.action
    learnt = Dynamics.learn(SPACES, MODEL, known)
    change = known.next_state - state
    change[:, 0] = np.arctan2(np.sin(change[:, 0]), np.cos(change[:, 0]))  # the short way round
    middle, unit = change.mean(axis=0), change.std(axis=0)

    def inputs(state, action):  # cos and sin on [-1, 1], omega on [-2, 2], push on [-1, 1]: all as [0, 1]
        theta, omega = state.T
        rows = [(np.cos(theta) + 1) / 2, (np.sin(theta) + 1) / 2, (omega + 2) / 4, (action[:, 0] + 1) / 2]
        return np.stack(rows, axis=1)

    new = swings(30, seed=1)
    regression = KernelRidge(kernel="precomputed", alpha=0.01)
    regression.fit(MODEL.kernel(inputs(state, action)), (change - middle) / unit)
    cross = MODEL.kernel(inputs(new.state, new.action), inputs(state, action))
    expected = new.state + regression.predict(cross) * unit + middle
    predicted = learnt.next_state(new.state, new.action)
    apart = predicted - np.stack([expected[:, 0], np.clip(expected[:, 1], -2.0, 2.0)], axis=1)
    apart[:, 0] = np.arctan2(np.sin(apart[:, 0]), np.cos(apart[:, 0]))
    np.testing.assert_allclose(apart, 0.0, rtol=0, atol=1e-9)
    variance = reference.variance(MODEL.kernel, inputs(state, action), 0.01, inputs(new.state, new.action))
    np.testing.assert_allclose(learnt.std(new.state, new.action) ** 2, variance, rtol=0, atol=1e-10)


def test_angles_change_the_short_way_round():
    state = np.array([[3.1, 0.0], [-3.1, 0.0]])
    next_state = np.array([[-3.1, 0.0], [3.1, 0.5]])
    change = StateChange.of(SPACES, state, next_state)
    expected = [[0.0832, 0.0], [-0.0832, 0.5]]
    np.testing.assert_allclose(change.targets * change.unit + change.middle, expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(change.targets.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(change.targets.std(axis=0), 1.0)


def test_a_system_that_crosses_the_seam_is_predicted_across_it():
    spaces = Spaces(rf.Box.of(theta="angle"), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-math.pi, math.pi, (60, 1)), rng.uniform(-1.0, 1.0, (60, 1))
    next_state = spaces.state.wrapped(state + 0.3 + 0.2 * action)
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), samples(state, action, next_state))
    predicted = learnt.next_state(np.array([[math.pi - 0.1], [-math.pi]]), np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(predicted[:, 0], [-math.pi + 0.2, -math.pi + 0.5], rtol=0, atol=1e-3)
    assert learnt.noise < 1e-4
    assert not learnt.noisy


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_next_states_stay_within_the_bounds(seed):
    learnt = Dynamics.learn(SPACES, MODEL, swings(25, seed % 100))
    rng = np.random.default_rng(seed)
    state, action = rng.uniform(-6.0, 6.0, (50, 2)), rng.uniform(-5.0, 5.0, (50, 1))
    predicted = learnt.next_state(state, action)
    assert (predicted[:, 0] >= -math.pi).all()
    assert (predicted[:, 0] < math.pi).all()
    assert (np.abs(predicted[:, 1]) <= 2.0).all()


def test_what_was_seen_beyond_the_bounds_is_not_cut_off():
    """Bounds may be a guess: predictions are kept within the hull of bounds and data."""
    spaces = Spaces(rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-1.5, 0.5, (60, 1)), rng.uniform(-1.0, 1.0, (60, 1))
    next_state = state + 0.2 * action
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), samples(state, action, next_state))
    seen = min(state.min(), next_state.min())
    assert seen < -1.4
    np.testing.assert_array_equal(learnt.ends, [[seen], [1.0]])
    asked = np.array([[-1.3], [-9.0], [9.0]])
    np.testing.assert_array_equal(learnt.inside(asked), [[-1.3], [seen], [1.0]])
    predicted = learnt.next_state(np.array([[-1.3], [-9.0], [9.0]]), np.zeros((3, 1)))
    np.testing.assert_allclose(predicted, [[-1.3], [seen], [1.0]], rtol=0, atol=1e-3)


def test_residuals_are_those_of_refits_without_each_transition():
    known = unstopped(swings(25))
    n = len(known)
    learnt = Dynamics.learn(SPACES, MODEL, known)
    change = StateChange.of(SPACES, known.state, known.next_state)
    targets, unit = change.targets, change.unit
    expected = np.empty((n, 2))
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        predicted = reference.mean(
            MODEL.kernel, learnt.points[rest], 0.01, targets[rest], learnt.points[i : i + 1]
        )
        expected[i] = (targets[i] - predicted[0]) * unit
    np.testing.assert_allclose(learnt.residuals, expected, rtol=0, atol=1e-9)
    predicted = known.next_state - expected  # is kept within the bounds
    predicted[:, 1] = np.clip(predicted[:, 1], -2.0, 2.0)
    missed = np.sqrt(((known.next_state - predicted) ** 2).mean(axis=0)) / unit
    np.testing.assert_allclose(learnt.held_out(known, np.arange(n)[:, None]), missed, rtol=0, atol=1e-9)


def test_a_dynamics_of_stored_weights_is_the_one_that_was_learnt():
    first = Dynamics.learn(SPACES, MODEL, swings(25))
    again = Dynamics(SPACES, first.scaled, first.points, first.weights, first.middle, first.unit, first.ends)
    new = swings(10, seed=1)
    state, action = new.state, new.action
    np.testing.assert_array_equal(again.next_state(state, action), first.next_state(state, action))
    np.testing.assert_allclose(again.targets, first.targets, rtol=0, atol=1e-11)
    np.testing.assert_allclose(again.residuals, first.residuals, rtol=0, atol=1e-9)
    np.testing.assert_allclose(again.std(state, action), first.std(state, action), rtol=0, atol=1e-10)


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_noise_is_known_within_a_factor_of_two(noise):
    spaces = Spaces(rf.Box.of(x=(-3.0, 3.0)), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-2.0, 2.0, (250, 1)), rng.uniform(-1.0, 1.0, (250, 1))
    next_state = state - 0.5 * np.sin(state) + 0.5 * action + noise * rng.standard_normal((250, 1))
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), samples(state, action, next_state))
    share = noise**2 / (next_state - state).var()
    assert 0.5 * share < learnt.noise < 2.0 * share
    assert learnt.noisy
    assert learnt.residuals.std() == pytest.approx(noise, rel=0.2)


def test_a_deterministic_system_is_not_noisy():
    known = swings(150)
    learnt = Dynamics.learn(SPACES, rf.Model(rf.AutoKernel()), known)
    assert not learnt.noisy
    assert learnt.held_out(known, np.array_split(np.arange(150), 5)).max() < 0.2


def test_a_fixed_kernel_sees_the_bounds_and_an_automatic_one_the_data():
    known = swings(30)
    fixed = ScaledModel.fit(SPACES, MODEL, known)
    assert fixed.model is MODEL
    corners = SPACES.features(np.array([[0.0, -2.0], [math.pi, 2.0]]), np.array([[-1.0], [1.0]]))
    np.testing.assert_allclose(fixed.scaling(corners), [[1, 0.5, 0, 0], [0, 0.5, 1, 1]], atol=1e-12)
    fitted = ScaledModel.fit(SPACES, rf.Model(rf.AutoKernel()), known)
    inputs = fitted.inputs(SPACES, known.state, known.action)
    np.testing.assert_allclose(inputs.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(inputs.std(axis=0), 1.0)
    cosine, sine, *_ = fitted.model.kernel.left.lengthscale
    assert cosine == sine  # both belong to theta


def test_a_fixed_kernel_needs_bounds():
    spaces = Spaces(rf.Box.of(x=None), rf.Discrete(2))
    with pytest.raises(ValueError, match="a kernel that is fixed needs bounds, and x has none"):
        ScaledModel.of_bounds(spaces, MODEL)


def test_dynamics_of_labels_are_refused():
    spaces = Spaces(rf.Discrete(3, "s"), rf.Discrete(2))
    with pytest.raises(ValueError, match="dynamics of labels cannot be regressed"):
        Dynamics.learn(spaces, MODEL, samples(np.array([0, 1]), np.array([0, 1]), np.array([1, 2])))


# --- ends of episodes ---


def test_a_state_ends_as_the_nearest_seen_did():
    space = rf.Box.of(x=(0.0, 10.0), y=(0.0, 1.0))
    rng = np.random.default_rng(0)
    seen = rng.uniform((0.0, 0.0), (10.0, 1.0), (40, 2))
    ended = seen[:, 0] > 7.0
    asked = rng.uniform((0.0, 0.0), (10.0, 1.0), (60, 2))
    spread = seen.std(axis=0)
    nearest = [np.argmin((((state - seen) / spread) ** 2).sum(axis=1)) for state in asked]
    np.testing.assert_array_equal(ObservedTermination(space, seen, ended)(asked), ended[nearest])


def test_the_nearest_angle_may_lie_across_the_seam():
    space = rf.Box.of(theta="angle")
    is_end = ObservedTermination(space, np.array([[3.1], [0.0], [-1.5]]), np.array([True, False, False]))
    np.testing.assert_array_equal(is_end(np.array([[-3.1], [0.2], [-1.0]])), [True, False, False])


def test_where_nothing_ended_nothing_ends():
    is_end = ObservedTermination(rf.Box.of(x=(0.0, 1.0)), np.array([[0.1], [0.5]]), np.array([False, False]))
    np.testing.assert_array_equal(is_end(np.array([[0.2], [7.0]])), [False, False])


def test_given_ends_see_wrapped_states_and_are_checked():
    space = rf.Box.of(theta="angle")
    is_end = GivenTermination(space, lambda state: np.where(state[:, 0] > 3.0, 1, 0))
    ended = is_end(np.array([[3.1], [3.2], [3.1 + 2.0 * math.pi]]))
    assert ended.dtype == bool
    np.testing.assert_array_equal(ended, [True, False, True])
    with pytest.raises(
        ValueError, match=r"terminated\(state\) must return \(3,\) for 3 states, got \(3, 1\)"
    ):
        GivenTermination(space, lambda state: state > 0)(np.zeros((3, 1)))
