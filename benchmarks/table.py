"""Rows of the speed table, and how they are printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was measured, and against what in the same run."""

    what: str
    ours: str
    baseline: str
    ratio: str


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of a few runs, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def show(rows: Iterable[Row]) -> None:
    """Print the rows under each other, as wide as they need."""
    rows = list(rows)
    head = Row("what", "ours", "baseline", "ratio")
    columns = list(zip(*[(r.what, r.ours, r.baseline, r.ratio) for r in [head, *rows]], strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    for i, cells in enumerate(zip(*columns, strict=True)):
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
        if i == 0:
            print("  ".join("-" * width for width in widths))
