"""A line that says how far a long call is, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

#: Nobody wants to read about what is over before it is read.
SILENT_SECONDS = 2.0


def progress(items: Iterable[T], total: int, what: str, show: bool | None = None) -> Iterator[T]:
    """`items` one by one, with a line on standard error: `what` 12/80, 34 s left.

    `show` None: on a terminal, and after two seconds; True: at once; False: never.
    """
    shown = sys.stderr.isatty() if show is None else show
    started = time.perf_counter()
    wrote = False
    try:
        for done, item in enumerate(items):
            passed = time.perf_counter() - started
            if shown and (show or passed > SILENT_SECONDS) and done:
                left = passed / done * (total - done)
                sys.stderr.write(f"\r{what} {done}/{total}, {left:.0f} s left \x1b[K")
                sys.stderr.flush()
                wrote = True
            yield item
    finally:
        if wrote:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
