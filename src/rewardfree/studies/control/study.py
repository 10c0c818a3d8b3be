"""The study of the classic-control tasks: what is run, and what is written of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rewardfree.experiments.store import Store
from rewardfree.report.pictures import Picture
from rewardfree.studies.control.specification import TASKS, ControlTask, ControlUnit
from rewardfree.studies.control.tables import control_figure, control_table, scores_table
from rewardfree.studies.study import SeededStudy


@dataclass(frozen=True)
class Control(SeededStudy[list[dict[str, Any]]]):
    """Every task with its rewards."""

    name: ClassVar[str] = "control"
    first_seed: ClassVar[int] = 2000
    usual_runs: ClassVar[int] = 10

    @property
    def tasks(self) -> Sequence[ControlTask]:
        return TASKS[:2] if self.quick else TASKS

    def units(self) -> list[ControlUnit]:
        size = (150, 3) if self.quick else (1000, 20)
        slow_first = list(reversed(self.tasks))
        return [
            ControlUnit(task.env, seed, *size, oracle)
            for oracle in (False, True)
            for seed in self.seeds
            for task in slow_first
        ]

    def read(self, store: Store) -> list[dict[str, Any]]:
        return store.tables()

    def table(self, records: list[dict[str, Any]]) -> list[str]:
        text = control_table(records, self.tasks)
        return (
            text if self.quick else [*text, "", *scores_table(records, self.tasks)]
        )  # a look is no evidence

    def pictures(self, records: list[dict[str, Any]], folder: Path) -> list[Picture]:
        return [Picture(folder / "control", partial(control_figure, records, self.tasks))]
