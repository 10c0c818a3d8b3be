"""Learning curves against the slow road: explore, stop early, plan, evaluate."""

import numpy as np
import pytest

import reference_runs
import rewardfree as rf
from reference_runs import small_world
from rewardfree.presets import LITERAL, PUBLISHED
from rewardfree.studies.paper.specification import paper_strategies

# The policies are the same; their values are sums of 24 products, in another order.
CLOSE = {"rtol": 0, "atol": 1e-12}
STRATEGIES = [
    rf.Generative(),
    rf.Generative(ties="random"),
    rf.Online(beta=0.1),
    rf.Online(beta=0.1, fresh=True),
    rf.Qiu(beta=0.1),
    rf.GreedyMaxVariance(),
    rf.Uniform(),
]
PLANNERS = {
    "optimistic": rf.Optimistic(0.3),
    "mean": rf.Mean(),
    "pessimistic": rf.Pessimistic(0.3),
    "random": rf.Mean(ties="random"),
}
REWARD = np.random.default_rng(7).random((6, 5))
BY_STEP = np.random.default_rng(8).random((4, 6, 5))
SEEDS = [3, 0, 8]


def model(pooled=False, centred=False):
    return rf.Model(rf.Matern(nu=1.5, lengthscale=0.3), ridge=0.5, pooled=pooled, centred=centred)


def sizes(pooled, *rounds):
    """Checkpoints after so many rounds, in the unit of the model."""
    return {"transitions": [4 * n for n in rounds]} if pooled else {"samples_per_step": list(rounds)}


def curves(strategy=STRATEGIES[2], planners=PLANNERS, reward=REWARD, seeds=SEEDS, world=None, **options):
    world, each = world or small_world(start=None), options.pop("model", model())
    return rf.experiments.learning_curves(world, each, strategy, reward, planners, seeds=seeds, **options)


def slowly(world, model, strategy, reward, planner, seeds, pooled, rounds):
    """The gaps one by one: a gap for each seed and checkpoint."""
    (unit, checkpoints) = next(iter(sizes(pooled, *rounds).items()))
    found = []
    for seed in seeds:
        data = rf.explore(world, model, strategy, seed=seed, **{unit: checkpoints[-1]})
        stopped = [data.first(**{unit: n}) for n in checkpoints]
        found.append([rf.gap(world, rf.plan(part, reward, planner), reward) for part in stopped])
    return found


@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_curves_are_explore_first_plan_gap(strategy, pooled, centred):
    world, each, rounds = small_world(start=None), model(pooled, centred), (1, 4, 9)
    found = curves(strategy, world=world, model=each, **sizes(pooled, *rounds))
    assert list(found) == list(PLANNERS)
    for name, planner in PLANNERS.items():
        expected = slowly(world, each, strategy, REWARD, planner, SEEDS, pooled, rounds)
        for measure in ("start", "mean", "max"):
            gaps = [[getattr(gap, measure) for gap in run] for run in expected]
            np.testing.assert_allclose(getattr(found[name], measure), gaps, **CLOSE)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_laws_and_rewards_by_step_are_the_same_road(strategy):
    world, rounds = small_world(each_step=True, start=2), (2, 5)
    found = curves(strategy, reward=BY_STEP, world=world, **sizes(False, *rounds))["optimistic"]
    expected = slowly(world, model(), strategy, BY_STEP, PLANNERS["optimistic"], SEEDS, False, rounds)
    np.testing.assert_allclose(found.start, [[gap.start for gap in run] for run in expected], **CLOSE)


@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1), rf.Uniform()], ids=repr)
def test_curves_are_the_textbooks(strategy):
    """No step of this road is the library's own: loops for the run, the plan, and its value."""
    world, rounds, planner = small_world(start=None), 5, rf.Optimistic(0.3)
    found = curves(strategy, {"only": planner}, seeds=[3], world=world, **sizes(False, rounds))["only"]
    run = reference_runs.explore(world, model(), strategy, rounds, seed=3)
    data = rf.explore(world, model(), strategy, samples_per_step=rounds, seed=3)
    assert reference_runs.recorded(run) == reference_runs.recorded(data)
    actions, _, _ = reference_runs.plan(data, REWARD, planner)
    loss = reference_runs.value_iteration(world, REWARD)[1][0] - reference_runs.value_of(
        world, actions, REWARD
    )
    np.testing.assert_allclose(found.start, [[sum(world.start * loss)]], **CLOSE)
    np.testing.assert_allclose(found.mean, [[sum(loss) / 6]], **CLOSE)
    np.testing.assert_allclose(found.max, [[max(loss)]], **CLOSE)


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize("strategy", [rf.Generative(), rf.Online(0.1), rf.Uniform()], ids=repr)
def test_curves_do_not_depend_on_the_batch(strategy, pooled):
    options = {"model": model(pooled), "seeds": [5, 1, 2, 9, 4], **sizes(pooled, 2, 6)}
    whole = curves(strategy, **options)
    for batch in (1, 2, 3):
        parts = curves(strategy, batch=batch, **options)
        for name in PLANNERS:
            for measure in ("start", "mean", "max"):
                np.testing.assert_allclose(*(getattr(c[name], measure) for c in (parts, whole)), **CLOSE)


def test_a_curve_ends_at_zero_once_a_deterministic_world_is_known():
    """Delta kernel: 30 queries of Alg 2 see every (s,a) once, and a single one says nearly nothing."""
    law = np.eye(6)[np.random.default_rng(2).integers(0, 6, (4, 6, 5))]
    tabular = rf.Model(rf.kernels.Delta(), ridge=1e-9)
    found = curves(rf.Generative(), world=rf.FiniteWorld(law, 4), model=tabular, **sizes(False, 1, 30))[
        "mean"
    ]
    assert (found.mean[:, 0] > 0.1).all() and (found.start >= -1e-12).all()
    np.testing.assert_allclose(found.max[:, 1], 0.0, atol=1e-12)


# --- what a checkpoint has cost ---


@pytest.mark.parametrize(
    ("strategy", "episodes", "steps"),
    [
        (rf.Generative(), 0, 4),
        (rf.Online(0.1), 4, 10),
        (rf.Online(0.1, fresh=True), 4, 10),
        (rf.Qiu(0.1), 1, 4),
        (rf.GreedyMaxVariance(), 1, 4),
        (rf.Uniform(), 1, 4),
    ],
    ids=repr,
)
@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
def test_costs_are_those_of_the_run(strategy, episodes, steps, pooled):
    """A round of Alg 3 is H episodes and H(H+1)/2 steps; of the others one episode, or H queries."""
    rounds = np.array([2, 3, 7])
    found = curves(strategy, {"mean": rf.Mean()}, seeds=[1], model=model(pooled), **sizes(pooled, *rounds))
    assert found["mean"].samples.tolist() == (rounds * (4 if pooled else 1)).tolist()
    assert found["mean"].episodes.tolist() == (rounds * episodes).tolist()
    assert found["mean"].steps.tolist() == (rounds * steps).tolist()
    unit, checkpoints = next(iter(sizes(pooled, *rounds.tolist()).items()))
    data = rf.explore(small_world(start=None), model(pooled), strategy, seed=1, **{unit: checkpoints[-1]})
    for i, n in enumerate(checkpoints):
        part = data.first(**{unit: n})
        assert (part.episodes, part.steps) == (found["mean"].episodes[i], found["mean"].steps[i])


def test_shapes_are_runs_by_checkpoints():
    found = curves(seeds=range(5), **sizes(False, 1, 2))
    for curve in found.values():
        assert curve.start.shape == curve.mean.shape == curve.max.shape == (5, 2)


def test_checkpoints_are_sorted_and_counted_once():
    found, sorted_ones = (curves(**sizes(False, *rounds)) for rounds in [(5, 2, 5), (2, 5)])
    assert found["mean"].samples.tolist() == [2, 5]
    np.testing.assert_array_equal(found["mean"].start, sorted_ones["mean"].start)


def test_seeds_may_come_from_a_generator():
    found = curves(seeds=(seed for seed in SEEDS), **sizes(False, 3))
    np.testing.assert_array_equal(found["mean"].start, curves(**sizes(False, 3))["mean"].start)


def test_checkpoints_may_be_an_array():
    found, listed = (curves(samples_per_step=each) for each in (np.array([2, 4]), [2, 4]))
    np.testing.assert_array_equal(found["mean"].start, listed["mean"].start)


# --- at the door ---


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give exactly one budget of samples_per_step=, got none"),
        ({"samples_per_step": []}, "samples_per_step must be a list of checkpoints"),
        ({"samples_per_step": [2], "transitions": [4]}, "use samples_per_step= instead of transitions="),
        ({"transitions": [4]}, "use samples_per_step= instead of transitions="),
        ({"samples_per_step": [4], "model": model(True)}, "use transitions= instead of samples_per_step="),
        ({"transitions": [4, 6], "model": model(True)}, r"multiples of the horizon 4, got \[4, 6\]"),
        ({"samples_per_step": [0, 4]}, "samples_per_step must be a whole number of at least 1, got 0"),
        ({"samples_per_step": [2.5]}, "samples_per_step must be a whole number"),
        ({"samples_per_step": 5}, r"list of checkpoints, such as \[10, 20, 40\], got 5"),
        ({"samples_per_step": [2], "seeds": []}, "seeds must name at least one run"),
        ({"samples_per_step": [2], "seeds": [0, -1]}, "seed must be a whole number of at least 0, got -1"),
        ({"samples_per_step": [2], "batch": 0}, "batch must be a whole number of at least 1, got 0"),
        ({"samples_per_step": [2], "reward": 2.0 * REWARD}, r"Optimistic needs rewards in \[0, 1\]"),
        ({"samples_per_step": [2], "reward": np.nan * REWARD}, "reward must be finite"),
        ({"samples_per_step": [2], "reward": REWARD.T}, "reward must have shape"),
    ],
    ids=[
        "none", "empty", "both", "wrong", "wrong, pooled", "half a round", "zero", "half", "a number",
        "no seeds", "seed", "batch",
        "reward", "NaN", "turned",
    ],
)  # fmt: skip
def test_what_makes_no_curve_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        curves(**options)


# --- the paper's four algorithms under a preset ---


def test_the_published_four():
    four = paper_strategies(PUBLISHED, beta=0.2)
    assert four == {
        "generative": rf.Generative(),
        "online": rf.Online(0.2),
        "qiu": rf.Qiu(0.2),
        "greedy": rf.GreedyMaxVariance(),
    }


def test_the_literal_four_speak_of_their_prior_without_data():
    four = paper_strategies(LITERAL)
    assert four["online"] == rf.Online(0.1, empty="prior")
    assert four["qiu"].empty == four["greedy"].empty == "prior"
