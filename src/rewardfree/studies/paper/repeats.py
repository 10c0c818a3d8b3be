"""Figure 1 on many draws of r and P (Figures 8 to 10), and where the authors' curves lie among them."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.report.gaps import (
    AXES,
    MEASURES,
    Lines,
    Panel,
    Planned,
    checkpoints,
    levels,
    mark_checkpoints,
    planned_lines,
)
from rewardfree.report.labels import label
from rewardfree.report.numbers import numbers
from rewardfree.report.style import (
    COLOURS,
    LEVELS,
    curve_styles,
    from_zero,
    legend_below,
    styled_figure,
    title_above,
)
from rewardfree.report.tables import SHOWN
from rewardfree.studies.paper.recorded import PLANNED, PLANNED_ALIKE, RECORDED, Recorded


@dataclass(frozen=True, eq=False)
class Draws:
    """The mean gaps of one strategy on d draws at n checkpoints."""

    samples: Any  # (n,)
    means: Any  # (d,n), each over the runs of a draw

    @property
    def lowest(self) -> Any:
        return self.means.min(axis=0)

    @property
    def highest(self) -> Any:
        return self.means.max(axis=0)


def by_kernel(lines: Lines) -> dict[str, list[Panel]]:
    """The panels of each kernel's draws."""
    kernels: dict[str, list[Panel]] = {}
    for (_, kernel), panel in lines.items():
        kernels.setdefault(kernel, []).append(panel)
    return kernels


def draws_of(panels: list[Panel], planned: Planned, measure: str) -> dict[str, Draws]:
    """What the draws of one kernel say about each strategy, at the checkpoints that all of them have."""
    chosen = [planned_lines(panel, planned) for panel in panels]
    draws = {}
    for name in chosen[0]:
        if not all(name in lines for lines in chosen):
            continue
        lines = [lines[name] for lines in chosen]
        samples = np.array(sorted(set.intersection(*(set(line.cost["samples"].tolist()) for line in lines))))
        means = [line.mean(measure)[np.isin(line.cost["samples"], samples)] for line in lines]
        draws[name] = Draws(samples, np.stack(means))
    return draws


def repeats_figure(lines: Lines, planned: Planned, title: str, measure: str = "start") -> Any:
    """A row for each algorithm, a column for each kernel: every draw a line, and the authors' as crosses.

    Crosses are there if the gap at the start is planned as theirs was.
    """
    kernels = by_kernel(lines)
    views = {kernel: draws_of(panels, planned, measure) for kernel, panels in kernels.items()}
    names = [name for name in PLANNED if any(name in view for view in views.values())]
    styles = curve_styles(PLANNED)
    with styled_figure(3.6 * len(kernels) + 0.6, 2.3 * len(names) + 1.0) as figure:
        grid = figure.subplots(len(names), len(kernels), sharex="col", sharey="row", squeeze=False)
        for (row, name), (column, (kernel, panels)) in itertools.product(
            enumerate(names), enumerate(kernels.items())
        ):
            place, view = grid[row, column], views[kernel]
            if name in view:
                _draw(place, view[name], label(name), styles[name]["color"])
            if "uniform" in view:
                middle = np.median(view["uniform"].means, axis=0)
                style = curve_styles(["uniform"])["uniform"]
                place.plot(
                    view["uniform"].samples, middle, label="Uniformly random data, median draw", **style
                )
            _draw_median_levels(place, panels, measure)
            if planned == PLANNED_ALIKE and measure == "start":
                _draw_recorded(place, RECORDED.get((kernel, name), {}), checkpoints(panels[0]))
            mark_checkpoints(place, panels[0], "samples")
            if row == 0:
                place.set(title=label(kernel))
            if row == len(names) - 1:
                place.set(xlabel="samples per step")
            if column == 0:
                place.set_ylabel(f"{label(name)}\n{MEASURES[measure]}", fontsize=8)
        from_zero(grid[:, 0])
        legend_below(figure, grid.flat)
        most = max(len(panels) for panels in kernels.values())
        title_above(figure, f"{title}: {most} draws of r and P, their range shaded")
    return figure


def _draw(place: Any, draws: Draws, name: str, colour: str) -> None:
    place.fill_between(draws.samples, draws.lowest, draws.highest, color=colour, alpha=0.18, linewidth=0)
    place.plot(draws.samples, draws.means.T, color=colour, linewidth=0.7, alpha=0.8)
    place.plot([], [], color=colour, label=name)


def _draw_median_levels(place: Any, panels: list[Panel], measure: str) -> None:
    for name in levels(panels[0]):
        values = [levels(panel)[name].mean(measure)[0] for panel in panels if name in levels(panel)]
        place.axhline(np.median(values), label=f"{label(name)}, median draw", zorder=1, **LEVELS[name])


def _draw_recorded(place: Any, gaps: Mapping[int, Recorded], sizes: list[int]) -> None:
    shown = [n for n in sizes if n in gaps]
    if shown:
        means = [gaps[n].mean for n in shown]
        marks = {"marker": "x", "linestyle": "none", "color": COLOURS[6], "markersize": 5, "zorder": 5}
        place.plot(shown, means, label="Recorded by the authors' scripts", **marks)


def table_of_ranges(lines: Lines) -> Iterator[str]:
    """Do the authors' recorded curves lie inside the range of our draws?"""
    yield "Do the authors' recorded mean gaps lie inside the range of our draws? (planned as theirs were)"
    inside = total = most = 0
    for kernel, panels in by_kernel(lines).items():
        most = max(most, len(panels))
        view = draws_of(panels, PLANNED, "start")
        for name in (name for name in PLANNED if name in view):
            draws, gaps = view[name], RECORDED.get((kernel, name), {})
            ranges = zip(map(int, draws.samples), draws.lowest, draws.highest, strict=True)
            compared = [(n, gaps[n].mean, low, high) for n, low, high in ranges if n in gaps]
            outside = [
                f"N = {n}: {mean:.3f}, " + (f"below {low:.3f}" if mean < low else f"above {high:.3f}")
                for n, mean, low, high in compared
                if not low <= mean <= high
            ]
            inside, total = inside + len(compared) - len(outside), total + len(compared)
            if compared:
                share = f"{len(compared) - len(outside)} of {len(compared)} inside"
                details = f"   ({'; '.join(outside)})" if outside else ""
                yield f"  {label(kernel):22s}{label(name):36s}{share}{details}"
    if not total:
        yield "  none of their checkpoints is among ours, so nothing can be said"
        return
    expected = (most - 1) / (most + 1)
    yield (
        f"  in all {inside} of {total} ({inside / total:.0%}); one more draw like our {most} lies inside "
        f"their range at {expected:.0%} of the checkpoints. The "
        "authors' numbers are of one world for each kernel: consistent with ours, which is no test"
    )


def spread_view(lines: Lines) -> dict[str, Any]:
    """How far draws of the world lie apart: every draw's mean gap, by kernel, strategy and planner."""
    views = []
    for kernel, panels in by_kernel(lines).items():
        common = set.intersection(*({key for key, line in p.items() if not line.level} for p in panels))
        for key in (key for key in panels[0] if key in common):
            draws = [panel[key] for panel in panels]
            costs = {axis: numbers(draws[0].cost[axis]) for axis in AXES}
            gaps = {name: [numbers(line.mean(name)) for line in draws] for name in SHOWN}
            named = {"kernel": label(kernel), "strategy": key[0], "planner": key[1]}
            views.append({**named, **costs, "gaps": gaps})
    return {"draws": max((len(p) for p in by_kernel(lines).values()), default=0), "lines": views}
