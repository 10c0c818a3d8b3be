"""Sweeps on a real Dask scheduler and its workers, on loopback: the same bytes, whatever happens to them."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client
from typer.testing import CliRunner

import rewardfree as rf
from rewardfree.cli.app import app
from rewardfree.experiments import cluster
from rewardfree.experiments.export import write_csv
from rewardfree.experiments.running import Runner
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep

COMMANDS = Path(sys.executable).parent
LONG = 60  # seconds, for what takes two of them where nobody else is at work
NOBODY = "tcp://127.0.0.1:1"
TABLE = {
    "runs": 10,
    "batch": 1,
    "samples_per_step": [10, 20, 40],
    "worlds": [{"type": "corridor_world", "states": 40, "actions": 30}],
    "models": [{"type": "Model", "kernel": {"type": "Matern", "nu": 1.5, "lengthscale": 0.1}, "ridge": 0.5}],
    "strategies": [{"type": "Generative"}, {"type": "Online", "beta": 0.1}, {"type": "Uniform"}],
    "planners": [{"type": "Mean"}, {"type": "Optimistic", "beta": 0.1}],
}
TOML = """
runs = 4000
batch = 1
samples_per_step = [5, 10, 20]
worlds = [{type = "corridor_world", states = 30, actions = 20}]
models = [{type = "Model", kernel = {type = "Matern", nu = 1.5, lengthscale = 0.1}, ridge = 0.5}]
strategies = [{type = "Online", beta = 0.1}]
planners = [{type = "Mean"}]
"""
#: What workers can import besides: a strategy that kills the worker it is made in, and units of another kind.
OWN = """
import os, signal
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from distributed import get_worker
from rewardfree import Uniform
from rewardfree.experiments.unit import Unit


def deadly(deaths):
    try:
        get_worker()
    except ValueError:  # here, where a sweep is checked
        return Uniform()
    with Path(deaths).open("a") as file:
        file.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Square(Unit):
    number: int
    version: ClassVar[int] = 1

    @property
    def names(self):
        return "numbers", "squares", str(self.number)

    def run(self, cache):
        return [{"square": self.number**2}]
"""
#: Deaths after which the tests' scheduler gives a unit up.
DEATHS = 2


class Machines:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        (folder / "own").mkdir()
        (folder / "own" / "own_units.py").write_text(OWN)
        found = folder / "scheduler.json"
        where = ("--host", "127.0.0.1", "--port", 0, "--dashboard-address", "127.0.0.1:0")
        self.scheduler = self._start("scheduler", *where, "--scheduler-file", found)
        deadline = time.monotonic() + LONG
        while not found.exists():
            assert self.scheduler.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        self.address = json.loads(found.read_text())["address"]

    def worker(self):
        """Another worker, with the nanny that starts it anew when it dies."""
        local = ("--local-directory", self.folder / f"worker{len(self.processes)}")
        return self._start("worker", self.address, "--nthreads", 1, "--host", "127.0.0.1", *local)

    def wait_for(self, workers):
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=LONG)

    def kill(self, process):
        """A machine that is switched off: the worker and its nanny are gone."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.processes.remove(process)

    def close(self):
        for process in list(self.processes):
            self.kill(process)

    def _start(self, *arguments):
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.folder / 'own'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(DEATHS - 1),
        }
        process = subprocess.Popen(
            [COMMANDS / "dask", *map(str, arguments), "--no-dashboard"], env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.processes.append(process)
        return process


@contextmanager
def machines(folder, workers):
    found = Machines(folder)
    try:
        for _ in range(workers):
            found.worker()
        if workers:
            found.wait_for(workers)
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A scheduler with two workers."""
    with machines(tmp_path_factory.mktemp("two"), workers=2) as found:
        yield found


@pytest.fixture
def own(two, monkeypatch):
    """What the workers can import, here as well."""
    monkeypatch.syspath_prepend(two.folder / "own")
    import own_units

    return own_units


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The export of the sweep when it is run on this machine."""
    return exported(tmp_path_factory.mktemp("local"), jobs=1)


def exported(folder, store=Store, **where):
    with store(folder / "results.sqlite") as results, io.StringIO() as file:
        assert Runner(**where).run(Sweep.of(TABLE).units, results) == 31
        write_csv(results, file)
        return file.getvalue()


class Unlucky(Store):
    """A store whose third unit is the last thing before something happens."""

    def add(self, unit, records):
        super().add(unit, records)
        if len(self.keys()) == 3:
            self.happens()


# --- the same results ---


def test_a_cluster_gives_the_same_bytes_and_what_is_stored_is_not_run_again(two, expected, tmp_path):
    assert exported(tmp_path, cluster=two.address) == expected
    with Store(tmp_path / "results.sqlite") as store:
        assert Runner(cluster=NOBODY).run(Sweep.of(TABLE).units, store) == 0  # nobody is needed for that


def test_a_worker_that_is_killed_on_the_way_changes_nothing(two, expected, tmp_path, monkeypatch):
    unlucky = next(process for process in two.processes if process is not two.scheduler)

    def freeze(*_):
        os.killpg(unlucky.pid, signal.SIGSTOP)

    # Frozen before the units are sent, it takes some and ends none: so it surely has some when it is killed.
    monkeypatch.setattr(cluster, "_check_versions", freeze)
    monkeypatch.setattr(Unlucky, "happens", lambda _: two.kill(unlucky), raising=False)
    with Client(two.address, set_as_default=False) as client:
        try:
            assert exported(tmp_path, Unlucky, cluster=two.address) == expected
            lost = [event for _, event in client.get_events("all") if event.get("action") == "remove-worker"]
            assert lost[-1]["processing-tasks"]  # these were run elsewhere
            assert len(client.nthreads()) == 1
        finally:
            two.worker()
            two.wait_for(2)


def test_units_whose_records_are_tables_run_there_as_well(two, own, tmp_path):
    units = [own.Square(number) for number in range(5)]
    with Store(tmp_path / "results.sqlite") as store:
        assert Runner(cluster=two.address).run(units, store) == 5
        assert [record["square"] for record in store.tables()] == [0, 1, 4, 9, 16]
        assert Runner(cluster=NOBODY).run(units, store) == 0


@pytest.mark.parametrize("what", ["figure1", "beyond", "control", "doubling"])
def test_reproductions_go_there(what, tmp_path, monkeypatch):
    def asked(waiting, address, allow_imports):
        raise ConnectionError(f"{len(waiting)} units for {address}")

    monkeypatch.setattr(cluster, "finished_units", asked)
    arguments = ["reproduce", what, "--quick", "--out", str(tmp_path), "--cluster", NOBODY]
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, ConnectionError) and str(error).endswith(f" units for {NOBODY}")


# --- what may happen ---


def test_an_error_names_its_unit(two, tmp_path):
    units = Sweep.of(TABLE | {"worlds": [{"type": "corridor_world", "states": 1}], "runs": 1}).units
    said = "^world corridor_world, model Model, strategy (Generative|Online|Uniform|no data): states must be"
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ValueError, match=said):
        Runner(cluster=two.address).run(units, store)


def test_a_unit_that_kills_its_worker_is_given_up_without_the_others(two, own, tmp_path):
    deadly = {"name": "deadly", "type": "own_units:deadly", "deaths": str(tmp_path / "deaths")}
    strategies = [{"type": "Uniform"}, deadly, {"type": "Generative"}]
    units = Sweep.of(TABLE | {"strategies": strategies, "runs": 1}, allow_imports=True).units
    said = f"a worker died {DEATHS} times on world corridor_world, model Model, strategy deadly: is there"
    with Store(tmp_path / "results.sqlite") as store:
        with pytest.raises(ChildProcessError, match=said):
            Runner(cluster=two.address, allow_imports=True).run(units, store)
        assert store.keys() == {unit.key for unit in units if unit.names[2] != "deadly"}
    assert (tmp_path / "deaths").read_text() == "x" * 2 * DEATHS  # in company, and alone


def test_an_interruption_keeps_what_is_stored_and_takes_back_the_rest(two, tmp_path):
    (tmp_path / "long.toml").write_text(TOML)
    arguments = ("sweep", tmp_path / "long.toml", "--out", tmp_path, "--cluster", two.address)
    process = subprocess.Popen(
        [COMMANDS / "rewardfree", *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + LONG
    while not stored(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LONG)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.splitlines()[-1] == (
        f"rewardfree: interrupted with {stored(tmp_path)} of 4001 units stored in "
        f"{tmp_path / 'results.sqlite'}; to go on: rewardfree {' '.join(map(str, arguments))}"
    )
    with Client(two.address, set_as_default=False) as client:
        while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def stored(folder):
    if not (folder / "results.sqlite").exists():
        return 0
    with Store(folder / "results.sqlite") as store:
        return len(store.keys())


def test_workers_may_come_late_and_a_scheduler_may_go(tmp_path, monkeypatch):
    units = Sweep.of(TABLE).units
    monkeypatch.setattr(cluster, "LOOK", 0.2)
    monkeypatch.setattr(cluster, "CONNECT", 5.0)  # also how long it is looked for when it is gone
    with machines(tmp_path, workers=0) as found, Unlucky(tmp_path / "results.sqlite") as store:
        monkeypatch.setattr(cluster, "PATIENCE", 0.5)
        with pytest.raises(ConnectionError, match=f"the scheduler at {found.address} has had no worker for"):
            Runner(cluster=found.address).run(units, store)
        monkeypatch.setattr(cluster, "PATIENCE", LONG)
        found.worker()
        monkeypatch.setattr(Unlucky, "happens", lambda _: found.kill(found.scheduler), raising=False)
        said = "^the Dask scheduler is gone: start it again, and run the same command"
        with pytest.raises(ConnectionError, match=said):
            Runner(cluster=found.address).run(units, store)
        assert 3 <= len(store.keys()) < len(units)


# --- what is refused ---


@pytest.mark.parametrize(
    "address",
    ["", "127.0.0.1:8786", "http://127.0.0.1:8786", "tcp://127.0.0.1", "tcp://:8786", "tcp://here:0",
     "tcp://here:99999", "tcp://[::1"],
)  # fmt: skip
def test_what_is_no_address_is_refused_before_anything_is_made(address, tmp_path):
    (tmp_path / "any.toml").write_text(TOML)
    arguments = ["sweep", str(tmp_path / "any.toml"), "--out", str(tmp_path / "out"), "--cluster", address]
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, ValueError)
    assert str(error).startswith("a cluster is a Dask scheduler's address, such as tcp://")
    assert f"got {address!r}: " in str(error)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", [["sweep", "any.toml"], ["reproduce"], ["reproduce", "beyond"]])
def test_jobs_and_a_cluster_are_two_places(what):
    error = CliRunner().invoke(app, [*what, "--jobs", "2", "--cluster", NOBODY]).exception
    assert str(error) == "jobs are processes of this machine: give --jobs or --cluster, not both"


@pytest.mark.parametrize("listening", [False, True])
def test_where_no_scheduler_answers(listening, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    with socket.socket() as taken, Store(tmp_path / "results.sqlite") as store:
        taken.bind(("127.0.0.1", 0))
        if listening:  # and silent
            taken.listen()
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        said = f"^no Dask scheduler answers at {address} .*: start one with `dask scheduler`"
        with pytest.raises(ConnectionError, match=said):
            Runner(cluster=address).run(Sweep.of(TABLE).units, store)


def test_a_worker_is_no_scheduler(two, tmp_path):
    with Client(two.address, set_as_default=False) as client:
        (address, _) = client.nthreads()
    said = rf"^no Dask scheduler answers at {address} \(a worker does\): "
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ConnectionError, match=said):
        Runner(cluster=address).run(Sweep.of(TABLE).units, store)


def test_another_version_is_refused(two, tmp_path, monkeypatch):
    theirs = rf.__version__
    monkeypatch.setattr(rf, "__version__", "99.0")
    said = (
        f"^this process has rewardfree 99.0, but the scheduler has {theirs}, worker tcp://.* has {theirs}, "
        f"worker tcp://.* has {theirs}: install the same one there"
    )
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ValueError, match=said):
        Runner(cluster=two.address).run(Sweep.of(TABLE).units, store)


def test_a_worker_of_another_version_that_comes_later_is_refused(two, tmp_path, monkeypatch):
    theirs = rf.__version__
    monkeypatch.setattr(rf, "__version__", "99.0")
    monkeypatch.setattr(cluster, "_versions", lambda _: {})  # it was not there yet
    said = f"^world corridor_world, .*: this process has rewardfree 99.0, but worker tcp://.* has {theirs}: "
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ValueError, match=said):
        Runner(cluster=two.address).run(Sweep.of(TABLE).units, store)
    assert stored(tmp_path) == 0


def test_without_dask_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = r"pip install '\.\[cluster\]' from the checkout"
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ValueError, match=said):
        Runner(cluster=NOBODY).run(Sweep.of(TABLE).units, store)
