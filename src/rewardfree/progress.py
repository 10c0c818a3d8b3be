"""A line on the terminal that says how far a long call is."""

import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

T = TypeVar("T")
#: Is told how much of a call is done, from 0 to 1.
Told: TypeAlias = Callable[[float], None]

#: The line is not shown before: a call may be over sooner than anyone can read it.
SILENT_SECONDS = 2.0


def progress(
    items: Iterable[tuple[float, T]], total: float, show: bool | None = None
) -> Generator[tuple[float, T], None, None]:
    """Pass on (amount done, item) pairs, and write a line on standard error: 25%, 34 s left.

    `show` None: on a terminal, after two seconds. True: at once. False: never.
    """
    shown = (sys.stderr is not None and sys.stderr.isatty()) if show is None else show
    started, written = time.perf_counter(), ""
    try:
        for done, item in items:
            elapsed = time.perf_counter() - started
            if shown and (show or elapsed > SILENT_SECONDS) and done:
                left = elapsed / done * (total - done)
                line = f"\r{done / total:4.0%}, {left:.0f} s left \x1b[K"
                if line != written:
                    shown, written = _write(line), line
            yield done, item
    finally:
        if written:
            _write("\r\x1b[K")


@contextmanager
def told(show: bool | None = None) -> Iterator[Told]:
    """What a call tells how much of it is done; the line is that of `progress`, and gone at the end."""
    done = 0.0

    def shares() -> Iterator[tuple[float, None]]:
        while True:
            yield done, None

    def tell(share: float) -> None:
        nonlocal done
        done = share
        next(line, None)

    line = progress(shares(), 1.0, show)
    next(line)  # the clock starts now
    try:
        yield tell
    finally:
        line.close()


def unheard(share: float) -> None:
    """Told, and shown to nobody."""


def parts(tell: Told, count: int) -> list[Told]:
    """What each of so many equal parts of a call tells, of itself from 0 to 1."""
    return [lambda share, i=i: tell((i + share) / count) for i in range(count)]  # type: ignore[misc]


def _write(text: str) -> bool:
    """Whether it could be written: a terminal that was closed must not take what was computed with it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return False
    return True
