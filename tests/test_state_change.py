"""Changes of the state without their walls, against systems whose law is known without them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from reference_swing import samples
from rewardfree.dynamics import Dynamics
from rewardfree.worlds import ScaledModel, Spaces, StateChange

SPACES = Spaces(rf.Box.of(x=(-1.0, 1.0), y=(-1.0, 1.0)), rf.Box.of(right=(-1.0, 1.0), up=(-1.0, 1.0)))
MODEL = rf.Model(rf.SquaredExponential(2.0) + 1.0 * rf.Linear(bias=1.0), ridge=1e-6, pooled=True)


def walks(n=120, seed=0, noise=0.0):
    """Moves of 0.4 (right, up) in a square with walls: the samples, and where there would be no wall."""
    rng = np.random.default_rng(seed)
    state, action = rng.uniform(-1.0, 1.0, (n, 2)), rng.uniform(-1.0, 1.0, (n, 2))
    far = state + 0.4 * action + noise * rng.standard_normal((n, 2))
    return samples(state, action, np.clip(far, -1.0, 1.0)), far


def scaled_inputs(known):
    return ScaledModel.of_bounds(SPACES, MODEL).inputs(SPACES, known.state, known.action)


def change_of(known, spaces=SPACES):
    return StateChange.of(spaces, known.state, known.next_state)


def test_cuts_are_where_the_walls_are():
    known, far = walks()
    change = change_of(known)
    np.testing.assert_array_equal(change.cut, (far >= 1.0).astype(int) - (far <= -1.0))
    np.testing.assert_array_equal(change.free, np.flatnonzero((np.abs(far) < 1.0).all(axis=1)))
    assert change.meets_walls and 0 < len(change.free) < len(known)


def test_the_unit_is_that_of_the_steps_that_met_no_wall():
    known, _ = walks()
    change = change_of(known)
    moves = known.next_state - known.state
    free = moves[change.free]
    np.testing.assert_allclose(change.middle, free.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(change.unit, free.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(change.targets * change.unit + change.middle, moves, atol=1e-12)


def test_behind_a_wall_is_where_the_law_leads():
    known, far = walks()
    change = change_of(known)
    told = change.behind_walls(MODEL, scaled_inputs(known))
    ideal = (far - known.state - change.middle) / change.unit
    assert np.abs(change.targets - ideal).max() > 1.0
    np.testing.assert_allclose(told.targets, np.clip(ideal, *np.array([-1, 1]) * 3.0), rtol=0, atol=0.15)
    inside = (np.abs(ideal) < np.abs(change.targets[change.free]).max(axis=0)).all(axis=1)
    np.testing.assert_allclose(told.targets[inside], ideal[inside], rtol=0, atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.03))
def test_a_wall_is_a_limit_and_nothing_goes_farther_than_what_was_seen(seed, noise):
    known, _ = walks(80, seed, noise)
    change = change_of(known)
    told = change.behind_walls(MODEL, scaled_inputs(known))
    moves, told_moves = (changes.targets * changes.unit + changes.middle for changes in (change, told))
    kept = told.cut == 0
    assert not told.cut[change.cut == 0].any()  # a wall may be left as it is, none is made up
    np.testing.assert_allclose(told_moves[kept], moves[kept], rtol=0, atol=1e-12)
    further = told.cut * (told_moves - moves)
    assert (further[~kept] >= -1e-12).all()
    assert (told_moves <= moves.max(axis=0) + 1e-12).all() and (told_moves >= moves.min(axis=0) - 1e-12).all()


def test_walls_are_looked_behind_where_changes_are_noisy():
    """What noise hides of the other variable is hidden everywhere: no sign that a wall stops it, too."""
    model = rf.Model(MODEL.kernel, ridge=0.3, pooled=True)
    known, _ = walks(400, noise=0.15)
    change = change_of(known)
    told = change.behind_walls(model, scaled_inputs(known))
    np.testing.assert_array_equal(told.cut, change.cut)
    ideal = (0.4 * known.action - change.middle) / change.unit
    at_wall = change.cut != 0
    errors = [np.abs(targets - ideal)[at_wall].mean() for targets in (change.targets, told.targets)]
    assert errors[1] < 0.7 * errors[0]


def test_a_bound_that_something_went_beyond_is_no_wall():
    known, _ = walks()
    wider = known.next_state.copy()
    wider[0] = (1.2, 0.0)  # the bounds of x were a guess
    change = change_of(samples(known.state, known.action, wider))
    assert not (change.cut[:, 0] > 0).any()
    assert (change.cut[:, 0] < 0).any() and (change.cut[:, 1] > 0).any()


def test_angles_and_open_variables_have_no_walls():
    spaces = Spaces(rf.Box.of(x=None, y="angle"), SPACES.action)
    known, _ = walks()
    change = change_of(samples(known.state, known.action, np.full_like(known.state, -np.pi)), spaces)
    assert not change.meets_walls
    told = change.behind_walls(MODEL, np.zeros((len(known), 2)))
    assert told is change


@pytest.mark.parametrize("free", [0, 5, 19])
def test_walls_are_not_looked_behind_from_too_few_steps(free):
    known, far = walks(400)
    met, others = (np.flatnonzero(rows) for rows in ((np.abs(far) >= 1).any(1), (np.abs(far) < 1).all(1)))
    few = known[np.concatenate([met, others[:free]])]
    assert not change_of(few).meets_walls
    tenth, less = (known[np.concatenate([np.resize(met, stopped), others[:20]])] for stopped in (180, 181))
    assert change_of(tenth).meets_walls and not change_of(less).meets_walls


def test_a_variable_that_changes_only_at_walls_is_taken_as_it_is():
    state = np.linspace(-0.9, 0.9, 60)[:, None] * [1.0, 0.5]
    following = state.copy()
    following[:20, 0] = 1.0
    known = samples(state, np.zeros((60, 2)), following + np.r_[np.zeros(59), 0.1][:, None] * [0.0, 1.0])
    assert not change_of(known).meets_walls


def test_a_wall_that_ends_a_speed_is_left_as_it_is():
    """The wall of x stops the speed v, too, which no free step tells; the bound of v stops v alone."""
    spaces = Spaces(rf.Box.of(x=(-1.0, 1.0), v=(-0.5, 0.5)), rf.Box.of(right=(-1.0, 1.0), up=(-1.0, 1.0)))
    rng = np.random.default_rng(0)
    state, action = rng.uniform((-1.0, -0.5), (1.0, 0.5), (200, 2)), rng.uniform(-1.0, 1.0, (200, 2))
    speed = np.clip(state[:, 1] + 0.2 * action[:, 0], -0.5, 0.5)
    far = state[:, 0] + 0.4 * speed
    stopped = np.abs(far) >= 1.0
    following = np.stack([np.clip(far, -1.0, 1.0), np.where(stopped, 0.0, speed)], axis=1)
    known = samples(state, action, following)
    change = change_of(known, spaces)
    inputs = ScaledModel.of_bounds(spaces, MODEL).inputs(spaces, state, action)
    told = change.behind_walls(MODEL, inputs)
    assert stopped.sum() > 10 and (change.cut != 0).any(axis=0).all()
    np.testing.assert_array_equal(told.cut[:, 0], 0)
    np.testing.assert_array_equal(told.cut[:, 1], change.cut[:, 1])
    moves = told.targets * told.unit + told.middle
    np.testing.assert_allclose(moves[:, 0], following[:, 0] - state[:, 0], atol=1e-12)
    behind = told.cut[:, 1] != 0
    assert np.abs(moves[behind, 1]).max() > np.abs(following[behind, 1] - state[behind, 1]).max()


def test_labels_have_no_walls():
    spaces = Spaces(rf.Discrete(3, "s"), rf.Discrete(2))
    change = StateChange.of(spaces, np.array([0, 1, 2]), np.array([1, 2, 0]))
    assert not change.meets_walls
    np.testing.assert_allclose(change.targets * change.unit + change.middle, np.eye(3)[[1, 2, 0]], atol=1e-12)


def test_learnt_dynamics_stop_at_walls_and_are_right_beside_them():
    """Half of what was seen ended at a wall: a regression of the raw change bends its kernel to it."""
    known, _ = walks(200, seed=3)
    learnt = Dynamics.learn(SPACES, rf.Model(rf.AutoKernel()), known)
    new, _ = walks(500, seed=4)
    told = learnt.next_state(new.state, new.action)
    np.testing.assert_allclose(told, new.next_state, rtol=0, atol=2e-3)
    assert (np.abs(new.next_state) == 1.0).any(axis=1).mean() > 0.15
    assert not learnt.noisy


def test_a_kernel_of_a_users_own_looks_behind_walls_too():
    known, _ = walks(200, seed=3)
    new, _ = walks(300, seed=4)
    told = Dynamics.learn(SPACES, MODEL, known).next_state(new.state, new.action)
    np.testing.assert_allclose(told, new.next_state, rtol=0, atol=2e-3)
