"""What a unit of a sweep costs, one list of units in four places, and what it takes to send and store one.

python benchmarks/cluster.py           (four and a half minutes; --quick: half a one, for a look)

Dask's scheduler and workers are processes of this machine. CPU seconds stand beside wall seconds: where they
differ much from wall seconds times processes, others were at work here. Needs the extra `cluster`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil

from rewardfree.experiments.cluster import finished_units
from rewardfree.experiments.local import keep_freed_memory
from rewardfree.experiments.running import Runner, unwatched
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache, ReferenceUnit, SweepUnit, Unit
from rewardfree.studies.paper.specification import PaperSettings
from table import Row, show

DASK = Path(sys.executable).parent / "dask"
#: Units of no work whose results are as many records as Figure 1's: 8 runs, 2 planners, 5 checkpoints.
TINY = {
    "runs": 8,
    "batch": 8,
    "samples_per_step": [1, 2, 3, 4, 5],
    "worlds": [{"type": "corridor_world", "states": 3, "actions": 2, "horizon": 2}],
    "models": [{"type": "Model", "kernel": {"type": "Matern", "nu": 1.5, "lengthscale": 0.1}, "ridge": 0.5}],
    "strategies": [{"type": "Uniform"}],
    "planners": [{"type": "Mean"}, {"type": "Optimistic", "beta": 0.1}],
}


class Timed(Store):
    """A store that knows how long its writing took: seconds on the clock, and of CPU."""

    wall = cpu = 0.0

    def add(self, unit, records):
        wall, cpu = time.perf_counter(), time.thread_time()
        super().add(unit, records)
        self.wall, self.cpu = self.wall + time.perf_counter() - wall, self.cpu + time.thread_time() - cpu


@contextmanager
def opened() -> Iterator[Timed]:
    """An empty store beside this script: the place for temporary files may be no disk."""
    beside = tempfile.TemporaryDirectory(dir=Path(__file__).parent)
    with beside as folder, Timed(Path(folder) / "results.sqlite") as store:
        yield store


@contextmanager
def machines(workers: int) -> Iterator[tuple[str, list[psutil.Process]]]:
    """The address of a scheduler with that number of workers, and the processes: first the scheduler's."""
    with tempfile.TemporaryDirectory() as folder:
        found, processes = Path(folder) / "scheduler.json", []

        def start(*arguments: object) -> None:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            processes.append(subprocess.Popen([DASK, *map(str, arguments), "--no-dashboard"], **quiet))

        elsewhere = ("--dashboard-address", "127.0.0.1:0")  # where nobody else has one
        try:
            start("scheduler", "--host", "127.0.0.1", "--port", 0, *elsewhere, "--scheduler-file", found)
            while not found.exists():
                time.sleep(0.1)
            address = json.loads(found.read_text())["address"]
            for _ in range(workers):  # without its nanny, whose child it would be
                start("worker", address, "--nthreads", 1, "--no-nanny", "--local-directory", folder)
            while _workers(address) < workers:
                time.sleep(0.1)
            # Imports and connections are paid here once.
            list(finished_units(trivial("warm", 20 * workers), address))
            yield address, [psutil.Process(process.pid) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _workers(address: str) -> int:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return len(client.nthreads())


def trivial(name: str, number: int) -> list[Unit]:
    """Units whose work is next to nothing, and whose results are two records."""
    (first, _) = Sweep.of(TINY).units
    return [ReferenceUnit(first.world, (f"{name} {i}", "none", "none")) for i in range(number)]


def tiny(number: int) -> list[Unit]:
    """Units of little work whose results are 80 records."""
    (_, unit) = Sweep.of(TINY).units
    return [replace(unit, seeds=tuple(range(8 * i, 8 * i + 8))) for i in range(number)]


def used(process: psutil.Process) -> float:
    """CPU seconds until now."""
    times = process.cpu_times()
    return times.user + times.system


def peak(process: psutil.Process) -> float:
    """The most memory it ever had, in GB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**20 for line in lines if line.startswith("VmHWM"))


def figure1(runs: int, quick: bool) -> list[SweepUnit]:
    """Units of the paper's Figure 1 for one kernel, of eight runs each (quick: of four)."""
    sweep = PaperSettings(kernels=("matern15",), runs=runs, quick=quick).figure1()
    return [unit for unit in sweep.units if isinstance(unit, SweepUnit)]


def costs(units: list[SweepUnit]) -> list[Row]:
    """What one unit of each strategy takes and weighs."""
    cache, started = InstanceCache(), time.process_time()
    cache.instance(units[0].world)
    rows = [Row("its world, once for each worker", f"{time.process_time() - started:.2f} s of CPU", "", "")]
    for unit in {unit.names[2]: unit for unit in units}.values():
        started = time.process_time()
        records = unit.run(cache)
        seconds = time.process_time() - started
        sizes = f"{len(pickle.dumps(unit)):,} bytes there, {len(pickle.dumps(records)):,} back"
        name = f"{unit.names[2]}, {len(unit.seeds)} runs of N = {unit.checkpoints[-1]}"
        rows.append(Row(name, f"{seconds:.2f} s of CPU", f"{sizes} ({len(records)} records)", ""))
    return rows


def here(units: list[Unit], jobs: int) -> tuple[float, str]:
    """Wall seconds on processes of this machine, with their start."""
    with opened() as store:
        before, started = os.times(), time.perf_counter()
        Runner(jobs, watch=unwatched).run(units, store)
        wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, f"{cpu:.1f} s of CPU"


def there(units: list[Unit], workers: int) -> tuple[float, str]:
    """Wall seconds on Dask's workers, which were there before."""
    with opened() as store, machines(workers) as (address, (_, *processes)):
        before, started = sum(map(used, processes)), time.perf_counter()
        Runner(cluster=address, watch=unwatched).run(units, store)
        wall, cpu = time.perf_counter() - started, sum(map(used, processes)) - before
        return wall, f"{cpu:.1f} s of CPU, {max(map(peak, processes)):.2f} GB in a worker"


def scaling(units: list[Unit]) -> list[Row]:
    """The same list on one and on two."""
    rows = []
    for place, name in ((here, "process (--jobs)"), (there, "Dask worker")):
        one, about = place(units, 1)
        rows.append(Row(f"{len(units)} units, 1 {name}", f"{one:.1f} s, {about}", "", ""))
        two, about = place(units, 2)
        ours, ratio = f"{two:.1f} s, {about}", f"{one / two:.2f}x"
        rows.append(Row("the same, 2 of them", ours, f"one: {one:.1f} s", ratio))
    return rows


def path(number: int) -> list[Row]:
    """What a unit takes from each process on its way through client, scheduler, worker and store."""
    rows, client = [], psutil.Process()
    with machines(2) as (address, others):
        processes = (client, *others)
        for units, about in ((trivial("unit", number), "2 records"), (tiny(number), "80 records")):
            with opened() as store:
                before, started = [*map(used, processes)], time.perf_counter()
                Runner(cluster=address, watch=unwatched).run(units, store)
                wall, after = time.perf_counter() - started, [*map(used, processes)]
            here, there, *workers = ((b - a) / number * 1e3 for a, b in zip(before, after, strict=True))
            spent = f"CPU, each: client {here:.1f}, scheduler {there:.1f}, workers {sum(workers):.1f} ms"
            writing = f"writing: {store.wall / number * 1e3:.1f} ms, {store.cpu / number * 1e3:.1f} of CPU"
            rows.append(Row(f"{number} units of {about}", f"{number / wall:.0f} units/s", spent, writing))
    return rows


def connections() -> list[Row]:
    """Open files of the scheduler, of which there is a limit."""
    found = []
    for workers in (1, 4):
        with machines(workers) as (_, (scheduler, *_)):
            time.sleep(2.0)  # those of clients that have left are closed by then
            found.append(scheduler.num_fds())
    return [Row("open files of the scheduler, 4 workers", f"{found[1]}", f"one: {found[0]}", "")]


def storing(number: int) -> list[Row]:
    """The store alone, as it comes to hold results of as many units."""
    units = tiny(number)
    records = units[0].run(InstanceCache())
    with opened() as store:
        for unit in units:
            store.add(unit, records)
        with closing(sqlite3.connect(store.path)) as base:
            size = math.prod(base.execute(f"PRAGMA page_{each}").fetchone()[0] for each in ("count", "size"))
        again = time.process_time()
        Runner(1, watch=unwatched).run(units, store)
        again = time.process_time() - again
        reading = time.perf_counter()
        rows = sum(1 for _ in store.rows())
        reading = time.perf_counter() - reading
        added = f"{store.wall / number * 1e3:.2f} ms each, {store.cpu / number * 1e3:.2f} of CPU"
        return [
            Row(f"writing {number} units of 80 records", added, f"{number / store.wall:.0f} units/s", ""),
            Row("bytes in the store", f"{size / rows:.0f} a record", f"{size / number:.0f} a unit", ""),
            Row("finding them stored", f"{again / number * 1e3:.2f} ms of CPU each", "", ""),
            Row("reading them in order, to export", f"{reading / rows * 1e6:.1f} us a record", "", ""),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    keep_freed_memory()  # as workers do
    listed = [unit for unit in figure1(32, quick) if unit.names[2] in ("online", "generative", "uniform")]
    rows = costs(figure1(8, quick))
    rows += scaling(listed)
    rows += path(200 if quick else 1500)
    rows += connections()
    rows += storing(200 if quick else 3000)
    show(rows)


if __name__ == "__main__":
    main()
