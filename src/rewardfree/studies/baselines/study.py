"""The study of baselines: what is run, and what is written of it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.experiments.folder import ResultsFolder
from rewardfree.report.gaps import Lines, lines_of
from rewardfree.report.labels import label
from rewardfree.report.panels import DrawnCurve, panels_figure
from rewardfree.report.pictures import Picture
from rewardfree.report.style import curve_styles
from rewardfree.report.view import about, quick_view, sweep_view
from rewardfree.studies.baselines.specification import (
    DELTA,
    EPSILON,
    EXPRESS_SCALE,
    JIN_SCALE,
    LARGE_UCRL_SCALE,
    SYSTEMS,
    UCRL_SCALE,
    BaselineUnit,
    Rate,
)
from rewardfree.studies.paper.complexities import complexity_table
from rewardfree.studies.problems import (
    MEASURES,
    PAPER,
    REWARDS,
    TABULAR,
    Comparison,
    ComparisonStudy,
    hard_and_paper,
    instance_named,
)
from rewardfree.theory.complexity import eps_exponent

#: What a gap can be drawn against. Queries of a generative model belong to no episode.
AXES = {"size": "kept samples of each step", "episodes": "episodes", "steps": "environment steps"}
#: Two figures, for one would have too many lines: the paper's systems and ours, and those that it names.
FIGURES = {
    "paper": ("generative", "online", "qiu", "greedy", "cme", "scout", "uniform", "uniform, pooled"),
    "prior": (
        "partitioned", "online", "linear", "kernel rf-ucrl", "kernel rf-express", "rf-ucrl", "jin",
        "rf-express", "uniform",
    ),
}  # fmt: skip
#: What a page says that systems plan with: every one has its own, as in the table of systems.
OWN = "each system's own planner"
DIMENSION = 2
#: As many worlds fit beside each other on a page of text.
ACROSS = 4


def systems_of(comparison: Comparison, world: str) -> list[str]:
    """The systems that were measured on a world."""
    return [name for name in SYSTEMS if comparison.runs(world, (name,))]


def last_records(comparison: Comparison, world: str, system: str) -> list[Mapping[str, Any]]:
    """The records at the most samples; none where the system was not measured."""
    of_sizes = list(comparison.runs(world, (system,)).values())
    return of_sizes[-1] if of_sizes else []


def gap_at(comparison: Comparison, world: str, system: str, axis: str, cost: float) -> str:
    """The mean gap at a cost and its error; between two sizes in the logarithm of the cost, marked ~.

    - where the system was not measured there.
    """
    places, means, errors = comparison.curve(world, (system,), axis)
    if not len(places) or not places.all() or not places[0] <= cost <= places[-1]:
        return "-"
    mean, error = (float(np.interp(np.log(cost), np.log(places), values)) for values in (means, errors))
    return ("" if (places == cost).any() else "~") + _with_error(mean, error)


def as_lines(comparison: Comparison) -> Lines:
    """The same as the curves of a page, means over rewards, with what needs no data."""
    runs = (
        (record["world"], "", record["system"], record["seed"], OWN, *(record[axis] for axis in AXES),
         *_means(record))
        for record in comparison.records
    )  # fmt: skip
    levels = (
        (world, "", "no data", 0, policy, 0, 0, 0, *_means(gaps))
        for world, profile in comparison.profiles.items()
        for policy, gaps in profile.levels.items()
    )
    return lines_of([*runs, *levels])


def beside(worlds: Sequence[str]) -> Iterator[list[str]]:
    """The worlds that share a table: the paper's, the hard suite's and tabular ones, as many as fit."""
    kinds = [
        [world for world in worlds if world in PAPER],
        [world for world in worlds if world not in PAPER and world not in TABULAR],
        [world for world in worlds if world in TABULAR],
    ]
    for kind in kinds:
        for first in range(0, len(kind), ACROSS):
            yield kind[first : first + ACROSS]


def systems_table(comparison: Comparison, worlds: Sequence[str]) -> list[str]:
    """What every system estimates [PV] with, plans with, and has cost at the most samples of each step."""
    shown = [kind[0] for kind in beside(worlds)]
    shown = list(dict.fromkeys([shown[0], shown[-1]]))  # one of each size
    heads = [f"on {_short(world)}" for world in shown]
    lines = [
        "what a system estimates and plans with; samples of each step / episodes / steps at the end",
        f"{'':<20}{'estimate':<31}{'plans with':<13}" + "".join(f"{head:>23}" for head in heads),
    ]
    for name, system in SYSTEMS.items():
        planner = "the default" if system.planner is None else _planner(system.planner)
        cells = []
        for world in shown:
            records = last_records(comparison, world, name)
            costs = (np.mean([record[axis] for record in records]) for axis in AXES)
            cells.append(" / ".join(f"{cost:,.0f}" for cost in costs) if records else "-")
        lines.append(f"{name:<20}{system.estimate:<31}{planner:<13}" + "".join(f"{c:>23}" for c in cells))
    return lines


def gaps_table(comparison: Comparison, worlds: Sequence[str], axis: str, cost: float | None) -> list[str]:
    """The mean gap of every system on every world at one cost, or at the most samples (None)."""
    at = "the most samples of each step" if cost is None else f"{cost:,g} {AXES[axis]}"
    lines = [
        f"mean gap at the start at {at}, over rewards and runs, ± one standard error;",
        "~ interpolated between two sizes; - where a system was not measured",
    ]

    def cell(world: str, system: str) -> str:
        if cost is not None:
            return gap_at(comparison, world, system, axis, cost)
        _, means, errors = comparison.curve(world, (system,), axis)
        return _with_error(means[-1], errors[-1]) if len(means) else "-"

    return lines + _rows(worlds, cell)


def seconds_table(comparison: Comparison, worlds: Sequence[str]) -> list[str]:
    """CPU seconds of one core: an exploration to the most samples, and a plan for all rewards from it."""
    lines = [f"CPU seconds: exploration to the most samples of each step + one plan for {REWARDS} rewards"]

    def cell(world: str, system: str) -> str:
        seconds = [record["seconds"] for record in last_records(comparison, world, system)]
        means = (np.mean([spent[part] for spent in seconds]) for part in ("explore", "plan"))
        return " + ".join(f"{mean:.2f}" for mean in means) if seconds else "-"

    return lines + _rows(worlds, cell)


def visits_table(sizes: Mapping[str, tuple[int, int, int]]) -> list[str]:
    """What the theory's constants ask of every (s,a,h) before tabular exploration may stop."""
    lines = [
        "visits of every (s,a) at every step that end exploration with the theory's constants,",
        f"epsilon {EPSILON:g} and delta {DELTA:g}: computed, not run",
    ]
    for world, (S, A, H) in sizes.items():
        needed = {
            name: make(EPSILON, DELTA).visits_needed(S, A, H)
            for name, make in (("rf-ucrl", rf.baselines.RFUCRL), ("rf-express", rf.baselines.RFExpress))
        }
        visits = ", ".join(f"{name} {number:.1e}" for name, number in needed.items())
        lines.append(f"  {world} (S {S}, A {A}, H {H}): {visits}")
    return lines


def fitted_exponent(places: Any, gaps: Any) -> tuple[float, float]:
    """The x of gap ~ cost^-x for the mean of gaps (runs,n), by least squares of logarithms, and its error.

    The error is the jackknife's, over runs. NaN where there is nothing to fit, or a mean vanishes.
    """

    def fit(of_runs: Any) -> float:
        means = of_runs.mean(axis=0)
        if len(places) < 2 or not (places > 0).all() or not (means > 0).all():
            return float("nan")
        return -float(np.polyfit(np.log(places), np.log(means), 1)[0])

    runs = len(gaps)
    if runs == 0:
        return float("nan"), float("nan")
    if runs == 1:
        return fit(gaps), float("nan")
    without = np.array([fit(np.delete(gaps, i, axis=0)) for i in range(runs)])
    return fit(gaps), float(np.sqrt((runs - 1) / runs * ((without - without.mean()) ** 2).sum()))


def theory_exponent(system: str, world: str) -> str:
    """The x of gap ~ episodes^-x: 1/2, or 1/(2 + d/nu) for a Matern kernel; - where nothing is promised.

    In brackets where Table 1 has no such row, or its assumption does not hold on that world.
    """
    rate = SYSTEMS[system].rate
    kernel = PAPER.get(world)
    nu = kernel.nu if isinstance(kernel, rf.Matern) else None
    tabular = world in TABULAR  # a delta kernel has as many dimensions as there are z
    if world not in PAPER and not tabular:
        return "-"  # no kernel of which it is a draw
    by_kernel = 0.5 if nu is None else 1.0 / eps_exponent(nu, DIMENSION)
    promised, printed = {
        Rate.JIN: (0.5, True),
        Rate.COUNTS: (0.5, False),
        Rate.LINEAR: (0.5, tabular),  # features for each (s,a): a linear world
        Rate.QIU: (by_kernel if nu is None else None, not tabular),  # vacuous for Matern kernels
        Rate.VAKILI: (by_kernel, nu is not None),  # without a split it is Qiu's
        Rate.ONLINE: (by_kernel, not tabular),
        Rate.GENERATIVE: (by_kernel, False),
        Rate.NONE: (None, False),
    }[rate]
    if promised is None:
        return "-"
    return f"{promised:.2f}" if printed else f"({promised:.2f})"


def exponents_table(comparison: Comparison, worlds: Sequence[str]) -> list[str]:
    """How fast gaps fall with episodes, fitted over all sizes, beside what Table 1 promises in the end."""
    lines = [
        "x of the gap at the start ~ episodes^-x, fitted over all sizes ± its error (jackknife over runs) /",
        "by Table 1, in brackets where it has no such row or its assumption does not hold; - where nothing",
        "is promised, or a gap vanishes, and no error where it does without one of the runs. An episode more",
        "for every step, or H queries, are a kept sample more of each: fitted against those. Of jin only",
        "episodes of its second phase count. On 100 x 100 visits are too few for any tabular rate.",
    ]

    def cell(world: str, system: str) -> str:
        places, gaps = comparison.places(world, (system,), "size"), comparison.gaps_of_runs(world, (system,))
        exponent, error = fitted_exponent(places, gaps)
        if np.isnan(exponent):
            return "-"
        return f"{_with_error(exponent, error, 2)} / {theory_exponent(system, world)}"

    return lines + _rows(worlds, cell, 22)


def curves_figure(comparison: Comparison, axis: str, systems: Sequence[str]) -> Any:
    """Gap against samples, episodes or steps on every world, a line for each of some systems."""
    styles = curve_styles(systems)

    def curves(world: str) -> Iterator[DrawnCurve]:
        for system in systems:
            if system in systems_of(comparison, world):
                yield label(system), *comparison.curve(world, (system,), axis), styles[system]

    title = f"Gap against {AXES[axis]}: mean over runs and rewards, ± one standard error"
    if axis == "episodes" and "generative" in systems:
        title += " (queries of Alg 2 belong to no episode)"
    return panels_figure(comparison.levels, curves, AXES[axis], title, logarithmic=True)


def _rows(worlds: Sequence[str], cell: Any, width: int = 17) -> list[str]:
    """A block of rows, one for each system, for every few worlds that fit beside each other."""
    lines = []
    for columns in beside(worlds):
        lines.append(f"{'':<20}" + "".join(f"{_short(world):>{width}}" for world in columns))
        lines += [
            f"{system:<20}" + "".join(f"{cell(world, system):>{width}}" for world in columns)
            for system in SYSTEMS
        ]
    return lines


def _means(record: Mapping[str, Any]) -> list[float]:
    return [float(np.mean(record[measure])) for measure in MEASURES]


def _with_error(mean: float, error: float, digits: int = 3) -> str:
    return f"{mean:.{digits}f}" + (f" ± {error:.{digits}f}" if np.isfinite(error) else "")


def _planner(planner: rf.planning.ValuePlanner) -> str:
    return f"bonus {planner.beta:g}" if planner.weight else "the mean"


def _short(world: str) -> str:
    """A name that fits a column."""
    return world.replace("squared-exponential", "se").replace("misspecified", "misspec.")


SCALES = (
    f"bonus_scale: rf-ucrl {UCRL_SCALE:g} on tabular worlds and {LARGE_UCRL_SCALE:g} on others, rf-express "
    f"{EXPRESS_SCALE:g}, jin {JIN_SCALE:g}; the theory has 1"
)
#: Environment steps at which systems are compared on the larger worlds: 160 whole episodes.
STEPS = 1600


@dataclass(frozen=True)
class Baselines(ComparisonStudy):
    """Every system on every world."""

    name: ClassVar[str] = "baselines"
    unit: ClassVar[type[BaselineUnit]] = BaselineUnit
    first_seed: ClassVar[int] = 6000
    usual_runs: ClassVar[int] = 20
    method: ClassVar[tuple[str, ...]] = ("system",)
    budget: ClassVar[str] = "size"
    columns: ClassVar[tuple[str, ...]] = ("world", "seed", "system", "size", "episodes", "steps")

    @property
    def worlds(self) -> Sequence[str]:
        if self.quick:
            return ("rooms", "riverswim")
        return (*PAPER, *[world for world in hard_and_paper() if world not in PAPER], *TABULAR)

    def table(self, comparison: Comparison) -> list[str]:
        worlds = self.worlds
        text = [*systems_table(comparison, worlds), SCALES, ""]
        text += [*gaps_table(comparison, worlds, "size", None), ""]
        if not self.quick:
            large = [world for world in worlds if world not in TABULAR]
            text += [*gaps_table(comparison, large, "steps", STEPS), ""]
        text += [*seconds_table(comparison, worlds), ""]
        shown = {name: instance_named(name).world for name in (*TABULAR, *([] if self.quick else PAPER))}
        text += visits_table({name: (*world.grid.shape, world.horizon) for name, world in shown.items()})
        text += ["", *complexity_table(), ""]
        return text + exponents_table(comparison, [world for world in worlds if world in {*PAPER, *TABULAR}])

    def pictures(self, comparison: Comparison, folder: Path) -> list[Picture]:
        return [
            Picture(folder / f"baselines-{name}-{axis}", partial(curves_figure, comparison, axis, systems))
            for axis, (name, systems) in itertools.product(AXES, FIGURES.items())
        ]

    def view(self, comparison: Comparison, folder: ResultsFolder) -> dict[str, Any]:
        lines = as_lines(comparison)
        title = "Every system that the paper names, on the same worlds"
        settings = f"gaps are means over {REWARDS} rewards; {SCALES}"
        view = sweep_view(lines, title, settings, names={key: key[0] for key in lines})
        view["about"] = about(self.seeds, folder.made())
        return quick_view(view, replace(self, quick=False).command) if self.quick else view
