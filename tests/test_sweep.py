"""Sweeps: from a file to units, through processes that may die, into a store that may not."""

import csv
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

import numpy as np
import pytest
from pyarrow import parquet

import rewardfree as rf
from rewardfree.experiments import running
from rewardfree.experiments.export import write_csv, write_parquet
from rewardfree.experiments.running import Runner
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import ATTEMPTS, NO_DATA, InstanceCache, ReferenceUnit, SweepUnit

COMMAND = Path(sys.executable).parent / "rewardfree"
TOML = """
name = "small"
runs = 5
batch = 2
samples_per_step = [3, 6]

[[worlds]]
name = "paper"
type = "rkhs_world"
kernel = {type = "Matern", nu = 1.5, lengthscale = 0.1}
ridge = 0.5
states = 12
actions = 10
coarse = 4

[[worlds]]
type = "corridor_world"
states = 10
actions = 6

[[models]]
name = "matern"
type = "Model"
kernel = {type = "Matern", nu = 1.5, lengthscale = 0.1}
ridge = 0.5

[[models]]
name = "se"
type = "Model"
kernel = {type = "SquaredExponential", lengthscale = [0.1, 0.2]}
ridge = 0.01
for = ["paper"]

[[strategies]]
type = "Generative"

[[strategies]]
name = "online"
type = "Online"
beta = 0.1

[[planners]]
name = "mean"
type = "Mean"

[[planners]]
name = "optimistic"
type = "Optimistic"
beta = 0.1
"""


def runs_of(sweep):
    """The units that explore."""
    return [unit for unit in sweep.units if isinstance(unit, SweepUnit)]


DELTA = {"type": "Model", "kernel": {"type": "Delta"}, "ridge": 1.0}


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "small.toml").write_text(TOML)
    return Sweep.load(tmp_path / "small.toml")


def exported(path):
    with Store(path) as store, (path.parent / "out.csv").open("w+", newline="") as file:
        write_csv(store, file)
        file.seek(0)
        return file.read()


def table(**changes):
    import tomllib

    return tomllib.loads(TOML) | changes


# --- from a file to units ---


def test_every_strategy_on_every_world_with_the_models_meant_for_it(sweep):
    assert sweep.name == "small"
    units, pairs = runs_of(sweep), {unit.names for unit in runs_of(sweep)}
    assert len(pairs) == 6 and ("corridor_world", "se", "online") not in pairs
    assert [unit.seeds for unit in units[:3]] == [(0, 1), (2, 3), (4,)]
    assert len({unit.key for unit in units}) == len(units) == 18
    assert len({unit.key for unit in sweep.units}) == len(sweep.units) == 18 + 3


def test_every_panel_has_what_needs_no_data(sweep):
    panels = {unit.names[:2] for unit in runs_of(sweep)}
    references = [unit for unit in sweep.units if isinstance(unit, ReferenceUnit)]
    assert {unit.names for unit in references} == {(*panel, NO_DATA) for panel in panels}
    instance = rf.worlds.corridor_world(states=10, actions=6)
    world, reward = instance.world, instance.reward
    (own,) = [unit for unit in references if unit.names[0] == "corridor_world"]
    myopic, random = own.run(InstanceCache())
    found = rf.describe(world, reward)
    assert (myopic.planner, myopic.start, myopic.max) == ("myopic", found.myopic.start, found.myopic.max)
    assert (random.planner, random.start, random.max) == ("random", found.random.start, found.random.max)
    assert (myopic.samples, myopic.episodes, myopic.steps) == (0, 0, 0)


def test_every_factory_of_worlds_can_be_named(tmp_path):
    kernel, size = {"type": "Matern", "nu": 1.5, "lengthscale": 0.3}, {"states": 5, "actions": 4}
    options = {
        "rkhs_world": {"kernel": kernel, **size},
        "portal_world": {"states": 20},
        "rooms_world": {"side": 3},
        "riverswim_world": {},
        "bump_world": {"world": {"type": "garnet_world", **size}, "width": 0.3},
        "hard_world": {"instance": "rooms", "reward": 4},
    }
    tables = [{"type": name, **options.get(name, size)} for name in rf.worlds.FACTORIES]
    sweep = Sweep.of({**table(worlds=tables, models=[DELTA], runs=1), "samples_per_step": [2]})
    assert {unit.names[0] for unit in sweep.units} == set(rf.worlds.FACTORIES)
    records = [record for unit in sweep.units for record in unit.run(InstanceCache())]
    assert len(records) == len(rf.worlds.FACTORIES) * (2 + 2 * 2)
    assert min(record.start for record in records) >= -1e-12


def test_a_sweep_without_a_name_is_called_as_its_file(tmp_path):
    (tmp_path / "mine.toml").write_text(TOML.replace('name = "small"', ""))
    assert Sweep.load(tmp_path / "mine.toml").name == "mine"


def test_planners_may_be_meant_for_some_strategies():
    planners = [{"type": "Mean"}, {"type": "Pessimistic", "beta": 1.0, "for": ["online"]}]
    found = {
        unit.names[2]: [name for name, _ in unit.planners]
        for unit in runs_of(Sweep.of(table(planners=planners)))
    }
    assert found == {"Generative": ["Mean"], "online": ["Mean", "Pessimistic"]}
    with pytest.raises(ValueError, match="no planner is meant for strategy Generative"):
        Sweep.of(table(planners=planners[1:]))
    with pytest.raises(ValueError, match="planner Mean is meant for qiu, which is no strategy here"):
        Sweep.of(table(planners=[{"type": "Mean", "for": ["qiu"]}]))


def test_a_key_is_its_content(sweep):
    unit = runs_of(sweep)[0]
    again = Sweep.of(dict(reversed(table().items())), "small").units
    assert unit in again
    others = [
        replace(unit, seeds=(0, 1, 2)), replace(unit, dtype="float32"), replace(unit, checkpoints=(3, 7)),
        replace(unit, device="cuda"), replace(unit, planners=unit.planners[:1]),
        replace(unit, world=unit.world.replace("0.5", "0.25")),
    ]  # fmt: skip
    assert len({each.key for each in [unit, *others]}) == 7


def test_a_unit_is_a_learning_curve():
    unit = next(unit for unit in runs_of(Sweep.of(table())) if unit.names == ("paper", "matern", "online"))
    kernel = rf.Matern(1.5, 0.1)
    instance = rf.rkhs_world(kernel, 0.5, states=12, actions=10, coarse=4)
    world, reward = instance.world, instance.reward
    curves = rf.experiments.learning_curves(
        world, rf.Model(kernel, 0.5), rf.Online(0.1), reward, {"mean": rf.Mean()},
        samples_per_step=[3, 6], seeds=[0, 1],
    )["mean"]  # fmt: skip
    records = [record for record in unit.run(InstanceCache()) if record.planner == "mean"]
    assert [(r.seed, r.samples, r.episodes, r.steps) for r in records] == [
        (0, 3, 30, 165), (0, 6, 60, 330), (1, 3, 30, 165), (1, 6, 60, 330),
    ]  # fmt: skip
    np.testing.assert_allclose([r.start for r in records], curves.start.reshape(-1), rtol=0, atol=1e-10)
    np.testing.assert_allclose([r.max for r in records], curves.max.reshape(-1), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": 1}, "unknown settings colour: a sweep has batch, "),
        ({"worlds": []}, r"needs tables \[\[worlds\]\], with two brackets"),
        ({"worlds": {"type": "corridor_world"}}, r"needs tables \[\[worlds\]\], with two brackets"),
        ({"models": [1]}, r"needs tables \[\[models\]\], with two brackets"),
        ({"worlds": [{"type": "corridor_world", "colour": 1}]}, "world corridor_world: .*colour"),
        ({"worlds": [{"type": "river"}]}, "world must be one of bump_world, corridor_world, "),
        ({"models": [DELTA | {"for": "paper"}]}, "`for` must be a list of names of worlds, got 'paper'"),
        ({"models": [DELTA | {"for": 3}]}, "`for` must be a list"),
        ({"strategies": [{"type": "Uniform", "for": ["paper"]}]}, "strategy Uniform: .*for"),
        ({"planners": [{"type": "Mean", "name": "../x"}]}, "a name must be text without slashes"),
        ({"name": ""}, "a name must be text"),
        ({"device": "tpu"}, 'device must be "cpu"'),
        ({"dtype": "int8"}, "dtype must be float64 or float32"),
        ({"seed": 2**63 - 1}, r"seeds must stay below 2\^63"),
        ({"samples_per_step": 5}, "give one list of checkpoints"),
        ({"transitions": [10]}, "give one list of checkpoints"),
        ({"runs": 0}, "runs must be a whole number of at least 1"),
        ({"planners": [{"type": "Mean"}, {"type": "Mean"}]}, "two .* are called 'Mean'"),
        (
            {"planners": [{"type": "Best"}]},
            "planner must be one of CountingPlanner, DefaultPlanner, DynamicsPlanner, Mean, .*, or module",
        ),
        (
            {"planners": [{"type": "DynamicsPlanner"}]},
            "the planner DynamicsPlanner is for real states, a sweep for finite ones",
        ),
        ({"planners": [{"name": "x"}]}, 'must be a table with a type, such as {type = "CountingPlanner"}'),
        ({"strategies": [{"type": "Online"}]}, "strategy Online: .*beta"),
        ({"strategies": [{"type": "Online", "beta": -1}]}, "beta must be at least 0"),
        ({"strategies": [{"type": "os:abort"}]}, "would import and run code of its own: say --allow-imports"),
        ({"models": [{"type": "Model", "kernel": {"type": "Mattern"}}]}, "kernel must be one of"),
        (
            {"models": [{"type": "Model", "kernel": {"type": "Delta"}, "ridge": 1.0, "for": ["x"]}]},
            "meant for",
        ),
    ],
)
def test_mistakes_are_named(changes, said):
    with pytest.raises(ValueError, match=said):
        Sweep.of(table(**changes))


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("runs = = 3")
    with pytest.raises(ValueError, match=r"bad\.toml: "):
        Sweep.load(path)


def test_own_objects_are_imported_when_allowed(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from rewardfree import Qiu\n\ndef cautious():\n    return Qiu(0.05)\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = runs_of(Sweep.of(table(strategies=[{"type": "mine:cautious"}]), allow_imports=True))
    same = runs_of(Sweep.of(table(strategies=[{"type": "Qiu", "beta": 0.05}])))
    assert own[0].run(InstanceCache(allow_imports=True)) == same[0].run(InstanceCache())
    with pytest.raises(ValueError, match="'mine:bold' cannot be imported"):
        Sweep.of(table(strategies=[{"type": "mine:bold"}]), allow_imports=True)
    with pytest.raises(ValueError, match=r"the planner mine:cautious must be .*, got Qiu"):
        Sweep.of(table(planners=[{"type": "mine:cautious"}]), allow_imports=True)


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


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (foreign, "is not a store of results"),
        (newer, "newer rewardfree"),
        (cut, "damaged|malformed"),
        (lambda path: path.write_text("gaps,1,2\n" * 200), "not a store of results"),
    ],
    ids=["foreign", "newer", "cut", "text"],
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


def test_export_has_two_forms_of_one_table(sweep, tmp_path):
    panel = [unit for unit in sweep.units if unit.names[:2] == ("corridor_world", "matern")]
    with Store(tmp_path / "results.sqlite") as store:
        store.want(unit.key for unit in panel)
        for unit in panel:
            store.add(unit, unit.run(InstanceCache()))
    plain, named = asked("export", tmp_path), asked("export", tmp_path, "--csv")
    assert (named.returncode, named.stdout, named.stderr) == (0, plain.stdout, "")
    done = asked("export", tmp_path, "--parquet", "--output", tmp_path / "gaps.parquet")
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
        (["--csv", "--parquet", "--output", "x"], "--csv and --parquet are two forms: give one of them"),
        (["--parquet"], "--parquet needs --output FILE"),
        (["--parquet", "--output", "nowhere/x"], "there is no folder nowhere for x"),
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


def stored(sweep, path):
    """A store of a sweep's units, with nothing left beside it."""
    cache = InstanceCache()
    with Store(path) as store:
        store.want(unit.key for unit in sweep.units)
        for unit in sweep.units:
            store.add(unit, unit.run(cache))


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
