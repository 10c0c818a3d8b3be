"""A line that says how far a long call is, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")

#: Nobody wants to read about what is over before it is read.
SILENT_SECONDS = 2.0


def progress(
    items: Iterable[tuple[float, T]], total: float, show: bool | None = None
) -> Generator[tuple[float, T], None, None]:
    """Items that come with how much is done by then, and a line on standard error: 25%, 34 s left.

    `show` None: on a terminal, and after two seconds; True: at once; False: never.
    """
    shown = (sys.stderr is not None and sys.stderr.isatty()) if show is None else show
    started, wrote = time.perf_counter(), False
    try:
        for done, item in items:
            passed = time.perf_counter() - started
            if shown and (show or passed > SILENT_SECONDS) and done:
                left = passed / done * (total - done)
                sys.stderr.write(f"\r{done / total:4.0%}, {left:.0f} s left \x1b[K")
                sys.stderr.flush()
                wrote = True
            yield done, item
    finally:
        if wrote:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
