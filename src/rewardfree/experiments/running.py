"""Run what is missing, in processes of this machine or on a cluster; this process alone writes results."""

import itertools
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rewardfree.arrays import count
from rewardfree.experiments import cluster as dask_cluster
from rewardfree.experiments import local
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import InstanceCache, ReferenceUnit, SweepUnit, Unit, errors_of
from rewardfree.interruption import signal_of, terminated_as_interrupted
from rewardfree.posterior.engine.backend import room_for
from rewardfree.progress import progress

T = TypeVar("T")
#: How many worlds are drawn before they are needed.
AHEAD = 2


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGHUP in the middle of a run; its text says what is stored."""

    def __init__(self, text: str, reason: KeyboardInterrupt) -> None:
        super().__init__(text)
        self.signal = signal_of(reason)


class Watch(Protocol):
    """Passes on what is finished, `total` things of which some were `stored` before, and may show it."""

    def __call__(self, items: Iterator[T], total: int, stored: int) -> Generator[T, None, None]: ...


def _progress_line(items: Iterator[T], total: int, stored: int) -> Generator[T, None, None]:
    counted = ((float(i + 1), item) for i, item in enumerate(items))
    for _, item in progress(counted, max(total - stored, 1)):
        yield item


def unwatched(items: Iterator[T], total: int, stored: int) -> Generator[T, None, None]:
    """Pass items on without showing progress."""
    yield from items


@dataclass(frozen=True)
class Runner:
    """Who runs units: processes of this machine, or the workers of a Dask scheduler. Results are the same."""

    jobs: int | None = None  # processes; None: one for each core
    cluster: str | None = None  # the scheduler's address
    allow_imports: bool = False
    watch: Watch = _progress_line

    def __post_init__(self) -> None:
        if self.jobs is not None:
            count(self.jobs, "jobs")
        if self.cluster is not None:
            if self.jobs is not None:
                raise ValueError("jobs are processes of this machine: give --jobs or --cluster, not both")
            dask_cluster.check_address(self.cluster)

    @cached_property
    def cache(self) -> InstanceCache:
        """The worlds that this process draws, for a device."""
        return InstanceCache(self.allow_imports)

    def run(self, units: Iterable[Unit], store: Store) -> int:
        """Run the units that the store lacks, and say how many there were. Running it again does nothing."""
        units = list(dict.fromkeys(units))
        self.check_devices(units)
        wanted = {unit.key for unit in units}
        with (
            self.interruptions(lambda: (len(store.keys() & wanted), len(wanted)), store.path),
            store.writing(),
        ):
            store.want(unit.key for unit in units)
            done = store.keys()
            waiting = _mixed([unit for unit in units if unit.key not in done])
            pairs = self.finished(waiting)
            with closing(self.watch(pairs, len(units), len(units) - len(waiting))) as watched:
                for unit, records in watched:
                    store.add(unit, records)
        return len(waiting)

    def finished(self, waiting: Sequence[Unit]) -> Iterator[tuple[Unit, list[Any]]]:
        """Units with their records, in whichever order they end."""
        if self.cluster is not None:
            return dask_cluster.finished_units(waiting, self.cluster, self.allow_imports)
        here = _beside_a_device(waiting) if on_device(waiting) else []
        rest = [unit for unit in waiting if unit not in set(here)]
        processes = self.jobs or os.cpu_count() or 1
        return itertools.chain(
            self._one_by_one(here), local.finished_units(rest, processes, self.allow_imports)
        )

    def _one_by_one(self, units: Sequence[SweepUnit | ReferenceUnit]) -> Iterator[tuple[Unit, list[Any]]]:
        """Units in this process: a device is busy with one of them, and its memory is not shared out.

        Meanwhile a thread draws the next worlds; an error there is raised again where a world is needed.
        """
        worlds = list(dict.fromkeys(unit.world for unit in units))
        begun = 0
        with ThreadPoolExecutor(1) as thread:  # more would keep this one from feeding the device
            for unit in units:
                near = worlds.index(unit.world) + AHEAD
                for world in worlds[begun:near]:
                    thread.submit(self.cache.instance, world)
                begun = max(begun, near)
                with errors_of(unit):
                    records = unit.run(self.cache)
                yield unit, records

    def begin_first_world(self, units: Iterable[Unit]) -> None:
        """Draw the first world in a thread, if a device is going to need it in a few seconds."""
        tables = [unit.world for unit in units if isinstance(unit, SweepUnit) and unit.device != "cpu"]

        def draw() -> None:
            with suppress(Exception):  # it is raised again where the world is needed
                self.cache.instance(tables[0])

        if tables:
            threading.Thread(target=draw, daemon=True).start()

    def check_devices(self, units: Iterable[Unit]) -> None:
        """Refuse a device that this machine lacks, unless others run the units."""
        for device in {unit.device for unit in units} - {"cpu"}:
            if self.jobs is not None:
                raise ValueError(f"--jobs are processes on the CPU, but {device} has one: leave out --jobs")
            if self.cluster is None:
                room_for(device)

    @contextmanager
    def interruptions(self, stored: Callable[[], tuple[int, int]], path: Path) -> Iterator[None]:
        """Turn an interruption of the block into one that says how much of it is stored where."""
        with terminated_as_interrupted():
            try:
                yield
            except KeyboardInterrupt as reason:
                done, total = stored()
                raise Interrupted(
                    f"interrupted with {done} of {total} units stored in {path}", reason
                ) from None


def on_device(units: Iterable[Unit]) -> bool:
    """Whether some of them run on one that is not the CPU."""
    return any(unit.device != "cpu" for unit in units)


def _beside_a_device(units: Sequence[Unit]) -> list[SweepUnit | ReferenceUnit]:
    """The units that run in this process: those for a device, and those that take no time."""
    return [
        unit
        for unit in units
        if isinstance(unit, ReferenceUnit) or (isinstance(unit, SweepUnit) and unit.device != "cpu")
    ]


def _mixed(units: list[Unit]) -> list[Unit]:
    """World by world, which a worker keeps; within one by key, which is as good as random.

    The time that is left can then be told from the time that has passed.
    """
    worlds = list(dict.fromkeys(unit.names[0] for unit in units))
    return sorted(units, key=lambda unit: (worlds.index(unit.names[0]), unit.key))
