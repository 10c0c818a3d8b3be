"""Turn SIGTERM and SIGHUP into KeyboardInterrupt, and defer them and Ctrl-C inside critical sections."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

#: Signals that ask a process to end: the last one when its terminal is closed. Windows lacks it.
ENDING = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__]


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt("SIGTERM") inside the block, SIGHUP alike. For the main thread only.

    A signal that is ignored, as nohup wants it, stays so.
    """
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be handled
        yield
        return

    def interrupt(number: int, _: Any) -> NoReturn:
        raise KeyboardInterrupt(signal.Signals(number).name)

    earlier = {number: signal.getsignal(number) for number in ENDING}
    handled = [number for number, handler in earlier.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, earlier[number] or signal.SIG_DFL)  # None: it was not set by Python


def signal_of(reason: KeyboardInterrupt) -> signal.Signals:
    """Which signal an interruption came from."""
    name = reason.args[0] if reason.args else "SIGINT"
    return signal.Signals.__members__.get(name, signal.SIGINT)


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Ctrl-C, and SIGTERM and SIGHUP if they have a handler, wait for the end of the block.

    Use it around code that may run destructors: Python prints what is raised inside one, and drops it. For
    the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    installed = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
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
