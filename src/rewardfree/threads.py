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
_here = threading.local()  # .depth: how many of the open blocks are this thread's


@lru_cache(maxsize=1)
def _libraries() -> Any:
    # Looking for the loaded libraries takes milliseconds, limiting them afterwards microseconds.
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside a `with` block.

    The engine's products are long and thin, and gain nothing from a second thread: give it to another run.
    Every posterior does this by itself, per call, so importing rewardfree changes nothing. The limit is the
    process's: other threads see it meanwhile. torch has threads of its own, left alone.
    """
    global _inside, _limit, _owner
    with _lock:
        if _inside == 0:
            _limit, _owner = _libraries().limit(limits=1, user_api="blas"), threading.current_thread()
            _limit.__enter__()
        _inside += 1
        _here.depth = getattr(_here, "depth", 0) + 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            _here.depth -= 1
            if _inside == 0:
                _lift()


def _lift() -> None:
    if _owner is not threading.current_thread():
        _let_any_thread_set_limits()
    _limit.__exit__(None, None, None)


def _forget_other_threads() -> None:
    """A forked child has only the thread that forked: blocks of the others are not open in it."""
    global _lock, _inside
    open_before, _lock = _inside, threading.Lock()
    _inside = getattr(_here, "depth", 0)
    if open_before and not _inside:
        _lift()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def _let_any_thread_set_limits() -> None:
    """threadpoolctl 3.8 and newer obey, for OpenBLAS, only the thread that was first to set a limit."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)
