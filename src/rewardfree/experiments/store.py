"""Results in one SQLite file, which stays whole when the process that writes it is killed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from rewardfree.experiments.unit import GapRecord, Unit

#: Marks a file as ours ("rfst"), and its layout. Layout 2 has no hashes: what is in it is not checked.
APPLICATION, VERSION, OLDEST = 0x72667374, 3, 2
COLUMNS = tuple(field.name for field in fields(GapRecord))
#: A record that is a table may say under this name what it took: CPU seconds by what they were spent on.
SECONDS: Final = "seconds"
_TABLES = (
    "CREATE TABLE units (key TEXT PRIMARY KEY, unit TEXT NOT NULL, world TEXT, model TEXT, strategy TEXT)",
    "CREATE TABLE records (key TEXT NOT NULL REFERENCES units, seed INTEGER, planner TEXT, samples INTEGER, "
    "episodes INTEGER, steps INTEGER, start REAL, mean REAL, max REAL, "
    "PRIMARY KEY (key, planner, seed, samples))",
    # Seconds apart from the rest: the same unit leaves the same bytes in `record` each time.
    "CREATE TABLE json_records (key TEXT NOT NULL REFERENCES units, place INTEGER, record TEXT NOT NULL, "
    "seconds TEXT NOT NULL, PRIMARY KEY (key, place))",
    "CREATE TABLE wanted (key TEXT PRIMARY KEY)",  # the units of the sweep that was started last
    "CREATE TABLE hashes (key TEXT PRIMARY KEY, hash TEXT NOT NULL)",  # of each unit's content, and of WANTED
)
#: The key of the hash of the wanted keys; those of units are hashes themselves.
WANTED: Final = "wanted"
#: What a unit's hash is of, in this order.
_CONTENT = (
    "SELECT key, unit, world, model, strategy FROM units {where}",
    f"SELECT key, {', '.join(COLUMNS)} FROM records {{where}} ORDER BY key, planner, seed, samples",
    "SELECT key, place, record, seconds FROM json_records {where} ORDER BY key, place",
)
#: SQLite's codes for a disk that is full or fails; it needs some room even to read.
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class Store:
    """The results of units by their keys. One process writes at a time; a unit is there whole or not."""

    def __init__(self, path: str | Path, create: bool = True) -> None:
        self.path = Path(path)
        if create:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        elif not self.path.exists():
            raise ValueError(
                f"there are no results in {self.path.parent}: run a sweep with --out there first"
            )
        self._verified = False
        with self._named():
            try:
                self._open(sqlite3.connect(self.path, isolation_level=None), create)
            except sqlite3.OperationalError as error:
                if create or not _is_no_room(error):
                    raise
                self._open(_copy_in_memory(self.path), create)

    def _open(self, base: sqlite3.Connection, create: bool) -> None:
        self._base = base
        try:
            if create:
                self._create()
            self._check()
        except BaseException:
            self._base.close()
            raise

    def close(self) -> None:
        self._base.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the right to write; a second process is told that another has it."""
        lock = self.path.with_name(self.path.name + ".lock")
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"another process is writing to {self.path}: wait for it to end, or use another folder"
                ) from None
            yield

    def want(self, keys: Iterable[str]) -> None:
        """These are the units of the sweep that is shown from now on; results of others stay, unseen."""
        with self._named(), self._transaction():
            self._base.execute("DELETE FROM wanted")
            self._base.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", [(key,) for key in keys])
            self._note(WANTED, self._hash_of_wanted())

    def keys(self) -> set[str]:
        """The units that are done."""
        with self._named():
            return {key for (key,) in self._base.execute("SELECT key FROM units")}

    def add(self, unit: Unit, records: Sequence[Any]) -> None:
        """Store a unit's results in one transaction."""
        key = unit.key  # once: hashing it for every record would take most of the time
        gaps, tables = [], []
        for place, record in enumerate(records):
            if isinstance(record, GapRecord):
                gaps.append((key, *(getattr(record, name) for name in COLUMNS)))
            else:
                content = {name: value for name, value in record.items() if name != SECONDS}
                tables.append((key, place, _json(content), _json(record.get(SECONDS, {}))))
        with self._named(), self._transaction():
            self._insert("units", [(key, unit.text, *unit.names)])
            self._insert("records", gaps)
            self._insert("json_records", tables)
            self._note(key, self._hashes("WHERE key = ?", key)[key])

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every record of the sweep with its names, worlds, models and strategies in the order of the sweep.

        Not in the order in which they were stored: that is another one each time.
        """
        columns = ", ".join(f"records.{name}" for name in COLUMNS)
        first = "min(wanted.rowid) OVER (PARTITION BY"
        query = (
            f"SELECT world, model, strategy, {columns} "
            "FROM records JOIN units USING (key) JOIN wanted USING (key) "
            f"ORDER BY {first} world, model), {first} world, model, strategy), "
            "records.planner, records.samples, records.seed, key"
        )
        with self._named():
            self._verify()
            yield from self._base.execute(query)

    def tables(self) -> list[dict[str, Any]]:
        """Every record of the wanted units that is a table, with its seconds, in the order of the units."""
        query = (
            "SELECT record, seconds FROM json_records JOIN wanted USING (key) ORDER BY wanted.rowid, place"
        )
        with self._named():
            self._verify()
            stored = self._base.execute(query).fetchall()
        try:
            return [{**json.loads(record), SECONDS: json.loads(seconds)} for record, seconds in stored]
        except (ValueError, TypeError, RecursionError) as error:
            raise self._damaged(error) from error

    def seeds(self) -> list[int]:
        """The seeds of the sweep's runs, ascending; units without data have none."""
        query = "SELECT DISTINCT seed FROM records JOIN wanted USING (key) WHERE samples > 0 ORDER BY seed"
        with self._named():
            self._verify()
            return [seed for (seed,) in self._base.execute(query)]

    def _verify(self) -> None:
        """Refuse results that are not what was written; once, before the first are read."""
        if self._verified or not self._hashed:
            return
        with self._reading():  # while another process adds to them
            (state,) = self._base.execute("PRAGMA integrity_check(1)").fetchone()
            stored = dict(self._base.execute("SELECT key, hash FROM hashes"))
            content = self._hashes()
            wanted = self._hash_of_wanted()
        if state != "ok":
            raise self._damaged(state)
        if stored.pop(WANTED, _hash_of([])) != wanted:
            raise self._damaged("the list of its units is not what was written")
        if stored != content:
            changed = sum(stored.get(key) != hashed for key, hashed in content.items())
            raise self._damaged(f"the results of {max(changed, 1)} units are not what was written")
        self._verified = True

    def _hashes(self, where: str = "", *parameters: str) -> dict[str, str]:
        """The hash of what is stored of each unit, by its key."""
        digests: dict[str, Any] = {}
        for query in _CONTENT:
            for key, *row in self._base.execute(query.format(where=where), parameters):
                digests.setdefault(key, hashlib.sha256()).update(repr(row).encode())
        return {key: digest.hexdigest() for key, digest in digests.items()}

    def _hash_of_wanted(self) -> str:
        return _hash_of(self._base.execute("SELECT key FROM wanted ORDER BY rowid").fetchall())

    def _note(self, key: str, hashed: str) -> None:
        if self._hashed:
            self._base.execute("INSERT OR REPLACE INTO hashes VALUES (?, ?)", (key, hashed))

    def _create(self) -> None:
        """Make an empty file a store: all of it or nothing, whoever else tries the same."""
        with self._transaction():
            (application,) = self._base.execute("PRAGMA application_id").fetchone()
            (tables,) = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not application and not tables:
                for statement in _TABLES:
                    self._base.execute(statement)
                self._base.execute(f"PRAGMA application_id = {APPLICATION}")
                self._base.execute(f"PRAGMA user_version = {VERSION}")
        if self._base.execute("PRAGMA application_id").fetchone() == (APPLICATION,):
            self._base.execute("PRAGMA journal_mode = WAL")

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._base.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._base.execute("COMMIT")
        except BaseException:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            raise

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Everything read in the block is of one moment."""
        self._base.execute("BEGIN")
        try:
            yield
        finally:
            self._base.execute("COMMIT")

    def _check(self) -> None:
        (application,) = self._base.execute("PRAGMA application_id").fetchone()
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise ValueError(f"{self.path} is not a store of results: name another folder")
        if version > VERSION:
            raise ValueError(f"{self.path} was written by a newer rewardfree (layout {version}): update it")
        if version < OLDEST:
            raise ValueError(f"{self.path} has an older layout ({version}): run its sweep in another folder")
        (state,) = self._base.execute("PRAGMA quick_check").fetchone()
        if state != "ok":
            raise self._damaged(state)
        query = "SELECT count(*) FROM sqlite_master WHERE name = 'hashes'"
        self._hashed = self._base.execute(query).fetchone() == (1,)
        if version > OLDEST and not self._hashed:
            raise self._damaged("it has no hashes")

    def _damaged(self, why: object) -> ValueError:
        return ValueError(f"{self.path} is damaged ({why}): move it away and run the sweep again")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """SQLite's errors, with the file's name and what to do."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if _is_no_room(error):
                raise OSError(
                    f"{self.path}: {error}; what was stored before is safe, run it again when there is room"
                ) from error
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(f"{self.path}: {error}") from error
            raise ValueError(f"{self.path} is not a store of results, or is damaged: {error}") from error
        except UnicodeDecodeError as error:  # what SQLite says of damage may name what is damaged
            raise ValueError(f"{self.path} is not a store of results, or is damaged: {error}") from error


def _hash_of(keys: Sequence[tuple[str]]) -> str:
    return hashlib.sha256(repr(keys).encode()).hexdigest()


def _copy_in_memory(path: Path) -> sqlite3.Connection:
    """The same store without its file: to read that, SQLite makes another beside it, for which it needs room.

    Whoever has the file for itself can do without.
    """
    copy = sqlite3.connect(":memory:", isolation_level=None)
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA locking_mode = EXCLUSIVE")
        base.backup(copy)
    return copy


def _is_no_room(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_ROOM  # not every one has a code


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
