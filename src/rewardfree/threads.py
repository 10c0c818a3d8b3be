"""Hold BLAS to one thread while the engine works, and restore the user's setting afterwards."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401  its BLAS must be loaded before the libraries are counted
from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = threading.Lock()
_open_blocks = 0  # in all threads: the first block sets the limit, the last one lifts it
_limit: Any = None
_limiting_thread: threading.Thread | None = None
_this_thread = threading.local()  # .depth: how many of the open blocks are this thread's


@lru_cache(maxsize=1)
def _libraries() -> Any:
    # Looking for the loaded libraries takes milliseconds, limiting them afterwards microseconds.
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside a `with` block.

    The engine multiplies long and thin matrices, where a second thread gains nothing: use it for another run.
    Every posterior calls this itself, so importing rewardfree changes nothing. The limit holds for the whole
    process while the block is open. The threads of torch are left alone.
    """
    global _open_blocks, _limit, _limiting_thread
    with _lock:
        if _open_blocks == 0:
            _limit = _libraries().limit(limits=1, user_api="blas")
            _limiting_thread = threading.current_thread()
            _limit.__enter__()
        _open_blocks += 1
        _this_thread.depth = getattr(_this_thread, "depth", 0) + 1
    try:
        yield
    finally:
        with _lock:
            _open_blocks -= 1
            _this_thread.depth -= 1
            if _open_blocks == 0:
                _lift()


def _lift() -> None:
    if _limiting_thread is not threading.current_thread():
        _let_any_thread_set_limits()
    _limit.__exit__(None, None, None)


def _forget_other_threads() -> None:
    """A forked child has only the thread that forked, so the blocks of other threads are not open in it."""
    global _lock, _open_blocks
    open_before, _lock = _open_blocks, threading.Lock()
    _open_blocks = getattr(_this_thread, "depth", 0)
    if open_before and not _open_blocks:
        _lift()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def _let_any_thread_set_limits() -> None:
    """From threadpoolctl 3.8 on, only the thread that first set a limit of OpenBLAS can change it."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)
