"""Every explorer against the textbook's loops, run by run, whoever plays beside it and whatever posterior."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_runs
import rewardfree as rf
from reference_runs import recorded, small_world

KERNEL = rf.Matern(nu=1.5, lengthscale=0.3)
KERNELS = [
    rf.Matern(nu=2.5, lengthscale=(0.2, 0.5)),
    rf.SquaredExponential(lengthscale=0.4),
    rf.Linear(bias=0.5),
    rf.NeuralTangent(depth=2, bias=0.1),
    rf.kernels.Delta(),
]
FIVE = [
    rf.Generative(),
    rf.Online(beta=0.1),
    rf.Online(beta=0.1, fresh=True),
    rf.Qiu(beta=0.1),
    rf.GreedyMaxVariance(),
    rf.Uniform(),
]
RULES = list(itertools.product(("lowest", "random"), ("zero", "prior")))
ALL = [
    *(rf.Generative(ties=ties) for ties in ("lowest", "random")),
    *(rf.Online(0.1, fresh, ties, empty) for fresh in (False, True) for ties, empty in RULES),
    *(rf.Qiu(0.1, ties, empty) for ties, empty in RULES),
    *(rf.GreedyMaxVariance(ties, empty) for ties, empty in RULES),
    rf.Uniform(),
]
SPREAD = np.array([0.0, 0.5, 0.0, 0.25, 0.25, 0.0])
ROUNDS = 15


def model(kernel=KERNEL, ridge=0.5, **options):
    return rf.Model(kernel, ridge=ridge, **options)


def budget(world, model, rounds=ROUNDS):
    """So many whole rounds, in the unit of the model."""
    return {"transitions": rounds * world.horizon} if model.pooled else {"samples_per_step": rounds}


def assert_textbook(world, model, strategy, seed=3, rounds=ROUNDS, **options):
    data = rf.explore(world, model, strategy, seed=seed, **budget(world, model, rounds), **options)
    expected = reference_runs.explore(world, model, strategy, rounds, seed)
    assert recorded(data) == recorded(expected)
    assert not data.terminated.any()


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
@pytest.mark.parametrize("strategy", FIVE, ids=repr)
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


@pytest.mark.parametrize("strategy", FIVE, ids=repr)
def test_a_small_ridge_is_the_textbooks(strategy):
    """On irregular coordinates: at this ridge a dense inverse is too rough to see which sigma are equal."""
    for kernel, pooled in [(KERNEL, False), (KERNELS[1], True)]:
        assert_textbook(small_world(irregular=True), model(kernel, 0.01, pooled=pooled), strategy)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", FIVE, ids=repr)
def test_designs_explore_as_a_lattice_does(strategy, pooled):
    """`posterior` builds one posterior for each step; here they are separate Cholesky factors."""
    assert_textbook(small_world(), model(pooled=pooled), strategy, posterior=rf.Model.design)


@pytest.mark.parametrize("strategy", FIVE, ids=repr)
def test_designs_explore_side_by_side(strategy):
    world, seeds = small_world(start=SPREAD), [5, 0, 9]
    options = {"seeds": seeds, "samples_per_step": 6}
    bundled = rf.explore_many(world, model(), strategy, posterior=rf.Model.design, **options)
    for data, seed in zip(bundled, seeds, strict=True):
        assert recorded(data) == recorded(reference_runs.explore(world, model(), strategy, 6, seed))


@pytest.mark.parametrize("strategy", FIVE, ids=repr)
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
    for strategy in FIVE[1:]:
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
@pytest.mark.parametrize("strategy", [*FIVE, rf.Generative(ties="random"), rf.Qiu(0.1, "random")], ids=repr)
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
    "strategy", [*FIVE, rf.Generative("random"), rf.Online(0.1, ties="random")], ids=repr
)
def test_a_shorter_run_is_the_beginning_of_a_longer_one(strategy):
    world = small_world(start=None)
    for each in (model(), model(pooled=True)):
        long = rf.explore(world, each, strategy, seed=5, **budget(world, each))
        for n in (1, 8):
            short = rf.explore(world, each, strategy, seed=5, **budget(world, each, n))
            assert recorded(long.first(**budget(world, each, n))) == recorded(short)


@pytest.mark.parametrize("strategy", FIVE, ids=repr)
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


@pytest.mark.parametrize("strategy", FIVE, ids=repr)
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


# --- what the paper says of Alg 3 and Qiu ---


def with_another_law(world, h0):
    """The same world, but for what follows step h0: the next states in another order."""
    law = world.P.copy()
    law[h0] = np.roll(law[h0], 1, axis=-1)
    return rf.FiniteWorld(law, world.horizon, world.start)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("h0", range(4))
def test_the_kept_query_of_a_step_does_not_depend_on_what_that_step_saw(h0, fresh):
    """Alg 3's samples are unbiased: episode h0 is planned with sigma_{h0} and with means of earlier steps."""
    world = small_world(each_step=True, start=SPREAD)
    one, other = (
        rf.explore(each, model(), rf.Online(0.1, fresh), samples_per_step=ROUNDS, seed=3)
        for each in (world, with_another_law(world, h0))
    )
    for h in range(h0 + 1):
        rows = one.designs()[h]
        assert one.points(rows).tolist() == other.points(rows).tolist()
    rows = one.designs()[h0]
    assert one.next_state[rows].tolist() != other.next_state[rows].tolist()
    if h0 < 3:  # later episodes pass through step h0 and plan with its means
        rows = one.designs()[h0 + 1]
        assert one.points(rows).tolist() != other.points(rows).tolist()


def test_the_kept_queries_of_qiu_do_depend_on_it():
    world = small_world(each_step=True, start=SPREAD)
    one, other = (
        rf.explore(each, model(), rf.Qiu(0.1), samples_per_step=ROUNDS, seed=3)
        for each in (world, with_another_law(world, 1))
    )
    rows = one.designs()[1]
    assert one.points(rows).tolist() != other.points(rows).tolist()


@pytest.mark.parametrize("factor", [2.0, 0.3])
@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("make", [rf.Online, lambda beta: rf.Online(beta, fresh=True), rf.Qiu])
def test_below_the_clip_beta_changes_nothing(make, centred, factor):
    """Q_H = beta sigma_H, and mean_h is linear in V: every Q is beta times that for beta = 1, also where it
    is clipped at 0. Only the clip at H has a scale of its own."""
    world, each, beta = small_world(start=SPREAD), model(centred=centred), 0.1
    highest = make(max(1.0, factor) * beta)
    assert reference_runs.explore(world, each, highest, 10, seed=3).largest < world.horizon
    one, other = (
        rf.explore(world, each, make(tried), samples_per_step=10, seed=3) for tried in (beta, factor * beta)
    )
    assert recorded(one) == recorded(other)


@pytest.mark.parametrize("make", [rf.Online, lambda beta: rf.Online(beta, fresh=True), rf.Qiu])
def test_above_the_clip_only_action_0_is_played(make):
    """Q is H everywhere, and ties go to the lowest index."""
    data = rf.explore(small_world(start=None), model(), make(1000.0), samples_per_step=ROUNDS)
    assert set(data.action.tolist()) == {0}
    spread = rf.explore(small_world(start=None), model(), make(0.1), samples_per_step=ROUNDS)
    assert set(spread.action.tolist()) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("beta", [2.5, 3.0, 8.0, 1000.0])
@pytest.mark.parametrize("make", [rf.Online, rf.Qiu])
def test_the_clip_itself_is_the_textbooks(make, beta):
    """Only here does the scale of a bonus show, as in Qiu's factor of 1 + 1/H."""
    world, each = small_world(start=None), model(rf.Linear(bias=0.1), 0.5)
    assert reference_runs.explore(world, each, make(beta), 10).largest > world.horizon
    for ties in ("lowest", "random"):
        assert_textbook(world, each, make(beta, ties=ties), rounds=10)


def test_beta_of_zero_plays_action_0():
    for strategy in (rf.Online(0.0), rf.Qiu(0)):
        data = rf.explore(small_world(), model(), strategy, samples_per_step=4)
        assert set(data.action.tolist()) == {0}


# --- at the door ---


@pytest.mark.parametrize(
    "explore", [rf.explore, lambda *args, **sizes: rf.explore_many(*args, seeds=[0], **sizes)]
)
@pytest.mark.parametrize(
    ("pooled", "sizes", "said"),
    [
        (False, {"samples_per_step": 0}, "samples_per_step must be a whole number of at least 1, got 0"),
        (False, {"samples_per_step": 2.5}, "samples_per_step must be a whole number"),
        (True, {"transitions": 0}, "transitions must be a whole number of at least 1, got 0"),
        (False, {"episodes": 0}, "episodes must be a whole number of at least 1, got 0"),
        (False, {"steps": -3}, "steps must be a whole number of at least 1, got -3"),
        (False, {"samples_per_step": 5, "steps": 9}, "exactly one budget .*got samples_per_step=5, steps=9"),
        (True, {"transitions": 5, "episodes": 9}, "exactly one budget .*got transitions=5, episodes=9"),
        (False, {}, "give exactly one budget of samples_per_step=, episodes= or steps=, got none"),
        (True, {}, "give exactly one budget of transitions=, episodes= or steps=, got none"),
        (True, {"samples_per_step": 5}, "use transitions= instead of samples_per_step="),
        (False, {"transitions": 5}, "use samples_per_step= instead of transitions="),
    ],
)
def test_a_budget_must_be_one_that_the_model_knows(explore, pooled, sizes, said):
    with pytest.raises(ValueError, match=said):
        explore(small_world(), model(pooled=pooled), rf.Online(0.1), **sizes)


def test_queries_have_no_episodes():
    with pytest.raises(ValueError, match=r"Generative\(.*\) has no episodes: use steps="):
        rf.explore(small_world(), model(), rf.Generative(), episodes=3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rf.Online(-0.1), "beta must be at least 0, got -0.1"),
        (lambda: rf.Qiu(-1), "beta must be at least 0, got -1"),
        (lambda: rf.Online(np.nan), "beta must be finite"),
        (lambda: rf.Qiu("much"), "beta must be a number, got 'much'"),
        (lambda: rf.Online(0.1, ties="highest"), 'ties must be "lowest" or "random", got \'highest\''),
        (lambda: rf.Generative(ties=None), 'ties must be "lowest" or "random", got None'),
        (lambda: rf.GreedyMaxVariance(ties="first"), "ties must be"),
        (lambda: rf.Uniform(ties=0), "ties must be"),
        (lambda: rf.Online(0.1, empty="one"), 'empty must be "zero" or "prior", got \'one\''),
        (lambda: rf.Qiu(0.1, empty=0), "empty must be"),
        (lambda: rf.GreedyMaxVariance(empty=None), "empty must be"),
        (lambda: rf.Online(0.1, fresh="yes"), "fresh must be True or False, got 'yes'"),
    ],
)
def test_strategies_refuse_what_they_do_not_know(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("strategy", FIVE, ids=repr)
def test_the_kernel_must_fit_the_world(strategy):
    with pytest.raises(ValueError, match="lengthscale has 3 entries, the points have 2"):
        rf.explore(small_world(), model(rf.Matern(1.5, (1.0, 2.0, 3.0))), strategy, samples_per_step=2)


@pytest.mark.parametrize("seed", [-1, 0.5, None, True])
def test_a_seed_must_be_a_whole_number(seed):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        rf.explore(small_world(), model(), rf.Online(0.1), samples_per_step=2, seed=seed)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        rf.explore_many(small_world(), model(), rf.Online(0.1), samples_per_step=2, seeds=[0, seed])


def test_a_batch_must_hold_a_run():
    with pytest.raises(ValueError, match="batch must be a whole number of at least 1, got 0"):
        rf.explore_many(small_world(), model(), rf.Qiu(0.1), samples_per_step=2, seeds=[0], batch=0)


def test_strategies_are_values():
    assert rf.Online(0.1) == rf.Online(np.float64(0.1)) != rf.Online(0.1, fresh=True)
    assert len({rf.Qiu(1), rf.Qiu(1.0), rf.Qiu(1.0, "random")}) == 2


@pytest.mark.parametrize("strategy", [rf.Online, "online"], ids=["a class", "a name"])
def test_what_is_no_strategy_is_refused(strategy):
    with pytest.raises(ValueError, match="strategy must be a strategy such as Scout"):
        rf.explore(small_world(), rf.Model(rf.kernels.Delta(), ridge=0.5), strategy, samples_per_step=3)


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match='device must be "cpu", "cuda" or "cuda:N", got "tpu"'):
        rf.explore(
            small_world(), rf.Model(rf.kernels.Delta(), ridge=0.5), rf.Uniform(), episodes=3, device="tpu"
        )


class WithoutTorch:
    """As if it were not installed; None in sys.modules is not that to an old array-api-compat."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")


def test_a_device_without_torch_says_what_to_do(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [WithoutTorch(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "rewardfree.posterior.engine.backend_torch", raising=False)
    with pytest.raises(ValueError, match=r"needs torch, which is not installed: use device=.cpu."):
        rf.explore(
            small_world(), rf.Model(rf.kernels.Delta(), ridge=0.5), rf.Uniform(), episodes=3, device="cuda"
        )


def test_uniform_data_need_no_posterior():
    """Two hundred thousand episodes, whose posterior would take terabytes."""
    world = rf.FiniteWorld(np.full((3, 2, 3), 1 / 3), 3, 0)
    data = rf.explore(world, rf.Model(rf.kernels.Delta(), ridge=0.5), rf.Uniform(), episodes=200_000)
    assert data.steps == 600_000
    assert np.bincount(data.next_state).min() > 198_000


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"device": "cuda"}])
def test_a_posterior_of_ones_own_has_its_own_arrays(options):
    model = rf.Model(rf.kernels.Delta(), ridge=0.5)
    with pytest.raises(ValueError, match="posterior= builds its own arrays"):
        rf.explore(small_world(), model, rf.Uniform(), episodes=3, posterior=rf.Model.design, **options)


def test_slips_at_the_door_are_named():
    world, model = small_world(), rf.Model(rf.kernels.Delta(), ridge=0.5)
    drawn = rf.rkhs_world(rf.Matern(1.5, 0.3), 0.5, states=4, actions=3, coarse=3)
    with pytest.raises(
        ValueError, match=r"world must be a FiniteWorld \(pass instance.world of an Instance\), got Inst"
    ):
        rf.explore(drawn, model, rf.Uniform(), episodes=3)
    with pytest.raises(ValueError, match=r"strategy must be .*, got the class Scout: make one, Scout\(\)"):
        rf.explore(drawn.world, drawn.model, rf.Scout, samples_per_step=2)
    with pytest.raises(ValueError, match="world must be a FiniteWorld"):
        rf.optimal_value(drawn, drawn.reward)
    with pytest.raises(ValueError, match=r"model must be rf.Model\(kernel, ridge\) or .*, got Delta"):
        rf.explore(world, rf.kernels.Delta(), rf.Uniform(), episodes=3)
    with pytest.raises(ValueError, match=r"seeds must be a list such as range\(80\), got 5"):
        rf.explore_many(world, model, rf.Uniform(), episodes=3, seeds=5)
    data = rf.explore(world, model, rf.Uniform(), episodes=3)
    with pytest.raises(ValueError, match=r"data must be what rf.explore returns"):
        rf.plan([data], np.zeros((6, 5)))
    with pytest.raises(ValueError, match=r"model must be rf.Model"):
        rf.plan(data, np.zeros((6, 5)), model=rf.kernels.Delta())
    with pytest.raises(ValueError, match="planners must be named planners"):
        rf.experiments.learning_curves(
            world, model, rf.Uniform(), np.zeros((6, 5)), rf.Mean(), samples_per_step=[2], seeds=[0]
        )
    with pytest.raises(ValueError, match="seed must be a whole number"):
        rf.plan(data, np.zeros((6, 5)), seed=-1)
