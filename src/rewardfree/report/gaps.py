"""Gaps of many runs as curves: the view of stored records that tables and figures share."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import t as student

from rewardfree.report.labels import label
from rewardfree.report.pictures import BOTH, Picture, check_forms
from rewardfree.report.style import LEVELS, curve_styles, from_zero, legend_below, styled_figure, title_above

#: What a curve can be drawn against: the column of a record, and its label.
AXES = {"samples": "samples per step", "episodes": "episodes", "steps": "environment steps"}
MEASURES = {"start": "gap at the start", "mean": "mean gap over states", "max": "largest gap over states"}
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Line:
    """One strategy and planner on one world: n checkpoints, the same runs at each."""

    cost: Mapping[str, Any]  # samples, episodes and steps, (n,) each
    gaps: Mapping[str, Any]  # start, mean and max, (runs,n) each

    @property
    def runs(self) -> int:
        return len(self.gaps["start"])

    @property
    def level(self) -> bool:
        """Whether it needs no data, so that it is the same for any number of samples."""
        return not self.cost["samples"].any()

    def mean(self, measure: str) -> Any:
        """(n,) over runs."""
        return self.gaps[measure].mean(axis=0)

    def deviation(self, measure: str) -> Any:
        """(n,) standard deviation across runs; 0 for one run."""
        return deviation(self.gaps[measure])

    def half_width(self, measure: str) -> Any:
        """(n,) of the 95% confidence interval of the mean across runs."""
        return half_width(self.gaps[measure])

    def read_at(self, cost: float, axis: str, measure: str) -> Any:
        """(runs,) gaps of its runs at a cost, None outside its checkpoints.

        Between checkpoints they are interpolated in the logarithm of the cost.
        """
        costs = self.cost[axis]
        if not costs.all() or not costs[0] <= cost <= costs[-1]:
            return None
        logs = np.log(costs)
        return np.array([np.interp(np.log(cost), logs, run) for run in self.gaps[measure]])


def deviation(gaps: Any) -> Any:
    """Standard deviation across runs of gaps (runs,n); 0 for one run."""
    return gaps.std(axis=0, ddof=1) if len(gaps) > 1 else np.zeros(gaps.shape[1:])


def half_width(gaps: Any) -> Any:
    """Of the 95% confidence interval of the mean across runs (runs,n), by Student's t."""
    runs = len(gaps)
    return student.ppf(0.5 + 0.5 * CONFIDENCE, max(runs - 1, 1)) * deviation(gaps) / np.sqrt(runs)


#: The lines of a panel by (strategy, planner), and panels by (world, model).
Panel: TypeAlias = dict[tuple[str, str], Line]
Lines: TypeAlias = dict[tuple[str, str], Panel]
#: Which planner's lines to draw: one for all, or one for each strategy; lines of others are left out.
Planned: TypeAlias = str | Mapping[str, str]
#: What panels are called, if not by their worlds and models.
Names: TypeAlias = Mapping[tuple[str, str], str]


def lines_of(rows: Iterable[tuple[Any, ...]]) -> Lines:
    """Stored records (world, model, strategy, seed, planner, samples, episodes, steps, start, mean, max)."""
    grouped: dict[tuple[str, ...], dict[int, dict[int, tuple[Any, ...]]]] = {}
    for world, model, strategy, seed, planner, samples, *rest in rows:
        runs = grouped.setdefault((world, model, strategy, planner), {})
        runs.setdefault(seed, {})[samples] = (samples, *rest)
    lines: Lines = {}
    for (world, model, strategy, planner), runs in grouped.items():
        checkpoints = sorted(set.intersection(*(set(run) for run in runs.values())))
        if not checkpoints:
            continue
        table = np.array([[runs[seed][n] for n in checkpoints] for seed in sorted(runs)], float)  # (runs,n,6)
        cost = {name: table[:, :, i].mean(axis=0) for i, name in enumerate(AXES)}  # some end by themselves
        gaps = {name: table[:, :, 3 + i] for i, name in enumerate(MEASURES)}
        lines.setdefault((world, model), {})[strategy, planner] = Line(cost, gaps)
    return lines


def checkpoints(panel: Panel) -> list[int]:
    """The samples per step at which any of its runs were planned."""
    return sorted({int(n) for line in panel.values() if not line.level for n in line.cost["samples"]})


def levels(panel: Panel) -> dict[str, Line]:
    """The lines of policies that need no data, by their names."""
    return {planner: line for (_, planner), line in panel.items() if line.level}


def gap_table(lines: Lines, measure: str = "start", names: Names | None = None) -> Iterator[str]:
    """The lines of a table: mean, half-width of its interval, and standard deviation across runs."""
    yield f"{MEASURES[measure]}: mean +- {CONFIDENCE:.0%} interval (standard deviation across runs)"
    for key, panel in lines.items():
        sizes = checkpoints(panel)
        yield ""
        yield panel_name(key, names).ljust(34) + "".join(f"{f'N = {n}':>24s}" for n in sizes)
        for (strategy, planner), line in panel.items():
            name = f"  {strategy + ', ' + planner:32s}"
            if line.level:
                yield f"{name}{line.mean(measure)[0]:>24.3f}   at any N"
                continue
            cells = dict(zip(line.cost["samples"].astype(int).tolist(), _cells(line, measure), strict=True))
            row = "".join(f"{cells.get(n, ''):>24s}" for n in sizes)
            yield f"{name}{row}   {line.runs} run{'s' * (line.runs > 1)}"


def panel_name(key: tuple[str, str], names: Names | None) -> str:
    """What a panel is called: its world, and its model if that has another name."""
    return names[key] if names is not None else ", ".join(dict.fromkeys(key))


def _cells(line: Line, measure: str) -> list[str]:
    """The cells of a table, one for each checkpoint; one run has no interval."""
    mean, half, deviation = line.mean(measure), line.half_width(measure), line.deviation(measure)
    if line.runs == 1:
        return [f"{m:.3f}" for m in mean]
    return [f"{m:.3f} +- {h:.3f} ({sd:.3f})" for m, h, sd in zip(mean, half, deviation, strict=True)]


def planned_lines(panel: Panel, planned: Planned) -> dict[str, Line]:
    """The lines of those planners by strategy."""
    return {
        strategy: line
        for (strategy, planner), line in panel.items()
        if planner == (planned if isinstance(planned, str) else planned.get(strategy)) and not line.level
    }


def gap_figure(
    lines: Lines,
    planned: Planned,
    axis: str = "samples",
    measure: str = "start",
    title: str | None = None,
    names: Names | None = None,
) -> Any:
    """A panel for each world and model: the mean gap of every strategy, and its interval as a band.

    Policies that need no data are horizontal. `names` are the panels', if not the world's and model's.
    """
    drawn = {key: planned_lines(panel, planned) for key, panel in lines.items()}
    styles = curve_styles(strategy for of_panel in drawn.values() for strategy in of_panel)
    with styled_figure(max(3.6 * len(lines), 5.0), 4.0) as figure:
        axes = figure.subplots(1, len(lines), sharey=True, squeeze=False)[0]
        for place, (key, panel) in zip(axes, lines.items(), strict=True):
            for strategy, line in drawn[key].items():
                if line.cost[axis].all():  # a generative model has no episodes
                    draw_line(place, line, axis, measure, strategy, styles[strategy])
            draw_levels(place, panel, measure)
            place.set(title=panel_name(key, names), xlabel=AXES[axis])
            mark_checkpoints(place, panel, axis)
        axes[0].set(ylabel=MEASURES[measure])
        from_zero(axes[:1])
        legend_below(figure, axes)
        how = f"with {label(planned)}" if isinstance(planned, str) else "in several ways"
        text = title or f"Planned {how}"
        title_above(figure, f"{text}; bands are {CONFIDENCE:.0%} confidence across runs")
    return figure


def draw_line(place: Any, line: Line, axis: str, measure: str, name: str, style: Mapping[str, Any]) -> None:
    """The mean gap and its interval."""
    x, mean, half = line.cost[axis], line.mean(measure), line.half_width(measure)
    place.plot(x, mean, marker="o", markersize=3, label=label(name), **style)
    place.fill_between(x, mean - half, mean + half, color=style["color"], alpha=0.2, linewidth=0)


def draw_levels(place: Any, panel: Panel, measure: str) -> None:
    """Draw policies that need no data as horizontal lines behind the curves."""
    for name, line in levels(panel).items():
        place.axhline(line.mean(measure)[0], label=label(name), zorder=1, **LEVELS[name])


def mark_checkpoints(place: Any, panel: Panel, axis: str) -> None:
    """A logarithmic axis, on which samples are marked where they were planned."""
    place.set(xscale="log")
    if axis == "samples":
        sizes = checkpoints(panel)
        place.set_xticks(sizes, [str(n) for n in sizes])
        place.minorticks_off()


def gap_pictures(
    lines: Lines, folder: Path, forms: Sequence[str] = BOTH, names: Names | None = None
) -> list[Picture]:
    """Every figure of a sweep, in every form: by planner, what it costs and how it is measured."""
    check_forms(forms)
    planners = dict.fromkeys(
        planner for panel in lines.values() for (_, planner), line in panel.items() if not line.level
    )
    return [
        Picture(
            folder / f"gap_{measure}_by_{axis}_{planner}",
            partial(gap_figure, lines, planner, axis, measure, names=names),
            forms,
        )
        for planner, axis, measure in itertools.product(planners, AXES, ("start", "max"))
    ]
