"""Units whose records are files, one each: what is there is not run again.

What a clock said sits beside them, so that records of the same unit are the same bytes each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from rewardfree.experiments.runnable import Runnable
from rewardfree.experiments.running import check_where, finished_units
from rewardfree.files import written_whole

#: A record may have what it took under this name: CPU seconds by what they were spent on.
SECONDS: Final = "seconds"


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
        _write(_seconds_file(unit, folder), [record.get(SECONDS, {}) for record in records])
        _write(
            _file(unit, folder),
            [{name: each for name, each in record.items() if name != SECONDS} for record in records],
        )
        done += 1
        yield done, unit


def is_stored(unit: Keyed, folder: Path) -> bool:
    """Whether a unit's records are there, with what they took."""
    return _file(unit, folder).exists() and _seconds_file(unit, folder).exists()


def read_stored(units: Sequence[Keyed], folder: Path) -> list[dict[str, Any]]:
    """The records of the units that are there, with their seconds."""
    found: list[dict[str, Any]] = []
    for unit in units:
        if is_stored(unit, folder):
            records, seconds = _read(_file(unit, folder)), _read(_seconds_file(unit, folder))
            if len(records) != len(seconds):
                raise _damaged(_file(unit, folder), _seconds_file(unit, folder))
            found += [{**record, SECONDS: took} for record, took in zip(records, seconds, strict=True)]
    return found


def _write(path: Path, values: list[dict[str, Any]]) -> None:
    with written_whole(path) as part:
        part.write_text(json.dumps(values, separators=(",", ":")), encoding="utf-8")


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # of the text's encoding, too
        raise _damaged(path) from None
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise _damaged(path)
    return values


def _damaged(*paths: Path) -> ValueError:
    names = " or ".join(map(str, paths))
    return ValueError(f"{names} is damaged: remove it and type the command again, which runs its unit again")


def _file(unit: Keyed, folder: Path) -> Path:
    return folder / f"{unit.key}.json"


def _seconds_file(unit: Keyed, folder: Path) -> Path:
    return folder / f"{unit.key}.seconds.json"
