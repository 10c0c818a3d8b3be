"""One BLAS thread while the engine works, and the user's own setting back afterwards."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401  its BLAS must be loaded before the libraries are counted
from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = threading.Lock()
_inside = 0  # how many blocks are open, in all threads: the first sets the limit, the last one lifts it
_limit: Any = None
_owner: threading.Thread | None = None  # who set it


@lru_cache(maxsize=1)
def _libraries() -> Any:
    # Looking for the loaded libraries takes milliseconds, limiting them afterwards microseconds.
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside a `with` block.

    The engine's products are long and thin: they wait for memory, and a second thread only adds
    synchronisation. Every posterior does this by itself, per call, so importing rewardfree changes nothing.
    The limit is the process's: other threads see it meanwhile. torch has threads of its own, left alone.
    """
    global _inside, _limit, _owner
    with _lock:
        if _inside == 0:
            _limit, _owner = _libraries().limit(limits=1, user_api="blas"), threading.current_thread()
            _limit.__enter__()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                if _owner is not threading.current_thread():
                    _let_any_thread_set_limits()
                _limit.__exit__(None, None, None)


def _forget_the_parent() -> None:
    """A forked child has none of its parent's threads, so no block of theirs is open in it."""
    global _lock, _inside
    _lock, _inside = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parent)


def _let_any_thread_set_limits() -> None:
    """threadpoolctl 3.8 and newer obey, for OpenBLAS, only the thread that was first to set a limit."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)
