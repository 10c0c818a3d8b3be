"""How worker processes live: Ctrl-C is their parent's to hear, and they end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rewardfree.experiments.memory import keep_freed_memory


@contextmanager
def unheard_interrupts() -> Iterator[None]:
    """Ctrl-C waits for the end of the block, and processes started in it never hear it.

    It goes to all of a terminal's processes; workers are ended by their parent, which hears it as well.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
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
