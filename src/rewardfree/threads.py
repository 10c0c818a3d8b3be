"""One BLAS thread while the engine works, and the user's own setting back afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401  its BLAS must be loaded before the libraries are counted
from threadpoolctl import ThreadpoolController

_held = threading.local()


@lru_cache(maxsize=1)
def _libraries() -> Any:
    # Looking for the loaded libraries takes milliseconds, limiting them afterwards microseconds.
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside a `with` block.

    The engine's products are long and thin: they wait for memory, and a second thread only adds
    synchronisation (14 times slower where we measured it). Every posterior does this by itself, per call, so
    importing rewardfree changes nothing. The limit is the process's: other threads see it meanwhile.
    """
    if getattr(_held, "here", False):  # an outer block holds the limit and will lift it
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        _held.here = True
        try:
            yield
        finally:
            _held.here = False
