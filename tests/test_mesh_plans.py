"""Plans through learnt dynamics against Riccati's equation, dynamic programming, and the world itself."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are
from scipy.stats import norm

import rewardfree as rf
from reference_mesh import (
    CLIMB,
    FALL,
    QUADRATIC,
    Cliff,
    H,
    Linear,
    Stairs,
    X,
    cliff_plan,
    explored,
    linear_plan,
    riccati,
)
from rewardfree import DynamicsPlanner
from rewardfree.planning.mesh.planner import _starts

pytestmark = pytest.mark.usefixtures("one_thread")


# --- a linear world with a quadratic reward ---


@pytest.mark.parametrize("h", [0, 3, 6, 7])
def test_values_and_actions_approach_those_of_riccati(h):
    """Each step loses up to S spacing^2/4 to interpolation (a chord lies above x^2 by up to spacing^2/4) and
    (0.1 + 0.25 S) (0.05/2)^2 to the grid of actions: 8 of them stay below 0.004. (The mesh covers what
    queries saw beyond the bounds, up to 2.8, so its spacing is larger than these would need.)"""
    plan, (costs, gains) = linear_plan(), riccati(H)
    spacing = float(plan.on_mesh.mesh.spacing[0])
    bound = H * (1.25 * spacing**2 / 4 + (0.1 + 0.25 * 1.25) * 0.025**2)
    assert bound < 0.004
    np.testing.assert_allclose(plan.value(X, h), -costs[h] * X[:, 0] ** 2, rtol=0, atol=bound)
    np.testing.assert_allclose(plan.act(X, h), -gains[h] * X, rtol=0, atol=0.05 + 1e-9)


def test_without_an_end_they_are_those_of_the_algebraic_equation():
    gamma = 0.9
    plan = linear_plan(horizon=math.inf, discount=gamma)
    root = math.sqrt(gamma)
    cost = solve_discrete_are(*(np.array([[number]]) for number in (root * 0.9, root * 0.5, 1.0, 0.1)))[0, 0]
    gain = gamma * 0.45 * cost / (0.1 + gamma * 0.25 * cost)
    spacing = float(plan.on_mesh.mesh.spacing[0])
    bound = (cost * spacing**2 / 4 + (0.1 + 0.25 * cost) * 0.025**2) / (1.0 - gamma)
    assert bound < 0.005
    np.testing.assert_allclose(plan.value(X), -cost * X[:, 0] ** 2, rtol=0, atol=bound)
    np.testing.assert_allclose(plan.act(X), -gain * X, rtol=0, atol=0.05 + 1e-9)
    assert plan.horizon is None and "no end" in repr(plan)
    np.testing.assert_array_equal(plan.act(X, 0), plan.act(X, 12_345))  # it has no clock


def test_a_plan_with_a_horizon_has_a_clock():
    plan = linear_plan()
    np.testing.assert_allclose(plan.act(X, H - 1), 0.0, atol=1e-12)  # the last step has no later
    assert np.abs(plan.act(X, 0)).max() > 0.9


def test_a_reward_that_changes_with_h_has_riccatis_values():
    """The same bound as above, with costs up to H + 1 times as large."""
    costs, gains = riccati(H, weights=[1.0 + h for h in range(H)])
    plan = linear_plan("-(1 + h)*x**2 - 0.1*u**2")
    for h in (0, 4, 7):
        np.testing.assert_allclose(plan.value(X, h), -costs[h] * X[:, 0] ** 2, rtol=0, atol=0.02)
        np.testing.assert_allclose(plan.act(X, h), -gains[h] * X, rtol=0, atol=0.05 + 1e-9)


def test_more_candidates_are_better_in_the_world():
    few, many = (rf.rollouts(Linear(), linear_plan(actions=n), QUADRATIC, 20).mean for n in (3, 81))
    costs, _ = riccati(H)
    starts = np.array([Linear().start(rf.streams.stream(0, "rollout", i))[0] for i in range(20)])
    best = float(-(costs[0] * starts**2).mean())
    assert few < many <= best + 1e-12
    assert many == pytest.approx(best, abs=H * (0.1 + 0.25 * 1.25) * 0.05**2)


def test_what_it_expects_is_what_it_gains():
    plan = linear_plan()
    starts = _starts(Linear.state, explored(), None)

    class From(Linear):
        def start(self, rng):
            self.number = getattr(self, "number", -1) + 1
            return starts[self.number]

        def copy(self):
            return None

    score = rf.rollouts(From(), plan, QUADRATIC, len(starts))
    assert plan.expected == pytest.approx(score.mean, abs=0.01)  # states between nodes are interpolated


# --- stairs, which have exact values ---


def stairs_value(x, to_go):
    """10 for the upper end, -1 for every step: the best of going up, and of waiting for the time to pass."""

    def best(x, k):
        if k == 0:
            return 0.0
        gains = []
        for next_x in (x - 0.5, x + 0.5):
            later = 0.0 if abs(next_x) >= 3.0 else value(next_x, k - 1)
            gains.append(-1.0 + 10.0 * (next_x >= 3.0) + later)
        return max(gains)

    @cache
    def value(x, k):
        return best(x, k)

    return value(x, to_go)


@pytest.mark.parametrize("terminated", ["abs(x) >= 3", lambda s: np.abs(s[:, 0]) >= 3, None])
def test_stairs_have_the_values_of_dynamic_programming(terminated):
    """Tested in the middle of steps: value jumps by 1 between them, and interpolation blurs the jumps.

    The blur of k steps is that of k means of two nodes: less than sqrt(k) spacings, 0.12 here, a quarter of a
    step is 0.25. Seen ends lie as near to the true ones as transitions do.
    """
    plan = rf.plan(explored(Stairs, 80), CLIMB, horizon=20, discount=1.0, terminated=terminated)
    x = 0.25 + 0.5 * np.arange(-4, 5)
    expected = [stairs_value(float(place), 20) for place in x]
    np.testing.assert_allclose(plan.value(x[:, None]), expected, rtol=0, atol=0.15)
    assert (plan.act(x[:, None]) == 1).tolist() == [stairs_value(e + 0.5, 19) > stairs_value(e - 0.5, 19)
                                                    for e in x.tolist()]  # fmt: skip
    assert rf.rollouts(Stairs(), plan, CLIMB, 10).mean == 10 - 6


def test_time_that_is_short_changes_the_plan():
    """With two steps left the top is out of reach: the value is that of two steps, whatever is done."""
    plan = rf.plan(explored(Stairs, 80), CLIMB, horizon=20, discount=1.0, terminated="abs(x) >= 3")
    assert plan.value([0.25], 18) == pytest.approx(-2.0, abs=1e-3)
    assert plan.value([2.25], 18) == pytest.approx(8.0, abs=0.05)


def test_ends_are_where_the_data_saw_them():
    ends = rf.plan(explored(Stairs, 80), CLIMB, horizon=20).on_mesh.is_end
    x = np.array([-3.4, -2.6, 0.0, 2.6, 3.4])[:, None]
    assert ends(x).tolist() == [True, False, False, False, True]


# --- noise ---


@cache
def cliff_values():
    """V_0 on a fine grid by the normal law itself; states are the middles of its cells."""
    x = np.linspace(-2.0, 1.0, 301)
    edges = np.concatenate([[-np.inf], 0.5 * (x[1:] + x[:-1]), [1.0]])
    actions = np.linspace(-0.5, 0.5, 11)
    laws = [np.diff(norm.cdf((edges - (x + u)[:, None]) / Cliff.shake), axis=1) for u in actions]
    falls = np.array([norm.sf((1.0 - x - u) / Cliff.shake) for u in actions])
    value = np.zeros(len(x))
    for _ in range(20):
        value = (np.array([law @ value for law in laws]) + x - 20.0 * falls).max(axis=0)
    return x, value


def test_noise_is_found_in_the_data():
    assert cliff_plan().on_mesh.noisy and not cliff_plan(False).on_mesh.noisy
    assert len(cliff_plan().on_mesh.outcomes) > 1 and cliff_plan().depth == 1


def test_a_world_without_noise_is_not_called_noisy():
    for world, reward in ((Linear, QUADRATIC), ("Pendulum-v1", "-theta**2")):
        assert not rf.plan(explored(world, 60), reward).on_mesh.noisy


#: Rare, large noise is underrated: what a plan gains depends on the data, so there are several.
SEEDS = range(4)


def gained(noise, episodes):
    """The returns of plans from four data sets, (4, episodes)."""
    plans = [cliff_plan(noise, seed) for seed in SEEDS]
    return np.array([rf.rollouts(Cliff(), plan, FALL, episodes, seed=5).returns for plan in plans])


def test_a_plan_that_knows_of_noise_is_better_than_one_that_does_not():
    knows, ignores = gained(None, 60), gained(False, 60)
    assert (knows.mean(axis=1) > ignores.mean(axis=1) + 5.0).all()
    assert knows.mean() > ignores.mean() + 10.0


def test_values_under_noise_approach_those_of_stochastic_dynamic_programming():
    """They are optimistic, by a fifth in the median of four data sets: the largest of 32 draws is about two
    standard deviations, and a plan goes as near to the cliff as these allow."""
    x, value = cliff_values()
    at = np.array([-1.5, -0.75, 0.0, 0.5])
    expected = np.interp(at, x, value)
    values = [cliff_plan(seed=seed).value(at[:, None]) for seed in SEEDS]
    np.testing.assert_allclose(np.median(values, axis=0), expected, rtol=0, atol=0.25 * expected.max())
    np.testing.assert_allclose(np.max(values, axis=0), expected, rtol=0, atol=0.5 * expected.max())


def test_a_plan_under_noise_gains_a_part_of_what_can_be_gained():
    """The best is 7.9; plans go too near to the cliff where its noise is underrated."""
    x, value = cliff_values()
    best = np.interp(np.linspace(-1.0, -0.5, 101), x, value).mean()
    assert gained(None, 60).mean() > 0.4 * best


def test_values_under_noise_lie_between_those_of_no_noise_and_of_a_fall():
    at = np.array([-1.5, -0.75, 0.0, 0.5])
    x, value = cliff_values()
    assert (cliff_plan().value(at[:, None]) < cliff_plan(False).value(at[:, None]) - 1.0).all()
    np.testing.assert_allclose(cliff_plan().value(at[:, None]), np.interp(at, x, value), rtol=0, atol=5.0)


# --- rewards ---


def test_a_function_and_a_formula_are_the_same_reward():
    data = explored()
    two = rf.plan(data, lambda s, a: -(s[:, 0] ** 2 + 0.1 * a[:, 0] ** 2), horizon=H)
    formula = rf.plan(data, QUADRATIC, horizon=H)
    np.testing.assert_array_equal(two.act(X), formula.act(X))
    np.testing.assert_array_equal(two.value(X), formula.value(X))
    three = rf.plan(data, lambda s, a, after: -(after[:, 0] ** 2), horizon=H)
    text = rf.plan(data, "-next_x**2", horizon=H)
    np.testing.assert_array_equal(three.act(X, 2), text.act(X, 2))
    np.testing.assert_array_equal(three.value(X, 2), text.value(X, 2))


def test_a_reward_of_the_next_state_is_that_of_the_state_a_step_later():
    """sum_h next_x^2 is sum_h x^2 without the first and with one more."""
    later = rf.plan(explored(), "-next_x**2 - 0.1*u**2", DynamicsPlanner(actions=81), horizon=H, discount=1.0)
    state = linear_plan(horizon=H + 1)
    np.testing.assert_allclose(later.value(X), state.value(X) + X[:, 0] ** 2, rtol=0, atol=1e-3)


@pytest.mark.parametrize("constant", [3.0, -1000.0])
def test_a_constant_in_the_reward_shifts_values_by_the_steps_to_go_times_it(constant):
    plan, shifted = linear_plan(), linear_plan(f"{QUADRATIC} + {constant!r}")
    for h in (0, 5, 7):
        gap = shifted.value(X, h) - plan.value(X, h)
        np.testing.assert_allclose(gap, (H - h) * constant, rtol=1e-6)  # tables are float32
    # float32 resolves 5e-4 of -8000; two neighbours round the best action may be as close.
    off = 0.05 + 1e-9 if constant < -100.0 else 0.0
    np.testing.assert_allclose(shifted.act(X, 2), plan.act(X, 2), rtol=0, atol=off)


@given(st.floats(0.01, 100.0))
def test_a_reward_in_other_units_has_the_same_plan(unit):
    plan = linear_plan(actions=11)
    other = linear_plan.__wrapped__(f"{unit!r}*({QUADRATIC})", actions=11)
    np.testing.assert_allclose(other.value(X), unit * plan.value(X), rtol=1e-4, atol=1e-6 * unit)
    assert (other.act(X[::2] + 0.013) == plan.act(X[::2] + 0.013)).all()


def test_functions_see_angles_between_minus_pi_and_pi():
    data = explored("Pendulum-v1", 60)
    seen = []

    def reward(state, action, after):
        seen.extend([np.abs(state[:, 0]).max(), np.abs(after[:, 0]).max()])
        return -(state[:, 0] ** 2)

    def ended(state):
        seen.append(np.abs(state[:, 0]).max())
        return np.zeros(len(state), bool)

    plan = rf.plan(data, reward, DynamicsPlanner(sides=15), horizon=5, terminated=ended)
    far = np.array([[7.0, 1.0], [-20.0, 2.0]])
    near = data.spaces.state.wrapped(far)
    np.testing.assert_array_equal(plan.act(far), plan.act(near))
    np.testing.assert_allclose(plan.value(far), plan.value(near), atol=1e-5)
    assert len(seen) > 10 and max(seen) <= math.pi


def test_a_reward_must_be_one_finite_number_for_each_step():
    data = explored()
    with pytest.raises(ValueError, match="one number for each"):
        rf.plan(data, lambda s, a: s.sum())
    with pytest.raises(ValueError, match="one number for each"):
        rf.plan(data, lambda s, a: np.ones((len(s), 1)))
    with pytest.raises(ValueError, match="what the reward returns"):
        rf.plan(data, "log(x)")
    with pytest.raises(ValueError, match="must be a function of"):
        rf.plan(data, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="no variable 'y' here"):
        rf.plan(data, "y")


def test_a_reward_that_changes_with_h_needs_a_horizon():
    with pytest.raises(ValueError, match="a reward that changes with h needs an end to count from"):
        rf.plan(explored(), "-h*x**2", horizon=math.inf, discount=0.9)


# --- acting ---


def test_one_state_and_many_have_the_same_actions():
    plan = linear_plan()
    many = plan.act(X, 2)
    assert many.shape == (9, 1)
    one = plan.act(X[3], 2)
    assert one.shape == (1,) and one[0] == many[3, 0]
    assert plan.act(X[:0], 2).shape == (0, 1)
    assert isinstance(plan.value(X[3], 2), float) and plan.value(X[3], 2) == plan.value(X, 2)[3]
    labels = rf.plan(explored(Stairs, 80), CLIMB, horizon=20)
    assert type(labels.act([0.3])) is int and labels.act([[0.3], [0.4]]).shape == (2,)
    assert labels.act(observation=[0.3]) == labels.act([0.3])  # it is observed as its state


def test_an_action_is_greedy_in_q():
    plan = linear_plan()
    next_x = 0.9 * X[:, 0] + 0.5 * plan.on_mesh.actions
    later = np.interp(next_x.ravel(), plan.mesh_values.mesh.nodes[:, 0], plan.mesh_values.tables[H - 1])
    q = -(X[:, 0] ** 2) - 0.1 * plan.on_mesh.actions**2 + later.reshape(next_x.shape)
    np.testing.assert_allclose(plan.q(X, 0), q, rtol=0, atol=1e-4)  # the next state is learnt
    np.testing.assert_array_equal(plan.act(X), plan.on_mesh.actions[plan.q(X, 0).argmax(axis=0)])


def test_a_lookahead_is_the_recursion_in_the_world_itself():
    """q of depth 2 is r + max_a (r + V), by hand."""
    plan = linear_plan(actions=11)
    actions = plan.on_mesh.actions
    two = plan.q(X, 1, depth=2)
    for i, a in enumerate(actions):
        after = plan.on_mesh.predictor.next_state(X, np.tile(a, (len(X), 1)))
        expected = -(X[:, 0] ** 2) - 0.1 * a**2 + plan.q(after, 2, depth=1).max(axis=0)
        np.testing.assert_allclose(two[i], expected, rtol=0, atol=1e-9)


def test_an_observation_is_read_as_the_state_behind_it():
    plan = rf.plan(explored("Pendulum-v1", 60), "-theta**2", DynamicsPlanner(sides=15), horizon=5)
    state = np.array([[2.0, 1.0], [-3.0, -4.0], [0.5, 0.0]])
    seen = np.stack([np.cos(state[:, 0]), np.sin(state[:, 0]), state[:, 1]], axis=1)
    np.testing.assert_array_equal(plan.act(observation=seen, h=1), plan.act(state, 1))
    np.testing.assert_array_equal(plan.act(observation=seen[1], h=1), plan.act(state, 1)[1])
    with pytest.raises(ValueError, match="must have 3 columns"):
        plan.act(observation=[1.0, 0.0])
    with pytest.raises(ValueError, match="must have 3 columns"):
        plan.act(observation=1.0)


def test_an_observation_must_be_finite():
    plan = rf.plan(explored("Pendulum-v1", 60), "-theta**2", DynamicsPlanner(sides=15), horizon=5)
    with pytest.raises(ValueError, match="observation"):
        plan.act(observation=[math.nan, 0.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 0.2], 0), r"state must have shape \(n, 1\) for x"),
        ((np.zeros((2, 2, 1)), 0), "state must have shape"),
        ((0.5, 0), "state must have shape"),
        (([math.nan], 0), "state"),
        (([[0.1], [math.inf]], 0), "state"),
        (("here", 0), "state"),
        (([0.1], -1), "h must be"),
        (([0.1], H), r"h must lie in 0..7, got 8"),
        (([0.1], 1.5), "h must be"),
        ((), r"give a state \(.*\), such as plan\.act\(state, h=0\), or observation=.*: got neither"),
    ],
)
def test_what_is_no_state_or_no_step_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        linear_plan().act(*arguments)


def test_a_state_and_an_observation_are_too_much():
    with pytest.raises(ValueError, match="and not both"):
        linear_plan().act([0.1], observation=[0.1])
