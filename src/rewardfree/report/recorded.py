"""Our gaps beside those that the authors' scripts recorded: facts to compare with, never results of ours."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from rewardfree.report.gaps import Line, Lines, checkpoints
from rewardfree.report.labels import label

#: How the recorded gaps were planned: their authors' script gave a bonus to Qiu et al. alone.
PLANNED = {"generative": "mean", "online": "mean", "qiu": "optimistic", "greedy": "mean"}
#: The same with the curves that are only compared with.
PLANNED_ALIKE = {**PLANNED, "generative-ties": "mean", "uniform": "mean"}


@dataclass(frozen=True)
class Recorded:
    """The authors' gap at the start of one algorithm at one checkpoint, over their runs."""

    mean: float
    deviation: float
    runs: int


@cache
def recorded() -> Mapping[tuple[str, str], Mapping[int, Recorded]]:
    """The authors' figures by kernel and algorithm, then by samples per step."""
    found: dict[tuple[str, str], dict[int, Recorded]] = {}
    text = files("rewardfree.report").joinpath("data", "authors_recorded.csv").read_text()
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        one = Recorded(float(row["mean_gap"]), float(row["sd_across_runs"]), int(row["runs"]))
        found.setdefault((row["kernel"], row["algorithm"]), {})[int(row["n"])] = one
    return found


def beside_table(found: Lines) -> Iterator[str]:
    """Our means beside the authors', planned in the same way; both with standard deviations across runs."""
    yield "gap at the start, planned as the authors' scripts did: ours / the authors' recorded mean"
    yield "(standard deviations across runs); their draw of r and P is another one, so the levels may differ"
    theirs = {n for each in recorded().values() for n in each}
    if not any(theirs & set(checkpoints(panel)) for panel in found.values()):
        yield f"none of their N = {', '.join(map(str, sorted(theirs)))} is among ours, so nothing can be said"
        return
    for (_, kernel), panel in found.items():
        rows = {name: panel.get((name, planner)) for name, planner in PLANNED.items()}
        lines = {
            name: line for name, line in rows.items() if line is not None and (kernel, name) in recorded()
        }
        sizes = sorted({n for name in lines for n in recorded()[kernel, name]})
        if not lines:
            continue
        yield ""
        yield f"{label(kernel):36s}" + "".join(f"{f'N = {n}':>30s}" for n in sizes)
        for name, line in lines.items():
            cells = [_beside(line, recorded()[kernel, name].get(n), n) for n in sizes]
            yield f"  {label(name):34s}" + "".join(f"{cell:>30s}" for cell in cells)


def _beside(line: Line, theirs: Recorded | None, n: int) -> str:
    places = np.flatnonzero(line.cost["samples"] == n)
    ours = "-"
    if len(places):
        i = int(places[0])
        ours = f"{line.mean('start')[i]:.3f} ({line.deviation('start')[i]:.3f})"
    return f"{ours} / " + ("-" if theirs is None else f"{theirs.mean:.3f} ({theirs.deviation:.3f})")
