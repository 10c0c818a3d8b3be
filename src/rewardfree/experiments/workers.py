"""Worker processes: how they live, what they run, and what is said about units that fail in them."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rewardfree.experiments.unit import InstanceCache, Unit

#: A unit whose worker dies this often is given up, and a sweep after as many such units.
ATTEMPTS = 3
#: glibc's names: how much freed memory to keep, and how many arrays to take from the system each by itself.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
#: What a worker keeps from one unit to the next; neither a process pool nor Dask has an object to hold it.
_caches = {allow_imports: InstanceCache(allow_imports) for allow_imports in (False, True)}


def run_in_worker(unit: Unit, allow_imports: bool) -> list[Any]:
    """The records of a unit."""
    return unit.run(_caches[allow_imports])


def begin_worker() -> None:
    """What a process of this machine does before its first unit."""
    keep_freed_memory()
    _end_with_the_parent()


def keep_freed_memory() -> None:
    """Without this, temporaries of some megabytes are given back and cleared again in every round.

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
    """Ctrl-C waits for the end of the block, and processes started in it never hear it.

    It goes to all of a terminal's processes; workers are ended by their parent, which hears it as well.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def errors_of(unit: Unit) -> Iterator[None]:
    """An error in the block says which unit it came from."""
    try:
        yield
    except (ValueError, OSError, MemoryError) as error:
        raise ValueError(f"{_described(unit)}: {error}") from error


def given_up(deadly: Sequence[Unit], deaths: int = ATTEMPTS) -> ChildProcessError:
    """The error to raise when workers died on these units so often, each of them run by itself."""
    return ChildProcessError(
        f"a worker died {deaths} times on {' and on '.join(map(_described, deadly))}: "
        "is there enough memory? use a smaller batch"
    )


def _described(unit: Unit) -> str:
    world, model, strategy = unit.names
    return f"world {world}, model {model}, strategy {strategy}"
