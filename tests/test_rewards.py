"""A reward as an array or a function, checked once."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rewardfree as rf
from rewardfree.dynamics import GivenTermination
from rewardfree.rewards import RewardFunction, check_unit_range, ends_of, reward_table
from rewardfree.worlds.finite import Grid

S, A, H = 4, 3, 5
GRID = Grid.of(None, None, (S, A))
TABLE = np.random.default_rng(0).random((S, A))
BY_STEP = np.random.default_rng(1).random((H, S, A))


def check(reward):
    """As `Mean()` checks a table."""
    check_unit_range(float(reward.min()), float(reward.max()), rf.Mean())


def advice(reward):
    """(shift, scale) of the rescaling that the error names."""
    with pytest.raises(ValueError) as caught:
        check(reward)
    rescaling = re.search(r"plan for (?:r|\(r ([-+]) (\S+?)\))(?: / (\S+?))?, which", str(caught.value))
    sign, shift, scale = rescaling.groups()
    return float(shift or 0.0) * (-1.0 if sign == "+" else 1.0), float(scale or 1.0)


def test_one_table_for_all_steps():
    table = reward_table(TABLE, GRID, H)
    assert table.shape == (1, S, A) and np.array_equal(table[0], TABLE)


def test_a_table_for_each_step():
    table = reward_table(BY_STEP, GRID, H)
    assert table.shape == (H, S, A) and np.array_equal(table, BY_STEP)


@pytest.mark.parametrize(
    "reward", [TABLE.tolist(), TABLE.astype(np.float32), np.arange(12).reshape(S, A), TABLE > 0.5]
)
def test_lists_whole_numbers_and_single_precision_are_taken(reward):
    table = reward_table(reward, GRID, H)
    assert table.dtype == np.float64
    assert table[0].tolist() == np.asarray(reward).astype(float).tolist()


def test_the_table_is_a_copy():
    reward = TABLE.copy()
    table = reward_table(reward, GRID, H)
    reward[:] = -1.0
    assert np.array_equal(table[0], TABLE)


def test_a_horizon_of_one():
    assert reward_table(TABLE, GRID, 1).shape == reward_table(TABLE[None], GRID, 1).shape == (1, S, A)


def test_a_function_of_coordinates():
    """Called once with all pairs; the table is that of a loop over states and actions."""
    states, actions = np.random.default_rng(2).random((S, 2)), np.array([3.0, 1.0, 2.0])
    grid = Grid.of(states, actions, (S, A))
    calls = []

    def reward(state, action):
        calls.append((state.shape, action.shape))
        return state[:, 0] - 2.0 * state[:, 1] + action[:, 0] ** 2

    table = reward_table(reward, grid, H)
    assert calls == [((S * A, 2), (S * A, 1))]
    expected = [[states[s, 0] - 2.0 * states[s, 1] + actions[a] ** 2 for a in range(A)] for s in range(S)]
    np.testing.assert_allclose(table[0], expected, rtol=1e-15)


def test_a_function_may_return_a_list():
    table = reward_table(lambda state, action: (state + 0.5 * action)[:, 0].tolist(), GRID, H)
    assert table[0].tolist() == [[s / 3 + 0.25 * a for a in range(A)] for s in range(S)]


def test_a_function_cannot_move_the_world():
    def reward(state, action):
        state += 7.0
        action *= 0.0
        return np.zeros(len(state))

    reward_table(reward, GRID, H)
    assert np.array_equal(GRID.points, Grid.of(None, None, (S, A)).points)


def test_an_object_that_can_be_called():
    class Bump:
        def __call__(self, state, action):
            return np.exp(-(state[:, 0] ** 2))

    assert reward_table(Bump(), GRID, H)[0, 0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "shape", [(), (S,), (A, S), (S * A,), (H - 1, S, A), (1, S, A), (H, A, S), (S, A, H), (1, H, S, A), (0,)]
)
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError) as caught:
        reward_table(np.zeros(shape), GRID, H)
    assert str(caught.value) == (
        f"reward must have shape (4, 3) or (5, 4, 3), states before actions, got {shape}; "
        "with next states last it is (4, 3, 4)"
    )


@pytest.mark.parametrize("shape", [(), (S, A), (S * A, 1), (1, S * A), (S,)])
def test_a_function_must_return_one_number_a_pair(shape):
    with pytest.raises(ValueError) as caught:
        reward_table(lambda state, action: np.zeros(shape), GRID, H)
    assert str(caught.value) == (
        f"reward(state, action) must return one number for each of 12 pairs, got shape {shape}; "
        "it gets states of shape (12, 1), actions of shape (12, 1): s goes from 0 to 1, a goes from 0 to 1: "
        'coordinates, unless the world names values, as in FiniteWorld(..., states={"level": range(4)})'
    )


def test_a_function_must_return_numbers():
    with pytest.raises(ValueError, match=r"what reward\(state, action\) returns must be an array of numbers"):
        reward_table(lambda state, action: "much", GRID, H)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("reward", [TABLE, BY_STEP])
def test_rewards_must_be_finite(reward, bad):
    reward = reward.copy()
    reward[..., 1, 2] = bad
    many = reward[..., 1, 2].size
    with pytest.raises(
        ValueError, match=f"reward must be finite, got {many} NaN or infinite of {reward.size}"
    ):
        reward_table(reward, GRID, H)
    with pytest.raises(ValueError, match="reward must be finite, got 12 NaN"):
        reward_table(lambda state, action: np.full(len(state), bad), GRID, H)


@pytest.mark.parametrize("reward", [b"much", {"a": 1}, [[1.0], [1.0, 2.0]], TABLE * 1j, np.array([[None]])])
def test_rewards_must_be_numbers(reward):
    with pytest.raises(ValueError, match="reward must be"):
        reward_table(reward, GRID, H)


@pytest.mark.parametrize("low_high", [(0.0, 1.0), (0.5, 0.5), (0.2, 0.7), (-1e-13, 1.0 + 1e-13), (0.0, 0.0)])
def test_the_unit_range_is_taken(low_high):
    check(np.array(low_high))


@pytest.mark.parametrize(
    ("values", "rescaling"),
    [
        ([0.0, 5.0], (0.0, 5.0)),
        ([0.5, 1.5], (0.5, 1.0)),
        ([2.0, 2.0], (2.0, 1.0)),
        ([-1.0, 0.0], (-1.0, 1.0)),
    ],
)
def test_other_ranges_are_told_the_rescaling(values, rescaling):
    with pytest.raises(
        ValueError, match=r"Mean needs rewards in \[0, 1\], got .* which has the same optimal pol"
    ):
        check(np.array(values))
    assert advice(np.array(values)) == rescaling


@pytest.mark.parametrize("planner", [rf.Mean(), rf.Optimistic(0.1), rf.Pessimistic(0.1)])
@pytest.mark.parametrize("reward", [TABLE - 0.5, TABLE + 1.0, -BY_STEP])
def test_every_planner_of_the_paper_refuses_other_ranges(planner, reward):
    world = rf.FiniteWorld(np.full((S, A, S), 1 / S), horizon=H)
    data = rf.explore(world, rf.Model(rf.kernels.Delta(), ridge=1.0), rf.Uniform(), episodes=2)
    with pytest.raises(
        ValueError, match=rf"{type(planner).__name__} needs rewards in \[0, 1\], got .*: plan for"
    ):
        rf.plan(data, reward, planner)


@settings(max_examples=30)
@given(
    hnp.arrays(np.float64, (S, A), elements=st.floats(-50, 50)).filter(lambda r: r.min() < 0 or r.max() > 1)
)
def test_the_rescaling_that_is_named_is_enough(reward):
    """Six digits of the range are not: [-1/3, 2/3] is sent to -3.3e-07, which is refused again."""
    if reward.min() >= -1e-12 and reward.max() <= 1.0 + 1e-12:
        return
    shift, scale = advice(reward)
    check((reward - shift) / scale)


def test_the_rescaling_has_the_same_optimal_policies():
    rng = np.random.default_rng(3)
    P = rng.random((S, A, S))
    world = rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), horizon=H)
    reward = rng.normal(size=(H, S, A)) * 8.0 - 3.0
    shift, scale = advice(reward)
    rescaled = (reward - shift) / scale
    for h in range(H):
        after = [rf.optimal_value(world, r)[h + 1] if h + 1 < H else np.zeros(S) for r in (reward, rescaled)]
        q = [r[h] + world.P @ value for r, value in zip((reward, rescaled), after, strict=True)]
        assert np.array_equal(q[0].argmax(axis=-1), q[1].argmax(axis=-1))


def test_a_formula_is_a_reward():
    world = rf.FiniteWorld(np.full((4, 3, 4), 0.25), 5, 0)
    s, a = np.linspace(0, 1, 4)[:, None], np.linspace(0, 1, 3)[None, :]
    table = reward_table("exp(-(s - 0.3)**2) * a", world.grid, 5)
    np.testing.assert_allclose(table, (np.exp(-((s - 0.3) ** 2)) * a)[None], rtol=1e-15)
    by_step = reward_table("h/10 * s", world.grid, 5)
    np.testing.assert_allclose(by_step, np.arange(5)[:, None, None] / 10 * (s + 0 * a), rtol=1e-15)
    assert reward_table("0.5", world.grid, 5).shape == (1, 4, 3)
    assert reward_table("h", world.grid, 1).shape == (1, 4, 3)
    assert rf.gap(world, np.zeros((5, 4), int), "a").start == pytest.approx(5.0)


def test_more_coordinates_have_numbers():
    world = rf.FiniteWorld(np.full((4, 3, 4), 0.25), 2, 0, states=np.arange(8.0).reshape(4, 2))
    np.testing.assert_array_equal(reward_table("s1 - s0", world.grid, 2), np.ones((1, 4, 3)))
    with pytest.raises(
        ValueError, match="there is no variable 's' here: there are a, h, next_s0, next_s1, s0, s1"
    ):
        reward_table("s", world.grid, 2)


def test_a_formula_that_is_not_finite_is_refused():
    world = rf.FiniteWorld(np.full((4, 3, 4), 0.25), 2, 0)
    with pytest.raises(ValueError, match="reward must be finite, got 3 NaN or infinite of 12 values"):
        reward_table("1/s", world.grid, 2)


def test_a_constant_function_means_what_a_constant_formula_does():
    assert np.array_equal(reward_table(lambda s, a: 5, GRID, H), reward_table("5", GRID, H))
    spaces = rf.worlds.Spaces(rf.Box.of(x=(-1, 1)), rf.Box.of(u=(-1, 1)))
    state, action = np.linspace(-1, 1, 6)[:, None], np.zeros((6, 1))
    for constant in (lambda s, a: 5.0, lambda s, a: np.float64(5.0), lambda s, a, next_state: 5):
        function, formula = RewardFunction(constant, spaces), RewardFunction("5", spaces)
        assert (
            function(0, state, action, state).tolist()
            == formula(0, state, action, state).tolist()
            == [5.0] * 6
        )
    ends, never = (GivenTermination(spaces.state, *ends_of(end, spaces)) for end in (lambda s: True, "0"))
    assert ends(state).all() and not never(state).any()


def test_a_sum_over_all_states_is_no_constant():
    spaces = rf.worlds.Spaces(rf.Box.of(x=(-1, 1)), rf.Box.of(u=(-1, 1)))
    state, action = np.linspace(-1, 1, 6)[:, None], np.zeros((6, 1))
    with pytest.raises(ValueError, match=r"one number for each of 6 steps, got shape \(\)"):
        RewardFunction(lambda s, a: -(s**2).sum(), spaces)(0, state, action, state)
    with pytest.raises(ValueError, match=r"one number for each of 12 pairs, got shape \(\)"):
        reward_table(lambda s, a: -(s**2).sum(), GRID, H)
    with pytest.raises(ValueError, match=r"terminated\(state\) must return \(6,\)"):
        GivenTermination(spaces.state, lambda s: s.max() > 0.5)(state - 0.3 + 0.6 * state)


# --- functions that work in place ---


def spoiling(state, action, *more):
    """What it is given is 0 afterwards."""
    value = -(state[:, 0] ** 2)
    for argument in (state, action, *more):
        argument[...] = 0
    return value


class Walk(rf.World):
    state, action, horizon = rf.Box.of(x=(-2.0, 2.0)), rf.Box.of(u=(-1.0, 1.0)), 8

    def start(self, rng):
        return rng.uniform(-1.0, 1.0, 1)

    def sample(self, state, action, h, rng):
        return np.clip(0.9 * state + 0.3 * action, -2.0, 2.0), np.zeros(len(state), bool)


@pytest.mark.parametrize("planner", [rf.DynamicsPlanner(sides=11, actions=3), rf.Mean(clip="range")])
@pytest.mark.parametrize("loaded", [False, True])
def test_a_function_that_works_in_place_spoils_no_later_plan(planner, loaded, tmp_path):
    def ends(state):
        ended = state[:, 0] > 1.5
        state[...] = 0
        return ended

    def next_state(state, action, next_state):
        return spoiling(state, action, next_state)

    data = rf.explore(Walk(), strategy=rf.Uniform(), steps=60)
    if loaded:
        data.save(tmp_path / "data.npz")
        data = rf.load(tmp_path / "data.npz")
    before = {name: getattr(data, name).copy() for name in ("state", "action", "next_state", "starts")}
    clean = rf.plan(data, "-x**2", planner).value(np.array([[0.5], [-0.7]]))
    for reward in (spoiling, next_state):
        rf.plan(data, reward, planner, terminated=ends).value(np.array([[0.5], [-0.7]]))
    for name, column in before.items():
        np.testing.assert_array_equal(getattr(data, name), column)
    np.testing.assert_array_equal(rf.plan(data, "-x**2", planner).value(np.array([[0.5], [-0.7]])), clean)
    spoiled = rf.plan(data, spoiling, planner).value(np.array([[0.5], [-0.7]]))
    alike = rf.plan(data, lambda state, action, *more: -(state[:, 0] ** 2), planner)
    np.testing.assert_array_equal(spoiled, alike.value(np.array([[0.5], [-0.7]])))


def test_a_function_that_works_in_place_counts_the_same_return():
    class Still:
        def act(self, state, h):
            state[...] = 7.0
            return np.zeros((len(state), 1))

    expected = rf.rollouts(
        Walk(), rf.plan(rf.explore(Walk(), strategy=rf.Uniform(), steps=60), "-x**2"), "-x**2"
    )
    assert expected.returns.shape == (20,)
    one = rf.rollouts(Walk(), Still(), spoiling, episodes=3)
    other = rf.rollouts(Walk(), Still(), "-x**2", episodes=3)
    np.testing.assert_array_equal(one.returns, other.returns)
    assert (other.returns > -8.0 * 1.0).all()


def test_a_function_that_works_in_place_spoils_no_finite_world():
    P = np.full((4, 3, 4), 0.25)
    named = rf.FiniteWorld(P, 2, 0, states={"level": range(4)}, actions=rf.Discrete(3, "push"))
    for world in (rf.FiniteWorld(P, 2, 0), named):
        before = [world.grid.states.copy(), world.grid.state_variables.values.copy()]

        def of_pairs(state, action):
            value = -1.0 * state.reshape(len(state))
            state[...], action[...] = 0, 0
            return value

        def of_next_states(state, action, next_state):
            value = of_pairs(next_state, action)
            state[...] = 0
            return value

        def constant(state, action):
            state[...], action[...] = 7, 7
            return 1.0

        values = world.grid.state_variables.values[:, 0]
        np.testing.assert_array_equal(reward_table(of_pairs, world.grid, 2)[0], -np.tile(values, (3, 1)).T)
        tabled = rf.rewards.TabledReward(of_next_states, world.grid, 2).at(0)
        np.testing.assert_array_equal(tabled, np.broadcast_to(-values, (4, 3, 4)))
        np.testing.assert_array_equal(reward_table(constant, world.grid, 2), np.ones((1, 4, 3)))
        for array, old in zip((world.grid.states, world.grid.state_variables.values), before, strict=True):
            np.testing.assert_array_equal(array, old)
