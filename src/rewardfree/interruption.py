"""SIGTERM as Ctrl-C, and neither where it would be lost: who is asked to end puts things away first."""

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


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Ctrl-C, and SIGTERM where it raises, wait for the end of the block; in other threads nothing changes.

    What is raised while Python runs a destructor is printed and forgotten: a block is for code that has some.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in raising:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
