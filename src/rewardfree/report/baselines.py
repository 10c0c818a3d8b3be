"""Every system beside every other: gaps at equal cost, seconds, and how fast gaps fall beside the theory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.experiments.baselines import DELTA, EPSILON, SYSTEMS, Rate
from rewardfree.experiments.instances import PAPER, TABULAR
from rewardfree.report.labels import label
from rewardfree.report.panels import panels_figure
from rewardfree.report.style import COLOURS
from rewardfree.theory.rates import eps_exponent

#: What a gap can be drawn against. Queries of a generative model belong to no episode.
AXES = {"size": "kept samples of each step", "episodes": "episodes", "steps": "environment steps"}
DIMENSION = 2
_DASHES = ("-", "--", ":")


class Found:
    """Records by world and system; gaps (runs, rewards) at every size."""

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self._records: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
        for each in records:
            sizes = self._records.setdefault((each["world"], each["system"]), {})
            sizes.setdefault(each["size"], []).append(each)

    def systems(self, world: str) -> list[str]:
        return [name for name in SYSTEMS if (world, name) in self._records]

    def curve(self, world: str, system: str, axis: str) -> tuple[Any, Any, Any]:
        """Places on an axis, mean gaps at the start, and their standard errors over runs."""
        sizes = sorted(self._records.get((world, system), {}).items())
        places = [np.mean([each[axis] for each in records]) for _, records in sizes]
        gaps = [np.array([np.mean(each["start"]) for each in records]) for _, records in sizes]
        errors = [_error(each) for each in gaps]
        return np.array(places), np.array([each.mean() for each in gaps]), np.array(errors)

    def at(self, world: str, system: str, axis: str, cost: float) -> float:
        """The mean gap at a cost, interpolated in its logarithm; NaN where the system was not measured."""
        places, means, _ = self.curve(world, system, axis)
        if not len(places) or not places.all() or not places[0] <= cost <= places[-1]:
            return float("nan")
        return float(np.interp(np.log(cost), np.log(places), means))

    def seconds(self, world: str, system: str) -> tuple[float, float]:
        """CPU of one exploration, and of one plan for all rewards from all its data."""
        last = max(self._records[world, system].items())[1]
        explored, planned = (
            np.mean([each["seconds"][spent] for each in last]) for spent in ("explore", "plan")
        )
        return float(explored), float(planned)


def gaps_table(found: Found, worlds: Sequence[str], axis: str, cost: Any) -> list[str]:
    """The mean gap of every system on every world at one cost, or at the most samples (None)."""
    at = "the most samples of each step" if cost is None else f"{cost:g} {AXES[axis]}"
    lines = [
        f"mean gap at the start at {at}, over runs and rewards; - where a system was not measured there",
        f"{'':<20}" + _columns(_short(world) for world in worlds),
    ]
    for system in SYSTEMS:
        cells = []
        for world in worlds:
            _, means, errors = found.curve(world, system, axis)
            if cost is None and len(means):
                error = f" ± {errors[-1]:.3f}" if np.isfinite(errors[-1]) else ""
                cells.append(f"{means[-1]:.3f}{error}")
            else:
                gap = found.at(world, system, axis, cost) if cost is not None else float("nan")
                cells.append(f"{gap:.3f}" if np.isfinite(gap) else "-")
        lines.append(f"{system:<20}" + _columns(cells))
    return lines


def seconds_table(found: Found, worlds: Sequence[str]) -> list[str]:
    """CPU seconds of one core: an exploration to the most samples, and a plan for five rewards from it."""
    lines = [
        "CPU seconds: exploration to the most samples of each step + one plan for all rewards from them",
        f"{'':<20}" + _columns(_short(world) for world in worlds),
    ]
    for system in SYSTEMS:
        cells = [
            "{:.2f} + {:.2f}".format(*found.seconds(world, system)) if system in found.systems(world) else "-"
            for world in worlds
        ]
        lines.append(f"{system:<20}" + _columns(cells))
    return lines


def visits_table(sizes: Mapping[str, tuple[int, int, int]]) -> list[str]:
    """What the theory's constants ask of every (s,a,h) before tabular exploration may stop."""
    lines = [
        f"visits of every (s,a) at every step that end exploration with the theory's constants (epsilon "
        f"{EPSILON:g}, delta {DELTA:g}); nobody runs that",
    ]
    for world, (S, A, H) in sizes.items():
        needed = {
            name: make(EPSILON, DELTA).visits_needed(S, A, H)
            for name, make in (("rf-ucrl", rf.RFUCRL), ("rf-express", rf.RFExpress))
        }
        told = ", ".join(f"{name} {visits:.1e}" for name, visits in needed.items())
        lines.append(f"  {world} (S {S}, A {A}, H {H}): {told}")
    return lines


def fitted_exponent(places: Any, means: Any) -> float:
    """The x of gap ~ cost^-x by least squares of logarithms; NaN if a gap vanishes."""
    if len(places) < 2 or not (places > 0).all() or not (means > 0).all():
        return float("nan")
    return -float(np.polyfit(np.log(places), np.log(means), 1)[0])


def theory_exponent(system: str, world: str) -> str:
    """The x of gap ~ episodes^-x: 1/2, or 1/(2 + d/nu) for a Matern kernel; - where nothing is promised.

    In brackets where Table 1 has no such row, or its assumption does not hold on that world.
    """
    rate = SYSTEMS[system].rate
    kernel = PAPER.get(world)
    nu = getattr(kernel, "nu", None)
    by_kernel = None if kernel is None else 0.5 if nu is None else 1.0 / eps_exponent(nu, DIMENSION)
    promised, printed = {
        Rate.JIN: (0.5, True),
        Rate.COUNTS: (0.5, False),
        Rate.LINEAR: (0.5, world in TABULAR),  # features for each (s,a): a linear world
        Rate.QIU: (by_kernel if nu is None else None, True),  # its bound is vacuous for Matern kernels
        Rate.VAKILI: (by_kernel if nu is not None else None, True),
        Rate.ONLINE: (by_kernel, True),
        Rate.GENERATIVE: (by_kernel, False),
        Rate.NONE: (None, False),
    }[rate]
    if promised is None:
        return "-"
    return f"{promised:.2f}" if printed else f"({promised:.2f})"


def exponents_table(found: Found, worlds: Sequence[str]) -> list[str]:
    """How fast gaps fall with episodes, fitted over all sizes, beside what Table 1 promises in the end.

    An episode more for every step, or H queries, are a sample more of each; of Jin et al. those that are kept
    count, for the others are as many at every size.
    """
    lines = [
        "x of gap ~ episodes^-x, fitted over all sizes / by Table 1, constants aside; in brackets where it",
        "has no such row or its assumption does not hold; - where nothing is promised",
        f"{'':<20}" + _columns(_short(world) for world in worlds),
    ]
    for system in SYSTEMS:
        cells = []
        for world in worlds:
            sizes, means, _ = found.curve(world, system, "size")
            promised = theory_exponent(system, world)
            cells.append(f"{fitted_exponent(sizes, means):.2f} / {promised}" if len(means) else "-")
        lines.append(f"{system:<20}" + _columns(cells))
    return lines


def curves_figure(found: Found, references: list[dict[str, Any]], axis: str) -> Any:
    """Gap against samples, episodes or steps on every world, a line for every system."""
    styles = {
        name: {"color": COLOURS[i % 7], "linestyle": _DASHES[i // 7], "linewidth": 1.2}
        for i, name in enumerate(SYSTEMS)
    }

    def curves(world: str) -> Iterable[tuple[str, Any, Any, Any, dict[str, Any]]]:
        for system in found.systems(world):
            yield label(system), *found.curve(world, system, axis), styles[system]

    title = f"Gap against {AXES[axis]}: mean over runs and rewards, ± one standard error"
    return panels_figure(references, curves, AXES[axis], title, columns=4)


def _columns(cells: Iterable[str]) -> str:
    return "".join(f"{cell:>18}" for cell in cells)


def _short(world: str) -> str:
    """A name that fits a column."""
    return world.replace("squared-exponential", "se").replace("misspecified", "misspec.")


def _error(values: Any) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")
