"""Turn SIGTERM and SIGHUP into KeyboardInterrupt, and defer or pass over signals where they would do harm."""

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


class Interruption:
    """A handler that raises KeyboardInterrupt at the first signal, and passes over those that follow."""

    received = False

    def __call__(self, number: int, _: Any) -> None:
        if not self.received:
            self.received = True
            raise KeyboardInterrupt(signal.Signals(number).name)


@contextmanager
def interrupted_once() -> Iterator[Interruption]:
    """Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt inside the block once, so that it can end in peace.

    Those that follow ask for the same: a closed terminal sends SIGHUP twice, and people press Ctrl-C until
    something happens. A block inside another one is a part of it. A signal that is ignored stays so, and
    Ctrl-C with a handler of a user's own too. For the main thread only.
    """
    once = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield once
        return
    earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    outer = [handler for handler in earlier.values() if isinstance(handler, Interruption)]
    if outer:
        yield outer[0]
        return
    with terminated_as_interrupted():  # which puts the handlers of ENDING back
        if earlier[signal.SIGINT] is signal.default_int_handler:
            signal.signal(signal.SIGINT, once)
        for number in ENDING:
            if earlier[number] is not signal.SIG_IGN:
                signal.signal(number, once)
        try:
            yield once
        finally:
            signal.signal(signal.SIGINT, earlier[signal.SIGINT] or signal.SIG_DFL)


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
