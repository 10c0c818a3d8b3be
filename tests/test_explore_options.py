"""What the paper says of Alg 3 and of Qiu et al., and what exploration refuses."""

import sys

import numpy as np
import pytest

import reference_runs
import rewardfree as rf
from explorer_cases import ROUNDS, SPREAD, assert_textbook
from planning_cases import EXPLORERS, model
from reference_runs import recorded, small_world

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


@pytest.mark.parametrize("strategy", EXPLORERS, ids=repr)
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
