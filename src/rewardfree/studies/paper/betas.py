"""How much the width of the confidence interval matters (Figures 5 to 7): a panel for each algorithm."""

from collections.abc import Iterator, Sequence
from typing import Any

from rewardfree.report.gaps import (
    CONFIDENCE,
    MEASURES,
    Line,
    Panel,
    checkpoints,
    draw_levels,
    draw_line,
    mark_checkpoints,
)
from rewardfree.report.labels import label
from rewardfree.report.style import curve_styles, from_zero, legend_below, styled_figure, title_above

#: In the order of the paper's figures.
ALGORITHMS = ("qiu", "online", "generative", "greedy")


def beta_lines(panel: Panel, algorithm: str, betas: Sequence[float]) -> dict[float, Line]:
    """The lines of one algorithm, by the beta that it explored with, if it has one, and planned with."""
    lines = {}
    for beta in betas:
        for strategy in (f"{algorithm}-{beta:g}", algorithm):
            if (strategy, f"optimistic-{beta:g}") in panel:
                lines[beta] = panel[strategy, f"optimistic-{beta:g}"]
    return lines


def beta_label(name: str) -> str:
    """A strategy or planner of this sweep in words: its beta ends its name."""
    of, _, beta = name.rpartition("-")
    return f"{label(of)}, β = {beta}" if of in {*ALGORITHMS, "optimistic"} else label(name)


def betas_figure(panel: Panel, betas: Sequence[float], title: str, measure: str = "start") -> Any:
    """Four panels of curves, one for each beta, and the references in all of them."""
    styles = curve_styles(f"β = {beta:g}" for beta in betas)
    with styled_figure(13.0, 4.0) as figure:
        axes = figure.subplots(1, len(ALGORITHMS), sharey=True)
        for place, algorithm in zip(axes, ALGORITHMS, strict=True):
            for beta, line in beta_lines(panel, algorithm, betas).items():
                draw_line(place, line, "samples", measure, f"β = {beta:g}", styles[f"β = {beta:g}"])
            uniform = panel.get(("uniform", "mean"))
            if uniform is not None:
                draw_line(place, uniform, "samples", measure, "uniform", curve_styles(["uniform"])["uniform"])
            draw_levels(place, panel, measure)
            mark_checkpoints(place, panel, "samples")
            place.set(title=label(algorithm), xlabel="samples per step")
        axes[0].set(ylabel=MEASURES[measure])
        from_zero(axes[:1])
        legend_below(figure, axes, columns=7)
        title_above(figure, f"{title}; bands are {CONFIDENCE:.0%} confidence across runs")
    return figure


def betas_table(panel: Panel, betas: Sequence[float], measure: str = "start") -> Iterator[str]:
    """The mean gap of each algorithm and beta at every checkpoint."""
    sizes = checkpoints(panel)
    yield f"{MEASURES[measure]:44s}" + "".join(f"{f'N = {n}':>10s}" for n in sizes)
    for algorithm in ALGORITHMS:
        for beta, line in beta_lines(panel, algorithm, betas).items():
            means = dict(zip(line.cost["samples"].astype(int).tolist(), line.mean(measure), strict=True))
            cells = "".join(f"{means[n]:10.3f}" if n in means else " " * 10 for n in sizes)
            yield f"  {label(algorithm):35s}{f'β = {beta:g}':>7s}{cells}"
