"""Exploration of continuous worlds: repeatable, resumable, stoppable at any step, and by the textbook."""

import os
import signal

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import reference
import rewardfree as rf
from reference_runs import pick, small_world
from rewardfree.data.samples import COLUMNS
from rewardfree.strategies import queries
from rewardfree.strategies.current import PILOT, next_refit, refitted_at
from rewardfree.streams import stream
from rewardfree.worlds import LabelledWorld, scaled_model

AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FIXED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
PER_STEP = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
MODELS = {"automatic": AUTO, "fixed": FIXED, "per step": PER_STEP}
SOBOL, BOX = rf.Generative(candidates="sobol"), rf.Generative(candidates="box")
ONLINE = [rf.Uniform(), rf.GreedyMaxVariance(), rf.Qiu(0.5), rf.Online(0.5), rf.Online(0.5, fresh=True)]
STRATEGIES = [*ONLINE, rf.Scout(), rf.Generative(), SOBOL, BOX]


class Slide(rf.World):
    """A puck that is pushed along a noisy line, and falls off at its right end."""

    state = rf.Box.of(x=(-2.0, 2.0), v=(-1.0, 1.0))
    action = rf.Box.of(push=(-1.0, 1.0))
    horizon = 6
    edge = 0.1

    def __init__(self):
        self.calls = 0

    def start(self, rng):
        return np.array([rng.uniform(-0.5, 0.0), 0.0])

    def sample(self, state, action, h, rng):
        self.calls += 1
        self.happen()
        v = np.clip(
            0.9 * state[:, 1] + 0.4 * action[:, 0] + 0.05 * rng.standard_normal(len(state)), -1.0, 1.0
        )
        x = np.clip(state[:, 0] + 0.5 * v, -2.0, 2.0)
        return np.stack([x, v], axis=1), x > self.edge

    def happen(self):
        """Something may, at a call."""


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


def pendulum(horizon=6, **options):
    return rf.from_gymnasium("Pendulum-v1", horizon=horizon, **options)


def cart():
    return rf.from_gymnasium("CartPole-v1", horizon=15, bounds={"v": (-3.0, 3.0), "omega": (-4.0, 4.0)})


def label(world):
    return {"pendulum": pendulum, "cart": cart, "slide": Slide}[world]()


def assert_same(data, expected, rows=None):
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(data, name), getattr(expected, name)[:rows], err_msg=name)


@pytest.fixture(autouse=True)
def _one_thread():
    with rf.threads.one_blas_thread():
        yield


# --- the same again, and resumed ---


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("world", ["pendulum", "cart", "slide"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_run_repeats_and_goes_on_from_wherever_it_stopped(world, strategy, model, tmp_path):
    """Also after it was written and read; the first steps do not depend on the budget."""
    if model == "per step" and strategy in (rf.Scout(), rf.Generative()):
        pytest.skip("Scout needs a pooled model; Generative() in that case is tested below")
    own, size = MODELS[model], 120
    whole = rf.explore(label(world), own, strategy, steps=size, seed=4)
    assert len(whole) == size
    assert whole.stopped_by == "steps"
    part = rf.explore(label(world), own, strategy, steps=103, seed=4)
    assert_same(part, whole, 103)
    part.save(tmp_path / "part.npz")
    cuts = (37, PILOT) if own.automatic else (37,)
    for stopped in (rf.load(tmp_path / "part.npz"), *(whole.first(steps=cut) for cut in cuts)):
        again = rf.explore(label(world), own, strategy, steps=size, seed=4, resume=stopped)
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
        following, ended = super().sample(state.copy(), action.copy(), h, rng)
        state[:], action[:], self.buffer[:] = following, 9.0, following
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
    monkeypatch.setattr("rewardfree.strategies.limits.time.monotonic", lambda: now[0])

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

    monkeypatch.setattr(scaled_model.ScaledModel, "fit", interrupted)
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


def test_a_fixed_kernel_without_bounds_is_refused_before_anything_is_played():
    class Open(Slide):
        state = rf.Box.of(x=None, v=(-1.0, 1.0))

    world = Open()
    with pytest.raises(ValueError, match="a kernel that is fixed needs bounds, and x has none"):
        rf.explore(world, FIXED, rf.Uniform(), steps=30)
    assert world.calls == 0


# --- what the strategies choose ---


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("world", ["pendulum", "cart", "slide"])
def test_online_keeps_the_last_step_of_each_episode_and_no_other(world, fresh):
    data = rf.explore(label(world), FIXED, rf.Online(0.5, fresh=fresh), episodes=40)
    last = np.append(data.episode[1:] != data.episode[:-1], True)
    np.testing.assert_array_equal(data.kept, last)
    H = data.horizon
    wanted = np.arange(40) % H  # the step that each episode is for
    reached = data.h[last]
    assert (reached <= wanted).all()
    np.testing.assert_array_equal(reached < wanted, data.terminated[last] & (reached < wanted))
    assert world != "slide" or (reached < wanted).any()  # some ended earlier


class _Textbook:
    """Q of the next episode on a finite world by plain loops, from the samples (h, z, s') known by then."""

    def __init__(self, world, model, samples):
        self.world, self.model, self.samples, self.H = world, model, samples, world.horizon

    def posterior(self, h, value):
        rows = [(z, s) for step, z, s in self.samples if self.model.pooled or step == h]
        Z, kernel, ridge = self.world.grid.points, self.model.kernel, self.model.ridge
        if not rows:
            return np.zeros(len(Z)), np.sqrt(kernel.diag(Z)), 0
        seen, y = Z[[z for z, _ in rows]], value[[s for _, s in rows]]
        variance = np.maximum(reference.variance(kernel, seen, ridge, Z), 0.0)
        return reference.mean(kernel, seen, ridge, y, Z), np.sqrt(variance), len(rows)

    def q(self, target, bonus, empty):
        value, found = np.zeros(len(self.world.states)), {}
        for h in reversed(range(target + 1)):
            mean, sigma, n = self.posterior(h, value)
            q = np.clip(mean + bonus(sigma), 0.0, self.H) if n or empty == "prior" else 0.0 * sigma
            found[h] = q.reshape(self.world.grid.shape)
            value = found[h].max(axis=1)
        return found


@pytest.mark.parametrize("pooled", [False, True], ids=["per step", "pooled"])
@pytest.mark.parametrize(
    "strategy",
    [
        rf.Online(0.6),
        rf.Online(0.6, fresh=True),
        rf.Online(0.6, empty="prior"),
        rf.Qiu(0.6),
        rf.Qiu(9.0, empty="prior"),
        rf.GreedyMaxVariance(),
        rf.GreedyMaxVariance(empty="prior"),
    ],
    ids=repr,
)
def test_actions_are_the_textbooks(strategy, pooled):
    world = small_world(irregular=True, start=None)
    model = rf.Model(rf.Matern(1.5, 0.4), ridge=0.1, pooled=pooled)
    data, H = rf.explore(LabelledWorld(world), model, strategy, episodes=16), world.horizon
    samples, known, before = [], [], None
    for i in range(len(data)):
        episode, h, state = int(data.episode[i]), int(data.h[i]), int(data.state[i])
        if episode != before:  # what is known when an episode, or a round of episodes, begins
            if not isinstance(strategy, rf.Online) or strategy.fresh or episode % H == 0:
                known = list(samples)
            before = episode
        if isinstance(strategy, rf.GreedyMaxVariance):
            _, sigma, n = _Textbook(world, model, samples).posterior(h, np.zeros(len(world.states)))
            at = sigma.reshape(world.grid.shape)[state]
            expected = pick(list(at)) if n or strategy.empty == "prior" else 0
        else:
            book, beta = _Textbook(world, model, known), strategy.beta
            if isinstance(strategy, rf.Qiu):
                target, bonus = H - 1, lambda s, beta=beta: np.minimum(beta * s, H) * (1.0 + 1.0 / H)
            else:
                target, bonus = episode % H, lambda s, beta=beta: beta * s
            expected = pick(list(book.q(target, bonus, strategy.empty)[h][state]))
        assert data.action[i] == expected, f"step {i}"
        if data.kept[i]:
            samples.append((h, state * world.grid.shape[1] + int(data.action[i]), int(data.next_state[i])))


def test_queries_on_a_finite_world_are_those_of_the_finite_strategy():
    world = small_world()  # a regular grid, with ties
    data = rf.explore(LabelledWorld(world), PER_STEP, rf.Generative(), samples_per_step=12)
    finite = rf.explore(world, PER_STEP, rf.Generative(), samples_per_step=12)
    for name in ("episode", "h", "state", "action", "terminated", "kept"):
        np.testing.assert_array_equal(getattr(data, name), getattr(finite, name), err_msg=name)
    plan = rf.query_plan(PER_STEP, world.grid.points, 12)
    np.testing.assert_array_equal(data.state * 5 + data.action, np.repeat(plan, world.horizon))


def test_queries_of_a_pooled_model_on_a_finite_world_are_the_query_plan():
    world = small_world()
    data = rf.explore(LabelledWorld(world), FIXED, rf.Generative(), transitions=70)  # more than one batch
    np.testing.assert_array_equal(data.state * 5 + data.action, rf.query_plan(FIXED, world.grid.points, 70))
    finite = rf.explore(world, FIXED, rf.Generative(), transitions=70)
    np.testing.assert_array_equal(data.state * 5 + data.action, finite.points(slice(None)))


@pytest.mark.parametrize("model", [FIXED, PER_STEP], ids=["pooled", "per step"])
@pytest.mark.parametrize("strategy", [SOBOL, BOX], ids=repr)
def test_queries_lie_in_the_bounds_and_are_far_apart(strategy, model):
    data = rf.explore(pendulum(), model, strategy, steps=60)
    assert (data.episode == -1).all()
    assert data.kept.all()
    assert (np.abs(data.state[:, 0]) <= np.pi).all()
    assert (np.abs(data.state[:, 1]) <= 8.0).all()
    assert (np.abs(data.action) <= 2.0).all()
    own = slice(None) if model.pooled else data.h == 0
    design, random = model.design(), model.design()
    scaling = data.fitted.scaling
    design.extend(scaling(data.spaces.features(data.state[own], data.action[own])))
    rng = np.random.default_rng(0)
    n = len(design)
    state, action = rng.uniform((-np.pi, -8.0), (np.pi, 8.0), (n, 2)), rng.uniform(-2.0, 2.0, (n, 1))
    random.extend(scaling(data.spaces.features(state, action)))
    assert design.information_gain() > random.information_gain()
    if not model.pooled:
        for h in range(1, data.horizon):
            np.testing.assert_array_equal(data.state[data.h == h], data.state[own])


def test_queries_from_a_sobol_set_are_greedy_over_it():
    data = rf.explore(pendulum(), FIXED, SOBOL, steps=30, seed=3)
    states, actions = queries._candidates(_Asked(data), "sobol", 0)
    points = data.fitted.scaling(data.spaces.features(states, actions))
    chosen = rf.query_plan(FIXED, points, 30)
    np.testing.assert_array_equal(data.state, states[chosen])
    np.testing.assert_array_equal(data.action, actions[chosen])


class _Asked:
    """As much of a run as a set of candidates needs."""

    def __init__(self, data):
        self.spaces, self._seed = data.spaces, data.seed

    def rng(self, *names):
        return stream(self._seed, *names)


def test_queries_of_labels_for_actions_are_labels():
    data = rf.explore(cart(), FIXED, SOBOL, steps=40)
    assert set(data.action) == {0, 1}
    assert data.action.dtype == np.int64


def test_reachable_queries_begin_with_a_pilot_and_then_belong_to_no_episode():
    data = rf.explore(cart(), AUTO, rf.Generative(), steps=80)
    assert (data.episode[:PILOT] >= 0).all()
    assert (data.episode[PILOT:] == -1).all()
    assert data.kept.all()


@pytest.mark.parametrize("seed", range(2))
def test_queries_and_scouts_reach_more_of_the_mountain_car_than_random_actions(seed):
    def cells(strategy):
        world = rf.from_gymnasium("MountainCar-v0", horizon=200)
        data = rf.explore(world, AUTO, strategy, steps=400, seed=seed)
        place = (data.next_state - [-1.2, -0.07]) / [1.8, 0.14]
        return len(np.unique(np.clip((20 * place).astype(int), 0, 19), axis=0))

    uniform = cells(rf.Uniform())
    assert cells(rf.Generative()) > 1.5 * uniform
    assert cells(rf.Scout()) > 1.2 * uniform


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_no_reward_is_ever_read(strategy, monkeypatch):
    class Poison:
        def __getattribute__(self, name):
            raise AssertionError(f"somebody looked at a reward: {name}")

        def __float__(self):
            raise AssertionError("somebody looked at a reward")

        __add__ = __radd__ = __mul__ = __bool__ = __array__ = __float__

    expected = rf.explore(pendulum(), FIXED, strategy, steps=60)
    plain = PendulumEnv.step
    monkeypatch.setattr(
        PendulumEnv, "step", lambda self, u: (lambda o, r, *rest: (o, Poison(), *rest))(*plain(self, u))
    )
    assert_same(rf.explore(pendulum(disable_env_checker=True), FIXED, strategy, steps=60), expected)


def test_episodes_are_whole_and_states_follow_each_other():
    for strategy in (rf.Uniform(), rf.Scout(), rf.Qiu(0.5)):
        data = rf.explore(Slide(), AUTO, strategy, steps=80)
        for i in range(79):
            if data.episode[i] == data.episode[i + 1]:
                assert data.h[i + 1] == data.h[i] + 1
                np.testing.assert_array_equal(data.next_state[i], data.state[i + 1])
                assert not data.terminated[i]
            else:
                assert data.episode[i + 1] == data.episode[i] + 1
                assert data.terminated[i] or data.h[i] == Slide.horizon - 1
        np.testing.assert_array_equal(data.terminated, data.next_state[:, 0] > Slide.edge)
        np.testing.assert_array_equal(data.starts, data.state[data.h == 0])


def test_transitions_of_gymnasium_are_gymnasiums_own():
    data = rf.explore(pendulum(), FIXED, rf.Uniform(), steps=20)
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    for state, action, following in zip(data.state, data.action, data.next_state, strict=True):
        env.state = state.copy()
        env.step(action.astype(np.float32))  # as its space wants it
        np.testing.assert_array_equal(env.state, following)


# --- resumed where it cannot be, and other refusals ---


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
