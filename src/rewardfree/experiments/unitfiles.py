"""Units whose records are files, one each: what is there is not run again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rewardfree.experiments.runnable import Runnable
from rewardfree.experiments.running import check_where, finished_units
from rewardfree.files import written_whole


class Keyed(Runnable, Protocol):
    """A unit with a name for its file."""

    @property
    def key(self) -> str: ...


Unit = TypeVar("Unit", bound=Keyed)


def run_stored(
    units: Sequence[Unit], folder: Path, jobs: int | None = None, cluster: str | None = None
) -> Iterator[tuple[int, Unit]]:
    """Run the units that the folder lacks, here or on a cluster; say which one is done and how many are."""
    check_where(jobs, cluster)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [unit for unit in units if not is_stored(unit, folder)]
    done = len(units) - len(missing)
    for unit, records in finished_units(missing, jobs, cluster):  # this process alone writes
        with written_whole(_file(unit, folder)) as part:
            part.write_text(json.dumps(records, separators=(",", ":")), encoding="utf-8")
        done += 1
        yield done, unit


def is_stored(unit: Keyed, folder: Path) -> bool:
    """Whether a unit's records are there."""
    return _file(unit, folder).exists()


def read_stored(units: Sequence[Keyed], folder: Path) -> list[dict[str, Any]]:
    """The records of the units that are there."""
    found: list[dict[str, Any]] = []
    for unit in units:
        if is_stored(unit, folder):
            found += json.loads(_file(unit, folder).read_text(encoding="utf-8"))
    return found


def _file(unit: Keyed, folder: Path) -> Path:
    return folder / f"{unit.key}.json"
