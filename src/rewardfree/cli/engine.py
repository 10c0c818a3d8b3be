"""Who runs the units of a command, and how it says how far it is."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from rewardfree.cli.console import Console, Silent, Text
from rewardfree.experiments.portrait import make_portraits, portraits_are_there, sittings
from rewardfree.experiments.running import check_where, on_device, run_units
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unitfiles import Keyed, is_stored, run_stored
from rewardfree.interruption import terminated_as_interrupted
from rewardfree.report.pictures import DrawingPool, Picture

#: The words of the command that is running.
_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


@dataclass(frozen=True)
class Engine:
    """Processes of this machine, or a cluster; on Ctrl-C or SIGTERM it says what is safe and how to go on."""

    jobs: int | None = None  # processes of this machine; None: one for each core
    cluster: str | None = None  # a Dask scheduler whose workers run the units instead
    console: Console = field(default_factory=Text)

    def __post_init__(self) -> None:
        check_where(self.jobs, self.cluster)

    def run_sweep(self, sweep: Sweep, store: Store, allow_imports: bool = False) -> int:
        """Run what the store lacks, and return how many units that were."""
        wanted = {unit.key for unit in sweep.units}
        with self._interruptions(lambda: (len(store.keys() & wanted), len(wanted)), store.path):
            return run_units(
                sweep.units,
                store,
                jobs=self.jobs,
                cluster=self.cluster,
                allow_imports=allow_imports,
                watch=self.console.watched,
            )

    def run_files(self, units: Sequence[Keyed], folder: Path) -> Generator[str, None, str | None]:
        """Run the units that a folder of files lacks, and say how long it took; None: all were there."""
        started, ran = time.perf_counter(), 0

        def kept() -> tuple[int, int]:
            return sum(is_stored(unit, folder) for unit in units), len(units)

        with self._interruptions(kept, folder):
            work = run_stored(units, folder, self.jobs, self.cluster)
            with closing(self.console.watched(work, len(units), kept()[0])) as finished:
                for _ in finished:
                    ran += 1
        took = f"{ran} units run in {time.perf_counter() - started:.0f} s"
        yield f"{took}, the rest was stored\n"
        return took if ran else None

    @contextmanager
    def looking_inside(self, units: Sequence[Any], path: Path, allow_imports: bool = False) -> Iterator[None]:
        """Make the maps of single runs that a page shows, if they are not there yet.

        After the block, which keeps all cores busy; or beside it, if it is a device that works there.
        """
        if not on_device(units):
            yield
            self._look_inside(units, path, allow_imports)
            return
        thread, stopped = ThreadPoolExecutor(1), threading.Event()
        try:
            look = replace(self, console=Silent())._look_inside
            looking = thread.submit(look, units, path, allow_imports, stopped)
            thread.submit(self._pool.start)
            yield
            looking.result()
        except BaseException:
            stopped.set()  # nobody waits for the rest
            raise
        finally:
            thread.shutdown(cancel_futures=True)

    def say(self, lines: Iterable[str]) -> None:
        """Say lines as they come; what is interrupted between two runs is safe, too."""
        try:
            for line in lines:
                self.console.say(line)
        except KeyboardInterrupt as reason:
            self._end("interrupted; what was run is stored", reason)

    def draw(self, *pictures: Picture) -> Callable[[], list[Path]]:
        """Begin to draw pictures, in processes where there are many; their files, when they are there."""
        return self._pool.draw(pictures)

    @cached_property
    def _pool(self) -> DrawingPool:
        return DrawingPool(self.jobs)

    def _look_inside(
        self,
        units: Sequence[Any],
        path: Path,
        allow_imports: bool = False,
        stopped: threading.Event | None = None,
    ) -> None:
        wanted = sittings(units)
        if not wanted or portraits_are_there(wanted, path):
            return
        with self._interruptions(lambda: (0, len(wanted)), path):
            work = make_portraits(wanted, path, self.jobs, self.cluster, allow_imports)
            with closing(self.console.watched(work, len(wanted))) as finished:
                for _ in finished:
                    if stopped is not None and stopped.is_set():
                        return

    @contextmanager
    def _interruptions(self, stored: Callable[[], tuple[int, int]], path: Path) -> Iterator[None]:
        with terminated_as_interrupted():
            try:
                yield
            except KeyboardInterrupt as reason:
                done, total = stored()
                self._end(f"interrupted with {done} of {total} units stored in {path}", reason)

    def _end(self, line: str, reason: KeyboardInterrupt) -> NoReturn:
        """Say how to go on, and end as a shell expects it."""
        self.console.interrupted(line, typed_command())
        raise typer.Exit(128 + (signal.SIGTERM if reason.args else signal.SIGINT)) from None


def typed_command() -> str:
    """The command that is running, to be typed again."""
    return shlex.join(["rewardfree", *_typed.get()])


class Remembering(TyperGroup):
    """Commands that can say what was typed, to be typed again."""

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        _typed.set(tuple(args))  # parsing empties them
        return super().make_context(info_name, args, *more, **extra)
