"""Units on other machines: a Dask scheduler hands them to its workers, whose results come back here."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Generic
from urllib.parse import urlsplit

import rewardfree as rf
from rewardfree.experiments.memory import keep_freed_memory
from rewardfree.experiments.runnable import ATTEMPTS, Run, Runnable, errors_of, given_up
from rewardfree.interruption import interrupted_later

#: Seconds that a scheduler has to answer, and that a sweep waits for workers while there are none.
CONNECT, PATIENCE = 10.0, 60.0
#: Seconds after which to look whether workers have come or gone.
LOOK = 5.0
#: Units on their way for each thread of the workers: the next one is there when one ends, and a long sweep
#: does not flood the scheduler.
PER_THREAD = 2


def check_address(address: str) -> None:
    """Refuse what is no address of a scheduler, and say what one looks like."""
    try:
        parts = urlsplit(address)
        whole = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:  # a port that is none
        whole = False
    if not whole:
        raise ValueError(
            f"a cluster is a Dask scheduler's address, such as tcp://192.168.1.10:8786, got {address!r}: "
            "`dask scheduler` says its own when it starts"
        )


def finished_units(
    waiting: Sequence[Run], address: str, allow_imports: bool = False
) -> Iterator[tuple[Run, list[Any]]]:
    """Units with their results, in whichever order they end; those of a worker that is lost go to another.

    Dask gives a unit up when workers died on it too often, and with it what was only waiting behind it: so
    each of these is tried again with nobody beside it.
    """
    if not waiting:  # then nobody need be there
        return
    left, killers = deque(waiting), list[tuple[Run, int]]()
    with _connected(address) as client:
        while left and len(killers) < ATTEMPTS:
            suspects = yield from _together(client, left, allow_imports)
            while suspects and len(killers) < ATTEMPTS:
                unit, _ = suspects.pop()
                killers += yield from _together(client, deque([unit]), allow_imports)
    if killers:  # last, so that the others are not lost with them
        raise given_up([unit for unit, _ in killers], max(deaths for _, deaths in killers))


def _together(
    client: Any, left: deque[Run], allow_imports: bool
) -> Generator[tuple[Run, list[Any]], None, list[tuple[Run, int]]]:
    """Units of `left` with their results; returns those that Dask gave up, and after how many deaths.

    A few of these are enough to stop: should every unit kill its worker, not all of them are tried.
    """
    from distributed import KilledWorker

    flight, killed, looked = _Flight[Run](client, allow_imports), list[tuple[Run, int]](), -math.inf
    while len(flight) or (left and len(killed) < ATTEMPTS):
        if time.monotonic() - looked > LOOK:
            room, looked = PER_THREAD * _threads(client), time.monotonic()
        while left and len(killed) < ATTEMPTS and len(flight) < room:
            flight.send(left.popleft())
        for unit, status, outcome in flight.landed():
            try:
                records = _records(unit, status, outcome)
            except KilledWorker as error:
                killed.append((unit, error.allowed_failures + 1))
            else:
                yield unit, records
    return killed


class _Flight(Generic[Run]):
    """Units on their way to the workers and back.

    Dask's futures have destructors, in which an interruption would be lost: it waits until they have run.
    """

    def __init__(self, client: Any, allow_imports: bool) -> None:
        from distributed import as_completed

        self._client, self._allow_imports = client, allow_imports
        self._units: dict[Any, Run] = {}
        self._ended = as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def __len__(self) -> int:
        return len(self._units)

    def send(self, unit: Run) -> None:
        with interrupted_later():
            future = self._client.submit(_run, unit, self._allow_imports, rf.__version__, pure=False)
            self._units[future] = unit
            self._ended.add(future)

    def landed(self) -> list[tuple[Run, str, Any]]:
        """The next unit that ends, Dask's word for how, and what became of it; none if that takes long."""
        try:
            future, outcome = self._client.sync(self._next)
        except TimeoutError:
            return []
        with interrupted_later():
            unit, status = self._units.pop(future), future.status
            del future
        return [(unit, status, outcome)]

    async def _next(self) -> tuple[Any, Any]:
        return await asyncio.wait_for(anext(self._ended), LOOK)


def _run(unit: Runnable, allow_imports: bool, version: str) -> list[Any]:
    """What a worker does, which may have come after the others were asked for their version."""
    from distributed import get_worker

    _check_versions({f"worker {get_worker().address}": rf.__version__}, version)
    keep_freed_memory()
    return unit.run(allow_imports)


def _records(unit: Runnable, status: str, outcome: Any) -> list[Any]:
    """What a worker returned, or raised."""
    if status == "error":
        with errors_of(unit):
            raise outcome[1].with_traceback(outcome[2])
    if status != "finished":
        raise _gone()
    records: list[Any] = outcome
    return records


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of the scheduler; what it sent is dropped when it leaves, but for what is being run."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            "a cluster needs Dask distributed, which is not installed: pip install 'rewardfree[cluster]'"
        ) from error
    with _quiet(), ExitStack() as leaving:
        try:
            with ThreadPoolExecutor(1) as aside:  # a notebook has a loop of its own
                aside.submit(asyncio.run, _hello(address)).result()
            with interrupted_later():
                client = Client(address, timeout=CONNECT, set_as_default=False, name="rewardfree")
                leaving.callback(_leave, client)
        except OSError as error:
            raise ConnectionError(
                f"no Dask scheduler answers at {address} ({error}): "
                "start one with `dask scheduler`, or give the address that it says"
            ) from error
        _check_versions(_versions(client), rf.__version__)
        yield client


def _leave(client: Any) -> None:
    with interrupted_later():
        client.close()


async def _hello(address: str) -> None:
    """Raise OSError unless a scheduler answers; Dask's client would wait for ever where nobody speaks."""
    from distributed import Security, rpc

    own = Security().get_connection_args("client")
    async with rpc(address, timeout=CONNECT, connection_args=own) as there:
        try:
            about = await asyncio.wait_for(there.identity(), CONNECT)
        except TimeoutError:
            raise OSError(f"nothing came in {CONNECT:g} s") from None
    if about["type"] != "Scheduler":
        raise OSError(f"a {about['type'].lower()} does")


@contextmanager
def _quiet() -> Iterator[None]:
    """No traceback of Dask's own when its scheduler is lost, or left with results on their way."""
    names = ("distributed", "distributed.client", "tornado.application")
    logs = [logging.getLogger(name) for name in names]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def _versions(client: Any) -> dict[str, str]:
    """The rewardfree of the scheduler, which reads units as well, and of the workers that are there."""

    def version() -> str:  # inside, so that it is sent as code, to where there may be no rewardfree
        try:
            import rewardfree
        except ImportError:
            return "none"
        return rewardfree.__version__

    workers = client.run(version, on_error="ignore")  # one that is just leaving
    return {"the scheduler": client.run_on_scheduler(version)} | {
        f"worker {address}": found for address, found in workers.items()
    }


def _check_versions(found: Mapping[str, str], wanted: str) -> None:
    """Refuse another rewardfree: its results must not be mixed with those of this one."""
    others = [f"{who} has {version}" for who, version in found.items() if version != wanted]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise ValueError(
            f"this process has rewardfree {wanted}, but {', '.join(others[:3])}{more}: "
            "install the same one there, and start them again"
        )


def _threads(client: Any) -> int:
    """How many units the workers can run at a time; waits for the first worker, but not for ever."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        threads: dict[str, int] = client.nthreads()
    except TimeoutError as error:
        address = client.scheduler.address
        raise ConnectionError(
            f"the scheduler at {address} has had no worker for {PATIENCE:.0f} s: start some with "
            f"`dask worker {address} --nworkers -1 --nthreads 1`, and run the same command again"
        ) from error
    except OSError as error:
        raise _gone() from error
    return max(1, sum(threads.values()))


def _gone() -> ConnectionError:
    return ConnectionError(
        "the Dask scheduler is gone: start it again, and run the same command; what was stored before is safe"
    )
