"""A folder of results: made to the end if nobody interferes, and read."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from rewardfree.experiments.local import run_units
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.interruption import terminated_as_interrupted

#: The file of a folder that holds its results.
RESULTS = "results.sqlite"


def run_to_the_end(sweep: Sweep, store: Store, jobs: int | None, allow_imports: bool = False) -> int:
    """Run what the store lacks; on Ctrl-C or SIGTERM say what is safe, and how to go on."""
    wanted = {unit.key for unit in sweep.units}
    with said_where_it_stopped(lambda: (len(store.keys() & wanted), len(sweep.units)), store.path):
        return run_units(sweep.units, store, jobs=jobs, allow_imports=allow_imports)


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


@contextmanager
def stored(folder: Path) -> Iterator[Store]:
    """The results of a folder, which must have some."""
    with Store(folder / RESULTS, create=False) as store:
        if next(store.rows(), None) is None:
            raise ValueError(f"there are no results in {folder} yet: run its sweep again")
        yield store
