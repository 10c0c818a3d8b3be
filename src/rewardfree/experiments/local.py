"""Units on this machine: one process for each core, and only the parent writes results."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from rewardfree.arrays import count
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import Record, Unit
from rewardfree.progress import progress as shown

#: A unit whose worker dies this often is given up: it may be what kills it.
ATTEMPTS = 3


def run_units(
    units: Iterable[Unit],
    store: Store,
    *,
    jobs: int | None = None,
    allow_imports: bool = False,
    progress: bool | None = None,
) -> int:
    """Run the units that the store lacks, and say how many there were. Running it again does nothing."""
    jobs = os.cpu_count() or 1 if jobs is None else count(jobs, "jobs")
    with store.writing():
        units = list(dict.fromkeys(units))
        store.want(unit.key for unit in units)
        done = store.keys()
        waiting = [unit for unit in units if unit.key not in done]
        total = len(waiting)
        finished = ((float(i + 1), pair) for i, pair in enumerate(_finished(waiting, jobs, allow_imports)))
        for _, (unit, records) in shown(finished, max(total, 1), progress):
            store.add(unit, records)
    return total


def _finished(waiting: list[Unit], jobs: int, allow_imports: bool) -> Iterator[tuple[Unit, list[Record]]]:
    """Units with their results, in whichever order they end; a worker that dies is replaced."""
    attempts: dict[Unit, int] = {}
    while waiting:
        left = list(waiting)
        context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
        with ProcessPoolExecutor(min(jobs, len(left)), context, _end_with_the_parent) as pool:
            running: dict[Future[list[Record]], Unit] = {}
            try:
                while left or running:
                    while left and len(running) < 2 * jobs:  # enough to keep all of them busy
                        unit = left.pop(0)
                        running[pool.submit(unit.run, allow_imports)] = unit
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        unit = running[future]
                        records = _result(future, unit)
                        del running[future]
                        waiting.remove(unit)
                        yield unit, records
            except BrokenProcessPool:
                for unit in running.values():  # one of them was being run when its worker died
                    attempts[unit] = attempts.get(unit, 0) + 1
                    if attempts[unit] >= ATTEMPTS:
                        raise ChildProcessError(
                            f"a worker died {ATTEMPTS} times on {unit.names} with seeds {unit.seeds}: "
                            "is there enough memory? use fewer jobs, or a smaller batch"
                        ) from None
            except BaseException:
                for worker in set(multiprocessing.active_children()) - others:
                    worker.kill()  # what they were doing is done again next time
                raise


def _result(future: Future[list[Record]], unit: Unit) -> list[Record]:
    """What a worker returned; its errors say which unit they came from."""
    try:
        return future.result()
    except (ValueError, OSError, MemoryError) as error:
        world, model, strategy = unit.names
        raise ValueError(f"world {world}, model {model}, strategy {strategy}: {error}") from error


def _end_with_the_parent() -> None:
    """A worker must not live on when its parent was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
