"""Every explorer, model and planner at equal environment steps, as tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rewardfree.experiments.beyond import (
    ALL,
    ALL_OF,
    COMPARED,
    DEFAULT_WAY,
    EXPLORERS,
    LINES,
    MODELS,
    PAPERS_FOUR,
    PAPERS_WAY,
    PLANNERS,
)
from rewardfree.experiments.instances import PAPER
from rewardfree.report.panels import Curve, panels_figure
from rewardfree.report.style import COLOURS

#: What is asked of the default against the best of the paper's four: the floor, and the goal.
MUST, GOAL = 1.0 / 3.0, 1.0 / 5.0
SUITE = 8
#: What a measure of gaps is called.
GAPS = {"start": "gap at the start", "mean": "mean gap over states", "max": "largest gap over states"}
#: On the paper's own worlds: the myopic gap, and so much more.
SLACK = 0.05
SCOUT = ("scout", *DEFAULT_WAY)
CONTROL = ("uniform", *DEFAULT_WAY)
AXES = {"steps": "environment steps", "episodes": "episodes", "samples_per_step": "kept samples per step"}
_STYLES: dict[tuple[str, ...], dict[str, Any]] = {
    line: {"color": colour, "linestyle": dash, "linewidth": width}
    for line, (colour, dash, width) in zip(
        LINES,
        [
            (COLOURS[0], "-", 1.1),
            (COLOURS[2], "-", 1.1),
            (COLOURS[3], "-", 1.1),
            (COLOURS[4], "-", 1.1),
            ("#999999", ":", 1.1),
            ("#555555", "--", 1.4),
            (COLOURS[1], "-", 2.2),
        ],
        strict=True,
    )
}


class Found:
    """Records by (world, explorer, model, planner, steps); gaps (runs, rewards) of one measure."""

    def __init__(self, records: Iterable[dict[str, Any]], measure: str = "start") -> None:
        self._gaps: dict[tuple[Any, ...], list[list[float]]] = {}
        self._axes: dict[tuple[Any, ...], list[dict[str, float]]] = {}
        self.measure = measure
        for record in records:
            key = tuple(record[name] for name in ("world", "explorer", "model", "planner", "steps"))
            self._gaps.setdefault(key, []).append(record[measure])
            self._axes.setdefault(key, []).append(record)

    def gaps(self, world: str, method: Sequence[str], steps: int) -> Any:
        """(runs, rewards), or None."""
        found = self._gaps.get((world, *method, steps))
        return None if found is None else np.array(found)

    def mean(self, world: str, method: Sequence[str], steps: int) -> float:
        """Over runs and rewards; NaN if there is none."""
        gaps = self.gaps(world, method, steps)
        return float("nan") if gaps is None else float(gaps.mean())

    def curve(self, world: str, method: Sequence[str], axis: str) -> tuple[Any, Any, Any]:
        """Places on an axis, mean gaps, and their standard errors over runs."""
        steps = sorted(key[-1] for key in self._gaps if key[:-1] == (world, *method))
        gaps = [np.array(self._gaps[(world, *method, n)]).mean(axis=1) for n in steps]
        places = [np.mean([each[axis] for each in self._axes[(world, *method, n)]]) for n in steps]
        return np.array(places), np.array([g.mean() for g in gaps]), np.array([_error(g) for g in gaps])


def worlds_table(references: list[dict[str, Any]]) -> list[str]:
    """What each world asks of a learner."""
    lines = [
        "worlds: V* and the loss of policies that need no data, means over the rewards, at the start",
        f"{'world':<27}{'V*':>7}{'myopic':>9}{'random':>9}{'rows (TV)':>11}{'next states':>13}"
        f"{'reachable':>11}",
    ]
    rows = (
        f"{each['world']:<27}{each['optimal']:>7.2f}{each['myopic']:>9.2f}{each['random']:>9.2f}"
        f"{each['row_distance']:>11.2f}{each['next_states']:>13.1f}{each['reachable']:>11.2f}"
        for each in references
    )
    return [*lines, *rows]


def headline_table(found: Found, worlds: Sequence[str], steps: int) -> list[str]:
    """Scout and default planning against the best of the paper's four, and against random data so planned."""
    lines = [
        f"{GAPS[found.measure]} at {steps} environment steps: mean over runs and rewards ± standard error, "
        "(the worst reward's)",
        f"{'world':<22}{'runs':>5}{'best of the four, as in the paper':>36}{'Scout, default plan':>24}"
        f"{'ratio':>14}  {'':<14}{'uniform, default plan':>24}{'ratio':>14}",
    ]
    ratios = []
    for world in worlds:
        best, ours = best_of_four(found, world, steps), found.gaps(world, SCOUT, steps)
        control = found.gaps(world, CONTROL, steps)
        if best is None or ours is None or control is None:
            continue
        theirs = found.gaps(world, (best, *PAPERS_WAY), steps)
        ratios.append(ours.mean() / theirs.mean())
        lines.append(
            f"{world:<22}{len(ours):>5}{best + ' ' + _cell(theirs):>36}{_cell(ours):>24}"
            f"{_ratio(ours, theirs):>14}  {verdict(ours, theirs):<14}"
            f"{_cell(control):>24}{_ratio(ours, control):>14}  {verdict(ours, control)}"
        )
    met, goals = (sum(ratio <= limit for ratio in ratios) for limit in (MUST, GOAL))
    asked = " (must: 6)" if found.measure == "start" and len(ratios) == SUITE else ""
    lines.append(f"against the four: at most 1/3 on {met} of {len(ratios)}{asked}, at most 1/5 on {goals}")
    return lines


def verdict(ours: Any, theirs: Any) -> str:
    """What a ratio is worth: differences of less than two standard errors are none."""
    if len(ours) < 2 or len(theirs) < 2:
        return "one run"
    error = np.hypot(_error(ours.mean(axis=1)), _error(theirs.mean(axis=1)))
    difference = theirs.mean() - ours.mean()
    if abs(difference) <= 2.0 * error:
        return "no difference"
    if difference < 0.0:
        return "worse"
    ratio = ours.mean() / theirs.mean()
    return "at most 1/5" if ratio <= GOAL else "at most 1/3" if ratio <= MUST else "better"


def paper_table(found: Found, references: list[dict[str, Any]], steps: int) -> list[str]:
    """The paper's own worlds, where argmax_a r is hard to beat."""
    lines = [
        f"the paper's worlds at {steps} steps: mean gap, which must be at most the myopic one + {SLACK}",
        f"{'world':<27}{'myopic':>8}{'best of the four, as in the paper':>36}{'Scout, default plan':>24}"
        f"{'uniform, default plan':>24}  verdict",
    ]
    for each in references:
        world = each["world"]
        best, ours = best_of_four(found, world, steps), found.gaps(world, SCOUT, steps)
        control = found.gaps(world, CONTROL, steps)
        if world not in PAPER or best is None or ours is None or control is None:
            continue
        said = "met" if ours.mean() <= each["myopic"] + SLACK else "NOT met"
        theirs = found.gaps(world, (best, *PAPERS_WAY), steps)
        lines.append(
            f"{world:<27}{each['myopic']:>8.3f}{best + ' ' + _cell(theirs):>36}{_cell(ours):>24}"
            f"{_cell(control):>24}  {said}"
        )
    return lines


def cross_table(
    found: Found, references: list[dict[str, Any]], worlds: Sequence[str], steps: int
) -> list[str]:
    """All explorers x models x planners: the mean gap as a share of V*, over the worlds."""
    lines = [
        f"all of it at {steps} steps: mean gap / V* in percent, mean over {len(worlds)} worlds",
        f"{'explorer':<22}{'planner':<24}" + "".join(f"{model:>22}" for model in MODELS),
    ]
    for explorer in explorers():
        for planner in PLANNERS:
            shares = [
                _shares(found, references, worlds, (explorer, model, planner), steps) for model in MODELS
            ]
            lines.append(f"{explorer:<22}{planner:<24}" + "".join(f"{100 * s.mean():>22.1f}" for s in shares))
    return lines


def ablation_table(found: Found, references: list[dict[str, Any]], worlds: Sequence[str]) -> list[str]:
    """The default with something taken away, and the paper's way with something added."""
    lines = [
        f"changes, each against the line above that is not indented: mean gap / V* in percent over "
        f"{len(worlds)} worlds ± standard error over runs",
        f"{'':<66}" + "".join(f"{n:>10} steps" for n in COMPARED),
    ]
    for name, method in ABLATION:
        shares = [_shares(found, references, worlds, method, n) for n in COMPARED]
        lines.append(
            f"{name:<62}" + "".join(f"{100 * s.mean():>9.1f} ± {100 * _error(s):4.1f}" for s in shares)
        )
    return lines


def _shares(
    found: Found, references: list[dict[str, Any]], worlds: Sequence[str], method: Sequence[str], steps: int
) -> Any:
    """Gaps as shares of V*, a mean over worlds and rewards for each run; as many runs as every world has."""
    optimal = {each["world"]: each["optimal"] for each in references}
    gaps = [found.gaps(world, method, steps) for world in worlds]
    if not gaps or any(each is None for each in gaps):
        return np.array([np.nan])
    runs = min(len(each) for each in gaps)
    shares = [each[:runs].mean(axis=1) / optimal[world] for world, each in zip(worlds, gaps, strict=True)]
    return np.mean(shares, axis=0)


ABLATION: tuple[tuple[str, tuple[str, str, str]], ...] = (
    ("default: Scout, kernel from data, pooled or timed, centred, mean", SCOUT),
    ("  explored with the fixed kernel", ("scout, fixed kernel", *DEFAULT_WAY)),
    ("  explored for sigma", ("scout, sigma", *DEFAULT_WAY)),
    ("  explored for the information", ("scout, information", *DEFAULT_WAY)),
    ("  explored at random", CONTROL),
    ("  planned without centring", ("scout", "default, not centred", "mean")),
    ("  planned as if nothing changed with the step", ("scout", "default, not timed", "mean")),
    ("  planned with optimism", ("scout", "default", "optimistic, any range")),
    ("  planned with pessimism", ("scout", "default", "pessimistic")),
    ("  planned with the fixed kernel and ridge", ("scout", "pooled, centred", "mean")),
    ("  the same, a regression for each step", ("scout", "per step, centred", "mean")),
    ("Alg 3 as in the paper", ("online", *PAPERS_WAY)),
    ("  clipped to the range", ("online", "per step", "optimistic, any range")),
    ("  planned with the mean", ("online", "per step", "mean")),
    ("  centred", ("online", "per step, centred", "optimistic")),
    ("  pooled", ("online", "pooled", "optimistic")),
    ("  with every transition", (ALL, *PAPERS_WAY)),
    ("  with default planning", ("online", *DEFAULT_WAY)),
    ("  with every transition and default planning", (ALL, *DEFAULT_WAY)),
    ("Alg 2 as in the paper", ("generative", *PAPERS_WAY)),
    ("  pooled", ("generative", "pooled", "optimistic")),
    ("  with default planning", ("generative", *DEFAULT_WAY)),
    ("Greedy as in the paper", ("greedy", *PAPERS_WAY)),
    ("  with default planning", ("greedy", *DEFAULT_WAY)),
)


def explorers() -> list[str]:
    """Those that the records have, Alg 3 also with what it passes by."""
    names = list(EXPLORERS)
    names.insert(names.index(ALL_OF) + 1, ALL)
    return names


def best_of_four(found: Found, world: str, steps: int) -> str | None:
    """The paper's algorithm with the least mean gap, planned as in the paper."""
    means = {name: found.mean(world, (name, *PAPERS_WAY), steps) for name in PAPERS_FOUR}
    means = {name: value for name, value in means.items() if np.isfinite(value)}
    return min(means, key=lambda name: means[name]) if means else None


def curves_figure(found: Found, references: list[dict[str, Any]], axis: str) -> Any:
    """Gap against steps, episodes or samples on every world."""

    def curves(world: str) -> Iterable[Curve]:
        for line in LINES:
            way = "as in the paper" if line[1:] == PAPERS_WAY else "default plan"
            yield f"{line[0]}, {way}", *found.curve(world, line, axis), _STYLES[line]

    title = f"Gap against {AXES[axis]}: mean over runs and rewards, ± one standard error"
    return panels_figure(references, curves, AXES[axis], title)


def _cell(gaps: Any) -> str:
    """Mean over runs and rewards, standard error over runs, and the worst reward's mean."""
    error = f" ± {_error(gaps.mean(axis=1)):.3f}" if len(gaps) > 1 else ""
    return f"{gaps.mean():.3f}{error} ({gaps.mean(axis=0).max():.2f})"


def _ratio(ours: Any, theirs: Any) -> str:
    """Of the means, with its standard error to first order."""
    ratio = ours.mean() / theirs.mean()
    parts = [_error(each.mean(axis=1)) / each.mean() for each in (ours, theirs)]
    return f"{ratio:.2f} ± {ratio * np.hypot(*parts):.2f}" if np.isfinite(parts).all() else f"{ratio:.2f}"


def _error(values: Any) -> float:
    """The standard error of a mean; one value has none."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")
