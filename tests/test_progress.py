"""The line that says how far a long call is: on a terminal, after a while, and gone at the end."""

import io
import time
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
import rewardfree.progress as module
from rewardfree.planning import PlanRequest
from rewardfree.progress import CLEAR, SILENT_SECONDS, parts, progress, progress_line


class Screen(io.StringIO):
    """Standard error that is a terminal, or is not."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    time = SimpleNamespace(now=100.0)
    time.perf_counter = lambda: time.now
    monkeypatch.setattr(module, "time", time)
    return time


@pytest.fixture
def screen(monkeypatch):
    screen = Screen(terminal=True)
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=screen))
    return screen


def run(screen, clock, work, show=None, total=None):
    """What is written while a call does so much work in so many seconds, [(work, seconds)]: part by part."""
    total = total or sum(amount for amount, _ in work)

    def playing():
        done = 0
        for amount, seconds in work:
            clock.now += seconds
            done += amount
            yield done, "part"

    lines, before = [], 0
    for _ in progress(playing(), total, show):
        lines.append(screen.getvalue()[before:])
        before = len(screen.getvalue())
    return lines, screen.getvalue()[before:]


def shown(percent, left):
    return f"\r{percent:3d}%, {left} s left \x1b[K"


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 9), st.text(max_size=2))), st.sampled_from([None, True, False]))
def test_items_pass_through(items, show):
    assert list(progress(iter(items), 9, show)) == items


def test_items_are_asked_for_one_at_a_time():
    asked = []
    items = progress(((i, asked.append(i)) for i in range(3)), 3, False)
    assert asked == []
    next(items)
    assert asked == [0]


@pytest.mark.parametrize("show", [None, False])
def test_nothing_is_written_to_a_file(screen, clock, show):
    screen.terminal = False
    assert run(screen, clock, [(1, 60.0)] * 5, show) == ([""] * 5, "")


def test_nothing_is_written_when_it_is_not_wanted(screen, clock):
    assert run(screen, clock, [(1, 60.0)] * 5, show=False) == ([""] * 5, "")


def test_what_is_soon_over_is_not_told(screen, clock):
    assert run(screen, clock, [(1, SILENT_SECONDS / 6)] * 5) == ([""] * 5, "")


def test_a_terminal_hears_after_a_while(screen, clock):
    lines, end = run(screen, clock, [(1, 1.0)] * 5)
    assert lines == ["", "", shown(60, 2), shown(80, 1), shown(100, 0)]  # at 2 s not yet
    assert end == CLEAR


@pytest.mark.parametrize("terminal", [True, False])
def test_at_once_if_wanted(screen, clock, terminal):
    screen.terminal = terminal
    lines, end = run(screen, clock, [(1, 0.5)] * 4, show=True)
    assert lines == [shown(25, 2), shown(50, 1), shown(75, 0), shown(100, 0)] and end == CLEAR


def test_time_left_is_that_of_work_at_the_mean_pace(screen, clock):
    """10 s for 1 of 100, 30 s for 3, 90 s for 10: 10, 10 and 9 s each for those to come."""
    lines, _ = run(screen, clock, [(1, 10.0), (2, 20.0), (7, 60.0)], total=100)
    assert lines == [shown(1, 990), shown(3, 970), shown(10, 810)]


def test_a_line_is_written_again_only_when_it_says_something_else(screen, clock):
    lines, _ = run(screen, clock, [(1, 0.001)] * 3, show=True, total=10**6)
    assert lines == [shown(0, 1000), "", ""]


def test_before_anything_is_done_there_is_nothing_to_tell(screen, clock):
    assert run(screen, clock, [(0, 60.0), (0, 60.0)], show=True, total=9) == (["", ""], "")
    assert run(screen, clock, [], show=True, total=9) == ([], "")


def test_the_line_is_cleared_when_the_items_fail(screen, clock):
    def failing():
        yield 1, "part"
        raise RuntimeError("that was the last")

    with pytest.raises(RuntimeError, match="that was the last"):
        list(progress(failing(), 4, True))
    assert screen.getvalue() == shown(25, 0) + CLEAR


def test_the_line_is_cleared_when_the_caller_stops(screen, clock):
    items = progress(((i, "part") for i in range(1, 9)), 8, True)
    next(items), next(items)
    assert screen.getvalue() == shown(12, 0) + shown(25, 0)
    items.close()
    assert screen.getvalue().endswith(shown(25, 0) + CLEAR)


def test_exploring_tells_when_asked(screen, clock):
    world = rf.worlds.corridor_world(states=4, actions=3, horizon=2).world
    model = rf.Model(rf.kernels.Delta(), ridge=1.0)
    rf.explore(world, model, rf.Uniform(), episodes=4, progress=False)
    assert screen.getvalue() == ""
    rf.explore(world, model, rf.Uniform(), episodes=4, progress=True)
    assert "100%" in screen.getvalue() and screen.getvalue().endswith(CLEAR)


def test_a_terminal_that_was_closed_takes_nothing_with_it(clock, monkeypatch):
    class Closed(Screen):
        def write(self, text):
            raise OSError(5, "Input/output error")

    screen = Closed(terminal=True)
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=screen))
    assert run(screen, clock, [(1, 60.0)] * 5) == ([""] * 5, "")


# --- calls that tell how far they are: planning ---


class Cart(rf.World):
    """x' = 0.9 x + 0.5 u."""

    state, action, horizon = rf.Box.of(x=(-2.0, 2.0)), rf.Box.of(u=(-2.0, 2.0)), 6

    def start(self, rng):
        return rng.uniform(-1.0, 1.0, 1)

    def sample(self, state, action, h, rng):
        return 0.9 * state + 0.5 * action, np.zeros(len(state), bool)


class Raft(Cart):
    """Three of them, two pushed."""

    state, action = rf.Box.of(x=(-2, 2), y=(-2, 2), z=(-2, 2)), rf.Box.of(u=(-2, 2), w=(-2, 2))

    def start(self, rng):
        return rng.uniform(-1.0, 1.0, 3)

    def sample(self, state, action, h, rng):
        return 0.9 * state + 0.3 * action[:, [0, 1, 0]], np.zeros(len(state), bool)


class Doors(Cart):
    """One of five rooms after another."""

    state, action = rf.Discrete(5, "room"), rf.Discrete(2, "door")

    def start(self, rng):
        return 0

    def sample(self, state, action, h, rng):
        return (state + action) % 5, np.zeros(len(state), bool)


#: Data, rewards and a planner, by what plans.
PLANNED = {
    "dynamics": (Cart, ["-abs(x)", "x"], None),
    "dynamics, many actions": (Raft, ["-x**2-y**2", "z"], rf.DynamicsPlanner(sides=5)),
    "dynamics, laid again": (Raft, ["-x**2-y**2", "z"], rf.DynamicsPlanner(sides=5, rounds=1)),
    "mean": (Cart, ["-abs(x)", "x"], rf.Mean(clip="range")),
    "counting": (Doors, ["room == 3", "door"], None),
    "finite": (None, [np.eye(4)[:, :3], np.ones((4, 3))], rf.Mean()),
    "finite, counted": (None, [np.eye(4)[:, :3], np.ones((4, 3))], rf.CountingPlanner()),
}


@cache
def explored(world):
    if world is None:
        finite = rf.worlds.corridor_world(states=4, actions=3, horizon=6).world
        model = rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=True)
        return rf.explore(finite, model, rf.Uniform(), episodes=8, progress=False)
    return rf.explore(world(), strategy=rf.Uniform(), transitions=60, progress=False)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), max_size=4))
def test_parts_of_parts_follow_one_another(counts):
    """Every part tells 0 and 1: the end of one is the beginning of the next."""
    shares = []
    told = [shares.append]
    for count in counts:
        told = [part for one in told for part in parts(one, count)]
    for part in told:
        part(0.0), part(1.0)
    size = len(told)
    np.testing.assert_allclose(shares[::2], np.arange(size) / size, rtol=0, atol=1e-12)
    np.testing.assert_allclose(shares[1::2], np.arange(1, size + 1) / size, rtol=0, atol=1e-12)


def test_what_is_told_is_shown_after_a_while_and_cleared(screen, clock):
    with progress_line() as tell:
        clock.now += 1.0
        tell(0.25)
        assert screen.getvalue() == ""
        clock.now += 2.0
        tell(0.75)
        assert screen.getvalue() == shown(75, 1)
    assert screen.getvalue() == shown(75, 1) + CLEAR


@pytest.mark.parametrize(
    ("terminal", "show", "heard"), [(True, None, True), (False, None, False), (True, False, False)]
)
def test_what_tells_nothing_is_told_to_have_begun(screen, monkeypatch, terminal, show, heard):
    """A fit before anything is done: by a real clock, for another thread has to look at it."""
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.05)
    screen.terminal = terminal
    with progress_line(show):
        deadline = time.monotonic() + 10.0
        while heard and not screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not heard:
            time.sleep(0.2)
    assert screen.getvalue() == ("\r  0% \x1b[K" + CLEAR) * heard


def test_what_comes_before_anything_is_done_is_no_measure_of_what_is_left(screen, clock):
    """A minute of fitting, and then a second for each tenth."""
    with progress_line() as tell:
        clock.now += 60.0
        tell(0.0)
        clock.now += 1.0
        tell(0.1)
    assert screen.getvalue() == shown(10, 9) + CLEAR


def test_what_fails_is_cleared_too(screen, clock):
    with pytest.raises(RuntimeError, match="in vain"), progress_line(True) as tell:
        tell(0.5)
        raise RuntimeError("in vain")
    assert screen.getvalue() == shown(50, 0) + CLEAR


@pytest.mark.parametrize("name", PLANNED)
def test_planners_tell_how_far_they_are(name):
    world, rewards, planner = PLANNED[name]
    shares = []
    request = PlanRequest(explored(world), rewards, tell=shares.append)
    (planner or rf.DefaultPlanner()).plan(request)
    shares = [share for share in shares if share > 0.0]  # 0 is told after a fit
    assert shares == sorted(shares) and shares[0] < 0.3 and shares[-1] == 1.0
    assert sum(share <= 0.5 for share in shares) == len(shares) / 2  # two rewards, half of it each
    assert len(shares) >= Cart.horizon


@pytest.mark.parametrize("name", PLANNED)
def test_a_long_plan_is_told_on_a_terminal_only(screen, clock, name, monkeypatch):
    """By a clock on which each look takes half a second; plans are what they are without the line."""
    world, rewards, planner = PLANNED[name]

    def look():
        clock.now += 0.5
        return clock.now

    monkeypatch.setattr(clock, "perf_counter", look)
    quiet = rf.plan_many(explored(world), rewards, planner, progress=False)
    screen.terminal = False
    rf.plan(explored(world), rewards[0], planner)
    assert screen.getvalue() == ""
    screen.terminal = True
    plans = rf.plan_many(explored(world), rewards, planner)
    assert "s left" in screen.getvalue() and "100%" in screen.getvalue()
    assert screen.getvalue().endswith(CLEAR)
    states = [0, 2] if world in (None, Doors) else explored(world).starts[:2]
    for one, other in zip(quiet, plans, strict=True):
        np.testing.assert_array_equal(one.act(states, 0), other.act(states, 0))


def test_a_short_plan_is_not_told(screen, clock):
    rf.plan(explored(Cart), "-abs(x)")
    assert screen.getvalue() == ""
    rf.plan(explored(Cart), "-abs(x)", progress=True)
    assert screen.getvalue().startswith("\r") and screen.getvalue().endswith(CLEAR)
