"""Units on other machines: a Dask scheduler hands them to its workers, whose results come back here."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import rewardfree as rf
from rewardfree.experiments.local import keep_freed_memory, run_in_worker
from rewardfree.experiments.unit import ATTEMPTS, Unit, errors_of, given_up
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
        complete = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:  # a port that is none
        complete = False
    if not complete:
        raise ValueError(
            f"a cluster is a Dask scheduler's address, such as tcp://192.168.1.10:8786, got {address!r}: "
            "`dask scheduler` says its own when it starts"
        )


def finished_units(
    units: Sequence[Unit], address: str, allow_imports: bool = False
) -> Iterator[tuple[Unit, list[Any]]]:
    """Units with their records, in whichever order they end; those of a worker that is lost go to another.

    Dask gives a unit up when workers died on it too often, and with it the units that only waited behind it:
    each of these is run again alone.
    """
    if not units:  # no units: no scheduler is needed
        return
    waiting, deadly = deque(units), list[tuple[Unit, int]]()
    with _connected(address) as client:
        while waiting and len(deadly) < ATTEMPTS:
            suspects = yield from _together(client, waiting, allow_imports)
            while suspects and len(deadly) < ATTEMPTS:
                unit, _ = suspects.pop()
                deadly += yield from _together(client, deque([unit]), allow_imports)
    if deadly:  # last, so that the others are not lost with them
        raise given_up([unit for unit, _ in deadly], max(deaths for _, deaths in deadly))


def _together(
    client: Any, waiting: deque[Unit], allow_imports: bool
) -> Generator[tuple[Unit, list[Any]], None, list[tuple[Unit, int]]]:
    """The waiting units with their records; returns those that Dask gave up, and after how many deaths.

    A few of these are enough to stop: should every unit kill its worker, not all of them are tried.
    """
    from distributed import KilledWorker

    sent, killed, looked = _SentUnits(client, allow_imports), list[tuple[Unit, int]](), -math.inf
    while len(sent) or (waiting and len(killed) < ATTEMPTS):
        if time.monotonic() - looked > LOOK:
            room, looked = PER_THREAD * _threads(client), time.monotonic()
        while waiting and len(killed) < ATTEMPTS and len(sent) < room:
            sent.add(waiting.popleft())
        for unit, status, outcome in sent.next_ended():
            try:
                records = _records(unit, status, outcome)
            except KilledWorker as error:
                killed.append((unit, error.allowed_failures + 1))
            else:
                yield unit, records
    return killed


class _SentUnits:
    """Units on their way to the workers and back.

    Dask's futures have destructors, in which an interruption would be lost: it waits until they have run.
    """

    def __init__(self, client: Any, allow_imports: bool) -> None:
        from distributed import as_completed

        self._client, self._allow_imports = client, allow_imports
        self._units: dict[Any, Unit] = {}
        self._ended = as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def __len__(self) -> int:
        return len(self._units)

    def add(self, unit: Unit) -> None:
        with interrupted_later():
            future = self._client.submit(_run, unit, self._allow_imports, rf.__version__, pure=False)
            self._units[future] = unit
            self._ended.add(future)

    def next_ended(self) -> list[tuple[Unit, str, Any]]:
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


def _run(unit: Unit, allow_imports: bool, version: str) -> list[Any]:
    """What a worker does. It may have come after the others were asked for their version."""
    from distributed import get_worker

    _check_versions({f"worker {get_worker().address}": rf.__version__}, version)
    keep_freed_memory()
    return run_in_worker(unit, allow_imports)


def _records(unit: Unit, status: str, outcome: Any) -> list[Any]:
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
            "a cluster needs Dask distributed, which is not installed: "
            "pip install '.[cluster]' from the checkout"
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

    security = Security().get_connection_args("client")
    async with rpc(address, timeout=CONNECT, connection_args=security) as process:
        try:
            identity = await asyncio.wait_for(process.identity(), CONNECT)
        except TimeoutError:
            raise OSError(f"nothing came in {CONNECT:g} s") from None
    if identity["type"] != "Scheduler":
        raise OSError(f"a {identity['type'].lower()} does")


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
        f"worker {address}": theirs for address, theirs in workers.items()
    }


def _check_versions(versions: Mapping[str, str], wanted: str) -> None:
    """Refuse another rewardfree: its results must not be mixed with those of this one."""
    others = [f"{who} has {version}" for who, version in versions.items() if version != wanted]
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
