"""What a study is: units that are run once, and a table, figures and a page of what is stored."""

import json
import resource
import threading
import time
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rewardfree.arrays import count
from rewardfree.experiments.folder import ResultsFolder
from rewardfree.experiments.run_maps import mapped_runs, maps_are_there, write_maps
from rewardfree.experiments.running import Runner, on_device, unwatched
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import MOST_RUNS, Sweep
from rewardfree.experiments.unit import SweepUnit, Unit
from rewardfree.report.pictures import DrawingPool
from rewardfree.report.report import Report, Results

#: The file of a folder that says which study its results are.
STUDY_FILE = "study.json"


@dataclass(frozen=True)
class Workspace:
    """Where the folders of studies are, who runs their units and who draws."""

    out: Path
    runner: Runner

    @cached_property
    def pool(self) -> DrawingPool:
        return DrawingPool(self.runner.jobs)

    def run(self, units: Sequence[Unit], folder: ResultsFolder, command: str) -> tuple[int, str]:
        """Run what the folder's store lacks: how many units that were, and how long it took in words."""
        started, used = time.perf_counter(), _cpu_seconds()
        with self.making_maps(units, folder.maps), Store(folder.results) as store:
            ran = self.runner.run(units, store)
            seconds, cpu = time.perf_counter() - started, _cpu_seconds() - used
            spent = f"{cpu:.0f} s of CPU" if cpu < 100.0 else f"{cpu / 60.0:.1f} minutes of CPU"
            took = f"{ran} units run in {seconds:.0f} s ({self.runner.cluster or spent})"
            if ran:
                folder.remember(command, took)
        return ran, took

    def run_sweep(self, sweep: Sweep, folder: ResultsFolder, command: str) -> Iterator[str]:
        """Run a sweep of a user's own, and yield the line to print."""
        self.runner.check_devices(sweep.units)  # before a folder is made
        ran, _ = self.run(sweep.units, folder, command)
        yield f"{ran} of {len(sweep.units)} units run, the rest was there; results: {folder.results}"

    @contextmanager
    def making_maps(self, units: Sequence[Unit], path: Path) -> Iterator[None]:
        """Make the maps of single runs that a page shows, if they are not there yet.

        After the block, which keeps all cores busy; or beside it, if it is a device that works there.
        """
        if not on_device(units):
            yield
            self._make_maps(self.runner, units, path)
            return
        thread, stopped = ThreadPoolExecutor(1), threading.Event()
        try:
            making = thread.submit(
                self._make_maps, replace(self.runner, watch=unwatched), units, path, stopped
            )
            thread.submit(self.pool.start)
            yield
            making.result()
        except BaseException:
            stopped.set()  # nobody waits for the rest
            raise
        finally:
            thread.shutdown(cancel_futures=True)

    def _make_maps(
        self, runner: Runner, units: Sequence[Unit], path: Path, stopped: threading.Event | None = None
    ) -> None:
        runs = mapped_runs(units)
        if not runs or maps_are_there(runs, path):
            return
        with (
            runner.interruptions(lambda: (0, len(runs)), path),
            closing(runner.watch(write_maps(runs, path, runner), len(runs), 0)) as watched,
        ):
            for _ in watched:
                if stopped is not None and stopped.is_set():
                    return


@dataclass(frozen=True)
class Study(Report[Results]):
    """One experiment of this package: what is run, and what is shown of it. A subclass has its settings."""

    name: ClassVar[str]

    @property
    def variant(self) -> str:
        """The end of a folder's name, which tells these settings from the defaults."""
        return ""

    @property
    @abstractmethod
    def command(self) -> str:
        """The command that runs it."""

    @abstractmethod
    def units(self) -> Sequence[Unit]:
        """What is run, in the order in which it is shown."""

    def announcement(self, units: Sequence[Unit]) -> str:
        """The first line that is printed."""
        return f"{self.name}: {len(units)} units"

    def run(self, workspace: Workspace) -> Generator[str, None, ResultsFolder]:
        """Run what is not stored yet, yield the lines to print, and return the folder."""
        units = self.units()
        workspace.runner.check_devices(units)  # before a folder is made
        workspace.runner.begin_first_world(units)
        folder = ResultsFolder(workspace.out / f"{self.name}{self.variant}")
        folder.write(STUDY_FILE, json.dumps({"study": self.name, **asdict(self)}, indent=1))
        yield self.announcement(units)
        ran, took = workspace.run(units, folder, self.command)
        yield took if ran else "all of them are stored already"
        yield ""
        return folder

    def reproduce(self, workspace: Workspace) -> Iterator[str]:
        """Run what is missing, write everything, and yield the lines to print."""
        folder = yield from self.run(workspace)
        yield from self.show(folder, workspace.pool)


@dataclass(frozen=True)
class SeededStudy(Study[Results]):
    """A study whose seeds were not used while a method was made."""

    runs: int | None = None  # None: the usual number
    seed: int = 0  # added to the first seed
    quick: bool = False
    first_seed: ClassVar[int]
    usual_runs: ClassVar[int]

    def __post_init__(self) -> None:
        count(self.seed, "seed", at_least=0)
        if self.runs is not None:
            count(self.runs, "runs", at_most=MOST_RUNS)

    @property
    def seeds(self) -> range:
        start = self.first_seed + self.seed
        usual = 1 if self.quick else self.usual_runs
        return range(start, start + (usual if self.runs is None else self.runs))

    @property
    def variant(self) -> str:
        return "-quick" * self.quick

    @property
    def command(self) -> str:
        return typed(self.name, {"runs": self.runs, "seed": self.seed or None}, self.quick)

    def announcement(self, units: Sequence[Unit]) -> str:
        return f"{super().announcement(units)}, seeds {self.seeds[0]} to {self.seeds[-1]}"


def typed(name: str, options: dict[str, Any], quick: bool) -> str:
    """The command of a study, with those options that were given."""
    words = "".join(f" --{option} {value}" for option, value in options.items() if value is not None)
    return f"rewardfree reproduce {name}{words}{' --quick' * quick}"


def runs_in(units: Sequence[Unit]) -> int:
    """How many runs units of sweeps play."""
    return sum(len(unit.seeds) for unit in units if isinstance(unit, SweepUnit))


def _cpu_seconds() -> float:
    """CPU time of the workers that have ended, and of this process."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
