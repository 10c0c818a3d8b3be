"""The line that says how far a long call is: on a terminal, after a while, and gone at the end."""

import io
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def run(monkeypatch, clock, seconds, terminal=True, show=None, total=None):
    """What is written while items take so many seconds each."""
    screen = Screen(terminal)
    monkeypatch.setattr("sys.stderr", screen)
    lines = []
    for i, _ in enumerate(progress(range(len(seconds)), total or len(seconds), "planning", show)):
        lines.append(screen.getvalue())
        clock.now += seconds[i]
    return lines, screen.getvalue()


def shown(done, total, left):
    return f"\rplanning {done}/{total}, {left} s left \x1b[K"


@settings(max_examples=20)
@given(st.lists(st.integers()), st.sampled_from([None, True, False]))
def test_items_pass_through(items, show):
    assert list(progress(iter(items), len(items), "x", show)) == items


def test_items_are_asked_for_one_at_a_time():
    asked = []
    items = progress((asked.append(i) for i in range(3)), 3, "x", False)
    assert asked == []
    next(items)
    assert asked == [0]


@pytest.mark.parametrize("show", [None, False])
def test_nothing_is_written_to_a_file(monkeypatch, clock, show):
    assert run(monkeypatch, clock, [60.0] * 5, terminal=False, show=show)[1] == ""


def test_nothing_is_written_when_it_is_not_wanted(monkeypatch, clock):
    assert run(monkeypatch, clock, [60.0] * 5, show=False)[1] == ""


def test_what_is_soon_over_is_not_told(monkeypatch, clock):
    assert run(monkeypatch, clock, [SILENT_SECONDS / 5] * 5)[1] == ""


def test_a_terminal_hears_after_a_while(monkeypatch, clock):
    lines, end = run(monkeypatch, clock, [1.0] * 5)
    assert lines[:3] == ["", "", ""]  # 2 s have passed, not more
    assert lines[3] == shown(3, 5, 2)
    assert lines[4] == lines[3] + shown(4, 5, 1)
    assert end == lines[4] + CLEAR


@pytest.mark.parametrize("terminal", [True, False])
def test_at_once_if_wanted(monkeypatch, clock, terminal):
    lines, end = run(monkeypatch, clock, [0.5] * 4, terminal, show=True)
    assert lines[0] == "" and lines[1] == shown(1, 4, 2)
    assert end == shown(1, 4, 2) + shown(2, 4, 1) + shown(3, 4, 0) + CLEAR


def test_time_left_is_the_mean_time_of_those_to_come(monkeypatch, clock):
    lines, _ = run(monkeypatch, clock, [10.0, 20.0, 60.0, 1.0], total=100)
    assert lines[1] == shown(1, 100, 990)  # 10 s for one, 99 to come
    assert lines[2].endswith(shown(2, 100, 1470))  # 30 s for two, 98 to come
    assert lines[3].endswith(shown(3, 100, 2910))


def test_one_item_has_nothing_to_tell(monkeypatch, clock):
    assert run(monkeypatch, clock, [60.0], show=True)[1] == ""
    assert run(monkeypatch, clock, [], show=True)[1] == ""


def test_the_line_is_cleared_when_the_items_fail(monkeypatch, clock):
    screen = Screen(True)
    monkeypatch.setattr("sys.stderr", screen)

    def failing():
        yield from range(3)
        raise RuntimeError("the third was the last")

    with pytest.raises(RuntimeError, match="the third was the last"):
        list(progress(failing(), 9, "planning", True))
    assert screen.getvalue() == shown(1, 9, 0) + shown(2, 9, 0) + CLEAR


def test_the_line_is_cleared_when_the_caller_stops(monkeypatch, clock):
    screen = Screen(True)
    monkeypatch.setattr("sys.stderr", screen)
    items = progress(range(9), 9, "planning", True)
    next(items), next(items)
    assert not screen.getvalue().endswith(CLEAR)
    items.close()
    assert screen.getvalue() == shown(1, 9, 0) + CLEAR
