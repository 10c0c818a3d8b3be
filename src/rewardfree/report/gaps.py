"""Gaps of many runs as curves: the view of stored records that tables and figures share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import t as student

from rewardfree.report.style import COLOURS, STYLE, save

#: What a curve can be drawn against: the column of a record, and its label.
AXES = {"samples": "samples per step", "episodes": "episodes", "steps": "environment steps"}
MEASURES = {"start": "gap at the start", "mean": "mean gap over states", "max": "largest gap over states"}
CONFIDENCE = 0.95
FORMS = ("png", "pdf", "svg")


@dataclass(frozen=True, eq=False)
class Line:
    """One strategy and planner on one world: n checkpoints, the same runs at each."""

    cost: Mapping[str, Any]  # samples, episodes and steps, (n,) each
    gaps: Mapping[str, Any]  # start, mean and max, (runs,n) each

    @property
    def runs(self) -> int:
        return len(self.gaps["start"])

    def mean(self, measure: str) -> Any:
        """(n,) over runs."""
        return self.gaps[measure].mean(axis=0)

    def deviation(self, measure: str) -> Any:
        """(n,) standard deviation across runs; 0 for one run."""
        return (
            self.gaps[measure].std(axis=0, ddof=1) if self.runs > 1 else np.zeros(len(self.cost["samples"]))
        )

    def half_width(self, measure: str) -> Any:
        """(n,) of the 95% confidence interval of the mean across runs, by Student's t."""
        quantile = student.ppf(0.5 + 0.5 * CONFIDENCE, max(self.runs - 1, 1))
        return quantile * self.deviation(measure) / np.sqrt(self.runs)


#: Lines by panel (world and model), then by (strategy, planner).
Lines: TypeAlias = dict[tuple[str, str], dict[tuple[str, str], Line]]


def lines(rows: Iterable[tuple[Any, ...]]) -> Lines:
    """Stored records (world, model, strategy, seed, planner, samples, episodes, steps, start, mean, max)."""
    grouped: dict[tuple[str, ...], dict[int, dict[int, tuple[Any, ...]]]] = {}
    for world, model, strategy, seed, planner, samples, *rest in rows:
        runs = grouped.setdefault((world, model, strategy, planner), {})
        runs.setdefault(seed, {})[samples] = (samples, *rest)
    found: Lines = {}
    for (world, model, strategy, planner), runs in grouped.items():
        checkpoints = sorted(set.intersection(*(set(run) for run in runs.values())))
        if not checkpoints:
            continue
        table = np.array([[runs[seed][n] for n in checkpoints] for seed in sorted(runs)], float)  # (runs,n,6)
        cost = {name: table[0, :, i] for i, name in enumerate(AXES)}
        gaps = {name: table[:, :, 3 + i] for i, name in enumerate(MEASURES)}
        found.setdefault((world, model), {})[strategy, planner] = Line(cost, gaps)
    return found


def gap_table(found: Lines, measure: str = "start") -> Iterator[str]:
    """The lines of a table: mean, half-width of its interval, and standard deviation across runs."""
    yield f"{MEASURES[measure]}: mean +- {CONFIDENCE:.0%} interval (standard deviation across runs)"
    for (world, model), panel in found.items():
        sizes = sorted({int(n) for line in panel.values() for n in line.cost["samples"]})
        yield ""
        yield f"{world}, {model}".ljust(34) + "".join(f"{f'N = {n}':>24s}" for n in sizes)
        for (strategy, planner), line in panel.items():
            cells = dict(zip(line.cost["samples"].astype(int).tolist(), _cells(line, measure), strict=True))
            row = "".join(f"{cells.get(n, ''):>24s}" for n in sizes)
            yield f"  {strategy + ', ' + planner:32s}{row}   {line.runs} run{'s' * (line.runs > 1)}"


def _cells(line: Line, measure: str) -> list[str]:
    """What a table says at each checkpoint; one run has no interval."""
    mean, half, deviation = line.mean(measure), line.half_width(measure), line.deviation(measure)
    if line.runs == 1:
        return [f"{m:.3f}" for m in mean]
    return [f"{m:.3f} +- {h:.3f} ({sd:.3f})" for m, h, sd in zip(mean, half, deviation, strict=True)]


def gap_figure(found: Lines, planner: str, axis: str = "samples", measure: str = "start") -> Any:
    """A panel for each world and model: the mean gap of every strategy, and its interval as a band."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    strategies = list(dict.fromkeys(s for panel in found.values() for s, p in panel if p == planner))
    colours = dict(zip(strategies, COLOURS * (1 + len(strategies) // len(COLOURS)), strict=False))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.6 * len(found), 3.4), layout="constrained")
        axes = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for place, ((world, model), panel) in zip(axes, found.items(), strict=True):
            for (strategy, own), line in panel.items():
                x = line.cost[axis]
                if own != planner or not x.all():  # a generative model has no episodes
                    continue
                mean, half, colour = line.mean(measure), line.half_width(measure), colours[strategy]
                place.plot(x, mean, "o-", color=colour, markersize=3, label=strategy)
                place.fill_between(x, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
            title = world if world == model else f"{world}, {model}"
            place.set(title=title, xlabel=AXES[axis], xscale="log")
            if axis == "samples":  # the checkpoints themselves
                sizes = sorted({n for line in panel.values() for n in line.cost["samples"]})
                place.set_xticks(sizes, [f"{n:.0f}" for n in sizes])
                place.minorticks_off()
        axes[0].set(ylabel=MEASURES[measure], ylim=(0, None))
        drawn = [zip(*place.get_legend_handles_labels(), strict=True) for place in axes]
        handles = {label: handle for each in drawn for handle, label in each}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(strategies))
        title = f"Planned with {planner}; bands are {CONFIDENCE:.0%} confidence across runs"
        figure.suptitle(title, fontsize=10)
    return figure


def draw_gaps(found: Lines, folder: Path, forms: Sequence[str]) -> list[Path]:
    """Every figure of a sweep, in every form: by planner, what it costs and how it is measured."""
    for form in forms:
        if form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    planners = dict.fromkeys(planner for panel in found.values() for _, planner in panel)
    written = []
    for planner, axis, measure in itertools.product(planners, AXES, ("start", "max")):
        figure = gap_figure(found, planner, axis, measure)
        for form in forms:
            path = folder / f"gap_{measure}_by_{axis}_{planner}.{form}"
            save(figure, path)
            written.append(path)
    return written
