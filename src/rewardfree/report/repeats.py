"""Figure 1 on many draws of r and P (Figures 8 to 10), and where the authors' curves lie among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.report.gaps import (
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
from rewardfree.report.recorded import PLANNED, PLANNED_ALIKE, Recorded, recorded
from rewardfree.report.style import COLOURS, LEVELS, STYLE, curve_styles, from_zero, legend_below


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


def by_kernel(found: Lines) -> dict[str, list[Panel]]:
    """The panels of each kernel's draws."""
    kernels: dict[str, list[Panel]] = {}
    for (_, kernel), panel in found.items():
        kernels.setdefault(kernel, []).append(panel)
    return kernels


def draws_of(panels: list[Panel], planned: Planned, measure: str) -> dict[str, Draws]:
    """What the draws of one kernel say about each strategy, at the checkpoints that all of them have."""
    chosen = [planned_lines(panel, planned) for panel in panels]
    common = [name for name in chosen[0] if all(name in each for each in chosen)]
    found = {}
    for name in common:
        lines = [each[name] for each in chosen]
        shared = [set(line.cost["samples"].tolist()) for line in lines]
        samples = np.array(sorted(set.intersection(*shared)))
        means = [line.mean(measure)[np.isin(line.cost["samples"], samples)] for line in lines]
        found[name] = Draws(samples, np.stack(means))
    return found


def repeats_figure(found: Lines, planned: Planned, title: str, measure: str = "start") -> Any:
    """A row for each algorithm, a column for each kernel: every draw a line, and the authors' as crosses.

    Crosses are there if the gap at the start is planned as theirs was.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    kernels = by_kernel(found)
    views = {kernel: draws_of(panels, planned, measure) for kernel, panels in kernels.items()}
    names = [name for name in PLANNED if any(name in view for view in views.values())]
    styles = curve_styles(PLANNED)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.6 * len(kernels) + 0.6, 2.3 * len(names) + 1.0), layout="constrained")
        grid = figure.subplots(len(names), len(kernels), sharex="col", sharey="row", squeeze=False)
        for (row, name), (column, kernel) in _product(names, kernels):
            place, view = grid[row, column], views[kernel]
            if name in view:
                _draw(place, view[name], label(name), styles[name]["color"])
            if "uniform" in view:
                middle = np.median(view["uniform"].means, axis=0)
                style = curve_styles(["uniform"])["uniform"]
                place.plot(
                    view["uniform"].samples, middle, label="Uniformly random data, median draw", **style
                )
            _draw_median_levels(place, kernels[kernel], measure)
            if planned == PLANNED_ALIKE and measure == "start":
                _draw_recorded(place, recorded().get((kernel, name), {}), checkpoints(kernels[kernel][0]))
            mark_checkpoints(place, kernels[kernel][0], "samples")
            if row == 0:
                place.set(title=label(kernel))
            if row == len(names) - 1:
                place.set(xlabel="samples per step")
            if column == 0:
                place.set(ylabel=MEASURES[measure])
        from_zero(grid[:, 0])
        legend_below(figure, grid.flat)
        count = max(len(panels) for panels in kernels.values())
        figure.suptitle(f"{title}: {count} draws of r and P, their range shaded", fontsize=10)
    return figure


def _product(
    names: list[str], kernels: dict[str, list[Panel]]
) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    for row in enumerate(names):
        for column in enumerate(kernels):
            yield row, column


def _draw(place: Any, draws: Draws, name: str, colour: str) -> None:
    place.fill_between(draws.samples, draws.lowest, draws.highest, color=colour, alpha=0.18, linewidth=0)
    place.plot(draws.samples, draws.means.T, color=colour, linewidth=0.7, alpha=0.8)
    place.plot([], [], color=colour, label=name)


def _draw_median_levels(place: Any, panels: list[Panel], measure: str) -> None:
    for name in levels(panels[0]):
        values = [levels(panel)[name].mean(measure)[0] for panel in panels if name in levels(panel)]
        place.axhline(np.median(values), label=f"{label(name)}, median draw", zorder=1, **LEVELS[name])


def _draw_recorded(place: Any, theirs: dict[int, Recorded] | Any, sizes: list[int]) -> None:
    shown = [n for n in sizes if n in theirs]
    if shown:
        means = [theirs[n].mean for n in shown]
        marks = {"marker": "x", "linestyle": "none", "color": COLOURS[6], "markersize": 5, "zorder": 5}
        place.plot(shown, means, label="Recorded by the authors' scripts", **marks)


def verdict(found: Lines) -> Iterator[str]:
    """Do the authors' recorded curves lie inside the range of our draws?"""
    yield "Do the authors' recorded mean gaps lie inside the range of our draws? (planned as theirs were)"
    inside = total = 0
    most = 0
    for kernel, panels in by_kernel(found).items():
        most = max(most, len(panels))
        view = draws_of(panels, PLANNED, "start")
        for name in (each for each in PLANNED if each in view):
            draws, theirs = view[name], recorded().get((kernel, name), {})
            outside = []
            compared = [(i, int(n)) for i, n in enumerate(draws.samples) if int(n) in theirs]
            for i, n in compared:
                mean = theirs[n].mean
                if not draws.lowest[i] <= mean <= draws.highest[i]:
                    side = "below" if mean < draws.lowest[i] else "above"
                    edge = draws.lowest[i] if side == "below" else draws.highest[i]
                    outside.append(f"N = {n}: {mean:.3f}, {side} {edge:.3f}")
            inside, total = inside + len(compared) - len(outside), total + len(compared)
            if compared:
                held = f"{len(compared) - len(outside)} of {len(compared)} inside"
                told = f"   ({'; '.join(outside)})" if outside else ""
                yield f"  {label(kernel):22s}{label(name):36s}{held}{told}"
    if not total:
        yield "  none of their checkpoints is among ours, so nothing can be said"
        return
    expected = (most - 1) / (most + 1)
    yield (
        f"  in all {inside} of {total} ({inside / total:.0%}); one more draw like our {most} lies inside "
        f"their range at {expected:.0%} of the checkpoints"
    )
