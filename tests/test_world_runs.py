"""Exploration of real states: repeatable, resumable, and stoppable at any step."""

import os
import signal

import numpy as np
import pytest

import rewardfree as rf
from reference_runs import small_world
from reference_slide import (
    AUTO,
    BOX,
    FIXED,
    MODELS,
    ONLINE,
    PER_STEP,
    SOBOL,
    STRATEGIES,
    Slide,
    assert_same,
    pendulum,
    world_named,
)
from rewardfree.evaluation.diagnosis import STILL, diagnose
from rewardfree.strategies import world_run
from rewardfree.strategies.current import PILOT, next_refit, refitted_at
from rewardfree.worlds import LabelledWorld, scaling

pytestmark = pytest.mark.usefixtures("one_thread")


class Stopped(Slide):
    """One where something happens at call number `at`."""

    def __init__(self, at, what):
        super().__init__()
        self.at, self.what = at, what

    def happen(self):
        if self.calls == self.at:
            self.what()


def interrupt():
    raise KeyboardInterrupt


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def break_down():
    raise OSError("the motor is off")


# --- the same again, and resumed ---


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("world", ["pendulum", "cart", "slide"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_run_repeats_and_goes_on_from_wherever_it_stopped(world, strategy, model, tmp_path):
    """Also after it was written and read; the first steps do not depend on the budget."""
    if model == "per step" and strategy in (rf.Scout(), rf.Generative()):
        pytest.skip("Scout needs a pooled model; Generative() in that case is tested below")
    chosen, size = MODELS[model], 120
    whole = rf.explore(world_named(world), chosen, strategy, steps=size, seed=4)
    assert len(whole) == size
    assert whole.stopped_by == "steps"
    part = rf.explore(world_named(world), chosen, strategy, steps=103, seed=4)
    assert_same(part, whole, 103)
    part.save(tmp_path / "part.npz")
    cuts = (37, PILOT) if chosen.automatic else (37,)
    for stopped in (rf.load(tmp_path / "part.npz"), *(whole.first(steps=cut) for cut in cuts)):
        again = rf.explore(world_named(world), chosen, strategy, steps=size, seed=4, resume=stopped)
        assert_same(again, whole)
        np.testing.assert_array_equal(again.starts, whole.starts)
        assert again.stopped_by == "steps"
        assert again.fitted.model == whole.fitted.model


@pytest.mark.parametrize("strategy", [rf.Online(0.5), rf.Online(0.5, fresh=True), rf.Qiu(0.5)], ids=repr)
def test_a_fitted_kernel_is_renewed_alike_in_a_resumed_run(strategy):
    """Beyond the pilot and a refit, where an episode keeps one step only."""
    size = 400 if isinstance(strategy, rf.Online) else 170
    whole = rf.explore(Slide(), AUTO, strategy, steps=size)
    assert whole.kept.sum() > 100
    for cut in (size // 3, size - 20, size - 1):
        assert_same(rf.explore(Slide(), AUTO, strategy, steps=size, resume=whole.first(steps=cut)), whole)


def test_every_step_is_a_place_to_stop():
    whole = rf.explore(Slide(), FIXED, rf.Online(0.5), steps=40)
    for cut in range(1, 40):
        again = rf.explore(Slide(), FIXED, rf.Online(0.5), steps=40, resume=whole.first(steps=cut))
        assert_same(again, whole)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_another_seed_gives_other_data(strategy):
    one, other = (rf.explore(Slide(), FIXED, strategy, steps=30, seed=seed) for seed in (0, 1))
    assert not np.array_equal(one.next_state, other.next_state)


def test_a_resumed_run_computes_and_plays_nothing_twice_but_the_last_episode():
    whole = rf.explore(Slide(), FIXED, rf.GreedyMaxVariance(), steps=60)
    world = Slide()
    stopped = whole.first(steps=57)
    rf.explore(world, FIXED, rf.GreedyMaxVariance(), steps=60, resume=stopped)
    played = int((stopped.episode == stopped.episode[-1]).sum())
    assert world.calls <= 3 + played


def test_a_run_may_be_resumed_more_than_once_and_to_no_more_than_it_has():
    whole = rf.explore(Slide(), FIXED, rf.Qiu(0.5), steps=60)
    data = None
    for steps in (11, 25, 26, 60):
        data = rf.explore(Slide(), FIXED, rf.Qiu(0.5), steps=steps, resume=data)
    assert_same(data, whole)


def test_a_run_may_be_resumed_to_less_than_it_has():
    whole = rf.explore(Slide(), FIXED, rf.Qiu(0.5), steps=60)
    world = Slide()
    assert_same(rf.explore(world, FIXED, rf.Qiu(0.5), steps=20, resume=whole), whole, 20)
    assert world.calls == 0


def test_a_world_that_fails_when_a_run_goes_on_loses_nothing_that_was_recorded():
    data = rf.explore(Slide(), FIXED, rf.Uniform(), steps=20)
    for at in range(1, 10):  # also while the last episode is played again
        with pytest.raises(rf.WorldFailed, match="the motor is off") as caught:
            rf.explore(Stopped(at, break_down), FIXED, rf.Uniform(), steps=40, resume=data)
        assert len(caught.value.data) >= 20
        assert_same(caught.value.data.first(steps=20), data)


class InPlace(Slide):
    """A simulator that moves the states and actions it is given, and keeps its answer in one buffer."""

    buffer = np.zeros((1, 2))

    def sample(self, state, action, h, rng):
        next_state, ended = super().sample(state.copy(), action.copy(), h, rng)
        state[:], action[:], self.buffer[:] = next_state, 9.0, next_state
        return self.buffer, ended


@pytest.mark.parametrize("strategy", [rf.Uniform(), rf.Scout(), rf.Generative()], ids=repr)
def test_a_simulator_that_works_in_place_does_not_touch_the_data(strategy):
    expected = rf.explore(Slide(), FIXED, strategy, transitions=30)
    data = rf.explore(InPlace(), FIXED, strategy, transitions=30)
    assert_same(data, expected)
    assert np.abs(data.action).max() <= 1.0


def test_a_world_that_does_not_repeat_itself_begins_another_episode():
    class Restless(Slide):
        def start(self, rng):
            return np.array([-0.1 - 0.01 * self.calls, 0.0])

    data = rf.explore(Restless(), FIXED, rf.Uniform(), steps=9)
    world = Restless()
    world.calls = 1000
    again = rf.explore(world, FIXED, rf.Uniform(), steps=20, resume=data)
    assert_same(data, again, 9)
    assert again.episode[9] == again.episode[8] + 1
    assert again.h[9] == 0
    for i in range(19):
        if again.episode[i] == again.episode[i + 1]:
            np.testing.assert_array_equal(again.next_state[i], again.state[i + 1])


class Cut(rf.World):
    """A walk that can only be stepped, and is cut after 5 of its 9 steps."""

    state, action, horizon = rf.Box.of(x=(-2.0, 2.0)), rf.Box.of(u=(-1.0, 1.0)), 9

    def reset(self, rng):
        self.x, self.h = rng.uniform(-1.0, 1.0, 1), 0
        return self.x

    def step(self, action):
        self.x, self.h = 0.9 * self.x + 0.1 * action, self.h + 1
        return self.x, False, self.h == 5


def test_an_episode_that_the_world_cuts_is_over_and_no_end():
    whole = rf.explore(Cut(), FIXED, rf.Uniform(), steps=23)
    np.testing.assert_array_equal(whole.h, np.arange(23) % 5)
    assert not whole.terminated.any()
    for cut in (3, 5, 10, 12):
        again = rf.explore(Cut(), FIXED, rf.Uniform(), steps=23, resume=whole.first(steps=cut))
        assert_same(again, whole)


# --- budgets ---


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize(("unit", "size"), [("transitions", 13), ("steps", 17), ("episodes", 4)])
def test_a_budget_is_met_exactly(strategy, unit, size):
    if unit == "episodes" and strategy.generative:
        with pytest.raises(ValueError, match="belong to no episode: use steps= or transitions="):
            rf.explore(Slide(), FIXED, strategy, episodes=size)
        return
    data = rf.explore(Slide(), FIXED, strategy, **{unit: size})
    have = {"transitions": data.kept.sum(), "steps": len(data), "episodes": data.episodes}
    assert have[unit] == size
    assert data.stopped_by == unit
    assert data.kept[-1] or unit == "steps"


@pytest.mark.parametrize("strategy", [*ONLINE, SOBOL], ids=repr)
def test_samples_per_step_count_rounds(strategy):
    data = rf.explore(pendulum(4), PER_STEP, strategy, samples_per_step=5)
    np.testing.assert_array_equal(data.samples, 5)
    assert data.stopped_by == "samples_per_step"


@pytest.mark.parametrize("strategy", [rf.Uniform(), SOBOL], ids=repr)
def test_seconds_end_a_run(strategy, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("rewardfree.budget.time.monotonic", lambda: now[0])

    class Slow(Slide):
        def happen(self):
            now[0] += 1.0

    data = rf.explore(Slow(), FIXED, strategy, seconds=10.5)
    assert data.stopped_by == "seconds"
    assert len(data) == 11
    more = rf.explore(Slow(), FIXED, strategy, seconds=5.0, resume=data)  # its own seconds: the total grows
    assert more.stopped_by == "seconds"
    assert len(data) < len(more) <= 16
    assert_same(data, more, 11)
    both = rf.explore(Slow(), FIXED, strategy, seconds=1e6, steps=7)
    assert (both.stopped_by, len(both)) == ("steps", 7)


def test_a_run_of_queries_stops_at_the_first_round_whose_sigma_is_small():
    world = small_world(irregular=True)
    path = rf.strategies.uncertainty_path(
        PER_STEP, world.grid.points, rf.query_plan(PER_STEP, world.grid.points, 25)
    )
    target = float(path.largest[10]) * (1.0 + 1e-9)
    data = rf.explore(LabelledWorld(world), PER_STEP, rf.Generative(), samples_per_step=25, max_sigma=target)
    assert data.stopped_by == "max_sigma"
    np.testing.assert_array_equal(data.samples, int(np.argmax(path.largest <= target)))
    never = rf.explore(LabelledWorld(world), PER_STEP, rf.Generative(), samples_per_step=5, max_sigma=1e-9)
    assert never.stopped_by == "samples_per_step"


def test_a_greedy_run_stops_when_sigma_is_small_wherever_it_could_go():
    class Endless(Slide):
        edge = 9.0

    def largest(data):
        scaling, design = rf.explore(Slide(), FIXED, SOBOL, steps=2).fitted.scaling, FIXED.design()
        design.extend(scaling(data.spaces.features(data.state, data.action)))
        pairs = data.spaces.every_pair(data.next_state, data.spaces.action.candidates(9))
        return design.std(scaling(data.spaces.features(*pairs))).max()

    whole = rf.explore(Endless(), FIXED, rf.GreedyMaxVariance(), episodes=15)
    by_episode = np.array([largest(whole.first(episodes=n)) for n in range(1, 16)])
    target = float(by_episode[9]) + 1e-9
    first, stopped = whole.first(episodes=1), 1 + int(np.argmax(by_episode <= target))
    data = rf.explore(Endless(), FIXED, rf.GreedyMaxVariance(), episodes=15, max_sigma=target, resume=first)
    assert (data.stopped_by, data.episodes) == ("max_sigma", stopped)
    assert_same(data, whole, len(data))


def test_a_target_is_not_met_before_anything_is_known():
    data = rf.explore(Slide(), FIXED, rf.GreedyMaxVariance(), steps=9, max_sigma=0.01)
    assert (data.stopped_by, len(data)) == ("steps", 9)


def test_a_state_that_ends_an_episode_does_not_count_for_the_target():
    class Ending(Slide):
        """Every episode ends far away at its first step, where nothing can be tried."""

        def sample(self, state, action, h, rng):
            return np.full((1, 2), 1.0), np.ones(1, bool)

        def start(self, rng):
            return np.zeros(2)

    first = rf.explore(Ending(), FIXED, rf.GreedyMaxVariance(), episodes=1)
    data = rf.explore(Ending(), FIXED, rf.GreedyMaxVariance(), episodes=60, max_sigma=0.5, resume=first)
    assert data.stopped_by == "max_sigma"


@pytest.mark.parametrize("strategy", [rf.Scout(), rf.Generative(), SOBOL, BOX], ids=repr)
def test_a_large_target_is_met_once_something_is_known(strategy):
    data = rf.explore(Slide(), AUTO, strategy, steps=90, max_sigma=100.0)
    assert (data.stopped_by, len(data)) == ("max_sigma", PILOT)


@pytest.mark.parametrize("strategy", [rf.Uniform(), rf.Online(0.5), rf.Qiu(0.5)], ids=repr)
def test_every_strategy_minds_the_target(strategy):
    try:
        data = rf.explore(Slide(), FIXED, strategy, steps=60, max_sigma=100.0)
    except ValueError as error:
        assert "max_sigma" in str(error)  # or it says that it cannot
    else:
        assert data.stopped_by == "max_sigma"


def test_times_of_renewal():
    assert [refitted_at(n) for n in (0, 49, 50, 99, 199, 200, 250, 399)] == [0, 0, 50, 50, 150, 200, 200, 300]
    assert [next_refit(n) for n in (0, 50, 150, 199, 200, 299, 300)] == [50, 100, 200, 200, 300, 300, 400]


# --- interrupted, terminated, broken ---


@pytest.mark.parametrize("happens", [interrupt, terminate])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_what_was_collected_before_an_interruption_is_kept(strategy, happens):
    def own(*_):
        pytest.fail("SIGTERM went past the library")

    k, whole = 65, rf.explore(Slide(), FIXED, strategy, steps=80)
    before = signal.signal(signal.SIGTERM, own)
    try:
        data = rf.explore(Stopped(k + 1, happens), FIXED, strategy, steps=80)
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (data.stopped_by, len(data)) == ("interrupted", k)
    assert_same(data, whole, k)
    assert data.fitted is None
    assert_same(rf.explore(Slide(), FIXED, strategy, steps=80, resume=data), whole)


def test_an_interruption_before_the_first_step_goes_through():
    with pytest.raises(KeyboardInterrupt):
        rf.explore(Stopped(1, interrupt), FIXED, rf.Uniform(), steps=10)


def test_interrupted_data_can_be_written_and_read(tmp_path):
    data = rf.explore(Stopped(8, interrupt), FIXED, rf.Online(0.5), steps=30)
    data.save(tmp_path / "data.npz")
    assert rf.load(tmp_path / "data.npz").stopped_by == "interrupted"


def test_an_interruption_while_the_last_kernel_is_fitted_keeps_the_data(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(scaling.ScaledModel, "fit", interrupted)
    try:
        data = rf.explore(Slide(), AUTO, rf.Uniform(), steps=30)
    except KeyboardInterrupt:
        pytest.fail("30 steps were lost")
    assert len(data) == 30


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_world_that_fails_leaves_the_steps_before(strategy):
    with pytest.raises(rf.WorldFailed, match=r"failed at step 20: OSError\('the motor is off'\)") as caught:
        rf.explore(Stopped(21, break_down), FIXED, strategy, steps=40)
    data = caught.value.data
    assert (len(data), data.stopped_by) == (20, "error")
    whole = rf.explore(Slide(), FIXED, strategy, steps=40)
    assert_same(rf.explore(Slide(), FIXED, strategy, steps=40, resume=data), whole)


@pytest.mark.parametrize("state", [[[np.nan, 0.0]], [[np.inf, 0.0]], [[1.0]], [[1.0, 2.0, 3.0]]], ids=str)
@pytest.mark.parametrize("strategy", [rf.Uniform(), SOBOL], ids=repr)
def test_what_is_no_state_is_a_failure_of_the_world(strategy, state):
    class Wrong(Slide):
        def sample(self, *_):
            return np.array(state), np.array([False])

    with pytest.raises(rf.WorldFailed, match=r"a state must be 2 finite numbers \(x, v\)"):
        rf.explore(Wrong(), FIXED, strategy, steps=5)


def test_a_world_that_never_moves_leaves_its_steps():
    class Still(Slide):
        def sample(self, state, action, h, rng):
            return state.copy(), np.zeros(len(state), bool)

        def start(self, rng):
            return np.zeros(2)

    try:
        assert len(rf.explore(Still(), AUTO, rf.Uniform(), steps=20)) == 20
    except ValueError as error:
        pytest.fail(f"20 steps were lost: {error}")


class Rare(rf.World):
    """Only a strong push moves it; a stronger one than there is, if `at` is 1."""

    state, action, horizon, at = rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(u=(-1.0, 1.0)), 30, 0.98

    def start(self, rng):
        return np.zeros(1)

    def sample(self, state, action, h, rng):
        return np.clip(state + 0.2 * (action > self.at), -1.0, 1.0), np.zeros(len(state), bool)


class Dead(Rare):
    at = 1.0


WAITING = [
    rf.Scout(),
    rf.Generative(),
    rf.Generative(candidates="box"),
    rf.GreedyMaxVariance(),
    rf.Online(beta=0.1),
    rf.Uniform(),
]


@pytest.mark.parametrize("strategy", WAITING, ids=repr)
@pytest.mark.parametrize("world", [Rare, Dead])
def test_until_something_changes_actions_are_random(world, strategy):
    data = rf.explore(world(), AUTO, strategy, steps=170, seed=3)
    assert len(data) == 170 and data.stopped_by == "steps"
    if world is Dead:
        assert diagnose(data.using_all()).verdict == STILL and data.fitted is None
        assert len(np.unique(data.action)) == 170
        with pytest.raises(ValueError, match="states that never change"):
            rf.plan(data, "x")
    elif not isinstance(strategy, rf.Online):  # of which few steps are kept
        assert (data.next_state != data.state).any() and data.fitted is not None
        assert np.isfinite(rf.plan(data, "x").expected)


def test_what_changes_once_in_many_steps_is_fitted_to():
    class Once(Dead):
        def sample(self, state, action, h, rng):
            return np.where(h == 701, state + 0.5, state), np.zeros(len(state), bool)

    Once.horizon = 1500
    data = rf.explore(Once(), AUTO, rf.Uniform(), transitions=1500)
    assert (data.next_state != data.state).sum() == 1 and data.fitted is not None
    assert diagnose(data).changing.all() and np.isfinite(rf.plan(data, "x", horizon=20).expected)


@pytest.mark.parametrize("strategy", [rf.Scout(), rf.Online(0.1), rf.Generative()], ids=str)
def test_whether_anything_changed_is_asked_once_a_refit(monkeypatch, strategy):
    """Each time all steps are looked at: at every step that would take O(n^2)."""

    class Never(Slide):
        def sample(self, state, action, h, rng):
            return state.copy(), np.zeros(len(state), bool)

    asked, of = [], world_run.StateChange.of

    def counted(spaces, state, next_state):
        asked.append(len(state))
        return of(spaces, state, next_state)

    monkeypatch.setattr(world_run.StateChange, "of", counted)
    rf.explore(Never(), AUTO, strategy, steps=1050)
    before_the_fit = [n for n in asked if n < 1050]
    assert len(before_the_fit) == len(set(before_the_fit)) > 4


def test_a_strategy_that_fails_is_not_the_worlds_failure():
    class Broken(rf.Uniform):
        def play_world(self, run):
            run.episode(lambda state, h: run.random_action())
            raise LookupError("nothing there")

    with pytest.raises(
        rf.ExplorationFailed, match=r"at step 30, and the world did not: LookupError"
    ) as caught:
        rf.explore(Rare(), AUTO, Broken(), steps=50)
    assert not isinstance(caught.value, rf.WorldFailed) and len(caught.value.data) == 30


def test_a_fixed_kernel_without_bounds_is_refused_before_anything_is_played():
    class Open(Slide):
        state = rf.Box.of(x=None, v=(-1.0, 1.0))

    world = Open()
    with pytest.raises(ValueError, match="a kernel that is fixed needs bounds, and x has none"):
        rf.explore(world, FIXED, rf.Uniform(), steps=30)
    assert world.calls == 0
