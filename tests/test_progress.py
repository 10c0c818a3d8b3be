"""The line that says how far a long call is: on a terminal, after a while, and gone at the end."""

import io
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
import rewardfree.progress as module
from rewardfree.progress import SILENT_SECONDS, progress

CLEAR = "\r\x1b[K"


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
