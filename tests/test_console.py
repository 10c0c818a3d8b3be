"""What a long command says while it works: a bar on a terminal, lines now and then, JSON, or nothing."""

import fcntl
import io
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewardfree import cli
from rewardfree.cli import console as module
from rewardfree.cli.console import BETWEEN_LINES, Console, Events, Silent, console
from rewardfree.experiments import local
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache
from rewardfree.report.pictures import DrawingPool

COMMAND = Path(sys.executable).parent / "rewardfree"
TOML = """
runs = {runs}
batch = 1
samples_per_step = [3]
worlds = [{{type = "corridor_world", states = 8, actions = 4, horizon = 3}}]
models = [{{type = "Model", kernel = {{type = "Delta"}}, ridge = 0.5}}]
strategies = [{{type = "Uniform"}}]
planners = [{{type = "Mean"}}]
"""


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    time = SimpleNamespace(now=100.0)
    time.perf_counter = lambda: time.now
    monkeypatch.setattr(module, "time", time)
    return time


def watch(shown, clock, seconds, total, stored=0):
    """Watch units that take so many seconds each; they come as they are."""

    def units():
        for i in range(total - stored):
            clock.now += seconds
            yield i

    assert list(shown.watched(units(), total, stored)) == list(range(total - stored))


def events(text):
    return [json.loads(line) for line in text.splitlines()]


# --- lines for a log ---


def test_a_log_hears_every_thirty_seconds(clock, capsys):
    """At 30, 60 and 90 s of 100; the end is for the command to tell."""
    watch(Console(), clock, 10.0, total=10)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "3 of 10 units, 6.0/min, 70 s left\n6 of 10 units, 6.0/min, 40 s left\n"
        "9 of 10 units, 6.0/min, 10 s left\n"
    )


@pytest.mark.parametrize(("seconds", "heard"), [(BETWEEN_LINES - 0.1, 1), (BETWEEN_LINES, 2)])
def test_thirty_seconds_have_to_pass(clock, capsys, seconds, heard):
    """Of three units the last is not told."""
    watch(Console(), clock, seconds, total=3)
    assert len(capsys.readouterr().err.splitlines()) == heard


def test_what_was_stored_is_done_and_took_no_time(clock, capsys):
    """5 s each: those that were there before would make it look faster than it is."""
    watch(Console(), clock, 5.0, total=110, stored=100)
    assert capsys.readouterr().err == "106 of 110 units, 12.0/min, 20 s left\n"


@pytest.mark.parametrize(
    ("seconds", "total", "first"),
    [
        (0.5, 100, "60 of 100 units, 2.0/s, 20 s left"),
        (40.0, 11, "1 of 11 units, 1.5/min, 7 min left"),
        (600.0, 19, "1 of 19 units, 0.1/min, 3.0 h left"),
    ],
)
def test_rates_and_times_have_units_that_fit(clock, capsys, seconds, total, first):
    watch(Console(), clock, seconds, total)
    assert capsys.readouterr().err.splitlines()[0] == first


# --- JSON for programs ---


def test_events_come_at_most_once_a_second_and_end_with_all(clock, capsys):
    watch(Events(), clock, 0.25, total=12)
    said = capsys.readouterr()
    found = events(said.out)
    assert said.err == "" and {each["event"] for each in found} == {"progress"}
    assert [(each["done"], each["total"]) for each in found] == [(n, 12) for n in (0, 1, 5, 9, 12)]
    assert [each["per_second"] for each in found] == [0.0, 4.0, 4.0, 4.0, 4.0]
    assert [each["seconds_left"] for each in found] == [None, 2.8, 1.8, 0.8, 0.0]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 9), st.integers(0, 9), st.sampled_from([0.0, 0.3, 50.0]))
def test_stored_units_are_done_and_done_grows_to_the_total(clock, capsys, stored, waiting, seconds):
    watch(Events(), clock, seconds, stored + waiting, stored)
    done = [each["done"] for each in events(capsys.readouterr().out)]
    assert done[0] == stored and done[-1] == stored + waiting
    assert done == sorted(set(done))


def test_lines_and_interruptions_are_events_as_well(capsys):
    Events().say('β = "1"')
    Events().interrupted("with 1 of 2", "rewardfree sweep 'my file'")
    assert events(capsys.readouterr().out) == [
        {"event": "text", "text": 'β = "1"'},
        {"event": "interrupted", "text": "with 1 of 2", "command": "rewardfree sweep 'my file'"},
    ]


# --- nothing ---


def test_silence(clock, capsys):
    watch(Silent(), clock, 60.0, total=5)
    Silent().say("a table")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shown", [Console(), Silent()])
def test_an_interruption_is_an_error_even_if_nothing_else_is_said(shown, capsys):
    shown.interrupted("interrupted with 1 of 2 units stored in x", "rewardfree sweep y")
    said = "rewardfree: interrupted with 1 of 2 units stored in x; to go on: rewardfree sweep y\n"
    assert capsys.readouterr() == ("", said)


# --- all of them ---


@pytest.mark.parametrize("shown", [Console(), Silent(), Events()], ids=lambda shown: type(shown).__name__)
def test_units_are_asked_for_one_at_a_time_and_let_go(shown, capsys):
    asked, ended = [], []

    def units():
        try:
            for i in range(3):
                asked.append(i)
                yield i
        finally:
            ended.append(True)

    watched = shown.watched(units(), 3, 0)
    assert asked == []
    assert next(watched) == 0 and asked == [0]
    watched.close()
    assert ended == [True] and asked == [0]


def test_the_bar_is_for_terminals(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(module, "_bar", lambda *_: "the bar")
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=screen))
    assert Console().watched([], 0) != "the bar"
    screen.isatty = lambda: True
    assert Console().watched([], 0) == "the bar"
    module.sys.stderr = None
    assert list(Console().watched([1], 1)) == [1]


def test_signs_that_the_output_lacks_do_no_harm(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    Console().say("β = 1, Matérn")
    assert raw.getvalue().decode().endswith("n\n") and b" = 1, Mat" in raw.getvalue()


def test_quiet_and_json_are_two_wishes():
    assert [type(console(*each)) for each in [(), (True,), (False, True)]] == [Console, Silent, Events]
    with pytest.raises(ValueError, match="--quiet and --json exclude each other: give one"):
        console(quiet=True, as_json=True)


# --- commands ---


@pytest.fixture
def here(monkeypatch):
    """Units are run in this process, which is sooner than to start others; pictures are not drawn."""
    cache = InstanceCache()
    monkeypatch.setattr(local, "finished_units", lambda units, *_: ((u, u.run(cache)) for u in units))
    monkeypatch.setattr(DrawingPool, "draw", lambda self, pictures: lambda: [each.path for each in pictures])


def commanded(capsys, *arguments):
    """The command in this process: its exit code, and what it printed."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["rewardfree", *map(str, arguments)])
        cli.main()
    said = capsys.readouterr()
    return ended.value.code or 0, said.out, said.err


def sweep(capsys, folder, runs, *more):
    path = folder / "experiment.toml"
    path.write_text(TOML.format(runs=runs))
    return commanded(capsys, "sweep", path, "--out", folder / "out", *more)


def test_a_sweep_tells_a_program_what_is_stored_and_what_comes(here, tmp_path, capsys):
    """Two runs and what needs no data are there when four are wanted."""
    sweep(capsys, tmp_path, 2)
    for stored, ran in [(3, 2), (5, 0)]:
        code, out, errors = sweep(capsys, tmp_path, 4, "--json")
        assert (code, errors) == (0, "")
        *progress, last = events(out)
        assert {each["event"] for each in progress} == {"progress"}
        assert {each["total"] for each in progress} == {5}
        assert progress[0]["done"] == stored and progress[-1]["done"] == 5
        results = tmp_path / "out" / "results.sqlite"
        text = f"{ran} of 5 units run, the rest was there; results: {results}"
        assert last == {"event": "text", "text": text}


def test_a_sweep_that_is_soon_over_is_one_line(here, tmp_path, capsys):
    code, out, errors = sweep(capsys, tmp_path, 2)
    assert (code, errors) == (0, "") and out.startswith("3 of 3 units run") and out.count("\n") == 1


def test_a_quiet_sweep_says_nothing_and_does_the_same(here, tmp_path, capsys):
    assert sweep(capsys, tmp_path, 2, "--quiet") == (0, "", "")
    with Store(tmp_path / "out" / "results.sqlite", create=False) as store:
        units = Sweep.load(tmp_path / "experiment.toml").units
        assert store.keys() == {unit.key for unit in units}


REPRODUCE = ("reproduce", "betas", "--quick", "--kernels", "se", "--runs", "1", "--out")


def test_a_reproduction_is_told_to_programs_or_not_at_all(here, tmp_path, capsys):
    """What is text for people is the same text as events, line for line."""
    assert commanded(capsys, *REPRODUCE, tmp_path, "--quiet") == (0, "", "")
    assert len(list(tmp_path.rglob("table.txt"))) == 1
    code, plain, errors = commanded(capsys, *REPRODUCE, tmp_path)
    assert (code, errors) == (0, "")
    code, out, errors = commanded(capsys, *REPRODUCE, tmp_path, "--json")
    assert (code, errors) == (0, "")
    said = [each["text"] for each in events(out) if each["event"] == "text"]
    assert "\n".join(said) + "\n" == plain
    progress = [each for each in events(out) if each["event"] == "progress"]
    assert [(each["done"], each["total"]) for each in progress] == [(12, 12)]  # and portraits are there


@pytest.mark.parametrize(
    "command", [("sweep", "{file}", "--out"), REPRODUCE, ("reproduce", "control", "--out")]
)
def test_both_wishes_are_refused_before_anything_is_made(tmp_path, capsys, command):
    file = tmp_path / "experiment.toml"
    file.write_text(TOML.format(runs=1))
    words = [word.format(file=file) for word in command]
    code, out, errors = commanded(capsys, *words, tmp_path / "out", "--quiet", "--json")
    assert (code, out) == (2, "") and errors.count("\n") == 1 and "give one of them" in errors
    assert list(tmp_path.iterdir()) == [file]


# --- a real terminal ---

WIDTH = 100


class Terminal:
    """A command whose standard error and keyboard are a terminal; its standard output is a pipe."""

    def __init__(self, words, folder):
        self.keyboard, own = pty.openpty()
        fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
        bare = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        self.process = subprocess.Popen(
            words, stdin=own, stdout=subprocess.PIPE, stderr=own, cwd=folder, start_new_session=True,
            env={**bare, "TERM": "xterm", "PYTHONWARNINGS": "default"}, text=True,
            preexec_fn=lambda: fcntl.ioctl(own, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(own)
        self.written = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        while True:
            try:
                self.written += os.read(self.keyboard, 65536).decode()
            except OSError:  # nobody has it any more
                return

    def wait_for(self, pattern):
        deadline = time.monotonic() + 60
        while not re.search(pattern, self.written):
            assert time.monotonic() < deadline and self.process.poll() is None, self.written
            time.sleep(0.01)

    def press_ctrl_c(self):
        os.write(self.keyboard, b"\x03")

    def end(self):
        """Its exit code, and what it printed to standard output."""
        printed, _ = self.process.communicate(timeout=60)
        self._reader.join(60)
        os.close(self.keyboard)
        return self.process.returncode, printed

    @property
    def screen(self):
        """What somebody sees: lines with a cursor that moves, and parts that are erased."""
        lines, row, column, hidden = [""], 0, 0, False
        for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[^\x1b]", self.written):
            if part in ("\x1b[?25l", "\x1b[?25h"):
                hidden = part.endswith("l")
            elif part == "\x1b[2K":
                lines[row] = ""
            elif match := re.fullmatch(r"\x1b\[(\d*)A", part):
                row = max(0, row - int(match[1] or 1))
            elif part == "\r":
                column = 0
            elif part == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif not part.startswith("\x1b"):
                lines[row] = lines[row].ljust(column)[:column] + part + lines[row][column + 1 :]
                column += 1
            else:
                assert part.endswith("m"), part  # a colour
        assert not hidden  # the cursor is back
        return "\n".join(lines)

    @property
    def text(self):
        """All that was ever written, without what moves and paints."""
        return re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", self.written)


def test_a_terminal_sees_a_bar_that_goes_and_ctrl_c_says_how_to_go_on(tmp_path):
    """Typed on a real terminal, which sends it to the workers as well; the command that is said goes on."""
    folder = tmp_path / "my own"
    folder.mkdir()
    (folder / "long one.toml").write_text(TOML.format(runs=150))
    terminal = Terminal([COMMAND, "sweep", "long one.toml", "--out", "the results", "--jobs", "1"], folder)
    terminal.wait_for(r"[1-9]\d*/151")
    terminal.press_ctrl_c()
    assert terminal.end() == (130, "")
    said = re.fullmatch(
        r"\^?C?rewardfree: interrupted with (\d+) of 151 units stored in the results/results\.sqlite; "
        r"to go on: (.*)\s*",
        terminal.screen,
    )
    assert said, terminal.screen
    with Store(folder / "the results" / "results.sqlite", create=False) as store:
        stored = len(store.keys())
    assert 0 < stored == int(said[1]) < 151

    words = shlex.split(said[2])
    assert words == ["rewardfree", "sweep", "long one.toml", "--out", "the results", "--jobs", "1"]
    terminal = Terminal([COMMAND, *words[1:]], folder)
    told = f"{151 - stored} of 151 units run, the rest was there; results: the results/results.sqlite\n"
    assert terminal.end() == (0, told)
    assert terminal.screen.strip() == ""
    shown = re.findall(r"(\d+)/151 units, (\S+, \d+ s left|starting)\s+0:\d\d:\d\d", terminal.text)
    done = [int(number) for number, _ in shown]
    assert done[0] == stored and done == sorted(done) and done[-1] == 151
    assert any("/s, " in pace for _, pace in shown)
