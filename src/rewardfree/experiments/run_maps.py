"""Maps of single runs of a sweep: what the world is like, and what a run knew of it after N samples."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rewardfree.arrays import check_finite
from rewardfree.budget import Budget
from rewardfree.experiments.curves import estimates_at, plans_at
from rewardfree.experiments.running import Runner
from rewardfree.experiments.unit import InstanceCache, SweepUnit, Unit
from rewardfree.files import content_of, read_arrays, write_arrays
from rewardfree.planning import Mean
from rewardfree.rewards import reward_table
from rewardfree.strategies import RunBatch
from rewardfree.strategies.explore import rounds_for
from rewardfree.threads import one_blas_thread

FILE_VERSION = 1
#: What the maps of a run say in words, and the shapes of the others: n checkpoints, k steps, m samples.
_SAID = ("world", "model", "strategy")
_SHAPES = {
    "sizes": "n", "steps": "k", "reward": "sa", "law": "st", "law_action": "", "sigma": "nksa",
    "state": "km", "action": "km", "value": "nhs", "policy": "nhs",
}  # fmt: skip
#: Strategies whose runs are shown first, where a sweep has them, and how many are in all.
SHOWN, MOST_SHOWN = ("generative", "online", "qiu", "greedy"), 4


@dataclass(frozen=True)
class MapsUnit(Unit):
    """The maps of some runs on one world, which is drawn once for all of them."""

    runs: tuple[SweepUnit, ...]
    version: ClassVar[int] = FILE_VERSION

    @property
    def names(self) -> tuple[str, str, str]:
        world, model, _ = self.runs[0].names
        return world, model, "maps of its runs"

    def run(self, cache: InstanceCache) -> list[dict[str, Any]]:
        """The maps of each; none where states or actions are not on a line, which no map can show."""
        world = cache.instance(self.runs[0].world).world
        if world.states.shape[1] > 1 or world.actions.shape[1] > 1:
            return [{} for _ in self.runs]
        return [maps_of(run, cache) for run in self.runs]


def mapped_runs(units: Sequence[Unit]) -> list[SweepUnit]:
    """Whose first runs are shown: some strategies on every world of a sweep."""
    worlds: dict[tuple[str, str], dict[str, SweepUnit]] = {}
    for unit in units:
        if isinstance(unit, SweepUnit):
            world, _, strategy = unit.names
            firsts = worlds.setdefault((world, unit.model), {})
            if strategy not in firsts or unit.seeds[0] < firsts[strategy].seeds[0]:
                firsts[strategy] = unit
    chosen = []
    for firsts in worlds.values():
        order = sorted(firsts, key=lambda name: SHOWN.index(name) if name in SHOWN else len(SHOWN))
        chosen += [firsts[name] for name in order[:MOST_SHOWN]]
    return chosen


def maps_of(unit: SweepUnit, cache: InstanceCache) -> dict[str, Any]:
    """The maps of a unit's first run: sigma, where it looked, and the plan, at every checkpoint."""
    instance = cache.instance(unit.world)
    world, H, (s, a) = instance.world, instance.world.horizon, instance.world.grid.shape
    model = unit.built("model", unit.model, cache)
    strategy = unit.built("strategy", unit.strategy, cache).within(
        Budget(unit.budget, unit.checkpoints[-1]), world
    )
    planners = {name: unit.built("planner", table, cache) for name, table in unit.planners}
    shown = [planners[name] for name in ("optimistic", *planners) if name in planners]
    # A planner of one's own need not plan by values: its runs are shown with the mean.
    planner = next((one.by_values for one in shown if one.by_values is not None), Mean(clip="range"))
    rounds = [rounds_for(Budget(unit.budget, n), world, strategy) for n in unit.checkpoints]
    steps = sorted({0, H // 2, H - 1})
    with one_blas_thread():
        batch = RunBatch(world, model, strategy, unit.seeds[:1], rounds[-1])
        for _ in batch.play():
            pass
        table = reward_table(instance.reward, world.grid, H)
        parts = []  # actions and values (n,h,s), sigma (n,steps,s,a)
        for estimate, n in estimates_at(batch, unit.checkpoints, rounds):
            actions, values = plans_at(estimate, table, planner, n, unit.seeds[:1])
            sigma = np.stack([estimate.std(h)[0].reshape(-1, s, a) for h in steps], axis=1)
            parts.append((actions[0], values[0], sigma))
        actions, values, sigma = (np.concatenate(part) for part in zip(*parts, strict=True))
    (data,) = batch.data()
    designs = data.designs()
    rows = [designs[0 if model.pooled else h] for h in steps]
    most = min(map(len, rows))
    middle = a // 2
    return {
        "world": unit.names[0],
        "model": unit.names[1],
        "strategy": unit.names[2],
        "sizes": np.minimum(unit.checkpoints, most),
        "steps": np.array(steps),
        "reward": table[0],
        "law": world.law(0)[:, middle],
        "law_action": world.actions[middle, 0],
        "sigma": sigma.astype(np.float32),
        "state": np.stack([world.states[data.state[row[:most]], 0] for row in rows]),
        "action": np.stack([world.actions[data.action[row[:most]], 0] for row in rows]),
        "value": values.astype(np.float32),  # (n,h,s)
        "policy": world.actions[actions, 0],
    }


def write_maps(runs: Sequence[SweepUnit], path: Path, runner: Runner) -> Iterator[SweepUnit]:
    """Make the maps of some runs, say which are made, and write all of them to one file."""
    by_world: dict[str, list[SweepUnit]] = {}
    for run in runs:
        by_world.setdefault(run.world, []).append(run)
    made: dict[Unit, dict[str, Any]] = {}
    for unit, maps in runner.finished([MapsUnit(tuple(part)) for part in by_world.values()]):
        assert isinstance(unit, MapsUnit)
        for run, tables in zip(unit.runs, maps, strict=True):
            made[run] = tables
            yield run
    arrays: dict[str, Any] = {"key": np.array(_key(runs))}
    for i, run in enumerate(runs):
        arrays |= {f"{i}/{name}": np.asarray(value) for name, value in made[run].items()}
    write_arrays(path, "RunMaps", FILE_VERSION, arrays)


def maps_are_there(runs: Sequence[SweepUnit], path: Path) -> bool:
    """Whether a file holds just these runs."""
    if not path.exists():
        return False
    arrays = read_arrays(path, "RunMaps", FILE_VERSION, "key")
    return "key" in arrays and str(arrays["key"]) == _key(runs)


def _key(runs: Sequence[SweepUnit]) -> str:
    return json.dumps([run.key for run in runs])


def read_maps(path: Path) -> list[dict[str, Any]]:
    """The maps of a file, world by world: what the world is like, and its runs."""
    arrays = read_arrays(path, "RunMaps", FILE_VERSION, rf"\d+/({'|'.join((*_SAID, *_SHAPES))})")
    of_runs: dict[str, dict[str, Any]] = {}
    for name, value in arrays.items():
        number, _, field = name.partition("/")
        of_runs.setdefault(number, {})[field] = value
    worlds: dict[tuple[str, str], dict[str, Any]] = {}
    with content_of(path, "maps of runs"):
        for number in sorted(of_runs, key=int):
            maps = of_runs[number]
            _check_maps(maps)
            shared = {
                "world": str(maps["world"]),
                "model": str(maps["model"]),
                "steps": maps["steps"].tolist(),
                "reward": maps["reward"],
                "law": maps["law"],
                "law_action": float(maps["law_action"]),
                "runs": [],
            }
            world = worlds.setdefault((shared["world"], shared["model"]), shared)
            names = ("sizes", "sigma", "state", "action", "value", "policy")
            world["runs"].append({"strategy": str(maps["strategy"]), **{name: maps[name] for name in names}})
    return list(worlds.values())


def _check_maps(maps: Mapping[str, Any]) -> None:
    """Refuse maps of one run whose parts are missing, not finite, or do not fit each other."""
    lengths: dict[str, int] = {}
    for name, letters in _SHAPES.items():
        array = maps[name]
        if array.dtype.kind not in "iuf" or array.ndim != len(letters) or 0 in array.shape:
            raise ValueError(f"{name} must be numbers ({letters}), got {array.dtype} of shape {array.shape}")
        check_finite(array, name)
        for letter, length in zip(letters, array.shape, strict=True):
            if lengths.setdefault(letter, length) != length:
                raise ValueError(f"{name} has shape {array.shape}, which does not fit the other maps")
    sizes = maps["sizes"]
    if sizes.dtype.kind == "f" or sizes.min() < 0 or sizes.max() > lengths["m"]:
        raise ValueError(f"sizes must be whole numbers of 0..{lengths['m']}, got {sizes!r:.200}")
