"""What the theory says, as a table and as pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rewardfree.experiments.coverage import Coverage
from rewardfree.report.labels import label
from rewardfree.report.style import COLOURS, STYLE, legend_below
from rewardfree.theory import Result


def result_table(results: Sequence[Result]) -> Iterator[str]:
    """A line for each result, and its assumptions once below all that share them."""
    wide = max(len(each.name) for each in results) + 2
    read = max(len(each.reading) for each in results) + 2
    groups: dict[tuple[str, ...], list[Result]] = {}
    for each in results:
        groups.setdefault(each.assumptions, []).append(each)
    for assumptions, group in groups.items():
        for each in group:
            value = "none" if each.value is None else f"{each.value:.4g}"
            said = f"{'VACUOUS: ' if each.vacuous else ''}{each.sentence}"
            yield f"{each.name:{wide}s}{each.reading:{read}s}{value:>11s}  {said}"
        yield f"    given: {'; '.join(assumptions)}"
        yield ""


def result_json(results: Sequence[Result]) -> str:
    """A list of objects with the fields of a Result."""
    return json.dumps([asdict(each) for each in results], indent=1, allow_nan=False)


def coverage_table(study: Mapping[str, Coverage], fit: int, delta: float) -> Iterator[str]:
    """What each strategy's intervals needed, and whether its data are biased."""
    widths = list(next(iter(study.values())).covered)
    head = "".join(f"{f'b = {b:.3g}':>11s}" for b in widths)
    yield f"{'share of (z, h) with |f - f^| <= b sigma':44s}{head}"
    for name, own in study.items():
        shares = "".join(f"{own.covered[b].mean():11.4f}" for b in widths)
        yield f"  {label(name):42s}{shares}"
    yield ""
    draws = len(next(iter(study.values())).largest)
    yield (
        f"the b that covers all (z, h) of a draw: fitted on {fit} draws for {1 - delta:.0%}, "
        f"tested on {draws - fit} others"
    )
    yield f"  {'':42s}{'smallest':>10s}{'largest':>10s}{'fitted':>10s}{'covers':>10s}"
    for name, own in study.items():
        b = own.fitted(fit, delta)
        row = f"{own.largest.min():10.2f}{own.largest.max():10.2f}{b:10.2f}{own.tested(b, fit):10.0%}"
        yield f"  {label(name):42s}{row}"
    yield ""
    yield "bias: the mean of the noise in f^, in sigma, over draws (0 if V and the samples are independent)"
    for name, own in study.items():
        mean, errors = own.bias
        word = "shows" if abs(errors) > 3.0 else "does not show"
        yield f"  {label(name):42s}{mean:+10.4f}   {errors:+.1f} standard errors: {word}"


def curves_figure(
    curves: Mapping[str, tuple[Any, Any]], xlabel: str, ylabel: str, title: str, dashed: Sequence[str] = ()
) -> Any:
    """Curves (x, y) by name on two logarithmic axes; bounds that are only extrapolated are dashed."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        axis = figure.subplots()
        for i, (name, (x, y)) in enumerate(curves.items()):
            line = "--" if name in dashed else "-"
            axis.plot(x, np.asarray(y, float), line, color=COLOURS[i % len(COLOURS)], label=name)
        axis.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel, title=title)
        legend_below(figure, [axis], columns=2)
    return figure
