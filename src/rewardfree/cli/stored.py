"""A folder of results, and the seeds of new ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewardfree.arrays import count
from rewardfree.experiments.store import Store

#: The file of a folder that holds its results.
RESULTS = "results.sqlite"
#: The folder that holds them where each unit is a file.
UNITS = "units"


def seeds_from(first: int, seed: int, runs: int | None, default: int) -> range:
    """The seeds of so many runs, none of which was used while a method was made."""
    start = first + count(seed, "seed", at_least=0)
    return range(start, start + (default if runs is None else count(runs, "runs")))


@contextmanager
def stored(folder: Path) -> Iterator[Store]:
    """The results of a folder, which must have some."""
    if (folder / UNITS).is_dir() and not (folder / RESULTS).exists():
        raise ValueError(
            f"{folder} is of `rewardfree reproduce beyond`, baselines or control: type that again, and "
            "what it shows is written anew from what is stored"
        )
    with Store(folder / RESULTS, create=False) as store:
        if next(store.rows(), None) is None:
            raise ValueError(f"there are no results in {folder} yet: run its sweep again")
        yield store
