"""Our gaps beside those that the authors' scripts recorded: facts to compare with, never results of ours."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from rewardfree.report.gaps import Line, Lines, Panel, checkpoints
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


def _read() -> Mapping[tuple[str, str], Mapping[int, Recorded]]:
    """The authors' figures by kernel and algorithm, then by samples per step."""
    gaps: dict[tuple[str, str], dict[int, Recorded]] = {}
    text = files("rewardfree.studies.paper").joinpath("data", "authors_recorded.csv").read_text()
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        gap = Recorded(float(row["mean_gap"]), float(row["sd_across_runs"]), int(row["runs"]))
        gaps.setdefault((row["kernel"], row["algorithm"]), {})[int(row["n"])] = gap
    return gaps


RECORDED = _read()


def recorded_views(kernel: str, panel: Panel) -> list[dict[str, Any]]:
    """The authors' curves that a page shows in a panel, as JSON can hold them."""
    return [
        {
            "strategy": name,
            "planner": PLANNED[name],
            "samples": sorted(gaps),
            "mean": [gaps[n].mean for n in sorted(gaps)],
            "deviation": [gaps[n].deviation for n in sorted(gaps)],
            "runs": min(gap.runs for gap in gaps.values()),
        }
        for (of_kernel, name), gaps in RECORDED.items()
        if of_kernel == kernel and (name, PLANNED[name]) in panel
    ]


def table_beside_recorded(lines: Lines) -> Iterator[str]:
    """Our means beside the authors', planned in the same way; both with standard deviations across runs."""
    yield "gap at the start, planned as the authors' scripts did: ours / the authors' recorded mean"
    yield "(standard deviations across runs); their draw of r and P is another one, so the levels may differ"
    sizes = {n for gaps in RECORDED.values() for n in gaps}
    if not any(sizes & set(checkpoints(panel)) for panel in lines.values()):
        yield f"none of their N = {', '.join(map(str, sorted(sizes)))} is among ours, so nothing can be said"
        return
    for (_, kernel), panel in lines.items():
        both = [
            (name, panel[name, planner], RECORDED[kernel, name])
            for name, planner in PLANNED.items()
            if (name, planner) in panel and (kernel, name) in RECORDED
        ]
        if both:
            columns = sorted({n for _, _, recorded in both for n in recorded})
            yield ""
            yield f"{label(kernel):36s}" + "".join(f"{f'N = {n}':>30s}" for n in columns)
            for name, line, recorded in both:
                cells = "".join(f"{_beside(line, recorded.get(n), n):>30s}" for n in columns)
                yield f"  {label(name):34s}{cells}"


def _beside(line: Line, recorded: Recorded | None, n: int) -> str:
    """Our mean and deviation at n samples, and the authors'."""
    measured = "-"
    for i in np.flatnonzero(line.cost["samples"] == n):
        measured = f"{line.mean('start')[i]:.3f} ({line.deviation('start')[i]:.3f})"
    return f"{measured} / " + ("-" if recorded is None else f"{recorded.mean:.3f} ({recorded.deviation:.3f})")
