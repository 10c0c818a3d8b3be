"""Results that were changed, cut or written by another version, and what is refused."""

import random
import sqlite3
import subprocess
import sys

import pytest

from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache
from small_sweep import TOML, exported, stored, table


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "small.toml").write_text(TOML)
    return Sweep.load(tmp_path / "small.toml")


# --- what was stored is what is read ---


CHANGES = [
    "UPDATE records SET start = start + 1e-12 WHERE rowid = 7",
    "UPDATE records SET planner = 'other' WHERE rowid = 7",
    "DELETE FROM records WHERE rowid = 7",
    "DELETE FROM units WHERE rowid = 3",
    "UPDATE units SET strategy = 'other' WHERE rowid = 3",
    "UPDATE units SET key = key || '0' WHERE rowid = 3",
    "DELETE FROM wanted WHERE rowid = 3",
    "UPDATE wanted SET key = key || '0' WHERE rowid = 3",
    "DELETE FROM hashes WHERE rowid = 3",
    "DELETE FROM hashes WHERE key = 'wanted'",
    "INSERT INTO json_records VALUES ((SELECT key FROM units WHERE rowid = 3), 0, '{}', '{}')",
]


@pytest.mark.parametrize("change", CHANGES)
def test_results_that_were_changed_are_refused(sweep, tmp_path, change):
    path = tmp_path / "results.sqlite"
    stored(sweep, path)
    for read in (Store.rows, Store.tables, Store.seeds):
        with Store(path, create=False) as store:
            assert list(read(store)) is not None
    with sqlite3.connect(path) as base:
        base.execute(change)
    base.close()
    for read in (Store.rows, Store.tables, Store.seeds):
        with (
            Store(path, create=False) as store,
            pytest.raises(ValueError, match=r"results\.sqlite is damaged .*not what was written"),
        ):
            list(read(store))


def test_a_store_that_lost_its_hashes_is_refused(sweep, tmp_path):
    path = tmp_path / "results.sqlite"
    stored(sweep, path)
    with sqlite3.connect(path) as base:
        base.execute("DROP TABLE hashes")
    base.close()
    with pytest.raises(ValueError, match=r"results\.sqlite is damaged \(it has no hashes\)"):
        Store(path, create=False)


def test_a_changed_byte_of_a_store_is_refused_or_harmless(sweep, tmp_path):
    path = tmp_path / "results.sqlite"
    stored(sweep, path)
    whole, rows, moments = path.read_bytes(), exported(path), random.Random(0)
    harmless = 0
    for _ in range(250):
        changed = bytearray(whole)
        changed[moments.randrange(len(whole))] ^= 1 << moments.randrange(8)
        path.write_bytes(changed)
        try:
            assert exported(path) == rows
            harmless += 1
        except (ValueError, OSError):
            pass
        for beside in tmp_path.glob("results.sqlite-*"):
            beside.unlink()
    assert harmless < 200  # empty space


def test_results_are_read_while_others_are_added(sweep, tmp_path):
    path, cache = tmp_path / "results.sqlite", InstanceCache()
    with Store(path) as writer:
        writer.want(unit.key for unit in sweep.units)
        for unit in sweep.units[:6]:
            before = len(writer.keys())
            writer.add(unit, unit.run(cache))
            writer.add(unit, unit.run(cache))  # as a worker that was slow would
            with Store(path, create=False) as reader:
                assert len(list(reader.rows())) > before


def older(path):
    """The layout before hashes."""
    with sqlite3.connect(path) as base:
        base.execute("DROP TABLE hashes")
        base.execute("PRAGMA user_version = 2")
    base.close()


def test_a_store_from_before_hashes_is_read_and_added_to_unchecked(sweep, tmp_path):
    path, cache = tmp_path / "results.sqlite", InstanceCache()
    stored(sweep, path)
    rows = exported(path)
    older(path)
    assert exported(path) == rows
    with sqlite3.connect(path) as base:
        base.execute("DELETE FROM units WHERE rowid = 3")
        base.execute("DELETE FROM records WHERE key NOT IN (SELECT key FROM units)")
    base.close()
    assert exported(path) != rows
    with Store(path) as store:
        done = store.keys()
        for unit in sweep.units:
            if unit.key not in done:
                store.add(unit, unit.run(cache))
    assert exported(path) == rows
    with sqlite3.connect(path) as base:
        assert base.execute("PRAGMA user_version").fetchone() == (2,)
    base.close()


def test_a_full_disk_leaves_results_readable(sweep, tmp_path):
    """Reading makes a file of 32 kB beside the store, for which there is no room here."""
    path = tmp_path / "results.sqlite"
    stored(sweep, path)
    rows = exported(path)
    assert not list(tmp_path.glob("results.sqlite-*"))
    source = """
import resource, signal, sys
from rewardfree.cli import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
main()
"""
    read = subprocess.run(
        [sys.executable, "-c", source, "export", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert read.returncode == 0, read.stderr
    assert read.stdout == rows


@pytest.mark.parametrize("text", ["x = " + "[" * 3000, "x = " + "[" * 3000 + "]" * 3000, "{a=" * 900])
def test_brackets_without_an_end_are_one_error(tmp_path, text):
    (tmp_path / "deep.toml").write_text(text)
    with pytest.raises(ValueError, match=r"deep\.toml"):
        Sweep.load(tmp_path / "deep.toml")
    (tmp_path / "deep.toml").write_text(TOML.replace("beta = 0.1", f"beta = {'[' * 300}{']' * 300}", 1))
    with pytest.raises(ValueError, match=r"deep\.toml"):
        Sweep.load(tmp_path / "deep.toml")


def test_checkpoints_that_nobody_could_wait_for_are_refused():
    with pytest.raises(ValueError, match="samples_per_step must be at most"):
        Sweep.of(table(samples_per_step=[10**18]))
