"""A folder of results: made to the end if nobody interferes, and read."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

from rewardfree.experiments.local import run_units
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep

#: The file of a folder that holds its results.
RESULTS = "results.sqlite"


def run_to_the_end(sweep: Sweep, store: Store, jobs: int | None, allow_imports: bool = False) -> int:
    """Run what the store lacks; on Ctrl-C or SIGTERM say what is safe, and how to go on."""
    with _terminated_as_interrupted():
        try:
            return run_units(sweep.units, store, jobs=jobs, allow_imports=allow_imports)
        except KeyboardInterrupt as reason:
            done = len(store.keys() & {unit.key for unit in sweep.units})
            total = len(sweep.units)
            typer.echo(
                f"rewardfree: interrupted with {done} of {total} units stored in {store.path}; "
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


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends a sweep as Ctrl-C does: workers first, and with a word."""

    def interrupt(*_: Any) -> NoReturn:
        raise KeyboardInterrupt("SIGTERM")

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
