"""The study beyond the paper: what is run, and what is written of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from rewardfree.report.pictures import Picture
from rewardfree.studies.beyond.specification import COMPARED, BeyondUnit
from rewardfree.studies.beyond.tables import (
    AXES,
    ablation_table,
    cross_table,
    curves_figure,
    headline_table,
    paper_table,
    worlds_table,
)
from rewardfree.studies.problems import MEASURES, PAPER, Comparison, ComparisonStudy, hard_and_paper


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
