"""Every environment step of a run, and that run stopped earlier, for every strategy and every budget."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from rewardfree.budget import Budget
from rewardfree.streams import stream

S, A, H = 6, 5, 4
COLUMNS = ("episode", "h", "state", "action", "next_state", "terminated", "kept")
STRATEGIES = [
    rf.Generative(),
    rf.Generative(ties="random"),
    rf.Online(beta=0.1),
    rf.Online(beta=0.1, fresh=True),
    rf.Online(beta=0.1, ties="random", empty="prior"),
    rf.Qiu(beta=0.1),
    rf.GreedyMaxVariance(),
    rf.Uniform(),
]
EPISODIC = [strategy for strategy in STRATEGIES if not strategy.generative]
PER_STEP = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
POOLED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
MODELS = [PER_STEP, POOLED]


def world_of(by_step=False, start=1):
    rng = np.random.default_rng(0)
    P = rng.random((H, S, A, S) if by_step else (S, A, S)) ** 3
    return rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), H, start)


WORLD = world_of(start=[0.3, 0.0, 0.2, 0.0, 0.5, 0.0])
by_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
by_episodic = pytest.mark.parametrize("strategy", EPISODIC, ids=repr)
by_model = pytest.mark.parametrize("model", MODELS, ids=["per step", "pooled"])


def units(model, strategy):
    return [
        "transitions" if model.pooled else "samples_per_step",
        "steps",
        *([] if strategy.generative else ["episodes"]),
    ]


def assert_same(one, other):
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    names = ("horizon", "model", "strategy", "seed")
    assert all(getattr(one, name) == getattr(other, name) for name in names)
    assert one.grid.same_as(other.grid)


def spent(data, unit):
    """How much of a budget data have used, counted row by row."""
    if unit == "steps":
        return sum(1 for _ in data.h)
    if unit == "episodes":
        return len(set(data.episode.tolist()))
    kept = [int(h) for h, kept in zip(data.h, data.kept, strict=True) if kept]
    return len(kept) if unit == "transitions" else min(kept.count(h) for h in range(H))


def whole_round(strategy):
    """(episode, h, kept) of the environment steps of one round, as the paper's algorithms make them."""
    if isinstance(strategy, rf.Online):  # Alg 3: h0 steps for target h0, of which the last is kept
        return [(target, h, h == target) for target in range(H) for h in range(target + 1)]
    return [(0, h, True) for h in range(H)]


# That run stopped earlier.


@by_strategy
@by_model
def test_a_prefix_is_the_run_that_stops_there(strategy, model):
    for unit in units(model, strategy):
        longest = 3 if unit == "samples_per_step" else 9
        data = rf.explore(WORLD, model, strategy, **{unit: longest}, seed=3)
        assert spent(data, unit) == longest
        for size in range(1, longest + 1):
            alone = rf.explore(WORLD, model, strategy, **{unit: size}, seed=3)
            assert_same(data.first(**{unit: size}), alone)


@by_strategy
@by_model
def test_a_prefix_holds_its_budget_and_no_step_more(strategy, model):
    data = rf.explore(WORLD, model, strategy, steps=50, seed=1)
    for unit in units(model, strategy):
        if unit == "episodes":  # the last one may be cut
            data = data.first(episodes=int(data.episode.max()))
        for size in range(1, spent(data, unit) + 1):
            part = data.first(**{unit: size})
            shorter = data.first(steps=len(part) - 1) if len(part) > 1 else None
            assert spent(part, unit) == size
            if unit == "episodes":  # all of it: the next row belongs to the next
                assert len(part) == len(data) or data.episode[len(part)] == size
            elif shorter is not None:
                assert spent(shorter, unit) < size
            assert_same(part, data.first(steps=len(part)))


@settings(max_examples=30)
@given(st.sampled_from(EPISODIC), st.sampled_from(MODELS), st.data())
def test_a_prefix_of_a_prefix_is_the_shorter_one(strategy, model, data):
    run = rf.explore(WORLD, model, strategy, episodes=8, seed=0)
    unit = data.draw(st.sampled_from(units(model, strategy)))
    longer = data.draw(st.integers(1, spent(run, unit)))
    shorter = data.draw(st.integers(1, longer))
    assert_same(run.first(**{unit: longer}).first(**{unit: shorter}), run.first(**{unit: shorter}))


def test_all_of_it_is_a_prefix_as_well():
    run = rf.explore(WORLD, PER_STEP, rf.Online(beta=0.1), samples_per_step=3)
    for size in ({"samples_per_step": 3}, {"episodes": 3 * H}, {"steps": len(run)}):
        assert_same(run.first(**size), run)
    assert_same(run.first(3), run)


def test_cut_is_first_with_a_checked_budget():
    run = rf.explore(WORLD, PER_STEP, rf.Qiu(beta=0.1), episodes=5)
    for unit, size in (("samples_per_step", 2), ("episodes", 3), ("steps", 11)):
        assert_same(run.cut(Budget(unit, size)), run.first(**{unit: size}))


def test_a_prefix_leaves_the_run_alone():
    run = rf.explore(WORLD, PER_STEP, rf.Uniform(), episodes=5)
    run.first(steps=3)
    assert len(run) == 5 * H and run.samples.tolist() == [5] * H


def test_an_episode_that_was_cut_is_no_whole_one():
    """explore(episodes=2) makes 8 steps; a run of 6 does not have them, yet gives its 6 as two episodes."""
    run = rf.explore(WORLD, PER_STEP, rf.Uniform(), steps=6)
    assert_same(run.first(episodes=1), rf.explore(WORLD, PER_STEP, rf.Uniform(), episodes=1))
    with pytest.raises(ValueError, match="episodes must be at most the 1 of these data, got 2"):
        run.first(episodes=2)


# What a budget buys.


@by_strategy
@by_model
def test_budgets_are_spent_exactly(strategy, model):
    per_round = whole_round(strategy)
    kept = sum(keep for _, _, keep in per_round)
    budget = {"transitions": 3 * kept} if model.pooled else {"samples_per_step": 3}
    data = rf.explore(WORLD, model, strategy, **budget)
    assert len(data) == data.steps == 3 * len(per_round)
    assert data.samples.tolist() == ([3 * H] if model.pooled else [3] * H)
    assert data.episodes == (0 if strategy.generative else 3 * len({e for e, _, _ in per_round}))


def test_a_round_of_alg_3_takes_ten_steps_for_four_samples():
    data = rf.explore(WORLD, PER_STEP, rf.Online(beta=0.1), samples_per_step=7)
    assert (data.steps, data.episodes, data.samples.tolist()) == (7 * H * (H + 1) // 2, 7 * H, [7] * H)


@by_episodic
def test_steps_cut_the_last_episode(strategy):
    pattern = whole_round(strategy) * 4
    for steps in (1, 2, 6, 7, 13):
        data = rf.explore(WORLD, PER_STEP, strategy, steps=steps)
        assert data.steps == steps
        assert data.h.tolist() == [h for _, h, _ in pattern[:steps]]
        assert data.kept.tolist() == [kept for _, _, kept in pattern[:steps]]
        assert spent(data, "episodes") == data.episodes


@pytest.mark.parametrize("transitions", [1, 5, 9])
@by_strategy
def test_pooled_transitions_need_not_fill_a_round(strategy, transitions):
    data = rf.explore(WORLD, POOLED, strategy, transitions=transitions)
    assert data.samples.tolist() == [transitions] and data.kept[-1]
    assert data.h[data.kept].tolist() == [i % H for i in range(transitions)]


# Every environment step.


@by_strategy
@by_model
def test_rounds_are_the_papers(strategy, model):
    data = rf.explore(WORLD, model, strategy, steps=4 * len(whole_round(strategy)))
    pattern = [(n, *row) for n in range(4) for row in whole_round(strategy)]
    episodes = len({episode for _, episode, _, _ in pattern})
    assert data.h.tolist() == [h for _, _, h, _ in pattern]
    assert data.kept.tolist() == [kept for _, _, _, kept in pattern]
    expected = [-1] * len(pattern) if strategy.generative else [episodes * n + e for n, e, _, _ in pattern]
    assert data.episode.tolist() == expected
    assert not data.terminated.any()


@by_episodic
@by_model
def test_states_chain_within_an_episode(strategy, model):
    data = rf.explore(WORLD, model, strategy, episodes=11, seed=5)
    for t in range(len(data) - 1):
        if data.episode[t] == data.episode[t + 1]:
            assert data.state[t + 1] == data.next_state[t] and data.h[t + 1] == data.h[t] + 1
        else:
            assert data.episode[t + 1] == data.episode[t] + 1 and data.h[t + 1] == 0
    assert (data.episode[0], data.h[0]) == (0, 0)
    assert set(data.state[data.h == 0].tolist()) <= {0, 2, 4}  # where the start can be


@pytest.mark.parametrize("fresh", [False, True])
def test_alg_3_keeps_the_last_step_of_each_episode(fresh):
    data = rf.explore(WORLD, PER_STEP, rf.Online(beta=0.1, fresh=fresh), samples_per_step=3)
    for episode in range(3 * H):
        rows = np.flatnonzero(data.episode == episode)
        assert data.h[rows].tolist() == list(range(episode % H + 1))
        assert data.kept[rows].tolist() == [False] * (episode % H) + [True]


@by_strategy
@pytest.mark.parametrize("by_step", [False, True])
def test_what_follows_is_drawn_from_the_runs_own_numbers(strategy, by_step):
    """The inverse CDF at uniform numbers by (round, environment step) of the stream called transitions."""
    world = world_of(by_step=by_step, start=[0.3, 0.0, 0.2, 0.0, 0.5, 0.0])
    size = len(whole_round(strategy))
    data = rf.explore(world, PER_STEP, strategy, steps=3 * size, seed=11)
    uniform = stream(11, "transitions").random((3, size)).reshape(-1)
    for t, u in enumerate(uniform):
        law = (world.P[data.h[t]] if by_step else world.P)[data.state[t], data.action[t]]
        assert data.next_state[t] == np.searchsorted(np.cumsum(law), u, side="right")
    if not strategy.generative:
        episodes = len({episode for episode, _, _ in whole_round(strategy)})
        starts = np.searchsorted(np.cumsum(world.start), stream(11, "start").random((3, episodes)), "right")
        assert data.state[data.h == 0].tolist() == starts.reshape(-1).tolist()


def test_uniform_actions_are_the_runs_own_numbers():
    data = rf.explore(WORLD, PER_STEP, rf.Uniform(), episodes=200, seed=2)
    numbers = stream(2, "actions").random((200, H)).reshape(-1)
    assert data.action.tolist() == [int(number * A) for number in numbers]


def test_generative_queries_are_the_plan_for_every_step():
    data = rf.explore(WORLD, PER_STEP, rf.Generative(), samples_per_step=6)
    plan = rf.query_plan(PER_STEP, WORLD.grid.points, 6)
    assert (data.state * A + data.action).reshape(6, H).tolist() == [[z] * H for z in plan]
    data = rf.explore(WORLD, POOLED, rf.Generative(), transitions=6)
    assert (data.state * A + data.action).tolist() == plan.tolist()


@by_strategy
def test_everything_lies_in_the_world(strategy):
    data = rf.explore(WORLD, PER_STEP, strategy, steps=60, seed=4)
    for name, size in (("state", S), ("next_state", S), ("action", A), ("h", H)):
        column = getattr(data, name)
        assert column.shape == (60,) and column.dtype.kind == "i"
        assert column.min() >= 0 and column.max() < size
    assert data.kept.dtype == data.terminated.dtype == bool


def test_a_seed_is_a_run():
    one, two, other = (rf.explore(WORLD, PER_STEP, rf.Uniform(), episodes=9, seed=seed) for seed in (3, 3, 4))
    assert_same(one, two)
    assert (one.action != other.action).any() and other.seed == 4


def test_there_is_no_room_for_a_reward():
    names = {field.name for field in dataclasses.fields(rf.Transitions)}
    assert names == {"grid", "horizon", "model", "strategy", "seed", "stopped_by", *COLUMNS}


# What the regressions get, on data made by hand.


def by_hand(model=PER_STEP):
    columns = {
        "episode": [0, 0, 0, 0, 1, 1, 1],
        "h": [0, 1, 2, 3, 0, 1, 2],
        "state": [1, 2, 3, 4, 1, 0, 5],
        "action": [0, 4, 2, 1, 3, 0, 2],
        "next_state": [2, 3, 4, 0, 0, 5, 5],
        "kept": [True, False, True, True, True, True, False],
    }
    arrays = {name: np.array(column) for name, column in columns.items()}
    return rf.Transitions(WORLD.grid, H, model, rf.Uniform(), 0, **arrays, terminated=np.zeros(7, bool))


def test_designs_are_the_kept_rows_of_each_step():
    data = by_hand()
    assert [rows.tolist() for rows in data.designs()] == [[0, 4], [5], [2], [3]]
    assert data.samples.tolist() == [2, 1, 1, 1]
    assert [rows.tolist() for rows in data.designs(pooled=True)] == [[0, 2, 3, 4, 5]]


def test_a_pooled_design_is_all_kept_rows():
    data = by_hand(POOLED)
    assert [rows.tolist() for rows in data.designs()] == [[0, 2, 3, 4, 5]]
    assert data.samples.tolist() == [5]
    assert [rows.tolist() for rows in data.designs(pooled=False)] == [[0, 4], [5], [2], [3]]


def test_points_are_numbered_state_by_state():
    data = by_hand()
    assert data.points([0, 1, 6]).tolist() == [1 * A + 0, 2 * A + 4, 5 * A + 2]
    points = data.grid.points[data.points(np.arange(7))]
    expected = np.stack([np.linspace(0, 1, S)[data.state], np.linspace(0, 1, A)[data.action]], axis=1)
    assert np.array_equal(points, expected)


def test_numbers_of_a_run():
    data = by_hand()
    assert (len(data), data.steps, data.episodes) == (7, 7, 2)
    assert repr(data) == "Transitions(7 steps in 2 episodes, 5 kept, by Uniform(ties='lowest'), seed 0)"


def test_first_of_data_made_by_hand():
    data, pooled = by_hand(), by_hand(POOLED)
    assert len(data.first(samples_per_step=1)) == 6  # step 1 has its first sample in row 5
    assert [len(pooled.first(transitions=n)) for n in range(1, 6)] == [1, 3, 4, 5, 6]
    assert len(data.first(episodes=1)) == len(pooled.first(episodes=1)) == 4
    assert data.first(steps=2).samples.tolist() == [1, 0, 0, 0]
    assert data.first(steps=1).episodes == 1
    with pytest.raises(ValueError, match="samples_per_step must be at most the 1 of these data, got 2"):
        data.first(samples_per_step=2)  # step 0 has two, the others have not
    with pytest.raises(ValueError, match="samples_per_step must be at most the 0 of these data, got 1"):
        data.first(steps=5).first(samples_per_step=1)


# What is refused.


@by_strategy
def test_the_right_unit_is_named(strategy):
    per_step, pooled = (rf.explore(WORLD, model, strategy, steps=2 * H) for model in MODELS)
    with pytest.raises(
        ValueError, match="this model has a design for each step: use samples_per_step= instead"
    ):
        per_step.first(transitions=1)
    with pytest.raises(ValueError, match="a pooled model has one design: use transitions= instead"):
        pooled.first(samples_per_step=1)
    with pytest.raises(ValueError, match="a pooled model has one design: use transitions= instead"):
        pooled.first(1)
    for data, own in ((per_step, "samples_per_step"), (pooled, "transitions")):
        with pytest.raises(
            ValueError, match=f"give exactly one budget of {own}=, episodes= or steps=, got none"
        ):
            data.first()
        with pytest.raises(ValueError, match=f"give exactly one budget of {own}=.*, got episodes=1, steps=2"):
            data.first(episodes=1, steps=2)


@pytest.mark.parametrize("model", MODELS, ids=["per step", "pooled"])
def test_queries_have_no_episodes(model):
    with pytest.raises(ValueError, match=r"Generative\(.*\) has no episodes: use steps="):
        rf.explore(WORLD, model, rf.Generative(), episodes=2)
    data = rf.explore(WORLD, model, rf.Generative(), steps=5)
    with pytest.raises(ValueError, match="queries of a generative model belong to no episode: use steps="):
        data.first(episodes=1)


@by_episodic
@by_model
def test_more_than_there_is_is_refused(strategy, model):
    data = rf.explore(WORLD, model, strategy, episodes=2 * H)
    for unit in units(model, strategy):
        have = spent(data, unit)
        data.first(**{unit: have})
        with pytest.raises(
            ValueError, match=f"{unit} must be at most the {have} of these data, got {have + 1}"
        ):
            data.first(**{unit: have + 1})


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2"])
@pytest.mark.parametrize("unit", ["samples_per_step", "episodes", "steps"])
def test_a_prefix_must_have_a_size(unit, size):
    with pytest.raises(ValueError, match=f"{unit} must be a whole number"):
        by_hand().first(**{unit: size})
