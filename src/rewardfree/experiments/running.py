"""Run what is missing, in processes of this machine or on a cluster; this process alone writes results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from rewardfree.arrays import count
from rewardfree.experiments import cluster as others
from rewardfree.experiments import local
from rewardfree.experiments.runnable import Run
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import Work
from rewardfree.progress import progress as shown


def run_units(
    units: Iterable[Work],
    store: Store,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    allow_imports: bool = False,
    progress: bool | None = None,
) -> int:
    """Run the units that the store lacks, and say how many there were. Running it again does nothing.

    `jobs` processes of this machine, by default one for each core; or the workers of the Dask scheduler at
    the address `cluster`. The results are the same.
    """
    check_where(jobs, cluster)
    with store.writing():
        units = list(dict.fromkeys(units))
        store.want(unit.key for unit in units)
        done = store.keys()
        waiting = _mixed([unit for unit in units if unit.key not in done])
        pairs = finished_units(waiting, jobs, cluster, allow_imports)
        finished = ((float(i + 1), pair) for i, pair in enumerate(pairs))
        with closing(shown(finished, max(len(waiting), 1), progress)) as results:
            for _, (unit, records) in results:
                store.add(unit, records)
    return len(waiting)


def finished_units(
    waiting: Sequence[Run], jobs: int | None, cluster: str | None, allow_imports: bool = False
) -> Iterator[tuple[Run, list[Any]]]:
    """Units with their results, in whichever order they end: on the cluster, if there is one, or here."""
    if cluster is not None:
        return others.finished_units(waiting, cluster, allow_imports)
    return local.finished_units(waiting, jobs or os.cpu_count() or 1, allow_imports)


def check_where(jobs: int | None, cluster: str | None) -> None:
    """Refuse what cannot be meant, before anything is made."""
    if jobs is not None:
        count(jobs, "jobs")
    if cluster is not None:
        if jobs is not None:
            raise ValueError("jobs are processes of this machine: give --jobs or --cluster, not both")
        others.check_address(cluster)


def _mixed(units: list[Work]) -> list[Work]:
    """World by world, which a worker keeps; within one by key, which is as good as random.

    The time that is left can then be told from the time that has passed.
    """
    worlds = list(dict.fromkeys(unit.world for unit in units))
    return sorted(units, key=lambda unit: (worlds.index(unit.world), unit.key))
