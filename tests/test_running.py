"""Who runs the units of a command: a device in this process, interruptions, and what is made beside it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rewardfree as rf
from reproduction_cases import units_in
from rewardfree import cli
from rewardfree.cli.app import app
from rewardfree.experiments import local, running, sweep, unit
from rewardfree.experiments.run_maps import mapped_runs, read_maps, write_maps
from rewardfree.experiments.running import Runner, unwatched
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache, ReferenceUnit, SweepUnit
from rewardfree.files import read_arrays
from rewardfree.posterior import engine
from rewardfree.posterior.engine import backend
from rewardfree.report.pictures import FEW, DrawingPool, Picture
from rewardfree.studies import study as module
from rewardfree.studies.paper.functions import functions_figure
from rewardfree.studies.paper.specification import PaperSettings
from rewardfree.studies.study import Workspace

COMMAND = Path(sys.executable).parent / "rewardfree"
TABLE = {
    "runs": 7,
    "batch": 2,
    "samples_per_step": [2, 4],
    "worlds": [
        {"name": f"horizon {h}", "type": "corridor_world", "states": 8, "actions": 4, "horizon": h}
        for h in (2, 3, 4)
    ],
    "models": [{"type": "Model", "kernel": {"type": "Delta"}, "ridge": 0.5}],
    "strategies": [{"type": "Uniform"}, {"type": "Online", "beta": 0.1}],
    "planners": [{"type": "Mean"}, {"type": "Optimistic", "beta": 0.1}],
}
TOML = """
runs = 7
batch = 2
samples_per_step = [2, 4]
worlds = [{type = "corridor_world", states = 8, actions = 4, horizon = 3}]
models = [{type = "Model", kernel = {type = "Delta"}, ridge = 0.5}]
strategies = [{type = "Uniform"}]
planners = [{type = "Mean"}]
"""


def runs_of(found):
    return [each for each in found.units if isinstance(each, SweepUnit)]


def references_of(found):
    return [each for each in found.units if isinstance(each, ReferenceUnit)]


def played(found):
    """How often each run is played, whoever it is played with and wherever."""
    return Counter(
        (replace(each, seeds=(), device=""), seed) for each in runs_of(found) for seed in each.seeds
    )


def commanded(capsys, *arguments):
    """The command in this process: its exit code, and what it printed."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["rewardfree", *map(str, arguments)])
        cli.main()
    said = capsys.readouterr()
    return ended.value.code or 0, said.out, said.err


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TOML)
    return path


# --- the same runs on a device ---


def test_a_device_gets_the_same_runs_as_large_units():
    cpu = Sweep.of(TABLE, "small")
    cuda = cpu.on("cuda")
    assert cuda.name == "small" and played(cuda) == played(cpu) and set(played(cuda).values()) == {1}
    assert {(each.device, each.seeds) for each in runs_of(cuda)} == {("cuda", tuple(range(7)))}
    assert len(runs_of(cuda)) == 3 * 2 and len(runs_of(cpu)) == 3 * 2 * 4
    assert references_of(cuda) == references_of(cpu) and len(references_of(cuda)) == 3


def test_units_on_a_device_are_as_large_as_their_batch(monkeypatch):
    monkeypatch.setattr(sweep, "DEVICE_BATCH", 3)
    cpu = Sweep.of(TABLE)
    cuda = cpu.on("cuda:1")
    seeds = {}
    for each in runs_of(cuda):
        seeds.setdefault(each.names, []).append(each.seeds)
    assert len(seeds) == 6 and all(own == [(0, 1, 2), (3, 4, 5), (6,)] for own in seeds.values())
    assert played(cuda) == played(cpu)


def test_many_runs_are_units_of_five_hundred():
    many = Sweep.of(TABLE | {"runs": 1100, "seed": 5}).on("cuda")
    sizes = [len(each.seeds) for each in runs_of(many)]
    assert sizes == 6 * [500, 500, 100] and {each.seeds[0] for each in runs_of(many)} == {5, 505, 1005}
    written = Sweep.of({name: value for name, value in TABLE.items() if name != "batch"} | {"device": "cuda"})
    assert set(written.units) == set(Sweep.of(TABLE).on("cuda").units)  # as if a file says so itself
    assert [len(each.seeds) for each in runs_of(Sweep.of(TABLE | {"device": "cuda"}))] == 6 * [2, 2, 2, 1]


def test_a_device_has_results_of_its_own():
    cpu = Sweep.of(TABLE)
    keys = {device: {each.key for each in runs_of(cpu.on(device))} for device in ("cpu", "cuda", "cuda:1")}
    assert keys["cpu"] == {each.key for each in runs_of(cpu)}
    assert not (keys["cpu"] & keys["cuda"] or keys["cpu"] & keys["cuda:1"] or keys["cuda"] & keys["cuda:1"])
    one_each = Sweep.of(TABLE | {"batch": 7})  # where the seeds alone would not tell them apart
    assert not {each.key for each in runs_of(one_each)} & keys["cuda"]
    assert cpu.on("cpu") == cpu and {each.device for each in runs_of(cpu.on("cuda").on("cpu"))} == {"cpu"}


BAD_NAMES = ["gpu", "cuda:", "cuda:x", "cuda:-1", "CUDA", "cpu:0", "", "cuda:0\n"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_other_devices_are_refused(name):
    for make in (
        lambda: Sweep.of(TABLE).on(name),
        lambda: Sweep.of(TABLE | {"device": name}),
        lambda: PaperSettings(device=name),
    ):
        with pytest.raises(ValueError, match='device must be "cpu", "cuda" or "cuda:N", got'):
            make()


def test_a_reproduction_on_a_device_has_a_name_and_a_command_of_its_own():
    there = PaperSettings(kernels=("se",), device="cuda:1", quick=True)
    assert there.variant == "-quick-se-cuda1"
    assert there.command_of("betas") == "rewardfree reproduce betas --kernels se --device cuda:1 --quick"
    assert there.settings.endswith(", on cuda:1")
    here = replace(there, device="cpu")
    for part in ("figure1", "betas", "repeats"):
        mine, same = getattr(there, part)(), getattr(here, part)()
        assert played(mine) == played(same) and {each.device for each in runs_of(mine)} == {"cuda:1"}
    assert "cuda" not in here.command_of("betas") + here.variant + here.settings


# --- what cannot be meant ---


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.delattr(engine, "backend_torch", raising=False)
    monkeypatch.setitem(sys.modules, "rewardfree.posterior.engine.backend_torch", None)
    return 'device "cuda" needs torch, which is not installed: use --device cpu'


@pytest.fixture
def without_cuda(monkeypatch):
    def free_bytes(device):
        raise ValueError(f"there is no {device} here")

    monkeypatch.setattr(backend, "with_torch", lambda device: SimpleNamespace(free_bytes=free_bytes))
    return "there is no cuda here"


def words_for(what, toml):
    if what == "sweep":
        return ["sweep", toml]
    return ["reproduce", *what.split(), "--quick", "--kernels", "se"]


def check_refused(capsys, folder, said, *words):
    before = sorted(folder.rglob("*"))
    code, out, errors = commanded(capsys, *words, "--out", folder / "new" / "out")
    assert (code, out) == (2, "")
    assert errors.startswith("rewardfree: ") and said in errors and errors.count("\n") == 1, errors
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("absent", ["without_torch", "without_cuda"])
@pytest.mark.parametrize("what", ["sweep", "figure1", "betas", "table", "all"])
def test_a_device_that_is_not_there_is_one_error_and_no_folder(what, absent, request, toml, tmp_path, capsys):
    said = request.getfixturevalue(absent)
    check_refused(capsys, tmp_path, said, *words_for(what, toml), "--device", "cuda")


def test_a_file_may_ask_for_a_device_that_is_not_there(without_torch, toml, tmp_path, capsys):
    toml.write_text('device = "cuda"' + TOML)
    check_refused(capsys, tmp_path, without_torch, "sweep", toml)
    check_refused(capsys, tmp_path, "leave out --jobs", "sweep", toml, "--jobs", 1)
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ValueError, match="needs torch"):
        Runner().run(Sweep.load(toml).units, store)


@pytest.mark.parametrize("what", ["sweep", "figure1", "all"])
def test_jobs_are_for_the_cpu(what, toml, tmp_path, capsys):
    said = "--jobs are processes on the CPU, but cuda has one: leave out --jobs"
    check_refused(capsys, tmp_path, said, *words_for(what, toml), "--device", "cuda", "--jobs", 2)


def test_back_on_the_cpu_units_are_small_again():
    back = Sweep.of({**TABLE, "device": "cuda", "runs": 7}).on("cpu")
    units = [unit for unit in back.units if isinstance(unit, SweepUnit)]
    assert {len(unit.seeds) for unit in units} == {2, 1} and {unit.device for unit in units} == {"cpu"}
    assert {unit.key for unit in back.units} == {unit.key for unit in Sweep.of(TABLE).units}


def test_strategies_that_count_stay_on_the_cpu(device, in_process, tmp_path):
    counting = {"type": "RFUCRL", "epsilon": 0.1, "delta": 0.1}
    table = {**TABLE, "worlds": TABLE["worlds"][:1], "strategies": [*TABLE["strategies"], counting]}
    moved = Sweep.of(table).on("cuda")
    where = {(unit.names[2], unit.device) for unit in moved.units if isinstance(unit, SweepUnit)}
    assert where == {("Uniform", "cuda"), ("Online", "cuda"), ("RFUCRL", "cpu")}
    found = []
    for number, each in enumerate((moved, Sweep.of(table))):
        with Store(tmp_path / f"{number}.sqlite") as store:
            assert Runner().run(each.units, store) == len(each.units)
            found.append(list(store.rows()))
    check_same_rows(*found)


@pytest.mark.parametrize("what", ["beyond", "baselines", "control", "doubling"])
def test_what_goes_further_than_the_paper_runs_on_the_cpu(what, tmp_path, capsys):
    said = f"--device are for the paper's figures, not for {what}"
    check_refused(capsys, tmp_path, said, "reproduce", what, "--quick", "--device", "cuda")


@pytest.mark.parametrize("what", ["sweep", "figure1", "functions"])
@pytest.mark.parametrize("name", ["gpu", "cuda:x", ""])
def test_a_bad_name_is_one_error(what, name, toml, tmp_path, capsys):
    said = f'device must be "cpu", "cuda" or "cuda:N", got "{name}"'
    check_refused(capsys, tmp_path, said, *words_for(what, toml), "--device", name)


# --- a device that is pretended ---


class Device:
    """One that is the CPU in truth, and notes how it is used."""

    def __init__(self, monkeypatch):
        self.calls, self.worlds, self.before = [], Counter(), lambda world: None
        build, curves = unit.build, unit.learning_curves

        def counted(kind, table, allow_imports=False):
            made = build(kind, table, allow_imports)
            if kind == "world":
                self.worlds[json.dumps(table, sort_keys=True)] += 1
            return made

        def played(world, *about, device, batch, **settings):
            self.calls.append((os.getpid(), threading.current_thread(), device, batch))
            self.before(world)
            return curves(world, *about, device="cpu", batch=batch, **settings)

        monkeypatch.setattr(unit, "build", counted)
        monkeypatch.setattr(unit, "learning_curves", played)
        monkeypatch.setattr(running, "room_for", lambda device: 2**28)
        monkeypatch.setattr(DrawingPool, "start", lambda self: None)


@pytest.fixture
def device(monkeypatch):
    return Device(monkeypatch)


@pytest.fixture
def in_process(monkeypatch):
    """What processes of this machine would do is done here."""
    cache = InstanceCache()
    monkeypatch.setattr(local, "finished_units", lambda units, *_: ((u, u.run(cache)) for u in units))


def rows_of(path):
    with Store(path, create=False) as store:
        return list(store.rows())


def check_same_rows(found, wanted):
    """Runs side by side round differently."""
    assert sorted(row[:8] for row in found) == sorted(row[:8] for row in wanted)
    gaps = (np.array([row[8:] for row in sorted(rows)]) for rows in (found, wanted))
    np.testing.assert_allclose(*gaps, rtol=0, atol=1e-10)


def test_a_device_is_fed_by_this_process_one_unit_after_the_other(device, in_process, monkeypatch, tmp_path):
    cpu = Sweep.of(TABLE)
    with Store(tmp_path / "cpu.sqlite") as store:
        Runner().run(cpu.units, store)
    device.calls.clear()
    monkeypatch.setattr(local, "finished_units", lambda *_: iter(()))  # processes that do nothing
    with Store(tmp_path / "cuda.sqlite") as store:
        assert Runner().run(cpu.on("cuda").units, store) == 6 + 3
        assert Runner().run(cpu.on("cuda").units, store) == 0
    assert device.calls == 6 * [(os.getpid(), threading.main_thread(), "cuda", None)]
    check_same_rows(rows_of(tmp_path / "cuda.sqlite"), rows_of(tmp_path / "cpu.sqlite"))


def test_worlds_are_drawn_ahead_and_each_once(device, tmp_path):
    """While the first world is worked on the second is drawn, and the third is not yet."""
    seen = []

    def before(world):
        deadline = time.monotonic() + 20
        while len(device.worlds) < min(world.horizon, 3) and time.monotonic() < deadline:
            time.sleep(0.005)
        seen.append((world.horizon, len(device.worlds)))

    device.before = before
    units = runs_of(Sweep.of(TABLE).on("cuda"))
    with Store(tmp_path / "results.sqlite") as store:
        Runner().run(units, store)
    assert seen == [(2, 2), (2, 2), (3, 3), (3, 3), (4, 3), (4, 3)]
    assert len(device.worlds) == 3 and set(device.worlds.values()) == {1}


def test_a_world_that_cannot_be_drawn_is_an_error_of_its_unit(device, tmp_path):
    bad = {"name": "bad", "type": "corridor_world", "states": 1}
    units = Sweep.of(TABLE | {"worlds": [*TABLE["worlds"][:1], bad]}).on("cuda").units
    with Store(tmp_path / "results.sqlite") as store:
        with pytest.raises(ValueError, match=r"^world bad, model Model, strategy .*: states must be"):
            Runner().run(units, store)
        assert store.keys() == {each.key for each in units if each.names[0] == "horizon 2"}


def test_threads_that_want_a_world_at_once_share_it(monkeypatch):
    made, found, ready = [], [], threading.Barrier(2)
    drawn, cache = rf.worlds.corridor_world(states=3, actions=2), InstanceCache()

    def draw(*table):
        made.append(table)
        time.sleep(0.05)  # so that the other one asks before it is there
        return drawn

    def want():
        ready.wait()
        found.append(cache.instance('{"type": "mine"}'))

    monkeypatch.setattr(unit, "build", draw)
    threads = [threading.Thread(target=want) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and found[0] is found[1] is drawn


def test_a_cache_keeps_the_last_worlds_and_forgets_what_failed(monkeypatch):
    made, cache = [], InstanceCache()

    def draw(kind, table, allow_imports):
        made.append(table["type"])
        if len(made) == 1:
            raise ValueError("not yet")
        return rf.worlds.corridor_world(states=3, actions=2)

    monkeypatch.setattr(unit, "build", draw)
    with pytest.raises(ValueError, match="not yet"):
        cache.instance('{"type": "0"}')
    for number in (0, 0, 1, 2, 3, 4, 4, 1, 0):
        cache.instance(f'{{"type": "{number}"}}')
    assert made == ["0", "0", "1", "2", "3", "4", "0"] and cache.size == 4


def test_a_reproduction_on_a_device_is_that_of_the_cpu(device, in_process, monkeypatch, tmp_path, capsys):
    """Same gaps and portraits, in a folder of its own, which can be drawn again where there is no device."""
    monkeypatch.setattr(DrawingPool, "draw", lambda self, pictures: lambda: [each.path for each in pictures])
    arguments = ("reproduce", "betas", "--quick", "--kernels", "se", "--runs", 5, "--out", tmp_path)
    for more in ((), ("--device", "cuda")):
        code, out, errors = commanded(capsys, *arguments, *more)
        assert (code, errors) == (0, "")
    assert "betas: 55 runs in 12 units" in out and ", on cuda\n" in out
    assert len(device.calls) == 2 * 11 + 11  # batches of four and of one; all five together
    cpu, cuda = (tmp_path / f"betas-quick-se-runs5{ending}" for ending in ("", "-cuda"))
    check_same_rows(rows_of(cuda / "results.sqlite"), rows_of(cpu / "results.sqlite"))
    command = "rewardfree reproduce betas --kernels se --runs 5 --device cuda --quick"
    assert json.loads((cuda / "made.json").read_text())["command"] == command
    maps = [read_arrays(folder / "maps.npz", "RunMaps", 1) for folder in (cpu, cuda)]
    assert str(maps[0].pop("key")) != str(maps[1].pop("key"))
    assert maps[0].keys() == maps[1].keys() and len(maps[0]) > 10
    for name, value in maps[0].items():
        np.testing.assert_array_equal(maps[1][name], value)

    def absent(device):
        raise ValueError("no such device")

    monkeypatch.setattr(running, "room_for", absent)
    table = (cuda / "table.txt").read_text()
    (cuda / "table.txt").unlink()
    assert commanded(capsys, "figures", cuda)[0] == 0
    assert (cuda / "table.txt").read_text() == table


# --- maps of runs, beside a device ---


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_maps_are_the_same_beside_a_device_and_after_the_cores(where, device, monkeypatch, tmp_path):
    askers = []

    def finished(units, *_):
        askers.append(threading.current_thread())
        return ((each, each.run(InstanceCache())) for each in units)

    monkeypatch.setattr(local, "finished_units", finished)
    units = Sweep.of(TABLE).on(where).units
    path, wanted = tmp_path / "maps.npz", tmp_path / "wanted.npz"
    for _ in write_maps(mapped_runs(units), wanted, Runner()):
        pass
    askers.clear()
    workspace = Workspace(tmp_path, Runner(watch=unwatched))
    with workspace.making_maps(units, path):
        deadline = time.monotonic() + 20
        while where == "cuda" and not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.exists() == (where == "cuda")
    assert [asker is threading.main_thread() for asker in askers] == [where == "cpu"]
    assert path.read_bytes() == wanted.read_bytes()
    before = path.stat().st_mtime_ns
    with workspace.making_maps(units, path):
        pass
    assert path.stat().st_mtime_ns == before  # they are there


def test_maps_are_not_waited_for_when_the_sweep_fails(device, monkeypatch, tmp_path):
    stopped, seen = threading.Event(), []
    monkeypatch.setattr(module, "threading", SimpleNamespace(Event=lambda: stopped))

    def slowly(units, *_):
        for each in units:
            seen.append(each)
            if len(seen) == 2:
                assert stopped.wait(20)
            yield each, each.run(InstanceCache())

    monkeypatch.setattr(local, "finished_units", slowly)
    units = Sweep.of(TABLE).on("cuda").units
    with (
        pytest.raises(ValueError, match="the sweep's own"),
        Workspace(tmp_path, Runner()).making_maps(units, tmp_path / "x.npz"),
    ):
        while len(seen) < 2:
            time.sleep(0.005)
        raise ValueError("the sweep's own")
    assert stopped.is_set() and len(seen) == 2 < len(mapped_runs(units)) and list(tmp_path.iterdir()) == []


def test_what_fails_beside_a_device_is_told(device, monkeypatch, tmp_path):
    def failing(units, *_):
        raise OSError("no processes")
        yield

    monkeypatch.setattr(local, "finished_units", failing)
    units = Sweep.of(TABLE).on("cuda").units
    workspace = Workspace(tmp_path, Runner())
    with pytest.raises(OSError, match="no processes"), workspace.making_maps(units, tmp_path / "x.npz"):
        pass


# --- pictures ---


def pictures(folder, number):
    instance = rf.worlds.corridor_world(states=6, actions=4, horizon=2)
    world, reward = instance.world, instance.reward
    axes = (world.states[:, 0], world.actions[:, 0])
    return [
        Picture(folder / f"{i}", partial(functions_figure, *axes, reward, world.law(0), f"No. {i}"), ["png"])
        for i in range(number)
    ]


def test_processes_draw_the_same_pictures_in_order(tmp_path):
    """The first few without processes, unless these were started before."""
    here = DrawingPool(1).draw(pictures(tmp_path / "here", 2))()
    pool = DrawingPool(2)
    few = [replace(each, figure=lambda each=each: each.figure()) for each in pictures(tmp_path / "few", 2)]
    assert len(few) < FEW and len(pool.draw(few)()) == 2  # what no process can be given
    pool.start()
    processes = pool._pool
    there = pool.draw(pictures(tmp_path / "there", 2))()
    assert pool._pool is None and not processes._processes  # they end with the drawing
    assert [path.name for path in here] == [path.name for path in there] == ["0.png", "1.png"]
    assert [path.read_bytes() for path in here] == [path.read_bytes() for path in there]
    assert here[0].read_bytes() != here[1].read_bytes()
    pool.start()
    with pytest.raises(Exception, match="pickle"):
        pool.draw(few)()
    assert pool._pool is None


DRAWING = """
import os, time
from rewardfree.report.pictures import DrawingPool
pool = DrawingPool(1)
pool.start()
workers = {pool._pool.submit(os.getpid).result()}
for again in range(2):
    try:
        print(*workers, flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""


def test_drawing_processes_do_not_hear_ctrl_c_and_end_with_their_parent():
    process = subprocess.Popen(
        [sys.executable, "-c", DRAWING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    workers = process.stdout.readline().split()
    os.killpg(process.pid, signal.SIGINT)
    assert workers and process.stdout.readline().split() == workers
    time.sleep(0.2)
    assert all(Path(f"/proc/{pid}").exists() for pid in workers)
    process.kill()
    printed, errors = process.communicate(timeout=30)
    assert printed == "" and "KeyboardInterrupt" not in errors  # but what was leaked may be told
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


# --- interruptions ---


def test_an_interrupted_device_keeps_what_it_finished_and_goes_on(device, toml, tmp_path, capsys):
    toml.write_text(TOML.replace("horizon = 3}", 'horizon = 3}, {name = "b", type = "corridor_world"}'))
    arguments = ("sweep", toml, "--out", tmp_path / "a folder", "--device", "cuda")

    def interrupt(world):
        if len(device.calls) == 2:
            raise KeyboardInterrupt

    device.before = interrupt
    code, out, errors = commanded(capsys, *arguments)
    results = tmp_path / "a folder" / "results.sqlite"
    assert (code, out) == (130, "")
    stored = re.fullmatch(
        rf"rewardfree: interrupted with (\d) of 4 units stored in {re.escape(str(results))}; "
        rf"to go on: rewardfree sweep {re.escape(str(toml))} "
        rf"--out '{re.escape(str(tmp_path))}/a folder' --device cuda\n",
        errors,
    )
    assert stored and 1 <= int(stored[1]) <= 3, errors
    code, out, errors = commanded(capsys, *arguments)
    assert (code, errors) == (0, "") and out.startswith(f"{4 - int(stored[1])} of 4 units run")
    assert len(rows_of(results)) == 2 * 7 * 2 + 2 * 2


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_interruption_between_runs_says_the_command_too(more, in_process, monkeypatch, tmp_path, capsys):
    def interrupt(self, pictures):
        raise KeyboardInterrupt

    monkeypatch.setattr(DrawingPool, "draw", interrupt)
    words = ["reproduce", "functions", "--quick", "--kernels", "se", "--out", str(tmp_path / "my own"), *more]
    code, out, errors = commanded(capsys, *words)
    assert code == 130
    line, command = "interrupted; what was run is stored", shlex.join(["rewardfree", *words])
    if more:
        assert errors == ""
        assert json.loads(out) == {"event": "interrupted", "text": line, "command": command}
    else:
        assert (out, errors) == ("", f"rewardfree: {line}; to go on: {command}\n")


def test_the_command_that_an_interrupted_reproduction_says_completes_it(tmp_path):
    """As it is printed, through a shell, from the same folder."""
    (tmp_path / "rewardfree").symlink_to(COMMAND)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONWARNINGS": "default"}
    words = [
        "reproduce",
        "betas",
        "--quick",
        "--kernels",
        "se",
        "--runs",
        "1",
        "--jobs",
        "1",
        "--out",
        "it's here",
    ]
    process = subprocess.Popen(
        [COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    folder, deadline = tmp_path / "it's here" / "betas-quick-se-runs1", time.monotonic() + 60
    while units_in(folder / "results.sqlite") < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    said = re.fullmatch(
        r"rewardfree: interrupted with (\d+) of 12 units stored in .*results\.sqlite; to go on: (.*)\n",
        errors,
    )
    assert process.returncode == 130 and said, errors
    stored = units_in(folder / "results.sqlite")
    assert 2 <= stored == int(said[1]) < 12 and not (folder / "table.txt").exists()
    done = subprocess.run(
        said[2], shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"\n{12 - stored} units run in " in done.stdout and (folder / "report.html").exists()
    assert units_in(folder / "results.sqlite") == 12


def test_a_sweep_of_ones_own_has_maps_and_says_how_it_was_made(tmp_path, in_process):
    (tmp_path / "own.toml").write_text(TOML)
    words = ["sweep", str(tmp_path / "own.toml"), "--out", str(tmp_path / "own"), "--jobs", "1"]
    app(words, standalone_mode=False)
    made = json.loads((tmp_path / "own" / "made.json").read_text())
    assert made["command"] == shlex.join(["rewardfree", *words]) and made["time"].startswith(
        "5 units run in "
    )
    (world,) = read_maps(tmp_path / "own" / "maps.npz")
    assert [run["strategy"] for run in world["runs"]] == ["Uniform"]
    app(["report", str(tmp_path / "own")], standalone_mode=False)
    page = (tmp_path / "own" / "report.html").read_text()
    assert "own.toml" in page and '"maps":[{' in page.replace(" ", "")


def test_no_map_is_made_of_a_square(tmp_path, monkeypatch):
    square = rf.worlds.rooms_world()
    assert square.states.shape[1] == 2
    cache = InstanceCache()
    cache._made["square"] = rf.worlds.bump_world(square)
    units = [replace(each, world="square") for each in Sweep.of(TABLE).units if isinstance(each, SweepUnit)]
    monkeypatch.setattr(local, "finished_units", lambda units, *_: ((u, u.run(cache)) for u in units))
    list(write_maps(mapped_runs(units), tmp_path / "maps.npz", Runner()))
    assert read_maps(tmp_path / "maps.npz") == []
