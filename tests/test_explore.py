"""Every explorer against the textbook's loops, run by run, whoever plays beside it and whatever posterior."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_runs
import rewardfree as rf
from explorer_cases import (
    ALL,
    ROUNDS,
    SPREAD,
    assert_textbook,
    budget,
)
from planning_cases import EXPLORERS, KERNEL, model
from reference_runs import recorded, small_world

KERNELS = [
    rf.Matern(nu=2.5, lengthscale=(0.2, 0.5)),
    rf.SquaredExponential(lengthscale=0.4),
    rf.Linear(bias=0.5),
    rf.NeuralTangent(depth=2, bias=0.1),
    rf.kernels.Delta(),
]


# --- trajectories against the textbook ---


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", ALL, ids=repr)
def test_trajectories_are_the_textbooks(strategy, pooled):
    assert_textbook(small_world(), model(pooled=pooled), strategy, rounds=8 if pooled else ROUNDS)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", [each for each in ALL if hasattr(each, "beta")], ids=repr)
def test_centred_trajectories_are_the_textbooks(strategy, pooled):
    assert_textbook(small_world(start=SPREAD), model(pooled=pooled, centred=True), strategy, rounds=7)


@pytest.mark.parametrize("start", [SPREAD, None], ids=["a distribution", "anywhere"])
@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_laws_by_step_and_random_starts_are_the_textbooks(strategy, start):
    assert_textbook(small_world(each_step=True, start=start, seed=1), model(), strategy)


@pytest.mark.parametrize("empty", ["zero", "prior"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_other_kernels_are_the_textbooks(kernel, empty):
    """A linear or neural kernel has another prior variance at every z: there the empty rule matters."""
    strategies = [
        rf.Online(0.1, empty=empty),
        rf.Online(0.1, fresh=True, empty=empty),
        rf.Qiu(0.1, empty=empty),
        rf.GreedyMaxVariance(empty=empty),
        *([rf.Generative()] if empty == "prior" else []),
    ]
    for strategy in strategies:
        assert_textbook(small_world(), model(kernel), strategy, rounds=7)


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_a_small_ridge_is_the_textbooks(strategy):
    """On irregular coordinates: at this ridge a dense inverse is too rough to see which sigma are equal."""
    for kernel, pooled in [(KERNEL, False), (KERNELS[1], True)]:
        assert_textbook(small_world(irregular=True), model(kernel, 0.01, pooled=pooled), strategy)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_designs_explore_as_a_lattice_does(strategy, pooled):
    """`posterior` builds one posterior for each step; here they are separate Cholesky factors."""
    assert_textbook(small_world(), model(pooled=pooled), strategy, posterior=rf.Model.design)


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_designs_explore_side_by_side(strategy):
    world, seeds = small_world(start=SPREAD), [5, 0, 9]
    options = {"seeds": seeds, "samples_per_step": 6}
    bundled = rf.explore_many(world, model(), strategy, posterior=rf.Model.design, **options)
    for data, seed in zip(bundled, seeds, strict=True):
        assert recorded(data) == recorded(reference_runs.explore(world, model(), strategy, 6, seed))


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
@pytest.mark.parametrize("shape", [(6, 5, 1), (1, 5, 3), (6, 1, 3), (1, 1, 1)], ids=str)
def test_the_smallest_worlds_are_the_textbooks(strategy, shape):
    states, actions, horizon = shape
    world = small_world(start=0, states=states, actions=actions, horizon=horizon)
    assert_textbook(world, model(), strategy, rounds=5)


@settings(max_examples=12)
@given(
    strategy=st.sampled_from(ALL),
    seed=st.integers(0, 2**40),
    each_step=st.booleans(),
    pooled=st.booleans(),
    centred=st.booleans(),
)
def test_any_world_and_seed_is_the_textbooks(strategy, seed, each_step, pooled, centred):
    world = small_world(each_step, None, seed % 1000)
    assert_textbook(world, model(pooled=pooled, centred=centred), strategy, seed, rounds=5)


@pytest.mark.parametrize(
    ("one", "other", "options"),
    [
        (rf.Online(0.1), rf.Online(0.1, fresh=True), {}),
        (rf.Online(0.1), rf.Online(0.1, ties="random"), {}),
        (rf.Online(0.1), rf.Online(0.1, empty="prior"), {"kernel": rf.Linear(bias=0.5)}),
        (rf.Qiu(0.1), rf.Qiu(0.1, empty="prior"), {"kernel": rf.Linear(bias=0.5)}),
        (rf.GreedyMaxVariance(), rf.GreedyMaxVariance(empty="prior"), {"kernel": rf.Linear(bias=0.5)}),
        (rf.Qiu(0.1), rf.GreedyMaxVariance(), {}),
    ],
    ids=["fresh", "ties", "empty Online", "empty Qiu", "empty Greedy", "looking ahead"],
)
def test_the_rules_make_a_difference(one, other, options):
    """Else the comparisons above would compare nothing."""
    first, second = (
        rf.explore(small_world(), model(**options), strategy, samples_per_step=ROUNDS, seed=3)
        for strategy in (one, other)
    )
    assert recorded(first)["action"] != recorded(second)["action"]


@pytest.mark.parametrize("strategy", [rf.Online(0.1), rf.Qiu(0.1)], ids=repr)
def test_centring_and_pooling_make_a_difference(strategy):
    world = small_world()
    found = [
        recorded(rf.explore(world, each, strategy, seed=3, **budget(world, each)))["action"]
        for each in (model(), model(centred=True), model(pooled=True))
    ]
    assert found[0] != found[1] and found[0] != found[2]


# --- what a round consists of ---


def test_online_keeps_the_last_step_of_each_growing_episode():
    data = rf.explore(small_world(), model(), rf.Online(0.1), samples_per_step=2)
    assert data.h.tolist() == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3] * 2
    assert data.kept.tolist() == [bool(int(mark)) for mark in "1010010001" * 2]
    assert data.episodes == 8 and data.samples.tolist() == [2, 2, 2, 2]


def test_states_follow_each_other_within_an_episode():
    for strategy in EXPLORERS[1:]:
        data = rf.explore(small_world(start=SPREAD), model(), strategy, samples_per_step=ROUNDS)
        inside = data.episode[1:] == data.episode[:-1]
        assert (data.state[1:][inside] == data.next_state[:-1][inside]).all()
        assert set(data.state[data.h == 0].tolist()) == {1, 3, 4}


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
def test_generative_asks_the_query_plan(pooled):
    world, n = small_world(start=None), 20
    data = rf.explore(world, model(pooled=pooled), rf.Generative(), steps=n * world.horizon)
    if pooled:
        plan = rf.query_plan(model(), world.grid.points, n * world.horizon)
        assert data.points(slice(None)).tolist() == plan.tolist()
    else:
        plan = rf.query_plan(model(), world.grid.points, n)
        assert data.points(slice(None)).tolist() == np.repeat(plan, world.horizon).tolist()
    assert set(data.episode.tolist()) == {-1} and data.kept.all()


def test_what_a_world_answers_moves_no_generative_query():
    one, other = (
        rf.explore(small_world(seed=seed), model(), rf.Generative(), samples_per_step=9) for seed in (0, 1)
    )
    assert one.points(slice(None)).tolist() == other.points(slice(None)).tolist()
    assert one.next_state.tolist() != other.next_state.tolist()


def test_uniform_actions_are_uniform():
    """4,000 actions in 5 classes: the largest deviation is below 4.5 standard deviations of 25."""
    data = rf.explore(small_world(), model(), rf.Uniform(), samples_per_step=1000, seed=1)
    assert np.abs(np.bincount(data.action, minlength=5) - 800).max() < 4.5 * np.sqrt(4000 * 0.2 * 0.8)


# --- batches, prefixes, seeds ---


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize(
    "strategy", [*EXPLORERS, rf.Generative(ties="random"), rf.Qiu(0.1, "random")], ids=repr
)
def test_runs_do_not_depend_on_who_plays_beside_them(strategy, pooled):
    world, each, seeds = small_world(start=SPREAD), model(pooled=pooled), [4, 0, 7, 11]
    sizes = budget(world, each, 4)
    alone = [recorded(rf.explore(world, each, strategy, seed=seed, **sizes)) for seed in seeds]
    for batch in (1, 2, 3, None):
        runs = rf.explore_many(world, each, strategy, seeds=seeds, batch=batch, **sizes)
        assert [run.seed for run in runs] == seeds
        assert [recorded(run) for run in runs] == alone


def test_no_seeds_are_no_runs():
    assert rf.explore_many(small_world(), model(), rf.Uniform(), seeds=[], samples_per_step=2) == []


def test_seeds_may_come_from_a_generator():
    seeds = (seed for seed in (2, 1))
    runs = rf.explore_many(small_world(), model(), rf.Qiu(0.1), seeds=seeds, samples_per_step=2)
    assert [run.seed for run in runs] == [2, 1]


@pytest.mark.parametrize(
    "strategy", [*EXPLORERS, rf.Generative("random"), rf.Online(0.1, ties="random")], ids=repr
)
def test_a_shorter_run_is_the_beginning_of_a_longer_one(strategy):
    world = small_world(start=None)
    for each in (model(), model(pooled=True)):
        long = rf.explore(world, each, strategy, seed=5, **budget(world, each))
        for n in (1, 8):
            short = rf.explore(world, each, strategy, seed=5, **budget(world, each, n))
            assert recorded(long.first(**budget(world, each, n))) == recorded(short)


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_every_budget_stops_the_same_run(strategy):
    """Also in the middle of a round or an episode."""
    world = small_world(start=None)
    long = recorded(rf.explore(world, model(pooled=True), strategy, seed=5, transitions=60))
    units = ["transitions", "steps"] + ["episodes"] * (strategy != rf.Generative())
    for unit, size in itertools.product(units, (1, 6, 11)):
        short = rf.explore(world, model(pooled=True), strategy, seed=5, **{unit: size})
        assert {name: column[: len(short)] for name, column in long.items()} == recorded(short)
        reached = {"transitions": int(short.kept.sum()), "steps": len(short), "episodes": short.episodes}
        assert reached[unit] == size


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
def test_the_seed_decides(strategy):
    one, again, other = (
        recorded(rf.explore(small_world(start=SPREAD), model(), strategy, samples_per_step=8, seed=seed))
        for seed in (1, 1, 2)
    )
    assert one == again
    assert one["next_state"] != other["next_state"]


def test_exploring_leaves_global_random_numbers_alone():
    before = repr(np.random.get_state(legacy=False))  # noqa: NPY002  the global state is what is looked at
    rf.explore(small_world(), model(), rf.Uniform(), samples_per_step=3)
    assert repr(np.random.get_state(legacy=False)) == before  # noqa: NPY002


@pytest.mark.parametrize("strategy", [each for each in ALL if each.ties == "random"], ids=repr)
def test_random_ties_differ_between_seeds_and_repeat(strategy):
    """Nothing else is random in where the first queries go: one start, and equal sigma everywhere."""
    world = small_world()

    def first_action(seed):
        data = rf.explore(world, model(), strategy, samples_per_step=1, seed=seed)
        return (int(data.state[0]), int(data.action[0]))

    firsts = [first_action(seed) for seed in range(8)]
    assert firsts == [first_action(seed) for seed in range(8)]
    assert len(set(firsts)) > 2


def test_a_random_tie_is_the_same_query_for_every_step():
    """The steps of a generative run without pooling share a list, also a random one."""
    data = rf.explore(small_world(), model(), rf.Generative(ties="random"), samples_per_step=9, seed=1)
    points = data.points(slice(None)).reshape(9, 4)
    assert (points == points[:, :1]).all() and points[0, 0] != 0


def test_a_horizon_that_fills_the_memory_is_named(monkeypatch):
    def full(*_, **__):
        raise MemoryError("no room for 74.5 GiB")

    monkeypatch.setattr("rewardfree.strategies.run_batch.FiniteEstimate", full)
    with pytest.raises(
        MemoryError, match=r"no room for 74\.5 GiB; this world's horizon of 4 steps asks for that"
    ):
        rf.explore(small_world(), rf.Model(rf.Matern(1.5, 0.3), 0.1), rf.Online(0.1), steps=20)
