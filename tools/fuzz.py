"""Damaged files and odd formulas for everything that reads them: nothing may crash, hang, fill memory or run.

A case is one file, or one formula, that is changed at random by its number and the seed. It may be read or
refused in one line; anything else is a fault, and is kept: a traceback, more than a second of CPU, more than
200 MB of memory, code that was run, or damage that gave other content without a word.

    python tools/fuzz.py --files 10000 --formulas 20000 --seed 0
    python tools/fuzz.py --only 4711 --seed 0      # one file again, with its traceback
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import gymnasium
import numpy as np

import rewardfree as rf
from fuzz_changes import EVIL, changed, formula
from rewardfree.cli.commands import sweeps, systems
from rewardfree.experiments.folder import ResultsFolder
from rewardfree.experiments.run_maps import maps_of, read_maps
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import InstanceCache, SweepUnit
from rewardfree.files import write_arrays
from rewardfree.formulas import Formula
from rewardfree.report.view import maps_view
from rewardfree.studies.catalogue import report_of
from rewardfree.threads import one_blas_thread
from rewardfree.worlds import LabelledWorld

SECONDS, MEGABYTES = 1.0, 200.0
SWEEP = """
runs = 4
batch = 2
samples_per_step = [2, 4]

[[worlds]]
type = "corridor_world"
states = 6
actions = 3
horizon = 3

[[models]]
type = "Model"
ridge = 0.5
kernel = { type = "Matern", nu = 1.5, lengthscale = [0.2, 0.3] }

[[strategies]]
type = "Online"
beta = 0.1

[[strategies]]
type = "Partitioned"
beta = 0.1

[[planners]]
type = "Mean"
"""


# What is read, and how


class Wheel(gymnasium.Env):
    """A wheel that is pushed: an environment whose variables a user names."""

    def __init__(self, rub=0.1):
        ends = np.array([np.pi, 3.0])
        self.observation_space = gymnasium.spaces.Box(-ends, ends, dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.rub = rub

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.now = self.np_random.uniform(-1.0, 1.0, 2)
        return self.now, {}

    def step(self, action):
        turn, speed = self.now
        speed = np.clip(speed * (1.0 - self.rub) + 0.3 * action[0], -3.0, 3.0)
        self.now = np.array([(turn + 0.2 * speed + np.pi) % (2.0 * np.pi) - np.pi, speed])
        return self.now, 0.0, False, False, {}


gymnasium.register("FuzzWheel-v0", entry_point=Wheel, max_episode_steps=20)


def originals(folder):
    """A file of each kind, by its name: (the path, what reads it and says what it holds)."""
    world = rf.from_gymnasium("Pendulum-v1", horizon=20)
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
    data = rf.explore(world, model, rf.Uniform(), transitions=40, progress=False)
    corridor = rf.worlds.corridor_world(states=6, actions=3, horizon=3).world
    fixed = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
    finite = rf.explore(corridor, fixed, rf.Online(0.1), samples_per_step=4, progress=False)
    labels = rf.explore(
        LabelledWorld(corridor), rf.Model(rf.Matern(1.5, 0.3), 0.1, pooled=True), rf.Uniform(), steps=20,
        progress=False,
    )  # fmt: skip
    P = corridor.P.copy()
    P[..., 5, :, :] = np.eye(6)[5]
    named = rf.FiniteWorld(
        P, 3, 0, states=rf.Discrete(6, "place"), actions=rf.Discrete(3, "push"), ends=[5]
    )  # fmt: skip
    levels = rf.FiniteWorld(P, 3, 0, states={"level": range(6)}, actions={"push": [-1, 0, 1]})
    small = rf.DynamicsPlanner(sides=5, actions=3)
    heavy = rf.explore(
        rf.from_gymnasium("Pendulum-v1", horizon=20, g=9.81), model, rf.Uniform(), transitions=40,
        progress=False,
    )  # fmt: skip
    wheel = rf.from_gymnasium("FuzzWheel-v0", names=("theta", "spin", "push"), angles=("theta",), rub=0.2)
    turned = rf.explore(wheel, model, rf.Uniform(), transitions=40, progress=False)
    plans = {
        "mesh plan": (data, "-theta**2 - 0.1*omega**2", small),
        "option plan": (heavy, "-theta**2", small),
        "names plan": (turned, "-theta**2 - 0.1*push**2", small),
        "noisy plan": (data, "-theta**2", rf.DynamicsPlanner(sides=5, actions=3, noise=True)),
        "table plan": (data, lambda state, action: -(state[:, 0] ** 2), small),
        "values plan": (data, "-theta**2", rf.Mean(clip="range")),
        "finite plan": (finite, "0.5*s", rf.Optimistic(0.3)),
        "label plan": (labels, "0.2*s", rf.CountingPlanner()),
    }
    readers = {"finite plan": _finite_plan, "label plan": _label_plan}
    files = {}
    named_data = rf.explore(levels, fixed, rf.Online(0.1), samples_per_step=4, progress=False)
    runs = {"experience": data, "labels": labels, "transitions": finite, "named": named_data}
    for name, saved in runs.items():
        files[name] = folder / f"{name}.npz", _info
        saved.save(files[name][0])
    for name, (source, reward, planner) in plans.items():
        horizon = None if source is finite else 5
        files[name] = folder / f"{name}.npz", readers.get(name, _plan)
        model = rf.Model(rf.AutoKernel(), pooled=True) if name == "label plan" else None
        rf.plan(source, reward, planner, model, horizon=horizon).save(files[name][0])
    for name, saved in (("world", corridor), ("named world", named)):
        files[name] = folder / f"{name}.npz", _world
        saved.save(files[name][0])
    files["csv"] = folder / "steps.csv", _info
    data.to_csv(files["csv"][0])
    files["toml"] = folder / "sweep.toml", lambda path: repr(Sweep.load(path))
    files["toml"][0].write_text(SWEEP)
    results = ResultsFolder(folder / "results")
    _run(Sweep.of(_table(SWEEP)), results)
    files["maps"] = results.maps, lambda path: repr([maps_view(maps) for maps in read_maps(path)])
    files["store"] = results.results, _export
    (folder / "study").mkdir()  # of its own: what is beside results says what they are
    files["study"] = folder / "study" / "study.json", lambda path: repr(report_of(path.parent))
    files["study"][0].write_text(json.dumps({"study": "figure1", "runs": 3, "kernels": ["se"], "seed": 0}))
    files["made"] = folder / "study" / "made.json", lambda path: repr(ResultsFolder(path.parent).made())
    files["made"][0].write_text(json.dumps({"command": "rewardfree sweep", "time": "1 s"}))
    return files


def _table(text):
    import tomllib

    return tomllib.loads(text)


def _run(sweep, results):
    """The results and the maps of a sweep, run here."""
    cache, arrays = InstanceCache(), {"key": np.array("[]")}
    with Store(results.results) as store:
        store.want(unit.key for unit in sweep.units)
        for unit in sweep.units:
            store.add(unit, unit.run(cache))
    runs = [unit for unit in sweep.units if isinstance(unit, SweepUnit)]
    for i, unit in enumerate(runs[:2]):
        maps = maps_of(unit, cache)
        arrays.update({f"{i}/{name}": np.asarray(value) for name, value in maps.items()})
    write_arrays(results.maps, "RunMaps", 1, arrays)


def _said(command, *arguments, **options):
    """What a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        command(*arguments, **options)
    return said.getvalue()


def _info(path):
    return _said(systems.info, path)


def _finite_plan(path):
    plan = rf.load_plan(path)
    return _info(path) + repr([(plan.act(s, 0), plan.value(s, 0)) for s in range(plan.grid.shape[0])])


def _label_plan(path):
    plan, states = rf.load_plan(path), np.arange(6)
    return _info(path) + repr([(plan.act(states, h), plan.value(states, h)) for h in (0, 1)])


def _world(path):
    world = rf.FiniteWorld.load(path)
    return repr((world.P, world.ends, world.grid.rule))


def _plan(path):
    plan = rf.load_plan(path)
    state = np.zeros(plan.spaces.state.size)
    reward = "-theta**2" if plan.reward_text is None else None
    played = _said(systems.evaluate, path, episodes=1, reward=reward)
    return _info(path) + played + repr([(plan.act(state, h), plan.value(state, h)) for h in (0, 1)])


def _export(path):
    shown = report_of(path.parent)
    with ResultsFolder(path.parent).stored() as store:
        table, seeds = shown.table(shown.read(store)), store.seeds()
    return _said(sweeps.export, path.parent) + repr((table, seeds))


# Watching


class TooLong(BaseException):
    """More CPU than a case may take."""


def _too_long(*_):
    raise TooLong


class Watch:
    """Tries cases one by one, and remembers what is wrong."""

    def __init__(self, folder):
        self.folder, self.faults, self.outcomes = folder, [], Counter()
        self.slowest = self.largest = 0.0
        self.began = time.perf_counter()

    def tried(self, name, read, expected=None):
        """What is wrong with a case, if anything is. `expected`: what it must say if it is read."""
        signal.signal(signal.SIGPROF, _too_long)
        before, started, fault, said = _peak(reset=True), time.process_time(), None, None
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    said = read()
                outcome = "accepted"
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
        except (ValueError, OSError, rf.WorldFailed):
            outcome = "refused"
        except TooLong:
            outcome = fault = f"more than {SECONDS:g} s of CPU"
        except BaseException as error:
            if type(error).__name__ == "Exit" or isinstance(error, KeyboardInterrupt):
                raise
            outcome = fault = f"a traceback: {type(error).__name__}: {error}"[:300]
            self.traceback = traceback.format_exc()
        self.slowest = max(self.slowest, time.process_time() - started)
        grown = _peak() - before
        self.largest = max(self.largest, grown)
        if fault is None and grown > MEGABYTES:
            fault = f"{grown:.0f} MB of memory"
        if EVIL in sys.modules or (self.folder / "victim").exists():
            fault = "code was run"
            sys.modules.pop(EVIL, None)
            (self.folder / "victim").unlink(missing_ok=True)
        if fault is None and outcome == "accepted" and expected is not None and said != expected:
            fault = "damage that gave other content"
        self.outcomes[outcome if fault is None else "fault"] += 1
        if fault is not None:
            self.faults.append((name, fault))
        return fault

    def summary(self, what):
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return (
            f"{sum(self.outcomes.values()):,} {what}: {counts}; at most {self.slowest:.2f} s of CPU and "
            f"{self.largest:.0f} MB a case; {time.perf_counter() - self.began:.0f} s"
        )


def _peak(reset=False):
    """The largest memory of this process so far in MB; since now, if it is `reset`."""
    if reset:
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1e3
    except OSError:  # not Linux: memory is not watched
        return 0.0


def fuzz_files(folder, numbers, seed, kept, only=None):
    """Read the changed files of these numbers."""
    files = originals(folder / "whole")
    kinds = sorted(files) if only is None else [only]
    contents = {kind: path.read_bytes() for kind, (path, _) in files.items()}
    expected = {kind: read(path) for kind, (path, read) in files.items()}
    watch, bombs, counts = Watch(folder), {}, {kind: Counter() for kind in kinds}
    for number in numbers:
        kind, rng = kinds[number % len(kinds)], random.Random(f"{seed}/{number}")
        path, read = files[kind]
        place = folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        target = place / path.name
        content, plain = changed(kind, contents[kind], rng, bombs)
        target.write_bytes(content)
        before = watch.outcomes.copy()
        fault = watch.tried(
            f"file {number} ({kind})", lambda read=read, target=target: read(target),
            expected[kind] if plain else None,
        )  # fmt: skip
        counts[kind].update(watch.outcomes - before)
        if fault is not None and kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, kept / f"{seed}-{number}-{target.name}")
    return watch, counts


def fuzz_formulas(folder, numbers, seed):
    """Parse and evaluate the formulas of these numbers."""
    watch = Watch(folder)
    values = {"x": np.linspace(-2.0, 2.0, 50), "y": np.linspace(0.0, 1.0, 50), "h": 1.0}
    for number in numbers:
        text = formula(random.Random(f"{seed}/formula/{number}"))
        watch.tried(
            f"formula {number} {text!r:.80}", lambda text=text: Formula(text, ["x", "y", "h"])(values)
        )
    return watch


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--formulas", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the file of this number alone")
    parser.add_argument("--keep", type=Path, default=Path("out/fuzz"), help="where files with faults go")
    given = parser.parse_args()
    numbers = range(given.files) if given.only is None else [given.only]
    faults = []
    with tempfile.TemporaryDirectory() as name, one_blas_thread():
        folder = Path(name)
        (folder / "whole").mkdir()
        (folder / f"{EVIL}.py").write_text(f"open({str(folder / 'victim')!r}, 'w').close()\n")
        sys.path.insert(0, name)
        os.chdir(name)
        watch, counts = fuzz_files(folder, numbers, given.seed, given.keep.absolute())
        faults += watch.faults
        print(watch.summary("files"))
        for kind, outcomes in counts.items():
            print(f"  {kind:<12}", ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())))
        if given.only is not None:
            print(getattr(watch, "traceback", ""))
        else:
            watch = fuzz_formulas(folder, range(given.formulas), given.seed)
            faults += watch.faults
            print(watch.summary("formulas"))
    for case, fault in faults:
        print(f"FAULT {case}: {fault}")
    print(f"{len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
