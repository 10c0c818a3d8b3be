"""Interpolation on a mesh, where actions lead from its nodes, and what it should cover."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from reference_swing import MODEL, SPACES, nowhere, samples, swing, swings
from rewardfree.dynamics import Dynamics, Mesh, MeshDynamics, carried, carry_over, extent, trusted_box
from rewardfree.dynamics import mesh as mesh_module
from rewardfree.worlds import Spaces

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
    mesh, states, share = a_mesh(), np.random.default_rng(0).random((4, 2)), np.array([0.0, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(mesh.matrix([states], [share]).sum(axis=1), share, rtol=0, atol=1e-12)


def test_a_matrix_of_several_sets_of_states_is_the_sum_of_theirs():
    mesh, sets = a_mesh(), [3.0 * np.random.default_rng(seed).random((4, 2)) for seed in (0, 1)]
    shares = [np.array([0.0, 0.5, 1.0, 2.0]), np.array([0.25, 0.0, 1.0, -1.0])]
    values = np.random.default_rng(0).standard_normal(mesh.size)
    expected = sum(share * mesh.at(values, states) for states, share in zip(sets, shares, strict=True))
    np.testing.assert_allclose(mesh.matrix(sets, shares) @ values, expected, rtol=0, atol=1e-12)


@settings(max_examples=60)
@given(
    st.integers(1, 3),
    st.integers(2, 6),
    st.sampled_from([0.0, 0.01, 0.3, 5.0]),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_draws_that_share_nodes_or_are_scattered_add_up_to_the_same(d, k, spread, turning, seed):
    """Draws of one cell, across cells, beyond the ends, across the turn of an angle, and far apart."""
    rng = np.random.default_rng(seed)
    angular = np.zeros(d, bool)
    angular[0] = turning
    low, high = np.where(angular, -math.pi, -1.0), np.where(angular, math.pi, 2.0)
    mesh = Mesh(low, high, tuple(int(side) for side in rng.integers(3, 9, d)), angular)
    middle = rng.uniform(low - 0.1, high + 0.1, (50, d))
    middle[:10] = mesh.nodes[rng.integers(mesh.size, size=10)]
    sets = [middle + spread * rng.standard_normal((50, d)) for _ in range(k)]
    shares, values = list(rng.random((k, 50))), rng.standard_normal(mesh.size)
    matrix = mesh.matrix(sets, shares)
    expected = sum(share * mesh.at(values, states) for states, share in zip(sets, shares, strict=True))
    np.testing.assert_allclose(matrix @ values, expected, rtol=0, atol=1e-12)
    assert matrix.nnz <= 50 * k * 2**d
    if spread == 0.0:
        assert matrix.nnz == 50 * 2**d


# --- a mesh inside another one ---


def swinging(low, high, sides):
    """The swing itself on a mesh: a change that is smooth, and goes round with the angle."""
    mesh = Mesh(np.array(low), np.array(high), sides, SPACES.state.angular)

    class Swing:
        asked = 0

        def next_state(self, state, action):
            self.asked += len(state)
            return SPACES.state.wrapped(swing(state, action))

        def inside(self, state):
            return SPACES.state.wrapped(state)

    actions = np.linspace(-0.3, 0.3, 3)[:, None]  # which nothing stops at a speed of 2
    return MeshDynamics(SPACES, Swing(), mesh, actions, nowhere)


FIRST = ((-math.pi, -3.0), (math.pi, 3.0), (25, 25))


def test_next_states_are_carried_over_to_a_mesh_inside():
    coarse, fine = swinging(*FIRST), swinging((-math.pi, -1.0), (math.pi, 0.9), (31, 21))
    carry_over(coarse, fine)
    states, actions = fine.pairs
    assert fine.predictor.asked == carried.PAIRS and len(states) > carried.PAIRS
    missed = SPACES.state.change(swing(states, actions), fine.next_states)
    assert abs(missed).max() < 5e-4 and fine.predictor.asked == carried.PAIRS
    assert abs(missed).max() > 1e-12


@pytest.mark.parametrize(
    ("low", "high", "sides", "first"),
    [
        ((-math.pi, -1.0), (math.pi, 3.5), (31, 21), (25, 25)),  # beyond the end of the first
        ((-math.pi, -1.0), (math.pi, 1.3), (31, 21), (5, 25)),  # a sine of five nodes
    ],
)
def test_next_states_are_predicted_where_they_cannot_be_carried_over(low, high, sides, first):
    coarse, fine = swinging(*FIRST[:2], first), swinging(low, high, sides)
    carry_over(coarse, fine)
    states, actions = fine.pairs
    np.testing.assert_array_equal(fine.next_states, SPACES.state.wrapped(swing(states, actions)))


def test_cubic_interpolation_is_exact_for_cubics_and_with_few_nodes_for_lines():
    for side, power in ((9, 3), (3, 2), (2, 1)):
        coarse = Mesh(np.array([-1.0]), np.array([2.0]), (side,), np.array([False]))
        fine = Mesh(np.array([-1.0]), np.array([1.7]), (23,), np.array([False]))
        weights = carried._cubic(coarse, fine, 0)
        np.testing.assert_allclose(
            weights @ coarse.nodes[:, 0] ** power, fine.nodes[:, 0] ** power, rtol=0, atol=1e-12
        )


# --- where actions lead from its nodes ---


def on_a_mesh(noisy=False, ended=nowhere, noise=0.0, n=60, side=7):
    learnt = Dynamics.learn(SPACES, MODEL, swings(n, noise=noise))
    mesh = Mesh(np.array([-math.pi, -2.0]), np.array([math.pi, 2.0]), (side, side), SPACES.state.angular)
    return MeshDynamics(SPACES, learnt, mesh, SPACES.action.candidates(3), ended, learnt if noisy else None)


@pytest.mark.parametrize("noisy", [False, True])
def test_rows_of_transport_sum_to_one_but_for_ends(noisy):
    on_mesh = on_a_mesh(noisy, lambda states: states[:, 1] > 1.0, noise=0.2)
    sums = np.asarray(on_mesh.matrix.sum(axis=1))
    going = np.mean([outcome[:, 1] <= 1.0 for outcome in on_mesh.outcomes], axis=0)
    np.testing.assert_allclose(sums, going, rtol=0, atol=1e-12)
    assert sums.min() < 0.01
    assert sums.max() > 0.99
    assert on_mesh.matrix.min() >= 0.0
    assert len(on_mesh.outcomes) == (mesh_module.DRAWS if noisy else 1)


def test_transport_of_values_is_their_interpolation_at_the_next_states():
    on_mesh = on_a_mesh()
    values = np.random.default_rng(0).standard_normal(on_mesh.mesh.size)
    later = (on_mesh.matrix @ values).reshape(3, -1)
    for action, row in zip(on_mesh.actions, later, strict=True):  # action by action
        tried = np.repeat(action[None], on_mesh.mesh.size, axis=0)
        next_state = on_mesh.predictor.next_state(on_mesh.mesh.nodes, tried)
        np.testing.assert_allclose(row, on_mesh.mesh.at(values, next_state), rtol=0, atol=1e-12)


def test_draws_of_noise_are_centred_with_the_variance_of_the_nearest_residuals():
    on_mesh = on_a_mesh(True, noise=0.3, n=80)
    dynamics, draws = on_mesh.predictor, 8
    nodes = on_mesh.mesh.nodes
    noise = on_mesh.noise(nodes, draws)
    assert noise.shape == (draws, len(nodes), 2)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, rtol=0, atol=1e-12)
    place = dynamics.scaled.scaling(SPACES.features(nodes, np.zeros((len(nodes), 1))))[:, :3]
    distance = ((place[:, None, :] - dynamics.points[None, :, :3]) ** 2).sum(axis=2)  # by state alone
    nearest = np.argsort(distance, axis=1)[:, :draws]
    expected = dynamics.residuals[nearest].var(axis=1, ddof=1)  # unbiased, as the stretch makes it
    np.testing.assert_allclose((noise**2).mean(axis=0), expected, rtol=1e-9, atol=1e-12)


def test_all_actions_of_a_node_get_the_same_draws():
    """Or the best of them would be the luckiest."""
    on_mesh = on_a_mesh(True, noise=0.1, n=80)
    shifts = [SPACES.state.change(on_mesh.next_states, outcome) for outcome in on_mesh.outcomes]
    shifts = np.array(shifts).reshape(len(shifts), 3, on_mesh.mesh.size, 2)
    low, high = on_mesh.predictor.ends
    inside = [(outcome[:, 1] > low[1]) & (outcome[:, 1] < high[1]) for outcome in on_mesh.outcomes]
    uncut = np.array(inside).reshape(len(inside), 3, -1).all(axis=1)
    assert uncut.mean() > 0.5
    for action in (1, 2):
        np.testing.assert_allclose(shifts[:, action][uncut], shifts[:, 0][uncut], rtol=0, atol=1e-12)


def test_draws_of_noise_have_the_variance_of_the_worlds_noise():
    spaces = Spaces(rf.Box.of(x=(-9.0, 9.0)), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-2.0, 2.0, (300, 1)), rng.uniform(-1.0, 1.0, (300, 1))
    next_state = state + 0.5 * action + 0.3 * rng.standard_normal((300, 1))
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), samples(state, action, next_state))
    mesh = Mesh(np.array([-2.0]), np.array([2.0]), (21,), np.array([False]))
    on_mesh = MeshDynamics(spaces, learnt, mesh, spaces.action.candidates(5), nowhere, learnt)
    square = (on_mesh.noise(mesh.nodes) ** 2).mean()
    assert math.sqrt(square) == pytest.approx(0.3, rel=0.2)


def test_outcomes_stay_within_the_bounds_or_what_was_seen_beyond_them():
    on_mesh = on_a_mesh(True, noise=0.5)
    low, high = on_mesh.predictor.ends
    assert low[1] < -2.0 and high[1] > 2.0  # noise leads beyond the bounds
    for outcome in on_mesh.outcomes:
        assert (outcome[:, 1] >= low[1]).all() and (outcome[:, 1] <= high[1]).all()
        assert (np.abs(outcome[:, 0]) <= math.pi).all()


def test_a_large_mesh_takes_fewer_draws(monkeypatch):
    on_mesh = on_a_mesh(True, noise=0.2)
    monkeypatch.setattr(mesh_module, "MOST_WEIGHTS", 7 * len(on_mesh.next_states) * 4)
    assert len(on_mesh.outcomes) == 7
    monkeypatch.setattr(mesh_module, "MOST_WEIGHTS", 1)
    assert len(on_a_mesh(True, noise=0.2).outcomes) == 4  # at least


def test_changes_at_the_nodes_lead_to_the_next_states():
    on_mesh = on_a_mesh()
    assert on_mesh.change.shape == (on_mesh.mesh.size, 3, 2)
    arrived = on_mesh.mesh.nodes[:, None, :] + on_mesh.change
    expected = on_mesh.next_states.reshape(3, -1, 2).swapaxes(0, 1)
    apart = SPACES.state.wrapped((arrived - expected).reshape(-1, 2))
    np.testing.assert_allclose(apart, 0.0, rtol=0, atol=1e-12)
    assert np.abs(on_mesh.change[:, :, 0]).max() <= math.pi


def test_a_simulator_itself_can_be_on_a_mesh():
    class Exact:
        def next_state(self, state, action):
            return swing(state, action)

    mesh = Mesh(np.array([-math.pi, -2.0]), np.array([math.pi, 2.0]), (7, 7), SPACES.state.angular)
    on_mesh = MeshDynamics(SPACES, Exact(), mesh, SPACES.action.candidates(3), nowhere)
    np.testing.assert_array_equal(on_mesh.next_states, swing(*on_mesh.pairs))


# --- what a mesh should cover ---


def drifting(n=80, bounds=(-9.0, 9.0)):
    """x drifts by a push; y stays where it is: the dynamics depend on neither."""
    spaces = Spaces(rf.Box.of(x=bounds, y=None), rf.Box.of(push=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-1.0, 1.0, (n, 2)), rng.uniform(-1.0, 1.0, (n, 1))
    next_state = state + np.concatenate([0.3 * action, 0.1 * np.ones((n, 1))], axis=1)
    next_state[:, 1] -= 0.05 * action[:, 0]
    known = samples(state, action, next_state)
    return spaces, Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), known), state, action


def test_the_box_holds_what_was_seen_and_a_margin_where_nothing_ends():
    _, learnt, state, action = drifting()
    low, high = trusted_box(learnt, state, nowhere, action)
    half = 0.5 * np.ptp(state, axis=0)
    assert (low <= state.min(axis=0)).all()
    assert (high >= state.max(axis=0)).all()
    # Drawn states find the ends of a box up to a few of DENSE's gaps.
    np.testing.assert_allclose(0.5 * (high - low), extent.MARGIN * half, rtol=1e-2)


def test_the_box_is_cut_to_the_worlds_bounds_or_what_was_seen_beyond_them():
    _, learnt, state, action = drifting(bounds=(-1.02, 1.02))
    low, high = trusted_box(learnt, state, nowhere, action)
    assert (low >= learnt.ends[0]).all() and (high <= learnt.ends[1]).all()
    assert learnt.ends[0][0] < -1.02 and learnt.ends[1][0] > 1.02  # next states lie up to 0.3 beyond 1
    spaces, _, state, action = drifting(bounds=(-1.02, 1.02))
    walled = np.clip(state + np.concatenate([0.3 * action, 0.1 * action], axis=1), [-1.02, -9], [1.02, 9])
    learnt = Dynamics.learn(spaces, rf.Model(rf.AutoKernel()), samples(state, action, walled))
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
    known = swings(30)
    learnt = Dynamics.learn(SPACES, MODEL, known)
    low, high = trusted_box(learnt, 0.1 * known.state, nowhere, known.action)
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
    low, high = extent.met_box(dynamics, met, starts, nowhere, 0.2)
    middle = starts.mean(axis=0)
    assert (low[0], high[0]) == (-math.pi, math.pi)
    np.testing.assert_allclose(0.5 * (low + high)[1:], middle[1:], atol=0.01)
    half = 1.2 * np.abs(met - middle).max(axis=0)
    np.testing.assert_allclose(0.5 * (high - low)[1:], half[1:], rtol=0.01)
