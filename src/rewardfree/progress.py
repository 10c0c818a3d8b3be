"""A line on the terminal that says how far a long call is."""

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

T = TypeVar("T")
#: A function that a call tells how much of it is done, from 0 to 1.
Tell: TypeAlias = Callable[[float], None]

#: The line is not shown before: a call may be over sooner than anyone can read it.
SILENT_SECONDS = 2.0
CLEAR = "\r\x1b[K"


def progress(
    items: Iterable[tuple[float, T]], total: float, show: bool | None = None
) -> Generator[tuple[float, T], None, None]:
    """Pass on (amount done, item) pairs, and write a line on standard error: 25%, 34 s left.

    `show` None: on a terminal, after two seconds. True: at once. False: never. The time left is that of work
    at the pace since anything is done: what comes before, such as a fit, does not come again.
    """
    shown, written = _is_shown(show), ""
    started = begun = time.perf_counter()
    try:
        for done, item in items:
            now = time.perf_counter()
            if not done:
                begun = now
            elif shown and (show or now - started > SILENT_SECONDS):
                left = (now - begun) / done * (total - done)
                line = f"\r{done / total:4.0%}, {left:.0f} s left \x1b[K"
                if line != written:
                    shown, written = _write(line), line
            yield done, item
    finally:
        if written:
            _write(CLEAR)


@contextmanager
def progress_line(show: bool | None = None) -> Iterator[Tell]:
    """A function that shows how much of a call is done: the line of `progress`, removed at the end.

    A fit tells nothing. After two seconds without a word a thread shows that it has begun.
    """
    done, waited = 0.0, False

    def shares() -> Iterator[tuple[float, None]]:
        while True:
            yield done, None

    def tell(share: float) -> None:
        nonlocal done
        done = share
        if share > 0.0:
            waiting.cancel()
        next(line, None)

    def say_begun() -> None:
        nonlocal waited
        waited = _write("\r  0% \x1b[K")

    line, waiting = progress(shares(), 1.0, show), threading.Timer(SILENT_SECONDS, say_begun)
    next(line)  # the clock starts now
    waiting.daemon = True
    if _is_shown(show):
        waiting.start()
    try:
        yield tell
    finally:
        waiting.cancel()
        if waiting.ident is not None:
            waiting.join()
        line.close()
        if waited:
            _write(CLEAR)


def tell_nobody(share: float) -> None:
    """A `Tell` that shows nothing."""


def parts(tell: Tell, count: int) -> list[Tell]:
    """One `Tell` for each of `count` equal parts of a call: a part says how much of itself is done."""
    return [lambda share, i=i: tell((i + share) / count) for i in range(count)]  # type: ignore[misc]


def _is_shown(show: bool | None) -> bool:
    return (sys.stderr is not None and sys.stderr.isatty()) if show is None else show


def _write(text: str) -> bool:
    """Whether it could be written: a terminal that was closed must not take what was computed with it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return False
    return True
