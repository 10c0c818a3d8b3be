"""A folder of results: made to the end if nobody interferes, and read."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from rewardfree.arrays import count
from rewardfree.experiments.running import run_units
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unitfiles import Keyed, is_stored, run_stored
from rewardfree.interruption import terminated_as_interrupted
from rewardfree.progress import progress

#: The file of a folder that holds its results.
RESULTS = "results.sqlite"


def run_to_the_end(
    sweep: Sweep, store: Store, jobs: int | None, cluster: str | None, allow_imports: bool = False
) -> int:
    """Run what the store lacks; on Ctrl-C or SIGTERM say what is safe, and how to go on."""
    wanted = {unit.key for unit in sweep.units}
    with said_where_it_stopped(lambda: (len(store.keys() & wanted), len(sweep.units)), store.path):
        return run_units(sweep.units, store, jobs=jobs, cluster=cluster, allow_imports=allow_imports)


@contextmanager
def said_where_it_stopped(stored: Callable[[], tuple[int, int]], path: Path) -> Iterator[None]:
    """On Ctrl-C or SIGTERM say how many units of how many are safe there, and how to go on."""
    with terminated_as_interrupted():
        try:
            yield
        except KeyboardInterrupt as reason:
            done, total = stored()
            typer.echo(
                f"rewardfree: interrupted with {done} of {total} units stored in {path}; "
                "run the same command again and it goes on",
                err=True,
            )
            number = signal.SIGTERM if reason.args else signal.SIGINT
            raise typer.Exit(128 + number) from None


def ran_units(units: Sequence[Keyed], folder: Path, jobs: int | None, cluster: str | None) -> Iterator[str]:
    """Run the units that a folder of files lacks, and say how long it took."""
    started, ran = time.perf_counter(), 0
    work = run_stored(units, folder, jobs, cluster)

    def kept() -> tuple[int, int]:
        return sum(is_stored(unit, folder) for unit in units), len(units)

    with said_where_it_stopped(kept, folder):
        for _ in progress(((float(done), unit) for done, unit in work), len(units)):
            ran += 1
    yield f"{ran} units run in {time.perf_counter() - started:.0f} s, the rest was stored\n"


def seeds_from(first: int, seed: int, runs: int | None, default: int) -> range:
    """The seeds of so many runs, none of which was used while a method was made."""
    start = first + count(seed, "seed", at_least=0)
    return range(start, start + (default if runs is None else count(runs, "runs")))


@contextmanager
def stored(folder: Path) -> Iterator[Store]:
    """The results of a folder, which must have some."""
    with Store(folder / RESULTS, create=False) as store:
        if next(store.rows(), None) is None:
            raise ValueError(f"there are no results in {folder} yet: run its sweep again")
        yield store
