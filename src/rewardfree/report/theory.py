"""What the theory says, as a table and as pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rewardfree.report.style import COLOURS, legend_below, styled_figure
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


def curves_figure(
    curves: Mapping[str, tuple[Any, Any]], xlabel: str, ylabel: str, title: str, dashed: Sequence[str] = ()
) -> Any:
    """Curves (x, y) by name on two logarithmic axes; bounds that are only extrapolated are dashed."""
    with styled_figure(6.4, 4.8) as figure:
        axis = figure.subplots()
        for i, (name, (x, y)) in enumerate(curves.items()):
            line = "--" if name in dashed else "-"
            axis.plot(x, np.asarray(y, float), line, color=COLOURS[i % len(COLOURS)], label=name)
        axis.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel, title=title)
        legend_below(figure, [axis], columns=2)
    return figure
