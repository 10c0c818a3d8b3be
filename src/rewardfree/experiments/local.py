"""Units in processes of this machine, whose results go to their parent."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from rewardfree.experiments.runnable import ATTEMPTS, Run, Runnable, errors_of, given_up
from rewardfree.experiments.workers import begin_worker, unheard_interrupts


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
                        with unheard_interrupts():  # workers are started here
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
                with unheard_interrupts():
                    future = pool.submit(unit.run, allow_imports)
                return _result(future, unit)
        except BrokenProcessPool:
            continue
    return None


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, at once if it fails: what they were doing is done again."""
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), begin_worker) as pool:
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
