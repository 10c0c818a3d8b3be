"""Turn SIGTERM into KeyboardInterrupt, and defer both inside critical sections."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt("SIGTERM") inside the block. For the main thread only."""
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be handled
        yield
        return

    def interrupt(*_: Any) -> NoReturn:
        raise KeyboardInterrupt("SIGTERM")

    earlier = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier or signal.SIG_DFL)  # None: the handler was not set by Python


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Ctrl-C, and SIGTERM if it has a handler, wait for the end of the block. For the main thread only.

    Use it around code that may run destructors: Python prints what is raised inside one, and drops it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    installed = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in installed.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])
