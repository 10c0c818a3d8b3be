"""SIGTERM as Ctrl-C: whoever is asked to end puts away what there is first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt("SIGTERM") inside the block; in other threads it is left alone."""
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be handled
        yield
        return

    def interrupt(*_: Any) -> NoReturn:
        raise KeyboardInterrupt("SIGTERM")

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # None: it was not Python's own
