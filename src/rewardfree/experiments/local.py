"""Units in processes of this machine, whose results go to their parent; and how a worker lives."""

import ctypes
import multiprocessing
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from rewardfree.doubts import Doubt
from rewardfree.experiments.unit import ATTEMPTS, InstanceCache, Unit, errors_of, given_up

#: glibc's names: how much freed memory to keep, and how many arrays to take from the system each by itself.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
#: What a worker keeps from one unit to the next; neither a process pool nor Dask has an object to hold it.
_caches = {allow_imports: InstanceCache(allow_imports) for allow_imports in (False, True)}


def finished_units(
    units: Sequence[Unit], jobs: int, allow_imports: bool = False
) -> Iterator[tuple[Unit, list[Any]]]:
    """Units with their records, in whichever order they end; a worker that dies is replaced."""
    waiting, deadly = deque(units), list[Unit]()
    while waiting and len(deadly) < ATTEMPTS:
        running: dict[Future[list[Any]], Unit] = {}
        try:
            with _processes(min(jobs, len(waiting))) as pool:
                while waiting or running:
                    while waiting and len(running) < jobs:
                        future = _submitted(pool, waiting[0], allow_imports)
                        running[future] = waiting.popleft()
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        records = _records(future, running[future])
                        yield running.pop(future), records
        except BrokenProcessPool:
            for unit in running.values():  # one of them was being run when its worker died
                alone = _run_alone(unit, allow_imports)
                if alone is None:
                    deadly.append(unit)
                else:
                    yield unit, alone
    if deadly:  # last, so that the others are not lost with them
        raise given_up(deadly)


def _run_alone(unit: Unit, allow_imports: bool) -> list[Any] | None:
    """The records of a unit that may have killed its worker; None if it does so by itself, too."""
    for _ in range(ATTEMPTS - 1):  # the first attempt ran beside other units
        try:
            with _processes(1) as pool:
                return _records(_submitted(pool, unit, allow_imports), unit)
        except BrokenProcessPool:
            continue
    return None


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, at once if it fails: what they were doing is done again."""
    before = set(multiprocessing.active_children())
    with worker_pool(jobs) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise
        except BaseException:
            for worker in set(multiprocessing.active_children()) - before:
                worker.kill()
            raise


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Fresh processes that end with this one. Submit to it within `without_interrupts`."""
    with without_interrupts():  # Python starts a process of its own here, which clears up after the others
        return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), begin_worker)


def _submitted(pool: ProcessPoolExecutor, unit: Unit, allow_imports: bool) -> Future[list[Any]]:
    with without_interrupts():  # this may start a process
        return pool.submit(run_in_worker, unit, allow_imports)


def _records(future: Future[list[Any]], unit: Unit) -> list[Any]:
    with errors_of(unit):
        return future.result()


def run_in_worker(unit: Unit, allow_imports: bool) -> list[Any]:
    """The records of a unit. Silence our own warnings: studies record them instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)
        return unit.run(_caches[allow_imports])


def begin_worker() -> None:
    """Prepare a process of this machine for its first unit."""
    keep_freed_memory()
    _end_with_the_parent()


def keep_freed_memory() -> None:
    """Tell glibc to keep freed memory, which otherwise is returned and cleared every round.

    That costs a tenth of the time of eight runs side by side, and as much again as they take in a Dask
    worker, whose own settings give memory back at once. Where the C library is not glibc, nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(_M_MMAP_MAX, 0)


def _end_with_the_parent() -> None:
    """A worker must not live on when its parent was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Ctrl-C and the end of a terminal wait for the end of the block; processes from it never hear them.

    They go to all of a terminal's processes; workers are ended by their parent, which hears them as well.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
