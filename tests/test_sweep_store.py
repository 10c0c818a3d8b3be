"""A sweep that runs: its store, workers that die, full disks, exports."""

import csv
import errno
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import parquet

from rewardfree.experiments import running
from rewardfree.experiments.export import write_parquet
from rewardfree.experiments.running import Runner
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import ATTEMPTS, InstanceCache, SweepUnit
from small_sweep import DELTA, TOML, exported, runs_of, table

COMMAND = Path(sys.executable).parent / "rewardfree"


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "small.toml").write_text(TOML)
    return Sweep.load(tmp_path / "small.toml")


# --- the store ---


def test_running_twice_does_nothing_and_jobs_change_nothing(sweep, tmp_path):
    found = []
    for jobs in (1, 2):
        path = tmp_path / str(jobs) / "results.sqlite"
        with Store(path) as store:
            assert Runner(jobs=jobs).run(sweep.units, store) == 18 + 3
            assert Runner(jobs=jobs).run(sweep.units, store) == 0
        found.append(exported(path))
    assert found[0] == found[1]
    assert found[0].count("\n") == 1 + 6 * 5 * 2 * 2 + 3 * 2


def test_a_folder_shows_the_sweep_that_ran_last(sweep, tmp_path):
    """Another ridge under the same names: its results must not be mixed with the first ones."""
    path, other = tmp_path / "results.sqlite", tmp_path / "other" / "results.sqlite"
    changed = Sweep.of(table(models=[DELTA | {"name": "matern"}]))
    for where in (path, other):
        with Store(where) as store:
            if where == path:
                Runner(jobs=2).run(sweep.units, store)
                first = list(store.rows())
            Runner(jobs=2).run(changed.units, store)
    assert exported(path) == exported(other)
    with Store(path) as store:
        assert Runner(jobs=2).run(sweep.units, store) == 0  # the old ones are still there
        assert list(store.rows()) == first


def test_a_store_that_was_killed_while_it_was_made_is_made_again(sweep, tmp_path):
    path = tmp_path / "results.sqlite"
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode = WAL")
    base.close()
    assert path.stat().st_size > 0
    with Store(path) as store, Store(path):
        Runner(jobs=1).run(sweep.units[:1], store)
        assert store.keys() == {sweep.units[0].key}


def test_reading_makes_no_store(tmp_path):
    (tmp_path / "results.sqlite").touch()
    with pytest.raises(ValueError, match="is not a store of results"):
        Store(tmp_path / "results.sqlite", create=False)
    assert (tmp_path / "results.sqlite").stat().st_size == 0


def test_a_second_writer_is_told(sweep, tmp_path):
    path = tmp_path / "results.sqlite"
    told = pytest.raises(ValueError, match="another process is writing to")
    with Store(path) as first, Store(path) as second, first.writing(), told:
        Runner(jobs=1).run(sweep.units, second)


def test_half_a_unit_is_never_stored(sweep, tmp_path):
    unit = runs_of(sweep)[0]
    with Store(tmp_path / "results.sqlite") as store:
        with pytest.raises(ValueError, match=r"not a store|damaged"):
            store.add(unit, [*unit.run(InstanceCache()), replace(unit.run(InstanceCache())[0], seed={})])
        assert store.keys() == set() and list(store.rows()) == []
        store.add(unit, unit.run(InstanceCache()))
        assert store.keys() == {unit.key}


def foreign(path):
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE units (key)")


def newer(path):
    Store(path).close()
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 99")


def cut(path):
    with Store(path) as store:
        for unit in runs_of(Sweep.of(table()))[:6]:
            store.add(unit, unit.run(InstanceCache()))
        store._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def misnamed(path):
    """A byte of a table's name that is no text: what SQLite says of it cannot be read either."""
    Store(path).close()
    content = path.read_bytes()
    assert b"(key, place))" in content
    path.write_bytes(
        content.replace(b"indexsqlite_autoindex_json_records_1", b"indexs\xddlite_autoindex_json_records_1")
    )


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (misnamed, "results.sqlite is not a store of results, or is damaged"),
        (foreign, "is not a store of results"),
        (newer, "newer rewardfree"),
        (cut, "damaged|malformed"),
        (lambda path: path.write_text("gaps,1,2\n" * 200), "not a store of results"),
    ],
    ids=["misnamed", "foreign", "newer", "cut", "text"],
)
def test_other_files_are_refused_and_left_alone(tmp_path, spoil, said):
    path = tmp_path / "results.sqlite"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises((ValueError, OSError), match=said):
        Store(path)
    assert path.read_bytes() == before


# --- what may happen ---


DEADLY = """
import os, signal
from pathlib import Path
from rewardfree import Uniform

def mortal(left):
    lives = Path(left)
    number = int(lives.read_text())
    if number:
        lives.write_text(str(number - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return Uniform()
"""


@pytest.mark.parametrize(("deaths", "survives"), [(1, True), (ATTEMPTS, False)])
def test_a_worker_that_dies_is_replaced(tmp_path, monkeypatch, deaths, survives):
    (tmp_path / "deadly.py").write_text(DEADLY)
    (tmp_path / "lives").write_text("0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the workers
    own = {"type": "deadly:mortal", "left": str(tmp_path / "lives")}
    units = Sweep.of(table(strategies=[own], runs=1), allow_imports=True).units
    (tmp_path / "lives").write_text(str(deaths))
    with Store(tmp_path / "results.sqlite") as store:
        if survives:
            assert Runner(jobs=1, allow_imports=True).run(units, store) == len(units)
            assert store.keys() == {unit.key for unit in units}
        else:
            with pytest.raises(OSError, match="a worker died 3 times"):
                Runner(jobs=1, allow_imports=True).run(units, store)


COMPANY = """
import multiprocessing, os, signal, time
from pathlib import Path
from rewardfree import Uniform

DEATHS = Path(os.environ["DEATHS"])

def deadly():
    if multiprocessing.parent_process() is not None:
        with DEATHS.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return Uniform()

def innocent():
    while multiprocessing.parent_process() is not None and not DEATHS.exists():
        time.sleep(0.01)
    return Uniform()
"""


def test_an_innocent_unit_survives_a_deadly_one_beside_it(tmp_path, monkeypatch):
    """The innocent one is still at work when the other dies, so its own worker is lost with the pool."""
    (tmp_path / "company.py").write_text(COMPANY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the workers
    monkeypatch.setenv("DEATHS", str(tmp_path / "deaths"))
    own = [{"name": name, "type": f"company:{name}"} for name in ("innocent", "deadly")]
    strategies = [{"name": "before", "type": "Uniform"}, *own, {"name": "after", "type": "Uniform"}]
    worlds = [{"type": "corridor_world", "states": 10, "actions": 6}]
    settings = {"worlds": worlds, "models": [DELTA], "strategies": strategies, "runs": 1}
    units = runs_of(Sweep.of(table(**settings), allow_imports=True))
    assert [unit.names[2] for unit in units] == ["before", "innocent", "deadly", "after"]
    monkeypatch.setattr(running, "_mixed", list)  # in this order
    died = r"a worker died 3 times on world corridor_world, model Model, strategy deadly: "
    with Store(tmp_path / "results.sqlite") as store:
        with pytest.raises(ChildProcessError, match=died):
            Runner(jobs=2, allow_imports=True).run(units, store)
        harmless = [unit for unit in units if unit.names[2] != "deadly"]
        assert store.keys() == {unit.key for unit in harmless}
        assert (tmp_path / "deaths").read_text() == "x" * ATTEMPTS
        assert Runner(jobs=1, allow_imports=True).run(harmless, store) == 0


def command(*arguments, **options):
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment, start_new_session=True, **options,
    )  # fmt: skip


def test_twenty_kills_change_nothing(sweep, tmp_path):
    """kill -9 at random moments, again and again: the end is the same, byte for byte."""
    with Store(tmp_path / "whole" / "results.sqlite") as store:
        Runner(jobs=2).run(sweep.units, store)
    expected, moments = exported(tmp_path / "whole" / "results.sqlite"), random.Random(0)
    kills, folder = 0, 0
    while kills < 20:
        out, ended, patience = tmp_path / f"killed{folder}", False, 1.0
        while not ended:
            process = command("sweep", tmp_path / "small.toml", "--out", out, "--jobs", 2)
            patience *= 1.1  # a slow machine must get to the end, too
            try:
                process.communicate(timeout=patience * moments.uniform(0.3, 1.6))
                ended = True
                assert process.returncode == 0
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                kills += 1
                if (out / "results.sqlite").exists():
                    assert set(exported(out / "results.sqlite").splitlines()) <= set(expected.splitlines())
        assert exported(out / "results.sqlite") == expected
        folder += 1


def children_of(process, number):
    """So many of them, as soon as they are there."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 30
    while len(children.read_text().split()) < number and time.monotonic() < deadline:
        time.sleep(0.05)
    found = children.read_text().split()
    assert len(found) >= number
    return found


def test_workers_end_with_their_parent(tmp_path):
    (tmp_path / "long.toml").write_text(TOML.replace("runs = 5", "runs = 4000"))
    process = command("sweep", tmp_path / "long.toml", "--out", tmp_path, "--jobs", 2)
    workers = children_of(process, 3)  # two, and a tracker
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []


def test_a_closed_terminal_is_one_line(tmp_path):
    """It tells every process of its own, among them one of Python's, which would end in tracebacks."""
    (tmp_path / "long.toml").write_text(TOML.replace("runs = 5", "runs = 4000"))
    process = command("sweep", tmp_path / "long.toml", "--out", tmp_path, "--jobs", 1)
    children_of(process, 2)
    os.killpg(process.pid, signal.SIGHUP)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGHUP
    assert errors.count("\n") == 1 and "; to go on: rewardfree sweep" in errors


def test_an_error_in_a_worker_names_its_unit(tmp_path):
    (tmp_path / "bad.toml").write_text(TOML.replace("states = 10", "states = 1"))
    process = command("sweep", tmp_path / "bad.toml", "--out", tmp_path, "--jobs", 1)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert re.search(
        "world corridor_world, model matern, strategy (Generative|online|no data): states must be", errors
    )


def test_a_full_disk_is_named_and_loses_nothing(sweep, tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    process = command("sweep", tmp_path / "small.toml", "--out", tmp_path, "--jobs", 1, preexec_fn=limited)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert "results.sqlite" in errors and "what was stored before is safe" in errors
    stored = exported(tmp_path / "results.sqlite")
    process = command("sweep", tmp_path / "small.toml", "--out", tmp_path, "--jobs", 1)
    process.communicate(timeout=60)
    assert process.returncode == 0
    whole = exported(tmp_path / "results.sqlite")
    assert set(stored.splitlines()) <= set(whole.splitlines()) and whole.count("\n") == 127


def test_export_writes_csv_and_nothing_else(sweep, tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        Runner(jobs=1).run(runs_of(sweep)[:3], store)
    done = subprocess.run([COMMAND, "export", tmp_path], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "world,model,strategy,seed,planner,samples,episodes,steps,start,mean,max"
    assert len(lines) == 21 and done.stderr == ""
    subprocess.run([COMMAND, "export", tmp_path, "--output", tmp_path / "gaps.csv"], check=True)
    assert (tmp_path / "gaps.csv").read_text() == done.stdout


def asked(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("command", ["report", "figures"])
def test_a_full_disk_is_told_with_a_place_to_write_to(cli, monkeypatch, tmp_path, command):
    class Full:
        def show(self, *_):
            raise OSError(errno.ENOSPC, "No space left on device", "report.html")

        page_of = show

    monkeypatch.setattr("rewardfree.cli.commands.sweeps.report_of", lambda folder: Full())
    code, _, complaints = cli(command, tmp_path)
    assert code == 2 and len(complaints) == 1 and "No space left on device" in complaints[0]
    assert "--out ELSEWHERE" in complaints[0]


def test_export_has_two_forms_of_one_table(sweep, tmp_path):
    panel = [unit for unit in sweep.units if unit.names[:2] == ("corridor_world", "matern")]
    with Store(tmp_path / "results.sqlite") as store:
        store.want(unit.key for unit in panel)
        for unit in panel:
            store.add(unit, unit.run(InstanceCache()))
    plain, named = asked("export", tmp_path), asked("export", tmp_path, "--csv")
    assert (named.returncode, named.stdout, named.stderr) == (0, plain.stdout, "")
    done = asked("export", tmp_path, "--parquet", "--out", tmp_path / "gaps.parquet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    header, *rows = csv.reader(plain.stdout.splitlines())
    assert len(rows) == 2 * 5 * 2 * 2 + 2
    found = parquet.read_table(tmp_path / "gaps.parquet")
    assert found.column_names == header
    kinds = {"int64": int, "double": float, "string": str}
    for name, column in zip(header, zip(*rows, strict=True), strict=True):
        kind = kinds[str(found.schema.field(name).type)]
        assert found[name].to_pylist() == [kind(cell) for cell in column]
    numbers = {"seed": "int64", "samples": "int64", "episodes": "int64", "steps": "int64", "start": "double"}
    assert {name: str(found.schema.field(name).type) for name in numbers} == numbers


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--csv", "--parquet", "--out", "x"], "--csv and --parquet are two forms: give one of them"),
        (["--parquet"], "--parquet needs --out FILE"),
        (["--parquet", "--out", "nowhere/x"], "there is no folder nowhere for x"),
    ],
)
def test_an_export_that_cannot_be_is_refused(sweep, tmp_path, monkeypatch, options, said):
    with Store(tmp_path / "results.sqlite") as store:
        store.want([sweep.units[0].key])
        store.add(sweep.units[0], sweep.units[0].run(InstanceCache()))
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    done = asked("export", tmp_path, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rewardfree: ") and said in done.stderr and done.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("missing", ["pyarrow", "pyarrow.parquet"])
def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "pyarrow.parquet":
        monkeypatch.delattr("pyarrow.parquet")
    said = r"pip install '\.\[parquet\]' from the checkout, or use --csv"
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ValueError, match=said):
        write_parquet(store, tmp_path / "gaps.parquet")
    assert not (tmp_path / "gaps.parquet").exists()


def test_parquet_of_no_records_has_the_columns(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        assert write_parquet(store, tmp_path / "gaps.parquet") == 0
    found = parquet.read_table(tmp_path / "gaps.parquet")
    assert found.num_rows == 0 and found.column_names[:3] == ["world", "model", "strategy"]


def test_export_of_nothing_says_so(tmp_path):
    done = subprocess.run([COMMAND, "export", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and "there are no results in" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_units_are_frozen(sweep):
    assert isinstance(runs_of(sweep)[0], SweepUnit)
    with pytest.raises(AttributeError):
        sweep.units[0].device = "cuda"
