"""Every explorer, model and planner at equal environment steps, as tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rewardfree.experiments.beyond import (
    COMPARED,
    DEFAULT_WAY,
    EXPLORERS,
    LINES,
    MODELS,
    PAPER,
    PAPERS_FOUR,
    PAPERS_WAY,
    PLANNERS,
)
from rewardfree.report.style import COLOURS, LEVELS, STYLE, from_zero, legend_below

#: What is asked of the default against the best of the paper's four: the floor, and the goal.
MUST, GOAL = 1.0 / 3.0, 1.0 / 5.0
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
    """Records by (world, explorer, model, planner, steps); gaps (runs, rewards), at the start or the largest
    over states ("worst_state").
    """

    def __init__(self, records: Iterable[dict[str, Any]], measure: str = "gaps") -> None:
        self._gaps: dict[tuple[Any, ...], list[list[float]]] = {}
        self._axes: dict[tuple[Any, ...], list[dict[str, float]]] = {}
        self.seconds: dict[str, list[float]] = {}
        for record in records:
            key = tuple(record[name] for name in ("world", "explorer", "model", "planner", "steps"))
            self._gaps.setdefault(key, []).append(record[measure])
            self._axes.setdefault(key, []).append(record)
            self.seconds.setdefault(record["explorer"], []).append(record["explore_seconds"])

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

    @property
    def runs(self) -> int:
        return max((len(each) for each in self._gaps.values()), default=0)


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


def headline_table(found: Found, worlds: Sequence[str], steps: int, what: str = "mean gap") -> list[str]:
    """Scout and default planning against the best of the paper's four, and random data as a control."""
    lines = [
        f"{what} over {found.runs} runs at {steps} environment steps ± standard error, (worst reward)",
        f"{'world':<22}{'best of the four':>26}{'Scout, default plan':>27}{'ratio':>8}"
        f"{'uniform, default plan':>27}  verdict",
    ]
    met = goals = 0
    for world in worlds:
        ours = found.gaps(world, SCOUT, steps)
        best = best_of_four(found, world, steps)
        if ours is None or best is None:
            continue
        theirs = found.gaps(world, (best, *PAPERS_WAY), steps)
        ratio = ours.mean() / theirs.mean()
        met, goals = met + (ratio <= MUST), goals + (ratio <= GOAL)
        worse = ours.mean() - theirs.mean() > 2.0 * np.hypot(_error(ours.mean(1)), _error(theirs.mean(1)))
        verdict = "worse" if worse else "goal" if ratio <= GOAL else "must" if ratio <= MUST else "better"
        control = found.gaps(world, CONTROL, steps)
        cells = f"{best + ' ' + _cell(theirs):>26}{_cell(ours):>27}{ratio:>8.2f}"
        lines.append(f"{world:<22}{cells}{'-' if control is None else _cell(control):>27}  {verdict}")
    asked = " (must: 6 of 8)" if what == "mean gap" else ""
    lines.append(f"at most 1/3 on {met} of {len(worlds)}{asked}, at most 1/5 on {goals}")
    return lines


def paper_table(found: Found, references: list[dict[str, Any]], steps: int) -> list[str]:
    """The paper's own worlds, where argmax_a r is hard to beat."""
    lines = [
        f"the paper's worlds at {steps} steps: mean gap, which must be at most the myopic one + {SLACK}",
        f"{'world':<27}{'myopic':>8}{'best of the four':>26}{'Scout, default plan':>27}  verdict",
    ]
    for each in references:
        if each["world"] not in PAPER:
            continue
        world = each["world"]
        best, ours = best_of_four(found, world, steps), found.gaps(world, SCOUT, steps)
        if best is None or ours is None:
            continue
        verdict = "met" if ours.mean() <= each["myopic"] + SLACK else "NOT met"
        theirs = found.gaps(world, (best, *PAPERS_WAY), steps)
        lines.append(
            f"{world:<27}{each['myopic']:>8.3f}{best + ' ' + _cell(theirs):>26}{_cell(ours):>27}  {verdict}"
        )
    return lines


def cross_table(
    found: Found, references: list[dict[str, Any]], worlds: Sequence[str], steps: int
) -> list[str]:
    """All explorers x models x planners: the mean gap as a share of V*, over the worlds."""
    optimal = {each["world"]: each["optimal"] for each in references}
    lines = [
        f"all of it at {steps} steps: mean gap / V* in percent, mean over {len(worlds)} worlds",
        f"{'explorer':<22}{'planner':<13}" + "".join(f"{model:>19}" for model in MODELS),
    ]
    for explorer in explorers():
        for planner in PLANNERS:
            cells = []
            for model in MODELS:
                shares = [
                    found.mean(world, (explorer, model, planner), steps) / optimal[world] for world in worlds
                ]
                cells.append(f"{100.0 * np.mean(shares):>19.1f}")
            lines.append(f"{explorer:<22}{planner:<13}" + "".join(cells))
    return lines


def ablation_table(found: Found, references: list[dict[str, Any]], worlds: Sequence[str]) -> list[str]:
    """The default with one thing taken away at a time, and the paper's way with one added."""
    optimal = {each["world"]: each["optimal"] for each in references}
    lines = [
        f"one change at a time: mean gap / V* in percent over {len(worlds)} worlds",
        f"{'':<58}" + "".join(f"{n:>7} steps" for n in COMPARED),
    ]
    for name, method in ABLATION.items():
        cells = []
        for n in COMPARED:
            shares = [found.mean(world, method, n) / optimal[world] for world in worlds]
            cells.append(f"{100.0 * np.mean(shares):>13.1f}")
        lines.append(f"{name:<58}" + "".join(cells))
    return lines


ABLATION: dict[str, tuple[str, str, str]] = {
    "default: Scout, kernel from data, pooled, centred, mean": SCOUT,
    "  explored with the fixed kernel": ("scout, fixed kernel", "default", "mean"),
    "  explored for sigma": ("scout, sigma", "default", "mean"),
    "  explored for the information": ("scout, information", "default", "mean"),
    "  explored at random": CONTROL,
    "  planned with the fixed kernel and ridge": ("scout", "pooled, centred", "mean"),
    "    and not centred": ("scout", "pooled", "mean"),
    "    centred, but a regression per step": ("scout", "per step, centred", "mean"),
    "  planned with optimism": ("scout", "default", "optimistic"),
    "  planned with pessimism": ("scout", "default", "pessimistic"),
    "Alg 3 as in the paper": ("online", *PAPERS_WAY),
    "  planned with the mean": ("online", "per step", "mean"),
    "  centred": ("online", "per step, centred", "optimistic"),
    "  pooled": ("online", "pooled", "optimistic"),
    "  with every transition": ("online, all", *PAPERS_WAY),
    "  with every transition and default planning": ("online, all", *DEFAULT_WAY),
    "Alg 2 as in the paper": ("generative", *PAPERS_WAY),
    "  pooled, centred, mean": ("generative", "pooled, centred", "mean"),
    "Greedy as in the paper": ("greedy", *PAPERS_WAY),
    "  with default planning": ("greedy", *DEFAULT_WAY),
}


def explorers() -> list[str]:
    """Those that the records have, Alg 3 also with what it passes by."""
    names = list(EXPLORERS)
    names.insert(names.index("online") + 1, "online, all")
    return names


def best_of_four(found: Found, world: str, steps: int) -> str | None:
    """The paper's algorithm with the least mean gap, planned as in the paper."""
    means = {name: found.mean(world, (name, *PAPERS_WAY), steps) for name in PAPERS_FOUR}
    means = {name: value for name, value in means.items() if np.isfinite(value)}
    return min(means, key=lambda name: means[name]) if means else None


def curves_figure(found: Found, references: list[dict[str, Any]], axis: str) -> Any:
    """Gap against steps, episodes or samples on every world."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = min(4, len(references))
    rows = -(-len(references) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.9 * columns, 2.5 * rows + 0.9), layout="constrained")
        places = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        for place, each in zip(places, references, strict=False):
            for line in LINES:
                x, mean, error = found.curve(each["world"], line, axis)
                if not len(x):
                    continue
                style = _STYLES[line]
                way = "as in the paper" if line[1:] == PAPERS_WAY else "default plan"
                place.plot(x, mean, marker=".", markersize=4, label=f"{line[0]}, {way}", **style)
                place.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.15, lw=0)
            for name in ("myopic", "random"):
                place.axhline(each[name], label=f"{name} policy", **LEVELS[name])
            place.set_title(each["world"], fontsize=9)
            place.set_xlabel(AXES[axis], fontsize=8)
            place.set_xscale("log")
        for place in places[len(references) :]:
            place.set_visible(False)
        shown = places[: len(references)]
        from_zero(shown)
        for place in places[::columns]:
            place.set_ylabel("gap at the start")
        legend_below(figure, shown, columns=3)
        figure.suptitle(f"Gap against {AXES[axis]}: mean over runs and rewards, ± one standard error")
    return figure


def _cell(gaps: Any) -> str:
    """Mean over runs and rewards, standard error over runs, and the worst reward's mean."""
    return f"{gaps.mean():.3f} ± {_error(gaps.mean(axis=1)):.3f} ({gaps.mean(axis=0).max():.2f})"


def _error(values: Any) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
