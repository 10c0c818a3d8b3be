"""The study beyond the paper: what is run, and what is written of it."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rewardfree.report.gaps import MEASURES
from rewardfree.report.numbers import standard_error
from rewardfree.report.panels import DrawnCurve, panels_figure
from rewardfree.report.pictures import Picture
from rewardfree.report.style import COLOURS
from rewardfree.studies.beyond.specification import (
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
    BeyondUnit,
)
from rewardfree.studies.problems import (
    PAPER,
    Comparison,
    ComparisonStudy,
    WorldProfile,
    hard_and_paper,
)

#: Ratios to the best of the paper's four that are counted.
THIRD, FIFTH = 1.0 / 3.0, 1.0 / 5.0
SCOUT = ("scout", *DEFAULT_WAY)
CONTROL = ("uniform", *DEFAULT_WAY)
AXES = {"steps": "environment steps", "episodes": "episodes", "samples_per_step": "kept samples per step"}
_STYLES: dict[tuple[str, ...], dict[str, Any]] = {
    line: {"color": colour, "linestyle": dash, "linewidth": width}
    for line, (colour, dash, width) in zip(
        LINES,
        [
            *((colour, "-", 1.1) for colour in COLOURS[: len(PAPERS_FOUR)]),  # as in Figure 1
            ("#999999", ":", 1.1),
            ("#555555", "--", 1.4),
            (COLOURS[5], "-", 2.2),
        ],
        strict=True,
    )
}


def worlds_table(profiles: Iterable[WorldProfile]) -> list[str]:
    """What each world asks of a learner."""
    lines = [
        "worlds: V* and the loss of policies that need no data, means over the rewards, at the start",
        f"{'world':<27}{'V*':>7}{'myopic':>9}{'random':>9}{'rows (TV)':>11}{'next states':>13}"
        f"{'reachable':>11}",
    ]
    for profile in profiles:
        losses = "".join(f"{gap:>9.2f}" for gap in profile.policies.values())
        lines.append(
            f"{profile.world:<27}{profile.optimal:>7.2f}{losses}{profile.row_distance:>11.2f}"
            f"{profile.next_states:>13.1f}{profile.reachable:>11.2f}"
        )
    return lines


def headline_table(
    comparison: Comparison, worlds: Sequence[str], steps: int, measure: str = "start"
) -> list[str]:
    """Scout and default planning against the best of the paper's four, and against random data so planned."""
    lines = [
        f"{MEASURES[measure]} at {steps} environment steps: mean over runs and rewards ± standard error, "
        "(the worst reward's)",
        f"{'world':<22}{'runs':>5}{'best of the four, as in the paper':>36}{'Scout, default plan':>24}"
        f"{'ratio':>14}  {'':<14}{'uniform, default plan':>24}{'ratio':>14}",
    ]
    ratios = []
    for world, (best, theirs, ours, control) in _contests(comparison, worlds, steps, measure):
        ratios.append(ours.mean() / theirs.mean())
        lines.append(
            f"{world:<22}{len(ours):>5}{best + ' ' + _cell(theirs):>36}{_cell(ours):>24}"
            f"{_ratio(ours, theirs):>14}  {verdict(ours, theirs):<14}"
            f"{_cell(control):>24}{_ratio(ours, control):>14}  {verdict(ours, control)}"
        )
    thirds, fifths = (sum(ratio <= limit for ratio in ratios) for limit in (THIRD, FIFTH))
    lines.append(f"against the four: at most 1/3 on {thirds} of {len(ratios)}, at most 1/5 on {fifths}")
    return lines


def verdict(ours: Any, theirs: Any) -> str:
    """Whether a ratio is a difference at all: not within two standard errors."""
    if len(ours) < 2 or len(theirs) < 2:
        return "one run"
    error = np.hypot(standard_error(ours.mean(axis=1)), standard_error(theirs.mean(axis=1)))
    difference = theirs.mean() - ours.mean()
    if abs(difference) <= 2.0 * error:
        return "no difference"
    if difference < 0.0:
        return "worse"
    ratio = ours.mean() / theirs.mean()
    return "at most 1/5" if ratio <= FIFTH else "at most 1/3" if ratio <= THIRD else "better"


def paper_table(comparison: Comparison, steps: int) -> list[str]:
    """The paper's own worlds, where argmax_a r is hard to beat."""
    lines = [
        f"the paper's worlds at {steps} steps: gap at the start, mean over runs and rewards",
        f"{'world':<27}{'myopic':>8}{'best of the four, as in the paper':>36}{'Scout, default plan':>24}"
        f"{'uniform, default plan':>24}",
    ]
    worlds = [world for world in comparison.profiles if world in PAPER]
    for world, (best, theirs, ours, control) in _contests(comparison, worlds, steps):
        myopic = comparison.profiles[world].policies["myopic"]
        lines.append(
            f"{world:<27}{myopic:>8.3f}{best + ' ' + _cell(theirs):>36}{_cell(ours):>24}{_cell(control):>24}"
        )
    return lines


def _contests(
    comparison: Comparison, worlds: Iterable[str], steps: int, measure: str = "start"
) -> Iterator[tuple[str, tuple[str, Any, Any, Any]]]:
    """The best of the paper's four, its gaps, Scout's and those of random data, where all are measured."""
    for world in worlds:
        best = best_of_four(comparison, world, steps, measure)
        ours, control = (comparison.gaps(world, method, steps, measure) for method in (SCOUT, CONTROL))
        if best is not None and ours is not None and control is not None:
            theirs = comparison.gaps(world, (best, *PAPERS_WAY), steps, measure)
            yield world, (best, theirs, ours, control)


def cross_table(comparison: Comparison, worlds: Sequence[str], steps: int) -> list[str]:
    """All explorers x models x planners: the gap at the start as a share of V*, over the worlds."""
    lines = [
        f"all of it at {steps} steps: gap at the start / V* in percent, mean over {len(worlds)} worlds",
        f"{'explorer':<22}{'planner':<24}" + "".join(f"{model:>22}" for model in MODELS),
    ]
    for explorer, planner in itertools.product(explorers(), PLANNERS):
        shares = [_shares(comparison, worlds, (explorer, model, planner), steps) for model in MODELS]
        lines.append(f"{explorer:<22}{planner:<24}" + "".join(f"{100 * s.mean():>22.1f}" for s in shares))
    return lines


def ablation_table(comparison: Comparison, worlds: Sequence[str]) -> list[str]:
    """The default with something taken away, and the paper's way with something added."""
    lines = [
        "changes, each against the line above that is not indented: gap at the start / V* in percent over "
        f"{len(worlds)} worlds ± standard error over runs",
        f"{'':<66}" + "".join(f"{n:>10} steps" for n in COMPARED),
    ]
    for name, method in ABLATION:
        shares = [_shares(comparison, worlds, method, n) for n in COMPARED]
        cells = "".join(f"{100 * s.mean():>9.1f} ± {100 * standard_error(s):4.1f}" for s in shares)
        lines.append(f"{name:<62}{cells}")
    return lines


def _shares(comparison: Comparison, worlds: Sequence[str], method: Sequence[str], steps: int) -> Any:
    """Gaps as shares of V*, a mean over worlds and rewards for each run; as many runs as every world has."""
    gaps = {world: comparison.gaps(world, method, steps) for world in worlds}
    if not gaps or any(values is None for values in gaps.values()):
        return np.array([np.nan])
    runs = min(map(len, gaps.values()))
    shares = [
        values[:runs].mean(axis=1) / comparison.profiles[world].optimal for world, values in gaps.items()
    ]
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
    """The explorers that the records have; Alg 3 also with the steps that it does not keep."""
    names = list(EXPLORERS)
    names.insert(names.index(ALL_OF) + 1, ALL)
    return names


def best_of_four(comparison: Comparison, world: str, steps: int, measure: str = "start") -> str | None:
    """The paper's algorithm with the least mean gap, planned as in the paper."""
    gaps = {name: comparison.gaps(world, (name, *PAPERS_WAY), steps, measure) for name in PAPERS_FOUR}
    means = {name: float(values.mean()) for name, values in gaps.items() if values is not None}
    return min(means, key=lambda name: means[name]) if means else None


def curves_figure(comparison: Comparison, axis: str) -> Any:
    """Gap against steps, episodes or samples on every world."""

    def curves(world: str) -> Iterator[DrawnCurve]:
        for line in LINES:
            way = "as in the paper" if line[1:] == PAPERS_WAY else "default plan"
            yield f"{line[0]}, {way}", *comparison.curve(world, line, axis), _STYLES[line]

    title = f"Gap against {AXES[axis]}: mean over runs and rewards, ± one standard error"
    return panels_figure(comparison.levels, curves, AXES[axis], title)


def _cell(gaps: Any) -> str:
    """Mean over runs and rewards, standard error over runs, and the worst reward's mean."""
    error = f" ± {standard_error(gaps.mean(axis=1)):.3f}" if len(gaps) > 1 else ""
    return f"{gaps.mean():.3f}{error} ({gaps.mean(axis=0).max():.2f})"


def _ratio(ours: Any, theirs: Any) -> str:
    """Ratio of the two mean gaps, with its first-order standard error."""
    ratio = ours.mean() / theirs.mean()
    parts = [standard_error(gaps.mean(axis=1)) / gaps.mean() for gaps in (ours, theirs)]
    return f"{ratio:.2f} ± {ratio * np.hypot(*parts):.2f}" if np.isfinite(parts).all() else f"{ratio:.2f}"


@dataclass(frozen=True)
class Beyond(ComparisonStudy):
    """Every explorer, model and planner on every world."""

    name: ClassVar[str] = "beyond"
    unit: ClassVar[type[BeyondUnit]] = BeyondUnit
    first_seed: ClassVar[int] = 5000
    usual_runs: ClassVar[int] = 20
    method: ClassVar[tuple[str, ...]] = ("explorer", "model", "planner")
    budget: ClassVar[str] = "steps"
    columns: ClassVar[tuple[str, ...]] = (
        "world", "seed", *method, "steps", "episodes", "samples_per_step",
    )  # fmt: skip

    @property
    def worlds(self) -> Sequence[str]:
        return ("rooms", "tide") if self.quick else hard_and_paper()

    def table(self, comparison: Comparison) -> list[str]:
        hard = [world for world in self.worlds if world not in PAPER]
        text = [*worlds_table(comparison.profiles.values()), ""]
        for steps in COMPARED[:1] if self.quick else COMPARED:
            for measure in MEASURES:
                text += [*headline_table(comparison, hard, steps, measure), ""]
            text += [*cross_table(comparison, hard, steps), ""]
        if not self.quick:
            text += [*paper_table(comparison, max(COMPARED)), ""]
            text += [*cross_table(comparison, list(PAPER), max(COMPARED)), ""]
            text += ablation_table(comparison, hard)
        return text

    def pictures(self, comparison: Comparison, folder: Path) -> list[Picture]:
        return [
            Picture(folder / f"beyond-{axis.replace('_', '-')}", partial(curves_figure, comparison, axis))
            for axis in AXES
        ]
