"""Learnt dynamics against dense algebra, refits one by one, scikit-learn, and exact dynamic programming."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewardfree.dynamics.fitting import fitted_to, targets_of
from sklearn.kernel_ridge import KernelRidge

import reference
import rewardfree as rf
from reference_runs import small_world
from rewardfree.dynamics import (
    Dynamics,
    ExplorationValue,
    GivenTermination,
    Mesh,
    MeshDynamics,
    ObservedTermination,
    trusted_box,
)
from rewardfree.dynamics import curiosity as curiosity_module
from rewardfree.dynamics import extent as extent_module
from rewardfree.dynamics import transport as transport_module
from rewardfree.estimates.sampled import Recursion, SampledEstimate
from rewardfree.posterior import products
from rewardfree.posterior.products import weighted
from rewardfree.worlds.labelled import LabelledWorld
from rewardfree.worlds.spaces import Spaces

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
SPACES = Spaces(rf.Box.of(theta="angle", omega=(-2.0, 2.0)), rf.Box.of(push=(-1.0, 1.0)))
MODEL = rf.Model(rf.Matern(2.5, 0.6) + 0.5 * rf.Linear(bias=1.0), ridge=0.01, pooled=True)


def points(n, seed=0, dim=2):
    return np.random.default_rng(seed).random((n, dim))


def swing(state, action):
    """A pendulum: next states of theta, omega under a push."""
    theta, omega = state.T
    after = np.clip(omega + 0.3 * np.sin(theta) + 0.5 * action[:, 0], -2.0, 2.0)
    return SPACES.state.wrapped(np.stack([theta + 0.4 * after, after], axis=1))


def swings(n=40, seed=0, noise=0.0):
    """Transitions anywhere: states, actions, next states."""
    rng = np.random.default_rng(seed)
    state = np.stack([rng.uniform(-math.pi, math.pi, n), rng.uniform(-2.0, 2.0, n)], axis=1)
    action = rng.uniform(-1.0, 1.0, (n, 1))
    following = swing(state, action) + noise * rng.standard_normal((n, 2))
    return state, action, SPACES.state.wrapped(following)


def nowhere(states):
    return np.zeros(len(states), bool)


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
    for index, found in zip(chosen, sigma, strict=True):
        variance = reference.variance(kernel, seen, ridge, candidates)
        assert variance[index] == pytest.approx(variance.max(), rel=1e-9)
        assert found == pytest.approx(math.sqrt(variance.max()), abs=1e-8)
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


# --- the mesh ---


def a_mesh(angular=(False, False), sides=(5, 4), low=(-1.0, 2.0), high=(3.0, 3.5)):
    return Mesh(np.array(low), np.array(high), sides, np.array(angular))


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(0, 2**31))
def test_interpolation_is_exact_for_multilinear_functions(d, seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-3.0, 0.0, d)
    high = low + rng.uniform(0.5, 4.0, d)
    mesh = Mesh(low, high, tuple(int(side) for side in rng.integers(2, 6, d)), np.zeros(d, bool))
    powers = np.array(list(itertools.product((0, 1), repeat=d)))
    factors = rng.standard_normal((len(powers), 2))

    def multilinear(states):
        return (states[:, None, :] ** powers).prod(axis=2) @ factors

    states = rng.uniform(low, high, (30, d))
    values = multilinear(mesh.nodes)
    np.testing.assert_allclose(mesh.at(values, states), multilinear(states), rtol=0, atol=1e-10)
    np.testing.assert_allclose(mesh.matrix([states], [1.0]) @ values, multilinear(states), rtol=0, atol=1e-10)
    np.testing.assert_allclose(mesh.at(values[:, 0], states), multilinear(states)[:, 0], rtol=0, atol=1e-10)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-50.0, 50.0), st.floats(-50.0, 50.0)), min_size=1, max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_weights_are_convex_and_nodes_are_nodes_anywhere(states, first, second):
    mesh = a_mesh((first, second))
    nodes, weights = mesh.corners(np.array(states))
    assert nodes.min() >= 0
    assert nodes.max() < mesh.size
    assert weights.min() >= 0.0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    matrix = mesh.matrix([np.array(states)], [np.ones(len(states))])
    assert matrix.shape == (len(states), mesh.size)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_values_at_the_nodes_are_the_nodes_own():
    for angular in itertools.product((False, True), repeat=2):
        mesh = a_mesh(angular)
        values = np.random.default_rng(0).standard_normal(mesh.size)
        np.testing.assert_allclose(mesh.at(values, mesh.nodes), values, rtol=0, atol=1e-12)


def test_nodes_are_evenly_spaced_with_the_last_variable_fastest():
    mesh = a_mesh((False, True), (3, 2), (0.0, -math.pi), (1.0, math.pi))
    expected = list(itertools.product([0.0, 0.5, 1.0], [-math.pi, 0.0]))
    np.testing.assert_allclose(mesh.nodes, expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(mesh.spacing, [0.5, math.pi])
    assert mesh.size == 6


@settings(max_examples=40)
@given(st.floats(-math.pi, math.pi), st.integers(-3, 3), st.floats(0.0, 1.0))
def test_angles_go_round(theta, turns, x):
    mesh = a_mesh((True, False), (8, 3), (-math.pi, 0.0), (math.pi, 1.0))
    values = np.random.default_rng(0).standard_normal(mesh.size)
    here, there = mesh.at(values, np.array([[theta, x], [theta + 2.0 * math.pi * turns, x]]))
    assert here == pytest.approx(there, abs=1e-10)


def test_between_the_last_angle_and_the_first_lies_their_mean():
    mesh = Mesh(np.array([-math.pi]), np.array([math.pi]), (4,), np.array([True]))
    values = np.array([1.0, 0.0, 0.0, 3.0])  # at -pi, -pi/2, 0, pi/2
    assert mesh.at(values, np.array([[0.75 * math.pi]]))[0] == pytest.approx(2.0)


@settings(max_examples=40)
@given(st.floats(-9.0, 9.0), st.floats(-9.0, 9.0))
def test_states_outside_count_as_the_nearest_of_the_box(x, y):
    mesh = a_mesh()
    values = np.random.default_rng(0).standard_normal(mesh.size)
    inside = np.clip([[x, y]], mesh.low, mesh.high)
    assert mesh.at(values, np.array([[x, y]]))[0] == pytest.approx(mesh.at(values, inside)[0], abs=1e-12)


def test_rows_of_the_matrix_are_multiplied_by_their_share():
    mesh, states, share = a_mesh(), points(4), np.array([0.0, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(mesh.matrix([states], [share]).sum(axis=1), share, rtol=0, atol=1e-12)


def test_a_matrix_of_several_sets_of_states_is_the_sum_of_theirs():
    mesh, sets = a_mesh(), [points(4, seed) * 3.0 for seed in (0, 1)]
    shares = [np.array([0.0, 0.5, 1.0, 2.0]), np.array([0.25, 0.0, 1.0, -1.0])]
    values = np.random.default_rng(0).standard_normal(mesh.size)
    expected = sum(share * mesh.at(values, states) for states, share in zip(sets, shares, strict=True))
    np.testing.assert_allclose(mesh.matrix(sets, shares) @ values, expected, rtol=0, atol=1e-12)


# --- the next state as a regression ---


def test_a_prediction_is_the_textbooks_regression_of_the_state_change():
    state, action, following = swings()
    learnt = Dynamics.learn(SPACES, MODEL, state, action, following)
    change = following - state
    change[:, 0] = np.arctan2(np.sin(change[:, 0]), np.cos(change[:, 0]))  # the short way round
    middle, unit = change.mean(axis=0), change.std(axis=0)

    def seen(state, action):  # cos and sin on [-1, 1], omega on [-2, 2], push on [-1, 1]: all as [0, 1]
        theta, omega = state.T
        rows = [(np.cos(theta) + 1) / 2, (np.sin(theta) + 1) / 2, (omega + 2) / 4, (action[:, 0] + 1) / 2]
        return np.stack(rows, axis=1)

    new_state, new_action, _ = swings(30, seed=1)
    regression = KernelRidge(kernel="precomputed", alpha=0.01)
    regression.fit(MODEL.kernel(seen(state, action)), (change - middle) / unit)
    cross = MODEL.kernel(seen(new_state, new_action), seen(state, action))
    expected = new_state + regression.predict(cross) * unit + middle
    found = learnt.next_state(new_state, new_action)
    apart = found - np.stack([expected[:, 0], np.clip(expected[:, 1], -2.0, 2.0)], axis=1)
    apart[:, 0] = np.arctan2(np.sin(apart[:, 0]), np.cos(apart[:, 0]))
    np.testing.assert_allclose(apart, 0.0, rtol=0, atol=1e-9)
    variance = reference.variance(MODEL.kernel, seen(state, action), 0.01, seen(new_state, new_action))
    np.testing.assert_allclose(learnt.std(new_state, new_action) ** 2, variance, rtol=0, atol=1e-10)


def test_angles_change_the_short_way_round():
    state = np.array([[3.1, 0.0], [-3.1, 0.0]])
    following = np.array([[-3.1, 0.0], [3.1, 0.5]])
    targets, middle, unit = targets_of(SPACES, state, following)
    np.testing.assert_allclose(targets * unit + middle, [[0.0832, 0.0], [-0.0832, 0.5]], rtol=0, atol=1e-4)
    np.testing.assert_allclose(targets.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(targets.std(axis=0), 1.0)


def test_a_system_that_crosses_the_seam_is_predicted_across_it():
    spaces = Spaces(rf.Box.of(theta="angle"), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-math.pi, math.pi, (60, 1)), rng.uniform(-1.0, 1.0, (60, 1))
    following = spaces.state.wrapped(state + 0.3 + 0.2 * action)
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), state, action, following)
    found = learnt.next_state(np.array([[math.pi - 0.1], [-math.pi]]), np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(found[:, 0], [-math.pi + 0.2, -math.pi + 0.5], rtol=0, atol=1e-3)
    assert learnt.noise < 1e-4
    assert not learnt.noisy


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_next_states_stay_within_the_bounds(seed):
    learnt = Dynamics.learn(SPACES, MODEL, *swings(25, seed % 100))
    rng = np.random.default_rng(seed)
    state, action = rng.uniform(-6.0, 6.0, (50, 2)), rng.uniform(-5.0, 5.0, (50, 1))
    found = learnt.next_state(state, action)
    assert (found[:, 0] >= -math.pi).all()
    assert (found[:, 0] < math.pi).all()
    assert (np.abs(found[:, 1]) <= 2.0).all()


def test_what_was_seen_beyond_the_bounds_is_not_cut_off():
    """Bounds may be a guess: predictions are kept within the hull of bounds and data."""
    spaces = Spaces(rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-1.5, 0.5, (60, 1)), rng.uniform(-1.0, 1.0, (60, 1))
    following = state + 0.2 * action
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), state, action, following)
    seen = min(state.min(), following.min())
    assert seen < -1.4
    np.testing.assert_array_equal(learnt.ends, [[seen], [1.0]])
    asked = np.array([[-1.3], [-9.0], [9.0]])
    np.testing.assert_array_equal(learnt.inside(asked), [[-1.3], [seen], [1.0]])
    found = learnt.next_state(np.array([[-1.3], [-9.0], [9.0]]), np.zeros((3, 1)))
    np.testing.assert_allclose(found, [[-1.3], [seen], [1.0]], rtol=0, atol=1e-3)


def test_residuals_are_those_of_refits_without_each_transition():
    state, action, following = swings(25)
    learnt = Dynamics.learn(SPACES, MODEL, state, action, following)
    targets, _, unit = targets_of(SPACES, state, following)
    expected = np.empty((25, 2))
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        predicted = reference.mean(
            MODEL.kernel, learnt.points[rest], 0.01, targets[rest], learnt.points[i : i + 1]
        )
        expected[i] = (targets[i] - predicted[0]) * unit
    np.testing.assert_allclose(learnt.residuals, expected, rtol=0, atol=1e-9)
    held_out = np.sqrt((expected**2).mean(axis=0)) / unit
    np.testing.assert_allclose(learnt.held_out(), held_out, rtol=0, atol=1e-9)


def test_a_dynamics_of_stored_weights_is_the_one_that_was_learnt():
    first = Dynamics.learn(SPACES, MODEL, *swings(25))
    again = Dynamics(SPACES, first.fitted, first.points, first.weights, first.middle, first.unit, first.ends)
    state, action, _ = swings(10, seed=1)
    np.testing.assert_array_equal(again.next_state(state, action), first.next_state(state, action))
    np.testing.assert_allclose(again.targets, first.targets, rtol=0, atol=1e-11)
    np.testing.assert_allclose(again.residuals, first.residuals, rtol=0, atol=1e-9)
    np.testing.assert_allclose(again.std(state, action), first.std(state, action), rtol=0, atol=1e-10)


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_noise_is_known_within_a_factor_of_two(noise):
    spaces = Spaces(rf.Box.of(x=(-3.0, 3.0)), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-2.0, 2.0, (250, 1)), rng.uniform(-1.0, 1.0, (250, 1))
    following = state - 0.5 * np.sin(state) + 0.5 * action + noise * rng.standard_normal((250, 1))
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), state, action, following)
    share = noise**2 / (following - state).var()
    assert 0.5 * share < learnt.noise < 2.0 * share
    assert learnt.noisy
    assert learnt.residuals.std() == pytest.approx(noise, rel=0.2)


def test_a_deterministic_system_is_not_noisy():
    learnt = Dynamics.learn(SPACES, rf.Model(rf.AutoKernel()), *swings(150))
    assert not learnt.noisy
    assert learnt.held_out().max() < 0.2


def test_a_fixed_kernel_sees_the_bounds_and_an_automatic_one_the_data():
    state, action, following = swings(30)
    fixed = fitted_to(SPACES, MODEL, state, action, following)
    assert fixed.model is MODEL
    corners = SPACES.features(np.array([[0.0, -2.0], [math.pi, 2.0]]), np.array([[-1.0], [1.0]]))
    np.testing.assert_allclose(fixed.scaling(corners), [[1, 0.5, 0, 0], [0, 0.5, 1, 1]], atol=1e-12)
    found = fitted_to(SPACES, rf.Model(rf.AutoKernel()), state, action, following)
    scaled = found.scaling(SPACES.features(state, action))
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0)
    cosine, sine, *_ = found.model.kernel.left.lengthscale
    assert cosine == sine  # both belong to theta


def test_a_fixed_kernel_needs_bounds():
    spaces = Spaces(rf.Box.of(x=None), rf.Discrete(2))
    with pytest.raises(ValueError, match="a kernel that is fixed needs bounds, and x has none"):
        fitted_to(spaces, MODEL, None, None, None)


def test_dynamics_of_labels_are_refused():
    spaces = Spaces(rf.Discrete(3, "s"), rf.Discrete(2))
    with pytest.raises(ValueError, match="dynamics of labels cannot be regressed"):
        Dynamics.learn(spaces, MODEL, np.array([0, 1]), np.array([0, 1]), np.array([1, 2]))


# --- ends of episodes ---


def test_a_state_ends_as_the_nearest_seen_did():
    space = rf.Box.of(x=(0.0, 10.0), y=(0.0, 1.0))
    rng = np.random.default_rng(0)
    following = rng.uniform((0.0, 0.0), (10.0, 1.0), (40, 2))
    ended = following[:, 0] > 7.0
    asked = rng.uniform((0.0, 0.0), (10.0, 1.0), (60, 2))
    spread = following.std(axis=0)
    nearest = [np.argmin((((state - following) / spread) ** 2).sum(axis=1)) for state in asked]
    np.testing.assert_array_equal(ObservedTermination(space, following, ended)(asked), ended[nearest])


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
    found = is_end(np.array([[3.1], [3.2], [3.1 + 2.0 * math.pi]]))
    assert found.dtype == bool
    np.testing.assert_array_equal(found, [True, False, True])
    with pytest.raises(
        ValueError, match=r"terminated\(state\) must return \(3,\) for 3 states, got \(3, 1\)"
    ):
        GivenTermination(space, lambda state: state > 0)(np.zeros((3, 1)))


# --- transport ---


def transported(noisy=False, ended=nowhere, noise=0.0, n=60, side=7):
    learnt = Dynamics.learn(SPACES, MODEL, *swings(n, noise=noise))
    mesh = Mesh(np.array([-math.pi, -2.0]), np.array([math.pi, 2.0]), (side, side), SPACES.state.angular)
    return MeshDynamics(SPACES, learnt, mesh, SPACES.action.candidates(3), ended, noisy)


@pytest.mark.parametrize("noisy", [False, True])
def test_rows_of_transport_sum_to_one_but_for_ends(noisy):
    transport = transported(noisy, lambda states: states[:, 1] > 1.0, noise=0.2)
    sums = np.asarray(transport.matrix.sum(axis=1))
    going = np.mean([outcome[:, 1] <= 1.0 for outcome in transport.outcomes], axis=0)
    np.testing.assert_allclose(sums, going, rtol=0, atol=1e-12)
    assert sums.min() < 0.01
    assert sums.max() > 0.99
    assert transport.matrix.min() >= 0.0
    assert len(transport.outcomes) == (transport_module.DRAWS if noisy else 1)


def test_transport_of_values_is_their_interpolation_at_the_next_states():
    transport = transported()
    values = np.random.default_rng(0).standard_normal(transport.mesh.size)
    found = (transport.matrix @ values).reshape(3, -1)
    for action, row in zip(transport.actions, found, strict=True):  # action by action
        tried = np.repeat(action[None], transport.mesh.size, axis=0)
        following = transport.moves.next_state(transport.mesh.nodes, tried)
        np.testing.assert_allclose(row, transport.mesh.at(values, following), rtol=0, atol=1e-12)


def test_draws_of_noise_are_centred_with_the_variance_of_the_nearest_residuals():
    transport = transported(True, noise=0.3, n=80)
    moves, draws = transport.moves, 8
    nodes = transport.mesh.nodes
    noise = transport.noise(nodes, draws)
    assert noise.shape == (draws, len(nodes), 2)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, rtol=0, atol=1e-12)
    place = moves.fitted.scaling(SPACES.features(nodes, np.zeros((len(nodes), 1))))[:, :3]
    distance = ((place[:, None, :] - moves.points[None, :, :3]) ** 2).sum(axis=2)  # by state alone
    nearest = np.argsort(distance, axis=1)[:, :draws]
    expected = moves.residuals[nearest].var(axis=1, ddof=1)  # unbiased, as the stretch makes it
    np.testing.assert_allclose((noise**2).mean(axis=0), expected, rtol=1e-9, atol=1e-12)


def test_all_actions_of_a_node_get_the_same_draws():
    """Or the best of them would be the luckiest."""
    transport = transported(True, noise=0.1, n=80)
    shifts = [SPACES.state.change(transport.following, outcome) for outcome in transport.outcomes]
    shifts = np.array(shifts).reshape(len(shifts), 3, transport.mesh.size, 2)
    low, high = transport.moves.ends
    inside = [(each[:, 1] > low[1]) & (each[:, 1] < high[1]) for each in transport.outcomes]
    uncut = np.array(inside).reshape(len(inside), 3, -1).all(axis=1)
    assert uncut.mean() > 0.5
    for action in (1, 2):
        np.testing.assert_allclose(shifts[:, action][uncut], shifts[:, 0][uncut], rtol=0, atol=1e-12)


def test_draws_of_noise_have_the_variance_of_the_worlds_noise():
    spaces = Spaces(rf.Box.of(x=(-9.0, 9.0)), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-2.0, 2.0, (300, 1)), rng.uniform(-1.0, 1.0, (300, 1))
    following = state + 0.5 * action + 0.3 * rng.standard_normal((300, 1))
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), state, action, following)
    mesh = Mesh(np.array([-2.0]), np.array([2.0]), (21,), np.array([False]))
    transport = MeshDynamics(spaces, learnt, mesh, spaces.action.candidates(5), nowhere, True)
    square = (transport.noise(mesh.nodes) ** 2).mean()
    assert math.sqrt(square) == pytest.approx(0.3, rel=0.2)


def test_outcomes_stay_within_the_bounds_or_what_was_seen_beyond_them():
    transport = transported(True, noise=0.5)
    low, high = transport.moves.ends
    assert low[1] < -2.0 and high[1] > 2.0  # noise leads beyond the bounds
    for outcome in transport.outcomes:
        assert (outcome[:, 1] >= low[1]).all() and (outcome[:, 1] <= high[1]).all()
        assert (np.abs(outcome[:, 0]) <= math.pi).all()


def test_a_large_mesh_takes_fewer_draws(monkeypatch):
    transport = transported(True, noise=0.2)
    monkeypatch.setattr(transport_module, "MOST_WEIGHTS", 7 * len(transport.following) * 4)
    assert len(transport.outcomes) == 7
    monkeypatch.setattr(transport_module, "MOST_WEIGHTS", 1)
    assert len(transported(True, noise=0.2).outcomes) == 4  # at least


def test_changes_at_the_nodes_lead_to_the_next_states():
    transport = transported()
    assert transport.change.shape == (transport.mesh.size, 3, 2)
    arrived = transport.mesh.nodes[:, None, :] + transport.change
    expected = transport.following.reshape(3, -1, 2).swapaxes(0, 1)
    apart = SPACES.state.wrapped((arrived - expected).reshape(-1, 2))
    np.testing.assert_allclose(apart, 0.0, rtol=0, atol=1e-12)
    assert np.abs(transport.change[:, :, 0]).max() <= math.pi


def test_a_simulator_itself_can_be_transported():
    class Exact:
        def next_state(self, state, action):
            return swing(state, action)

    mesh = Mesh(np.array([-math.pi, -2.0]), np.array([math.pi, 2.0]), (7, 7), SPACES.state.angular)
    transport = MeshDynamics(SPACES, Exact(), mesh, SPACES.action.candidates(3), nowhere, False)
    np.testing.assert_array_equal(transport.following, swing(*transport.pairs))


# --- what a mesh should cover ---


def drifting(n=80, bounds=(-9.0, 9.0)):
    """x drifts by a push; y stays where it is: the dynamics depend on neither."""
    spaces = Spaces(rf.Box.of(x=bounds, y=None), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-1.0, 1.0, (n, 2)), rng.uniform(-1.0, 1.0, (n, 1))
    following = state + np.concatenate([0.3 * action, 0.1 * np.ones((n, 1))], axis=1)
    following[:, 1] -= 0.05 * action[:, 0]
    return spaces, Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), state, action, following), state, action


def test_the_box_holds_what_was_seen_and_a_margin_where_nothing_ends():
    _, learnt, state, action = drifting()
    low, high = trusted_box(learnt, state, nowhere, action)
    half = 0.5 * np.ptp(state, axis=0)
    assert (low <= state.min(axis=0)).all()
    assert (high >= state.max(axis=0)).all()
    # Drawn states find the ends of a box up to a few of DENSE's gaps.
    np.testing.assert_allclose(0.5 * (high - low), extent_module.MARGIN * half, rtol=1e-2)


def test_the_box_is_cut_to_the_worlds_bounds_or_what_was_seen_beyond_them():
    _, learnt, state, action = drifting(bounds=(-1.02, 1.02))
    low, high = trusted_box(learnt, state, nowhere, action)
    assert (low >= learnt.ends[0]).all() and (high <= learnt.ends[1]).all()
    assert learnt.ends[0][0] < -1.02 and learnt.ends[1][0] > 1.02  # next states lie up to 0.3 beyond 1
    spaces, _, state, action = drifting(bounds=(-1.02, 1.02))
    walled = np.clip(state + np.concatenate([0.3 * action, 0.1 * action], axis=1), [-1.02, -9], [1.02, 9])
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), state, action, walled)
    low, high = trusted_box(learnt, state, nowhere, action)
    assert low[0] >= -1.02 and high[0] <= 1.02


def test_the_box_leaves_out_states_that_end_an_episode():
    _, learnt, state, action = drifting()
    low, high = trusted_box(learnt, state, lambda states: states[:, 0] > 0.5, action)
    assert high[0] == pytest.approx(0.5, abs=0.01)
    assert high[0] <= 0.5
    assert low[0] <= state[:, 0].min()


def test_the_box_grows_to_a_far_end_where_the_dynamics_are_known():
    _, learnt, state, action = drifting()
    low, high = trusted_box(learnt, state, lambda states: np.abs(states[:, 0]) > 4.0, action)
    assert high[0] == pytest.approx(4.0, abs=0.05)
    assert low[0] == pytest.approx(-4.0, abs=0.05)


def test_angles_go_all_the_way_round_in_a_box():
    learnt = Dynamics.learn(SPACES, MODEL, *swings(30))
    state, action, _ = swings(30)
    low, high = trusted_box(learnt, 0.1 * state, nowhere, action)
    assert (low[0], high[0]) == (-math.pi, math.pi)
    assert -2.0 <= low[1] < high[1] <= 2.0


def test_a_box_where_everything_ends_is_that_of_the_states():
    _, learnt, state, action = drifting()
    low, high = trusted_box(learnt, state, lambda states: np.ones(len(states), bool), action)
    assert (low <= state.min(axis=0)).all()
    assert (high >= state.max(axis=0)).all()


def test_a_box_round_met_states_has_the_mean_start_in_its_middle():
    space, far = rf.Box.of(theta="angle", x=(-5.0, 5.0), y=None), np.array([4.0, 5.0, 9.0])
    dynamics = SimpleNamespace(space=space, ends=(-far, far))
    rng = np.random.default_rng(0)
    met, starts = rng.uniform(-1.0, 1.0, (50, 3)), rng.uniform(-0.1, 0.1, (10, 3))
    low, high = extent_module.met_box(dynamics, met, starts, nowhere, 0.2)
    middle = starts.mean(axis=0)
    assert (low[0], high[0]) == (-math.pi, math.pi)
    np.testing.assert_allclose(0.5 * (low + high)[1:], middle[1:], atol=0.01)
    half = 1.2 * np.abs(met - middle).max(axis=0)
    np.testing.assert_allclose(0.5 * (high - low)[1:], half[1:], rtol=0.01)


# --- curiosity ---


def curious(model=MODEL, ended=False, n=60):
    state, action, following = swings(n)
    ends = (following[:, 1] > 1.2) if ended else np.zeros(n, bool)
    return ExplorationValue(SPACES, model, state, action, following, ends)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("model", [MODEL, rf.Model(rf.AutoKernel())], ids=["fixed", "automatic"])
def test_curiosity_satisfies_its_bellman_equation_at_the_nodes(model, ended):
    found = curious(model, ended)
    nodes, value = found.mesh.nodes, found.value
    right = np.full(len(nodes), -np.inf)
    for action in SPACES.action.candidates(curiosity_module.ACTIONS):
        tried = np.repeat(action[None], len(nodes), axis=0)
        following = found.dynamics.next_state(nodes, tried)
        beyond = np.where(found.is_end(following), 0.0, found.mesh.at(value, following))
        right = np.maximum(right, found.sigma(nodes, tried) + curiosity_module.DISCOUNT * beyond)
    np.testing.assert_allclose(value, right, rtol=0, atol=curiosity_module.SETTLED * value.max())
    assert value.min() >= 0.0
    assert (
        value.max()
        <= found.sigma(nodes, np.zeros((len(nodes), 1))).max() / (1 - curiosity_module.DISCOUNT) * 1.5
    )


def test_choices_are_greedy_in_the_same_equation():
    found = curious(ended=True)
    q, following = found.choices(found.mesh.nodes)
    np.testing.assert_allclose(q.max(axis=0), found.value, rtol=0, atol=1e-3 * found.value.max())
    assert following.shape == (len(found.actions), found.mesh.size, 2)


def test_sigma_of_a_fixed_kernel_is_the_textbooks():
    found = curious()
    state, action, _ = swings(20, seed=1)
    at = found.dynamics.fitted.scaling(SPACES.features(state, action))
    expected = reference.variance(MODEL.kernel, found.dynamics.points, MODEL.ridge, at)
    np.testing.assert_allclose(found.sigma(state, action) ** 2, expected, rtol=0, atol=1e-9)


def test_a_found_kernel_is_made_rough_and_short_for_curiosity():
    found = curious(rf.Model(rf.AutoKernel()))
    kernel, own = found.posterior.kernel, np.array(found.dynamics.model.kernel.left.lengthscale)
    lengths = np.array(kernel.lengthscale)
    assert isinstance(kernel, rf.Matern)
    assert kernel.nu == 2.5
    assert lengths.max() <= curiosity_module.LONGEST
    assert lengths.min() <= 1.0 + 1e-12
    np.testing.assert_array_equal(np.argsort(lengths, kind="stable")[:1], np.argsort(own, kind="stable")[:1])


def test_reachable_states_are_met_by_the_model_and_do_not_end():
    found = curious(ended=True)
    starts = np.array([[0.0, 0.0], [1.0, -1.0]])
    state, action = found.reachable(starts, 12, 20, np.random.default_rng(0))
    assert state.shape == (20, 2)
    assert action.shape == (20, 1)
    begun = (state[:, None, :] == starts).all(axis=2).any(axis=1)
    assert not found.is_end(state[~begun]).any()
    assert (np.abs(state[:, 1]) <= 2.0).all()
    assert (action[:, None, :] == found.actions).all(axis=2).any(axis=1).all()


def test_too_many_variables_for_a_mesh_are_refused():
    spaces = Spaces(rf.Box.of(**{f"x{i}": (-1.0, 1.0) for i in range(5)}), rf.Discrete(2))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-1.0, 1.0, (20, 5)), rng.integers(2, size=20)
    with pytest.raises(ValueError, match="takes up to 4 real state variables, got x0, x1, x2, x3, x4"):
        ExplorationValue(spaces, MODEL, state, action, 0.5 * state, np.zeros(20, bool))


# --- values of what was observed ---


def observed_of(data, enumerated):
    """All kept steps of a finite run, in the regressions of a world of any states."""
    model = data.model
    fitted = fitted_to(enumerated.spaces, model, None, None, None)
    observed = SampledEstimate(enumerated.spaces, fitted, data.horizon, np.arange(data.grid.shape[1]))
    for h, rows in enumerate(data.designs()):
        if len(rows):
            columns = (data.state, data.action, data.next_state, data.terminated)
            observed.load(h, *(column[rows] for column in columns))
    return observed


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1), rf.Uniform()], ids=repr)
def test_values_are_those_of_the_lattice(strategy, pooled):
    world = small_world(irregular=True)
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1, pooled=pooled)
    data = rf.explore(world, model, strategy, steps=80)
    reward = np.random.default_rng(5).random((world.horizon, *world.grid.shape))
    plan = rf.plan(data, reward, rf.Mean())
    observed = observed_of(data, LabelledWorld(world))
    H, states = world.horizon, np.arange(len(world.states))
    recursion = Recursion(
        observed,
        H - 1,
        lambda sigma: 0.0 * sigma,
        lambda togo: (0.0, float(H)),
        lambda h, s, a: reward[h][s, a],
    )
    for h in range(H):
        np.testing.assert_allclose(recursion.value(h, states), plan.values[h], rtol=0, atol=1e-8)
        np.testing.assert_array_equal(recursion.q(h, states).argmax(axis=0), plan.actions[h])
    np.testing.assert_array_equal(recursion.value(H, states), 0.0)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
def test_values_with_a_bonus_and_a_discount_are_those_of_plain_loops(pooled):
    world, beta, discount = small_world(irregular=True), 0.4, 0.9
    model = rf.Model(rf.Matern(2.5, 0.4), ridge=0.2, pooled=pooled, centred=True)
    data = rf.explore(world, model, rf.Uniform(), steps=60)
    reward = np.random.default_rng(5).random(world.grid.shape)
    H, (S, A), Z = world.horizon, world.grid.shape, world.grid.points
    value = np.zeros(S)
    expected = {}
    for h in reversed(range(H)):
        rows = data.designs()[0 if pooled else h]
        y = discount * value[data.next_state[rows]]
        centre = 0.5 * (y.min() + y.max())
        seen = Z[data.points(rows)]
        mean = centre + reference.mean(model.kernel, seen, 0.2, y - centre, Z)
        sigma = np.sqrt(reference.variance(model.kernel, seen, 0.2, Z))
        q = np.clip((mean + beta * sigma).reshape(S, A) + reward, 0.0, H - h)
        expected[h] = q
        value = q.max(axis=1)
    recursion = Recursion(
        observed_of(data, LabelledWorld(world)),
        H - 1,
        lambda sigma: beta * sigma,
        lambda togo: (0.0, float(togo)),
        lambda h, s, a: reward[s, a],
        discount=discount,
    )
    for h in range(H):
        np.testing.assert_allclose(recursion.q(h, np.arange(S)).T, expected[h], rtol=0, atol=1e-8)


def test_nothing_follows_an_end_and_gained_rewards_are_regressed():
    world = small_world(irregular=True)
    model = rf.Model(rf.Matern(2.5, 0.4), ridge=0.2, pooled=True)
    data = rf.explore(world, model, rf.Uniform(), steps=40)
    enumerated, Z = LabelledWorld(world), world.grid.points
    observed = SampledEstimate(
        enumerated.spaces, fitted_to(enumerated.spaces, model, None, None, None), 2, np.arange(5)
    )
    ended = data.next_state % 2 == 0
    observed.load(0, data.state, data.action, data.next_state, ended)
    gained = np.random.default_rng(0).random(40)
    recursion = Recursion(
        observed, 1, lambda sigma: 0.0 * sigma, lambda togo: (-9.0, 9.0), gained=lambda h: gained
    )
    seen = Z[data.points(slice(None))]
    last = reference.mean(model.kernel, seen, 0.2, gained, Z).reshape(6, 5).max(axis=1)
    y = gained + np.where(ended, 0.0, last[data.next_state])
    expected = reference.mean(model.kernel, seen, 0.2, y, Z).reshape(6, 5)
    np.testing.assert_allclose(recursion.q(0, np.arange(6)).T, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("empty", ["zero", "prior"])
def test_a_step_without_data_is_worth_nothing_or_the_prior(empty):
    world = small_world()
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1)
    enumerated = LabelledWorld(world)
    fitted = fitted_to(enumerated.spaces, model, None, None, None)
    observed = SampledEstimate(enumerated.spaces, fitted, world.horizon, np.arange(5))
    recursion = Recursion(observed, 3, lambda sigma: 0.5 * sigma, lambda togo: (0.0, 4.0), empty=empty)
    np.testing.assert_allclose(recursion.q(2, np.arange(6)), 0.0 if empty == "zero" else 0.5)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
def test_transitions_one_by_one_or_all_at_once_are_the_same(pooled):
    world = small_world(irregular=True)
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1, pooled=pooled)
    data = rf.explore(world, model, rf.Uniform(), steps=40)
    once = observed_of(data, LabelledWorld(world))
    each = SampledEstimate(once.spaces, once.fitted, world.horizon, once.actions)
    order = np.concatenate(data.designs())
    bounds = {"bonus": lambda sigma: 0.1 * sigma, "bounds": lambda togo: (0.0, 4.0)}
    for i in order:
        each.add(data.h[i], data.state[i], data.action[i], data.next_state[i], data.terminated[i])
        if i % 9 == 0:  # what was known earlier must not be remembered
            Recursion(each, 3, **bounds).value(0, np.arange(6))
    assert [each.count(h) for h in range(4)] == [once.count(h) for h in range(4)]
    values = [Recursion(observed, 3, **bounds).value(0, np.arange(6)) for observed in (once, each)]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-10)


def test_states_need_not_be_labels():
    """On a line of states the recursion is the textbook's, at states never seen too."""
    spaces = Spaces(rf.Box.of(x=(0.0, 1.0)), rf.Discrete(2))
    model = rf.Model(rf.Matern(2.5, 0.5), ridge=0.1, pooled=True)
    rng = np.random.default_rng(0)
    state, action, following = rng.random((20, 1)), rng.integers(2, size=20), rng.random((20, 1))
    observed = SampledEstimate(spaces, fitted_to(spaces, model, None, None, None), 2, np.arange(2))
    observed.load(0, state, action, following, np.zeros(20, bool))
    recursion = Recursion(
        observed, 1, lambda sigma: 0.0 * sigma, lambda togo: (0.0, 2.0), lambda h, s, a: s[:, 0] * (a == 1)
    )
    z = np.concatenate([state, np.eye(2)[action]], axis=1)
    asked = rng.random((7, 1))
    value = following[:, 0]  # the last step: the best reward
    for chosen, q in enumerate(recursion.q(0, asked)):
        at = np.concatenate([asked, np.eye(2)[np.full(7, chosen)]], axis=1)
        mean = reference.mean(model.kernel, z, 0.1, value, at)
        np.testing.assert_allclose(q, np.clip(mean + chosen * asked[:, 0], 0.0, 2.0), rtol=0, atol=1e-9)
