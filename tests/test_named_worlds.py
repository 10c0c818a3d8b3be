"""Finite worlds that name their states and actions, and rewards that depend on the next state."""

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.rewards import TabledReward, reward_table

pytestmark = pytest.mark.usefixtures("one_thread")

LEVELS, ORDERS, H = 21, 5, 12
COUNTS = rf.Model(rf.kernels.Delta(), ridge=1e-6, pooled=True)


def stock_law():
    """Levels 0 .. 20, orders 0 .. 4, a demand of 0 .. 3 that is met as far as there is stock."""
    P = np.zeros((LEVELS, ORDERS, LEVELS))
    for level in range(LEVELS):
        for order in range(ORDERS):
            for demand in range(4):
                P[level, order, max(0, min(LEVELS - 1, level + order) - demand)] += 0.25
    return P


def stock(**names):
    return rf.FiniteWorld(stock_law(), H, **names)


def named():
    return stock(states={"level": range(LEVELS)}, actions={"order": range(ORDERS)})


def explored(world, model=COUNTS):
    return rf.explore(world, model, rf.Generative(), steps=20 * LEVELS * ORDERS)


def drawn(seed=0, s=5, a=3):
    rng = np.random.default_rng(seed)
    P = rng.random((s, a, s)) ** 3
    world = rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), 6, 0)
    return world, rng.random((s, a, s))


# Names.


def test_formulas_and_functions_speak_of_what_the_world_names():
    world = named()
    table = -np.abs(np.arange(LEVELS) - 10.0)[:, None] * np.ones(ORDERS)
    seen = []

    def reward(level, order):
        seen.append((level.shape, order.shape))
        return -abs(level - 10)

    for one in ("-abs(level - 10)", reward):
        np.testing.assert_array_equal(reward_table(one, world.grid, H), table[None])
    assert seen == [((LEVELS * ORDERS,),) * 2]
    data = explored(world)
    exact = rf.plan(data, table)
    np.testing.assert_array_equal(rf.plan(data, "-abs(level - 10)").actions, exact.actions)
    assert rf.gap(world, rf.plan(data, reward), table).max == pytest.approx(0.0, abs=1e-9)


def test_names_change_nothing_of_an_exploration():
    """A kernel sees named values on [0, 1], which is where unnamed states are."""
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
    for strategy in (rf.Scout(), rf.Generative()):
        first, second = (rf.explore(world, model, strategy, steps=60) for world in (named(), stock()))
        np.testing.assert_array_equal(first.next_state, second.next_state)
    np.testing.assert_allclose(named().grid.points, stock().grid.points, rtol=1e-15)


def test_several_variables_are_columns():
    rows, columns = np.divmod(np.arange(6), 3)
    P = np.tile(np.eye(6)[:, None], (1, 2, 1))
    world = rf.FiniteWorld(P, 4, states={"row": rows, "column": columns}, actions=rf.Discrete(2, "push"))
    expected = (10 * rows + columns)[:, None] + 0.5 * np.arange(2)
    np.testing.assert_allclose(reward_table("10*row + column + 0.5*push", world.grid, 4)[0], expected)

    def reward(state, push):
        assert state.shape == (12, 2) and push.dtype == np.int64 and push.shape == (12,)
        return 10 * state[:, 0] + state[:, 1] + 0.5 * push

    np.testing.assert_allclose(reward_table(reward, world.grid, 4)[0], expected)
    assert "row goes from 0 to 1, column goes from 0 to 2, push is a label, 0 .. 1" in repr(world)


def test_without_names_a_formula_speaks_of_coordinates_and_says_so():
    world = stock()
    with pytest.raises(
        ValueError, match=r"'-abs\(s-10\)' sets s against 10, which it never comes near; s goes"
    ):
        rf.plan(explored(world), "-abs(s-10)")
    for text in (
        "-abs(s-(5+5))",
        "-abs(s-2*5)",
        "-abs(max(3, 10) - s)",
        "where(s > 4**2, 1, 0)",
        "s == 30/2",
    ):
        with pytest.raises(ValueError, match="which it never"):
            reward_table(text, world.grid, H)
    with pytest.raises(
        ValueError, match=r"asks whether s is 15, which it never is; s goes from 0 to 1, a goes"
    ):
        reward_table("s == 15", world.grid, H)
    for text in ("s == 15", "where(next_s > -4, 1, 0)", "1 - a + (7 - s)"):
        with pytest.raises(
            ValueError, match=r"from 0 to 1: coordinates, unless the world names values, as in Fin"
        ):
            reward_table(text, world.grid, H)
    for text in (
        "(s - 0.3)**2",
        "(s - 2)**2",
        "s < 1.5",
        "h == 10",
        "s*15 - 10",
        "s - 1/2",
        "(s - a)**2",
        "s == 0.5",
        "1 != a",
    ):
        TabledReward(text, world.grid, H)
    given = stock(states=np.arange(LEVELS))  # coordinates of one's own
    assert reward_table("s == 15", given.grid, H).sum() == ORDERS
    for text in ("level == 21", "-1 != order", "next_level == 2.5", "0 < level == 30"):
        with pytest.raises(
            ValueError, match=r"asks whether (next_)?(level|order) is .*, which it never is; level"
        ):
            reward_table(text, named().grid, H)
    with pytest.raises(
        ValueError, match=r"no variable 's' here: .*; level goes from 0 to 20, order goes from"
    ):
        reward_table("s", named().grid, H)
    with pytest.raises(
        ValueError, match=r"got shape \(3,\); it gets states of shape \(105,\), actions of shape \(105,\): l"
    ):
        reward_table(lambda level, order: np.ones(3), named().grid, H)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"states": {}}, "states must name at least one variable"),
        ({"states": {"level": range(20)}}, r"level must have one number for each of 21 states, got \(20,\)"),
        ({"states": {"level": [["a"] * 21]}}, "level must be an array of numbers"),
        (
            {"states": ["empty"] * 21},
            r'numbers, .*: give coordinates, or name values, states=\{"level": ra',
        ),
        ({"states": {"level": np.full(21, np.nan)}}, "level must be finite"),
        ({"states": {"the level": range(21)}}, "a variable's name must be a word"),
        ({"states": {"h": range(21)}}, "every variable must have a name of its own.* got h twice"),
        ({"states": {"a": range(21)}}, "got a twice"),
        ({"states": {"x": range(21), "next_x": range(21)}}, "got next_x twice"),
        ({"states": rf.Discrete(20, "s")}, "states must have a label for each of 21, got 20"),
        ({"states": rf.Discrete(21, "s", tuple((i,) for i in range(21)))}, "leave out the coordinates"),
        ({"ends": [3]}, "ends lists 3, where the law does not stay: P"),
        ({"ends": [21]}, r"ends must list states of 0..20, got \[21\]"),
        ({"ends": "3"}, "ends must list states"),
    ],
)
def test_names_are_checked(names, said):
    with pytest.raises(ValueError, match=said):
        stock(**names)


def test_ends_are_for_labels():
    with pytest.raises(
        ValueError, match=r"ends= is for labels, whose visits are counted: give states= and act"
    ):
        rf.FiniteWorld(np.ones((1, 2, 1)), 3, ends=[0])


@pytest.mark.parametrize("make", [named, lambda: stock(states=rf.Discrete(LEVELS, "s")), stock])
def test_files_keep_the_names(make, tmp_path):
    world, path = make(), tmp_path / "file.npz"
    data = explored(world)
    plan = rf.plan(data, np.zeros((LEVELS, ORDERS)))
    for value, load in ((world, rf.FiniteWorld.load), (data, rf.load), (plan, rf.load_plan)):
        value.save(path)
        again = load(path)
        assert again.grid.same_as(world.grid) and again.grid.rule == world.grid.rule
    assert not stock().grid.same_as(named().grid)


def test_a_file_without_names_is_as_it_was(tmp_path):
    stock().save(tmp_path / "world.npz")
    content = np.load(tmp_path / "world.npz")
    assert sorted(content) == ["P", "actions", "horizon", "kind", "start", "states", "version"]
    assert content["version"] == 1


# Rewards of the next state.


def as_given(reward, kind):
    """The same reward (s,a,s') as each kind that a caller may give."""
    s, a, _ = reward.shape
    if kind == "array":
        return reward
    if kind == "one step":
        return reward[None]
    if kind == "by step":
        return np.broadcast_to(reward, (6, s, a, s))

    def function(state, action, next_state):
        index = (
            np.rint((s - 1) * state[:, 0]),
            np.rint((a - 1) * action[:, 0]),
            np.rint((s - 1) * next_state[:, 0]),
        )
        return reward[tuple(part.astype(int) for part in index)]

    return function


@pytest.mark.parametrize("kind", ["array", "one step", "by step", "function"])
def test_a_reward_of_the_next_state_is_evaluated_exactly(kind):
    """Its mean over the next states is a reward of state and action with the same values."""
    world, reward = drawn()
    mean, given = (world.P * reward).sum(axis=-1), as_given(reward, kind)
    np.testing.assert_allclose(rf.optimal_value(world, given), rf.optimal_value(world, mean), rtol=1e-12)
    policy = np.random.default_rng(1).integers(3, size=(6, 5))
    np.testing.assert_allclose(
        rf.policy_value(world, policy, given), rf.policy_value(world, policy, mean), rtol=1e-12
    )
    assert rf.describe(world, given).optimal == pytest.approx(rf.describe(world, mean).optimal)


def one_step_plan(world, data, reward, centred=False):
    """max_a of the regression of R(z, s') at z, with a dense inverse, within the range of R."""
    z, points = data.points(slice(None)), world.grid.points
    kernel, ridge = data.model.kernel, data.model.ridge
    K = kernel(points[z], points[z]) + ridge * np.eye(len(z))
    weights = kernel(points, points[z]) @ np.linalg.inv(K)  # (z,n)
    R = reward.reshape(-1, reward.shape[-1])
    centre = 0.5 * (R.min(axis=1) + R.max(axis=1)) if centred else np.zeros(len(R))
    mean = centre + np.einsum("zn,zn->z", weights, R[:, data.next_state] - centre[:, None])
    return np.clip(mean, R.min(), R.max()).reshape(world.grid.shape).max(axis=1)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kernel", [rf.Matern(1.5, 0.3), rf.kernels.Delta()], ids=repr)
@pytest.mark.parametrize("kind", ["array", "one step", "function"])
def test_what_is_planned_is_the_regression_of_the_reward(kernel, centred, kind):
    world, reward = drawn()
    model = rf.Model(kernel, ridge=0.1, pooled=True, centred=centred)
    data = rf.explore(world, model, rf.Uniform(), steps=90)
    plan = rf.plan(data, as_given(reward, kind), rf.Mean(clip="range"), horizon=1)
    np.testing.assert_allclose(plan.values[0], one_step_plan(world, data, reward, centred), rtol=1e-9)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_reward_at_arrival_is_the_value_of_arriving(pooled):
    """v(s') for a step is v(s) for the next one, whoever estimates, and beside rewards of another kind."""
    world, _ = drawn()
    data = rf.explore(
        world, rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=pooled), rf.Uniform(), episodes=30
    )
    v, last, planner = np.random.default_rng(2).random(5), np.arange(6) == 5, rf.Mean(clip="range")
    arriving = np.where((np.arange(6) == 4)[:, None, None, None], v, np.zeros((6, 5, 3, 5)))
    there = np.where(last[:, None, None], v[:, None], np.zeros((6, 5, 3)))
    first, second = rf.plan_many(data, [arriving, there], planner)
    alone = rf.plan(data, there, planner)
    np.testing.assert_allclose(second.values, alone.values, rtol=0, atol=1e-13)
    np.testing.assert_allclose(first.values[:4], second.values[:4], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(first.actions[:4], second.actions[:4])


def test_formulas_name_the_next_state():
    world = named()
    table = TabledReward("next_level - level - 0.5*order + h", world.grid, H)
    levels, orders = np.arange(LEVELS), np.arange(ORDERS)
    expected = levels - levels[:, None, None] - 0.5 * orders[:, None] + 3
    assert table.uses_next
    np.testing.assert_allclose(table.at(3), expected)
    sold = "level + order - next_level"
    data = explored(world)
    plan = rf.plan(data, sold)
    best = rf.optimal_value(world, sold)[0]
    assert rf.gap(world, plan, sold).max < 0.05 * best.max()
    score = rf.rollouts(world, plan, sold, episodes=300)
    assert abs(score.mean - rf.policy_value(world, plan, sold)[0].mean()) < 3 * score.returns.std() / 300**0.5


def test_where_shapes_agree_a_reward_is_by_step_and_one_more_axis_says_otherwise():
    world = rf.FiniteWorld(np.full((3, 3, 3), 1 / 3), 3)
    reward = np.random.default_rng(0).random((3, 3, 3))
    assert not TabledReward(reward, world.grid, 3).uses_next
    assert TabledReward(reward[None], world.grid, 3).uses_next


def test_learning_curves_say_what_they_take():
    world, reward = drawn()
    with pytest.raises(
        ValueError, match=r"this reward depends on the next state: rf.plan, rf.gap and rf.roll"
    ):
        rf.experiments.learning_curves(
            world, COUNTS, rf.Uniform(), reward, {"mean": rf.Mean()}, transitions=[6], seeds=[0]
        )


def test_rewards_of_the_next_state_are_checked():
    world, reward = drawn()
    for bad in (
        np.where(reward > 0.9, np.nan, reward),
        "1/next_s",
        lambda s, a, after: np.full(len(s), np.inf),
    ):
        with pytest.raises(ValueError, match="reward must be finite"):
            TabledReward(bad, world.grid, 6)
    with pytest.raises(
        ValueError, match=r"reward\(state, action, next_state\) must return .* 75 triples, got shape"
    ):
        TabledReward(lambda s, a, after: np.zeros(3), world.grid, 6)
    with pytest.raises(ValueError, match=r"Mean needs rewards in \[0, 1\]"):
        rf.plan(rf.explore(world, COUNTS, rf.Uniform(), steps=12), 3 * reward, rf.Mean())
