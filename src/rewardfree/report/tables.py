"""The tables of a page: a column for each cost, and which value of a column is the best."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewardfree.report.gaps import Line, deviation, half_width
from rewardfree.report.numbers import numbers

#: Of a table by episodes or steps: what strategies have used at their checkpoints differs, and can be much.
MOST_COLUMNS = 10
#: What a page shows of a gap.
SHOWN = ("start", "max")


def table_view(lines: Mapping[str, Line], levels: Mapping[str, Line], axis: str) -> dict[str, Any] | None:
    """The rows of some strategies on one axis, as JSON can hold them; None: none of them has this cost.

    A cell is (mean, half of its interval, standard deviation), None where a line was not run that far; one
    run has a mean only.
    `between`: cells between two checkpoints. `best`: the rows with the smallest mean of each column, and
    `better` the policies without data that are no worse than these.
    """
    used = {name: line for name, line in lines.items() if line.cost[axis].all()}
    if not used:
        return None
    columns = columns_of(list(used.values()), axis)
    rows = {name: _row(line, columns, axis) for name, line in used.items()}
    best, better = {}, {}
    for measure in SHOWN:
        gaps = {name: numbers(line.mean(measure))[0] for name, line in levels.items()}
        means = [
            {name: row[measure][i][0] for name, row in rows.items() if row[measure][i] is not None}
            for i in range(len(columns))
        ]
        best[measure] = [smallest(column) if len(column) > 1 else [] for column in means]
        better[measure] = [
            [name for name in smallest(gaps) if name in smallest({**gaps, "": min(column.values())})]
            for column in means
        ]
    return {"columns": numbers(columns), "rows": rows, "best": best, "better": better}


def columns_of(lines: Sequence[Line], axis: str) -> list[float]:
    """The costs at which any line was planned; by episodes or steps a few of them, even on a log axis.

    Every line can be read in one column at least.
    """
    costs = sorted({float(cost) for line in lines for cost in line.cost[axis]})
    if axis == "samples" or len(costs) <= MOST_COLUMNS:
        return costs
    logs = np.log(costs)
    places = np.linspace(logs[0], logs[-1], MOST_COLUMNS)
    columns = {costs[int(np.abs(logs - place).argmin())] for place in places}
    for line in lines:
        first, last = float(line.cost[axis][0]), float(line.cost[axis][-1])
        if not any(first <= cost <= last for cost in columns):
            columns.add(last)
    return sorted(columns)


def smallest(gaps: Mapping[str, float]) -> list[str]:
    """The strategies with the smallest gap: all whose printed gaps are equal."""
    least = min(gaps.values(), default=0.0)
    return [name for name, gap in gaps.items() if _printed(gap) == _printed(least)]


def _printed(gap: float) -> str:
    """A gap as the page prints it."""
    return f"{gap:.0f}" if abs(gap) >= 100 else f"{gap:.3f}"


def _row(line: Line, columns: Sequence[float], axis: str) -> dict[str, Any]:
    """One line read at the columns."""
    planned = set(map(float, line.cost[axis]))
    row: dict[str, Any] = {"between": [cost not in planned for cost in columns]}
    for measure in SHOWN:
        gaps = [line.read_at(cost, axis, measure) for cost in columns]
        row[measure] = [None if runs is None else _cell(runs) for runs in gaps]
    return row


def _cell(runs: Any) -> list[float]:
    return numbers([runs.mean(), *([half_width(runs), deviation(runs)] if len(runs) > 1 else [])])
