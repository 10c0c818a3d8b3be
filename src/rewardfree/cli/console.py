"""What a long command says while it works: to people, to programs, or nothing."""

import json
import sys
import time
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

import typer

T = TypeVar("T")

#: Seconds between two lines about progress where they stay: in a log, or in what a program reads.
BETWEEN_LINES, BETWEEN_EVENTS = 30.0, 1.0


class Console:
    """For people: lines, and a bar that goes away on a terminal, or a line now and then elsewhere."""

    def say(self, line: str) -> None:
        """One line of what a command prints."""
        typer.echo(line)  # which knows terminals that lack a sign

    def interrupted(self, line: str, command: str) -> None:
        """Say which results are stored, and the command that goes on."""
        typer.echo(f"rewardfree: {line}; to go on: {command}", err=True)

    def watched(self, items: Iterable[T], total: int, stored: int = 0) -> Generator[T, None, None]:
        """Items as they are finished, `total` of them, of which `stored` were there before."""
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        return _bar(items, total, stored) if on_terminal else _now_and_then(items, total, stored)


class Silent(Console):
    """For scripts that look at the files: nothing but errors and interruptions."""

    def say(self, line: str) -> None:
        pass

    def watched(self, items: Iterable[T], total: int, stored: int = 0) -> Generator[T, None, None]:
        yield from items


class Events(Console):
    """For programs: one JSON object a line, each with an `event`."""

    def say(self, line: str) -> None:
        self._tell("text", text=line)

    def interrupted(self, line: str, command: str) -> None:
        self._tell("interrupted", text=line, command=command)

    def watched(self, items: Iterable[T], total: int, stored: int = 0) -> Generator[T, None, None]:
        pace, last = _Pace(total, stored), -BETWEEN_EVENTS
        self._tell("progress", **pace.fields())
        for item in items:
            yield item
            pace.done += 1
            if pace.seconds - last >= BETWEEN_EVENTS or pace.done == total:
                self._tell("progress", **pace.fields())
                last = pace.seconds

    def _tell(self, event: str, **fields: Any) -> None:
        typer.echo(json.dumps({"event": event, **fields}))


def console(quiet: bool = False, as_json: bool = False) -> Console:
    """The console chosen by --quiet and --json."""
    if quiet and as_json:
        raise ValueError("--quiet and --json exclude each other: give one of them")
    return Silent() if quiet else Events() if as_json else Console()


class _Pace:
    """Progress: how much is done, how fast, and the time left; units stored before took no time."""

    def __init__(self, total: int, stored: int) -> None:
        self.total, self.stored, self.done = total, stored, stored
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    @property
    def rate(self) -> float:
        """Units a second; 0 while nothing is known."""
        return (self.done - self.stored) / max(self.seconds, 1e-9)

    def fields(self) -> dict[str, Any]:
        left = round((self.total - self.done) / self.rate, 1) if self.rate else None
        return {
            "done": self.done,
            "total": self.total,
            "per_second": round(self.rate, 4),
            "seconds_left": left,
        }

    def __str__(self) -> str:
        if not self.rate:
            return "starting"
        speed = f"{self.rate:.1f}/s" if self.rate >= 1.0 else f"{60.0 * self.rate:.1f}/min"
        return f"{speed}, {_time((self.total - self.done) / self.rate)} left"


def _time(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 100.0 * 60.0 else f"{seconds / 3600.0:.1f} h"


def _bar(items: Iterable[T], total: int, stored: int) -> Generator[T, None, None]:
    from rich.console import Console as Screen
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    pace = _Pace(total, stored)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("units, {task.fields[pace]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Screen(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total, completed=stored, pace=pace)
        for item in items:
            yield item
            pace.done += 1
            shown.update(task, completed=pace.done)


def _now_and_then(items: Iterable[T], total: int, stored: int) -> Generator[T, None, None]:
    pace, last = _Pace(total, stored), 0.0
    for item in items:
        yield item
        pace.done += 1
        if pace.seconds - last >= BETWEEN_LINES and pace.done < total and sys.stderr is not None:
            sys.stderr.write(f"{pace.done} of {total} units, {pace}\n")
            sys.stderr.flush()
            last = pace.seconds
