"""Records that are tables: the same bytes each time, with what a clock said beside them."""

import io
import sqlite3
import time
from dataclasses import dataclass
from typing import ClassVar

import pytest
from pyarrow import parquet

from rewardfree.experiments.export import write_csv, write_parquet
from rewardfree.experiments.running import Runner
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import InstanceCache, Unit
from rewardfree.studies.baselines.specification import BaselineUnit


@dataclass(frozen=True)
class Timed(Unit):
    """Says a number, and a time that is another one in every run."""

    number: int
    version: ClassVar[int] = 1

    @property
    def names(self):
        return "timed", "none", str(self.number)

    def run(self, cache):
        return [{"n": self.number, "seconds": {"plan": time.perf_counter_ns()}}, {"n": -self.number}]


def run_here(store, *units):
    """Store what each unit gives."""
    store.want(unit.key for unit in units)
    for unit in units:
        store.add(unit, unit.run(InstanceCache()))


def stored_text(path):
    """The records as they are stored, in the order of the units."""
    with sqlite3.connect(path) as base:
        return base.execute("SELECT key, place, record FROM json_records ORDER BY key, place").fetchall()


def test_records_come_back_with_their_seconds_in_the_order_of_the_units(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        run_here(store, Timed(4), Timed(2))
        first, second, third, fourth = store.tables()
        assert list(store.rows()) == []
    assert first == {"n": 4, "seconds": {"plan": first["seconds"]["plan"]}}
    assert second == {"n": -4, "seconds": {}}
    assert (third["n"], fourth["n"]) == (2, -2)


def test_a_store_shows_the_units_that_are_wanted(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        run_here(store, Timed(1), Timed(2))
        store.want([Timed(2).key, Timed(3).key])
        assert [record["n"] for record in store.tables()] == [2, -2]
        assert store.keys() == {Timed(1).key, Timed(2).key}


@pytest.mark.parametrize(
    "unit", [Timed(1), BaselineUnit("riverswim", 11, quick=True)], ids=lambda u: u.names[0]
)
def test_records_are_the_same_bytes_whatever_the_clock_says(unit, tmp_path):
    seconds = []
    for name in ("once", "again"):
        with Store(tmp_path / name) as store:
            run_here(store, unit)
            seconds.append([record["seconds"] for record in store.tables()])
    assert stored_text(tmp_path / "once") == stored_text(tmp_path / "again") != []
    assert seconds[0] != seconds[1]


def test_a_runner_stores_them_and_runs_nothing_twice(tmp_path):
    units = [BaselineUnit("riverswim", seed, quick=True) for seed in (3, 4)]
    with Store(tmp_path / "results.sqlite") as store:
        assert Runner(jobs=1).run(units[1:], store) == 1
        assert Runner(jobs=1).run(units, store) == 1
        assert Runner(jobs=1).run(units, store) == 0
        assert {record["seed"] for record in store.tables()} == {3, 4}
        assert store.tables()[0]["seed"] == 3


def test_half_a_unit_is_never_stored(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        with pytest.raises(TypeError, match="JSON serializable"):
            store.add(Timed(1), [{"n": 1}, {"n": object()}])
        assert store.keys() == set()


@pytest.mark.parametrize("column", ["record", "seconds"])
def test_a_damaged_record_is_named(column, tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        run_here(store, Timed(1))
    with sqlite3.connect(path) as base:
        base.execute(f"UPDATE json_records SET {column} = '[' WHERE place = 0")
    with (
        Store(path) as store,
        pytest.raises(ValueError, match=r"results\.sqlite is damaged .*: move it away"),
    ):
        store.tables()


def test_an_older_store_is_named(tmp_path):
    path = tmp_path / "results.sqlite"
    Store(path).close()
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 1")
    with pytest.raises(
        ValueError, match=r"results\.sqlite has an older layout \(1\): run its sweep in another"
    ):
        Store(path)


def test_an_export_has_a_column_for_each_name_and_no_clock(tmp_path):
    with Store(tmp_path / "results.sqlite") as store, io.StringIO() as file:
        unit = Timed(7)
        store.want([unit.key])
        store.add(unit, [{"n": 7, "gaps": [0.5, 1.0], "seconds": {"plan": 1.0}}, {"n": 8, "found": True}])
        assert write_csv(store, file) == 2
        assert file.getvalue() == 'n,gaps,found\n7,"[0.5, 1.0]",\n8,,True\n'
        assert write_parquet(store, tmp_path / "records.parquet") == 2
    columns = parquet.read_table(tmp_path / "records.parquet").to_pydict()
    assert columns == {"n": [7, 8], "gaps": ["[0.5, 1.0]", None], "found": [None, True]}
