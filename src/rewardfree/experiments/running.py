"""Run what is missing, in processes of this machine or on a cluster; this process alone writes results."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, Protocol, TypeVar

from rewardfree.arrays import count
from rewardfree.experiments import cluster as others
from rewardfree.experiments import local
from rewardfree.experiments.runnable import Run, errors_of
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import Reference, Unit, Work, made_world
from rewardfree.posterior import room_for
from rewardfree.progress import progress as shown

T = TypeVar("T")
#: So many worlds are drawn before they are needed.
AHEAD = 2


def run_units(
    units: Iterable[Work],
    store: Store,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    allow_imports: bool = False,
    watch: Watch | None = None,
) -> int:
    """Run the units that the store lacks, and say how many there were. Running it again does nothing.

    `jobs` processes of this machine, by default one for each core; or the workers of the Dask scheduler at
    the address `cluster`. The results are the same. `watch` sees units as they end, to say how far it is; by
    default a line on a terminal does.
    """
    check_where(jobs, cluster)
    units = list(dict.fromkeys(units))
    check_devices(units, jobs, cluster)
    with store.writing():
        store.want(unit.key for unit in units)
        done = store.keys()
        waiting = _mixed([unit for unit in units if unit.key not in done])
        pairs = finished_units(waiting, jobs, cluster, allow_imports)
        with closing((watch or _line)(pairs, len(units), len(units) - len(waiting))) as results:
            for unit, records in results:
                store.add(unit, records)
    return len(waiting)


class Watch(Protocol):
    """Passes on what is finished, `total` things of which some were `stored` before, and may show it."""

    def __call__(self, items: Iterator[T], total: int, stored: int) -> Generator[T, None, None]: ...


def _line(items: Iterator[T], total: int, stored: int) -> Generator[T, None, None]:
    counted = ((float(i + 1), item) for i, item in enumerate(items))
    for _, item in shown(counted, max(total - stored, 1)):
        yield item


def finished_units(
    waiting: Sequence[Run], jobs: int | None, cluster: str | None, allow_imports: bool = False
) -> Iterator[tuple[Run, list[Any]]]:
    """Units with their results, in whichever order they end: on the cluster, if there is one, or here."""
    if cluster is not None:
        return others.finished_units(waiting, cluster, allow_imports)
    processes = jobs or os.cpu_count() or 1
    if on_device(waiting):
        rest = [unit for unit in waiting if isinstance(unit, Unit) and unit.device == "cpu"]
        first = [unit for unit in waiting if unit not in rest]
        return itertools.chain(
            _one_by_one(first, allow_imports), local.finished_units(rest, processes, allow_imports)
        )
    return local.finished_units(waiting, processes, allow_imports)


def _one_by_one(waiting: Sequence[Run], allow_imports: bool) -> Iterator[tuple[Run, list[Any]]]:
    """Units in this process: a device is busy with one of them, and its memory is not shared out.

    Meanwhile the cores draw the next worlds; what goes wrong there goes wrong again where they are needed.
    """
    worlds = list(dict.fromkeys(unit.world for unit in waiting if isinstance(unit, Unit | Reference)))
    begun = 0
    with ThreadPoolExecutor(1) as thread:  # more would keep this one from feeding the device
        for unit in waiting:
            near = worlds.index(unit.world) + AHEAD if isinstance(unit, Unit | Reference) else 0
            for table in worlds[begun:near]:
                thread.submit(made_world, table, allow_imports)
            begun = max(begun, near)
            with errors_of(unit):
                records = unit.run(allow_imports)
            yield unit, records


def begin_first_world(units: Iterable[Work]) -> None:
    """Draw the first world in a thread, for whoever is going to need it in a few seconds."""

    def draw() -> None:
        with suppress(Exception):  # it is raised again where the world is needed
            made_world(next(iter(units)).world, allow_imports=False)

    threading.Thread(target=draw, daemon=True).start()


def on_device(units: Iterable[Any]) -> bool:
    """Whether some of them run on one that is not the CPU."""
    return any(_device(unit) != "cpu" for unit in units)


def _device(unit: Any) -> str:
    return str(getattr(unit, "device", "cpu"))


def check_devices(units: Iterable[Any], jobs: int | None, cluster: str | None) -> None:
    """Refuse a device that this machine lacks, unless others run the units."""
    for device in {_device(unit) for unit in units} - {"cpu"}:
        if jobs is not None:
            raise ValueError(f"--jobs are processes on the CPU, but {device} has one: leave out --jobs")
        if cluster is None:
            room_for(device)


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
