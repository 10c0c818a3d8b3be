"""Units in processes of this machine, whose results go to their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from rewardfree.experiments.memory import keep_freed_memory
from rewardfree.experiments.runnable import ATTEMPTS, Run, Runnable, errors_of, given_up


def finished_units(
    waiting: Sequence[Run], jobs: int, allow_imports: bool = False
) -> Iterator[tuple[Run, list[Any]]]:
    """Units with their results, in whichever order they end; a worker that dies is replaced."""
    left, killers = deque(waiting), list[Run]()
    while left and len(killers) < ATTEMPTS:
        running: dict[Future[list[Any]], Run] = {}
        try:
            with _workers(min(jobs, len(left))) as pool:
                while left or running:
                    while left and len(running) < jobs:
                        with _interrupts_later():  # workers are started here
                            future = pool.submit(left[0].run, allow_imports)
                        running[future] = left.popleft()
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        records = _result(future, running[future])
                        yield running.pop(future), records
        except BrokenProcessPool:
            for unit in running.values():  # one of them was being run when its worker died
                found = _alone(unit, allow_imports)
                if found is None:
                    killers.append(unit)
                else:
                    yield unit, found
    if killers:  # last, so that the others are not lost with them
        raise given_up(killers)


def _alone(unit: Runnable, allow_imports: bool) -> list[Any] | None:
    """The results of a unit that may have killed its worker; None if it does so by itself, too."""
    for _ in range(ATTEMPTS - 1):  # the first one was in company
        try:
            with _workers(1) as pool:
                with _interrupts_later():
                    future = pool.submit(unit.run, allow_imports)
                return _result(future, unit)
        except BrokenProcessPool:
            continue
    return None


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block, and processes started in it never hear it.

    It goes to all of a terminal's processes; workers are ended by their parent, which hears it as well.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, at once if it fails: what they were doing is done again."""
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise
        except BaseException:
            for worker in set(multiprocessing.active_children()) - before:
                worker.kill()
            raise


def _result(future: Future[list[Any]], unit: Runnable) -> list[Any]:
    """What a worker returned."""
    with errors_of(unit):
        return future.result()


def _begin() -> None:
    """What a worker does before its first unit."""
    keep_freed_memory()
    _end_with_the_parent()


def _end_with_the_parent() -> None:
    """A worker must not live on when its parent was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
