"""The study of baselines: what is run, and what is written of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rewardfree.experiments.folder import ResultsFolder
from rewardfree.report.pictures import Picture
from rewardfree.report.view import about, sweep_view
from rewardfree.studies.baselines.specification import (
    EXPRESS_SCALE,
    JIN_SCALE,
    LARGE_UCRL_SCALE,
    UCRL_SCALE,
    BaselineUnit,
)
from rewardfree.studies.baselines.tables import (
    AXES,
    FIGURES,
    as_lines,
    curves_figure,
    exponents_table,
    gaps_table,
    seconds_table,
    systems_table,
    visits_table,
)
from rewardfree.studies.paper.complexities import complexity_table
from rewardfree.studies.problems import (
    PAPER,
    REWARDS,
    TABULAR,
    Comparison,
    ComparisonStudy,
    hard_and_paper,
    instance_named,
)

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
        return {**view, "about": about(self.seeds, folder.made())}
