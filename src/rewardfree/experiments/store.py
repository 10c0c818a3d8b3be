"""Results in one SQLite file that survives whatever happens to the process that writes it."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewardfree.experiments.unit import Record, Unit

#: Marks a file as ours ("rfst"), and its layout.
APPLICATION, VERSION = 0x72667374, 1
COLUMNS = ("seed", "planner", "samples", "episodes", "steps", "start", "mean", "max")
_SCHEMA = """
CREATE TABLE units (key TEXT PRIMARY KEY, unit TEXT NOT NULL, world TEXT, model TEXT, strategy TEXT);
CREATE TABLE records (
    key TEXT NOT NULL REFERENCES units, seed INTEGER, planner TEXT, samples INTEGER, episodes INTEGER,
    steps INTEGER, start REAL, mean REAL, max REAL, PRIMARY KEY (key, planner, seed, samples)
);
"""


class Store:
    """The results of units by their keys. One process writes at a time; a unit is there whole or not."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        new = not self.path.exists() or self.path.stat().st_size == 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._named():
            self._base = sqlite3.connect(self.path, isolation_level=None)
            if new:
                self._create()
            self._check()

    def close(self) -> None:
        self._base.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the right to write; a second process is told who has it."""
        lock = self.path.with_name(self.path.name + ".lock")
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"another process is writing to {self.path}: wait for it to end, or use another folder"
                ) from None
            yield

    def keys(self) -> set[str]:
        """The units that are done."""
        with self._named():
            return {key for (key,) in self._base.execute("SELECT key FROM units")}

    def add(self, unit: Unit, records: list[Record]) -> None:
        """Store a unit's results in one transaction."""
        rows = [tuple(getattr(record, name) for name in COLUMNS) for record in records]
        with self._named():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                self._base.execute(
                    "INSERT OR IGNORE INTO units VALUES (?, ?, ?, ?, ?)", (unit.key, unit.text, *unit.names)
                )
                marks = ", ".join("?" * (len(COLUMNS) + 1))
                self._base.executemany(
                    f"INSERT OR IGNORE INTO records VALUES ({marks})", [(unit.key, *row) for row in rows]
                )
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every record with its names, in an order that does not depend on when it was stored."""
        columns = ", ".join(f"records.{name}" for name in COLUMNS)
        query = (
            f"SELECT world, model, strategy, {columns} FROM records JOIN units USING (key) "
            "ORDER BY world, model, strategy, records.planner, records.samples, records.seed, key"
        )
        with self._named():
            yield from self._base.execute(query)

    def _create(self) -> None:
        self._base.execute("PRAGMA journal_mode = WAL")
        marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
        self._base.executescript(f"BEGIN; {marks} {_SCHEMA} COMMIT;")

    def _check(self) -> None:
        (application,) = self._base.execute("PRAGMA application_id").fetchone()
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise ValueError(f"{self.path} is not a store of results: name another folder")
        if version > VERSION:
            raise ValueError(f"{self.path} was written by a newer rewardfree (layout {version}): update it")
        (state,) = self._base.execute("PRAGMA quick_check").fetchone()
        if state != "ok":
            raise ValueError(f"{self.path} is damaged ({state}): move it away and run the sweep again")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """SQLite's errors, with the file's name and what to do."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(
                    f"{self.path}: {error}; what was stored before is safe, run it again when there is room"
                ) from error
            raise ValueError(f"{self.path} is not a store of results, or is damaged: {error}") from error
