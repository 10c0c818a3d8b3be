"""Runs on real states that may not go on as another, ties, and what is refused before a step is made."""

import numpy as np
import pytest

import rewardfree as rf
from reference_runs import small_world
from reference_slide import AUTO, BOX, FIXED, PER_STEP, SOBOL, Slide, assert_same, pendulum
from rewardfree.strategies.current import PILOT
from rewardfree.worlds import LabelledWorld

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_run_may_not_be_resumed_as_another():
    data = rf.explore(Slide(), FIXED, rf.Uniform(), steps=10)
    for options, name in [
        ({"seed": 1}, "seed"),
        ({"model": PER_STEP}, "model"),
        ({"strategy": rf.Qiu(0.5)}, "strategy"),
        ({"world": pendulum()}, "world"),
    ]:
        asked = {"world": Slide(), "model": FIXED, "strategy": rf.Uniform(), "seed": 0} | options
        with pytest.raises(ValueError, match=f"resume must come from the same {name}"):
            rf.explore(**asked, steps=20, resume=data)
    with pytest.raises(ValueError, match="resume must be"):
        rf.explore(Slide(), FIXED, rf.Uniform(), steps=20, resume="data.npz")


def test_a_run_may_not_be_resumed_with_another_horizon():
    data = rf.explore(pendulum(8), FIXED, rf.Uniform(), steps=20)
    with pytest.raises(ValueError, match="resume must come from the same"):
        rf.explore(pendulum(5), FIXED, rf.Uniform(), steps=30, resume=data)


def test_a_run_may_not_be_resumed_in_a_world_made_otherwise():
    data = rf.explore(pendulum(8), FIXED, rf.Uniform(), steps=24)
    with pytest.raises(ValueError, match="resume must come from the same"):
        rf.explore(pendulum(8, g=3.0), FIXED, rf.Uniform(), steps=30, resume=data)


def test_reachable_queries_of_each_step_go_on_alike_in_the_middle_of_a_round():
    model = rf.Model(rf.AutoKernel())
    whole = rf.explore(pendulum(20), model, rf.Generative(), steps=120)
    again = rf.explore(pendulum(20), model, rf.Generative(), steps=120, resume=whole.first(steps=105))
    assert_same(again, whole)


def test_first_states_are_those_of_the_whole_run_also_when_the_pilot_was_interrupted():
    whole = rf.explore(Slide(), AUTO, rf.Generative(), steps=60)
    part = rf.explore(Slide(), AUTO, rf.Generative(), steps=30)
    again = rf.explore(Slide(), AUTO, rf.Generative(), steps=60, resume=part)
    np.testing.assert_array_equal(again.starts, whole.starts)


def test_the_first_episodes_of_an_online_run_can_be_cut_out():
    data = rf.explore(pendulum(4), FIXED, rf.Online(0.5), episodes=3)
    assert_same(data.first(episodes=3), data)


def test_a_run_that_is_cut_has_the_first_states_of_one_that_stopped_there():
    whole, part = (rf.explore(Slide(), FIXED, rf.Uniform(), steps=steps) for steps in (60, 20))
    np.testing.assert_array_equal(whole.first(steps=20).starts, part.starts)


@pytest.mark.parametrize(
    "make",
    [
        lambda ties: rf.GreedyMaxVariance(ties=ties),
        lambda ties: rf.GreedyMaxVariance(empty="prior", ties=ties),
        lambda ties: rf.Online(0.5, ties=ties),
        lambda ties: rf.Qiu(0.5, ties=ties),
        lambda ties: rf.baselines.KernelRFUCRL(0.5, ties=ties),
    ],
)
def test_ties_on_real_states_go_as_the_strategy_says(make):
    world, model = LabelledWorld(small_world(start=2)), rf.Model(rf.kernels.Delta(), ridge=0.1)

    def first(ties):
        runs = (rf.explore(world, model, make(ties), steps=1, seed=seed) for seed in range(30))
        return {int(run.action[0]) for run in runs}

    assert first("lowest") == {0}
    assert first("random") == set(range(world.spaces.action.n))


def test_random_ties_on_real_states_belong_to_their_step():
    world, model = LabelledWorld(small_world(start=2)), rf.Model(rf.kernels.Delta(), ridge=0.1)
    strategy = rf.baselines.KernelRFUCRL(50.0, ties="random")  # all of it is clipped
    whole = rf.explore(world, model, strategy, steps=40, seed=4)
    assert len(set(whole.action)) > 1
    part = rf.explore(world, model, strategy, steps=13, seed=4)
    assert_same(rf.explore(world, model, strategy, steps=40, seed=4, resume=part), whole)


def test_random_ties_of_candidates_on_real_states_are_refused():
    with pytest.raises(ValueError, match='ties="random" of Generative is for finite worlds: leave ties= out'):
        rf.explore(Slide(), FIXED, rf.Generative(ties="random"), steps=5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steps": 10, "device": "cuda"}, "device=, dtype= and posterior= are for finite worlds"),
        ({"steps": 10, "dtype": np.float32}, "device=, dtype= and posterior= are for finite worlds"),
        ({"steps": 10, "posterior": rf.Model.design}, "device=, dtype= and posterior= are for finite worlds"),
        ({"max_sigma": 0.1}, "max_sigma= is a target that may never be met: give a budget beside it"),
        ({}, "give exactly one budget of"),
        ({"steps": 10, "episodes": 3}, "give exactly one budget of"),
        ({"samples_per_step": 3}, "a pooled model has one design: use transitions="),
        ({"steps": 0}, "steps must be"),
        ({"steps": 2.5}, "steps must be"),
        ({"seconds": 0.0}, "seconds must be"),
        ({"seconds": -1.0, "steps": 5}, "seconds must be"),
        ({"steps": 5, "max_sigma": -1.0}, "max_sigma must be"),
        ({"steps": 5, "seed": -1}, "seed must be"),
    ],
    ids=lambda part: "".join(map(str, part)) if isinstance(part, dict) else None,
)
def test_bad_limits_are_refused_before_anything_is_played(options, said):
    world = Slide()
    with pytest.raises(ValueError, match=said):
        rf.explore(world, FIXED, rf.Uniform(), **options)
    assert world.calls == 0


def test_transitions_are_for_pooled_models():
    with pytest.raises(ValueError, match="this model has a design for each step: use samples_per_step="):
        rf.explore(Slide(), PER_STEP, rf.Uniform(), transitions=5)


def test_scout_needs_a_pooled_model_and_real_states():
    world = Slide()
    with pytest.raises(
        ValueError, match=r"Scout plans with one model for all steps: use Model\(..., pooled=True\)"
    ):
        rf.explore(world, PER_STEP, rf.Scout(), steps=10)
    assert world.calls == 0
    with pytest.raises(ValueError, match="takes up to 4 real state variables, got s"):
        rf.explore(LabelledWorld(small_world()), FIXED, rf.Scout(), steps=PILOT + 1)


def test_queries_need_a_world_that_can_be_put_anywhere():
    class Stepped(rf.World):
        state, action, horizon = rf.Box.of(x=(-1.0, 1.0)), rf.Discrete(2), 5

        def reset(self, rng):
            return np.zeros(1)

        def step(self, action):
            return np.full(1, 0.1 * action), False, False

    with pytest.raises(ValueError, match="Stepped cannot be put into any state"):
        rf.explore(Stepped(), FIXED, rf.Generative(), steps=5)
    assert len(rf.explore(Stepped(), FIXED, rf.Uniform(), steps=5)) == 5


@pytest.mark.parametrize("strategy", [SOBOL, BOX], ids=repr)
def test_sets_of_candidates_need_bounds(strategy):
    world = rf.from_gymnasium("CartPole-v1", horizon=15)
    with pytest.raises(ValueError, match="needs bounds, and v, omega has none"):
        rf.explore(world, AUTO, strategy, steps=PILOT + 1)


@pytest.mark.parametrize("strategy", [rf.Uniform, "uniform", 3])
def test_what_is_no_strategy_is_refused(strategy):
    with pytest.raises(ValueError, match="strategy must be a strategy such as Scout"):
        rf.explore(Slide(), FIXED, strategy, steps=5)


def test_other_bad_parts_are_refused():
    with pytest.raises(ValueError, match="model must be"):
        rf.explore(Slide(), rf.Matern(1.5, 0.3), rf.Uniform(), steps=5)
    with pytest.raises(ValueError, match="candidates must be one of reachable, sobol, box, got 'grid'"):
        rf.Generative(candidates="grid")

    class Undeclared(Slide):
        state = None

    with pytest.raises(ValueError, match="a world must declare state as a Box or Discrete"):
        rf.explore(Undeclared(), FIXED, rf.Uniform(), steps=5)


@pytest.mark.parametrize(
    "options",
    [
        {"seconds": 1.0, "samples_per_step": 2},
        {"max_sigma": 0.1, "samples_per_step": 2},
        {"resume": 1, "steps": 2},
    ],
    ids=str,
)
def test_finite_worlds_refuse_what_is_for_continuous_ones(options):
    with pytest.raises(ValueError, match="seconds=, max_sigma= and resume= are for real states"):
        rf.explore(small_world(), PER_STEP, rf.Uniform(), **options)


class Misread(Slide):
    """A simulator whose `sample` or `step` returns what its author thought was wanted."""

    def __init__(self, sampled=None, stepped=None, first=None):
        super().__init__()
        self.sampled, self.stepped, self.first = sampled, stepped, first

    def sample(self, state, action, h, rng):
        right = super().sample(state, action, h, rng)
        return right if self.sampled is None else self.sampled(*right)

    def reset(self, rng):
        state = super().reset(rng)
        return state if self.first is None else self.first(state)

    def step(self, action):
        return super().step(action) if self.stepped is None else self.stepped(*super().step(action))


SAMPLE, STEP = (
    "sample must return next states of shape .1, 2. and which of them end",
    "step must return the next",
)


@pytest.mark.parametrize(
    ("world", "said"),
    [
        (Misread(sampled=lambda state, ended: state), SAMPLE),
        (Misread(sampled=lambda state, ended: (state[0], ended)), SAMPLE),
        (Misread(sampled=lambda state, ended: (state, False)), SAMPLE),
        (Misread(sampled=lambda state, ended: (state, ended, {})), SAMPLE),
        (Misread(stepped=lambda state, ended, cut: state), STEP),
        (Misread(stepped=lambda state, ended, cut: (state, ended)), STEP),
        (Misread(stepped=lambda state, ended, cut: (state, -1.3, ended)), STEP),  # a reward in the middle
        (Misread(stepped=lambda state, ended, cut: (state, 0.0, ended, cut, {})), STEP),
        (Misread(sampled=lambda state, ended: (state, ended + 0.5)), f"{SAMPLE}.*, True or False"),
        (
            Misread(first=lambda state: (state, {})),
            "reset returned no state: a state must be 2 finite numbers",
        ),
    ],
)
def test_a_world_that_returns_something_else_hears_what_is_wanted(world, said):
    with pytest.raises(rf.WorldFailed, match=said):
        rf.explore(world, FIXED, rf.Uniform(), steps=5)
    if "state must" not in said:
        with pytest.raises(rf.WorldFailed, match=said):
            rf.rollouts(world, Always(), "0", 2)


class Always:
    def act(self, state, h):
        return np.zeros((len(state), 1))


def test_queries_hear_what_sample_must_return():
    with pytest.raises(rf.WorldFailed, match=SAMPLE):
        rf.explore(Misread(sampled=lambda state, ended: (state, False)), FIXED, BOX, steps=5)


def test_it_is_told_which_method_returned_no_state():
    class Chain(rf.World):
        state, action, horizon = rf.Discrete(3, "place"), rf.Discrete(2, "go"), 4

        def start(self, rng):
            return self.first

        def sample(self, state, action, h, rng):
            return state + 5, np.zeros(len(state), bool)

    chain = Chain()
    for first, said in (
        (7, "start returned no state: state must lie in 0..2"),
        (0, "sample returned no state"),
    ):
        chain.first = first
        with pytest.raises(rf.WorldFailed, match=said):
            rf.explore(chain, rf.Model(rf.kernels.Delta(), 0.1, pooled=True), rf.Uniform(), steps=5)

    class Wide(Slide):
        def sample(self, state, action, h, rng):
            return np.hstack([state, state]), np.zeros(len(state), bool)

    for strategy in (rf.Uniform(), BOX):
        with pytest.raises(rf.WorldFailed, match=r"sample returned no state: .* 2 finite numbers \(x, v\)"):
            rf.explore(Wide(), FIXED, strategy, steps=5)
    stepped = Misread(stepped=lambda state, ended, cut: (np.hstack([state, state]), ended, cut))
    with pytest.raises(rf.WorldFailed, match="step returned no state: a state must be"):
        rf.explore(stepped, FIXED, rf.Uniform(), steps=5)


@pytest.mark.parametrize("strategy", [None, rf.Uniform()], ids=repr)
def test_a_world_that_declares_nothing_hears_what_is_missing(strategy):
    class Misspelled(Slide):
        states, state = Slide.state, None

    for ask in (
        lambda: rf.explore(Misspelled(), strategy=strategy, steps=5),
        lambda: rf.default_model(Misspelled()),
    ):
        with pytest.raises(
            ValueError, match="a world must declare state as a Box or Discrete, such as state = "
        ):
            ask()


def test_one_step_is_one_step():
    left = [1]

    def stepped(state, ended, cut):
        left[0] -= 1
        return (state, ended, cut) if left[0] >= 0 else None

    with pytest.raises(rf.WorldFailed, match=r"the 1 step before it is in this error's \.data") as failed:
        rf.explore(Misread(stepped=stepped), FIXED, rf.Uniform(), steps=5)
    assert repr(failed.value.data).startswith("Experience(1 step in 1 episode, ")


@pytest.mark.parametrize(
    ("factor", "said"),
    [(1 + 0j, r"1 finite numbers .x., got array\(.*j"), (1e150, r"1 finite numbers .x., below 1e\+100, got")],
    ids=["complex", "too far"],
)
def test_a_state_that_no_regression_could_take_is_refused(factor, said):
    class Odd(rf.World):
        state, action, horizon = rf.Box.of(x=(-1, 1)), rf.Box.of(u=(-1, 1)), 5

        def start(self, rng):
            return np.array([0.5])

        def sample(self, state, action, h, rng):
            return state * factor, np.zeros(len(state), bool)

    with pytest.raises(rf.WorldFailed, match=f"sample returned no state: .*{said}"):
        rf.explore(Odd(), FIXED, rf.Uniform(), steps=5)
