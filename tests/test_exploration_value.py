"""What is still to be learnt from a state: its Bellman equation, its sigma, and what the model reaches."""

import numpy as np
import pytest

import reference
import rewardfree as rf
from reference_swing import MODEL, SPACES, samples, swings
from rewardfree.data import Samples
from rewardfree.dynamics import ExplorationValue, exploration
from rewardfree.estimates.backups import SETTLED_E
from rewardfree.worlds import Spaces


def explored(model=MODEL, ended=False, n=60):
    known = swings(n)
    ends = (known.next_state[:, 1] > 1.2) if ended else np.zeros(n, bool)
    return ExplorationValue(SPACES, model, Samples(known.state, known.action, known.next_state, ends))


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("model", [MODEL, rf.Model(rf.AutoKernel())], ids=["fixed", "automatic"])
def test_the_value_satisfies_its_bellman_equation_at_the_nodes(model, ended):
    exploring = explored(model, ended)
    nodes, value = exploring.mesh.nodes, exploring.value
    right = np.full(len(nodes), -np.inf)
    for action in SPACES.action.candidates(exploration.EXPLORED_ACTIONS):
        tried = np.repeat(action[None], len(nodes), axis=0)
        next_state = exploring.dynamics.next_state(nodes, tried)
        beyond = np.where(exploring.is_end(next_state), 0.0, exploring.mesh.at(value, next_state))
        right = np.maximum(right, exploring.sigma(nodes, tried) + exploration.DISCOUNT * beyond)
    np.testing.assert_allclose(value, right, rtol=0, atol=SETTLED_E * value.max())
    assert value.min() >= 0.0
    largest = exploring.sigma(nodes, np.zeros((len(nodes), 1))).max()
    assert value.max() <= largest / (1 - exploration.DISCOUNT) * 1.5


def test_choices_are_greedy_in_the_same_equation():
    exploring = explored(ended=True)
    q, next_states = exploring.choices(exploring.mesh.nodes)
    np.testing.assert_allclose(q.max(axis=0), exploring.value, rtol=0, atol=1e-3 * exploring.value.max())
    assert next_states.shape == (len(exploring.actions), exploring.mesh.size, 2)


def test_sigma_of_a_fixed_kernel_is_the_textbooks():
    exploring, new = explored(), swings(20, seed=1)
    at = exploring.dynamics.scaled.inputs(SPACES, new.state, new.action)
    expected = reference.variance(MODEL.kernel, exploring.dynamics.points, MODEL.ridge, at)
    np.testing.assert_allclose(exploring.sigma(new.state, new.action) ** 2, expected, rtol=0, atol=1e-9)


def test_a_fitted_kernel_is_made_rough_and_short_for_exploring():
    exploring = explored(rf.Model(rf.AutoKernel()))
    kernel, fitted = exploring.posterior.kernel, np.array(exploring.dynamics.model.kernel.left.lengthscale)
    lengths = np.array(kernel.lengthscale)
    assert isinstance(kernel, rf.Matern)
    assert kernel.nu == 2.5
    assert lengths.max() <= exploration.LONGEST
    assert lengths.min() <= 1.0 + 1e-12
    shortest = np.argsort(fitted, kind="stable")[:1]
    np.testing.assert_array_equal(np.argsort(lengths, kind="stable")[:1], shortest)


def test_reachable_states_are_met_by_the_model_and_do_not_end():
    exploring = explored(ended=True)
    starts = np.array([[0.0, 0.0], [1.0, -1.0]])
    state, action = exploring.reachable(starts, 12, 20, np.random.default_rng(0))
    assert state.shape == (20, 2)
    assert action.shape == (20, 1)
    begun = (state[:, None, :] == starts).all(axis=2).any(axis=1)
    assert not exploring.is_end(state[~begun]).any()
    assert (np.abs(state[:, 1]) <= 2.0).all()
    assert (action[:, None, :] == exploring.actions).all(axis=2).any(axis=1).all()


def test_too_many_variables_for_a_mesh_are_refused():
    spaces = Spaces(rf.Box.of(**{f"x{i}": (-1.0, 1.0) for i in range(5)}), rf.Discrete(2))
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-1.0, 1.0, (20, 5)), rng.integers(2, size=20)
    with pytest.raises(ValueError, match="takes up to 4 real state variables, got x0, x1, x2, x3, x4"):
        ExplorationValue(spaces, MODEL, samples(state, action, 0.5 * state))


def test_samples_that_came_later_lower_sigma_and_what_is_still_to_be_learnt():
    """sigma stays between those of all samples and of the first ones, and E where they were falls."""
    exploring, new = explored(), swings(30, seed=2)
    fitted = explored()
    exploring.count(new)
    at = swings(50, seed=3)
    points = exploring.dynamics.scaled.inputs(SPACES, at.state, at.action)
    both = MODEL.design()
    both.extend(exploring.dynamics.points)
    both.extend(exploring.dynamics.scaled.inputs(SPACES, new.state, new.action))
    sigma, before = (value.sigma(at.state, at.action) for value in (exploring, fitted))
    assert (sigma <= before).all() and (sigma >= both.std(points) - 1e-9).all()
    assert (sigma < before - 1e-3).any()
    most = SETTLED_E / (1 - exploration.DISCOUNT)  # by which settled values may still rise
    assert (exploring.value <= fitted.value * (1 + most)).all()
    assert (exploring.value < 0.99 * fitted.value).any()


def test_who_stays_where_sigma_was_largest_moves_on():
    """Without counting the samples since the fit, E would send a run back to the same point at every step."""
    exploring = explored()
    q, _ = exploring.choices(exploring.mesh.nodes)
    node = np.unravel_index(q.argmax(), q.shape)
    state, action = exploring.mesh.nodes[node[1]], exploring.actions[node[0]]
    before = float(exploring.gain(state[None], action[None])[0])
    same = Samples(
        np.repeat(state[None], 10, axis=0),
        np.repeat(action[None], 10, axis=0),
        np.repeat(state[None], 10, axis=0),
        np.zeros(10, bool),
    )
    exploring.count(same)
    assert float(exploring.gain(state[None], action[None])[0]) < 0.5 * before
