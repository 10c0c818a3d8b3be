"""What single runs of a sweep look like inside: maps of the world and of what was known after N samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree.budget import Budget
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.experiments.curves import known_at
from rewardfree.experiments.naming import build
from rewardfree.experiments.running import finished_units
from rewardfree.experiments.unit import Unit, made_world
from rewardfree.files import read_arrays, write_arrays
from rewardfree.planning.finite import backward, reward_tables, tie_breaks
from rewardfree.strategies.batches import rounds_for
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.threads import one_blas_thread

FILE_VERSION = 1
#: Strategies whose runs are shown first, where a sweep has them, and how many are in all.
SHOWN, MOST = ("generative", "online", "qiu", "greedy"), 4


@dataclass(frozen=True)
class Sitting:
    """One run of a unit, to be looked at."""

    unit: Unit

    @property
    def names(self) -> tuple[str, str, str]:
        return self.unit.names

    def run(self, allow_imports: bool = False) -> list[dict[str, Any]]:
        """Its maps."""
        return [looked_at(self.unit, allow_imports)]


@dataclass(frozen=True)
class Album:
    """The sittings of one world, which is drawn once for all of them; a worker's job."""

    sittings: tuple[Sitting, ...]

    @property
    def names(self) -> tuple[str, str, str]:
        world, model, _ = self.sittings[0].names
        return world, model, "maps of its runs"

    def run(self, allow_imports: bool = False) -> list[dict[str, Any]]:
        """The maps of each; none where states or actions are not on a line, which no map can show."""
        world = made_world(self.sittings[0].unit.world, allow_imports).world
        if world.states.shape[1] > 1 or world.actions.shape[1] > 1:
            return [{} for _ in self.sittings]
        return [maps for sitting in self.sittings for maps in sitting.run(allow_imports)]


def sittings(units: Sequence[Any]) -> list[Sitting]:
    """The first run of some strategies on every world of a sweep."""
    found: dict[tuple[str, str], dict[str, Unit]] = {}
    for unit in units:
        if isinstance(unit, Unit):
            world, _, strategy = unit.names
            own = found.setdefault((world, unit.model), {})
            if strategy not in own or unit.seeds[0] < own[strategy].seeds[0]:
                own[strategy] = unit
    chosen = []
    for own in found.values():
        names = [*(name for name in SHOWN if name in own), *(name for name in own if name not in SHOWN)]
        chosen += [Sitting(own[name]) for name in names[:MOST]]
    return chosen


def looked_at(unit: Unit, allow_imports: bool = False) -> dict[str, Any]:
    """The maps of a unit's first run: sigma, where it looked, and the plan, at every checkpoint."""
    instance = made_world(unit.world, allow_imports)
    world, reward = instance.world, instance.reward
    model, strategy = (
        build(kind, json.loads(table), allow_imports)
        for kind, table in (("model", unit.model), ("strategy", unit.strategy))
    )
    named = dict(unit.planners)
    planner = build("planner", json.loads(named.get("optimistic", unit.planners[0][1])), allow_imports)
    H, (s, a) = world.horizon, world.grid.shape
    strategy = strategy.within(Budget(unit.budget, unit.checkpoints[-1]), world)
    at = [rounds_for(Budget(unit.budget, n), world, strategy) for n in unit.checkpoints]
    steps = sorted({0, H // 2, H - 1})
    with one_blas_thread():
        arena = RunBatch(world, model, strategy, unit.seeds[:1], at[-1])
        for _ in arena.play():
            pass
        table = reward_tables([reward], world.grid, H, planner)
        seen = []  # actions and values (n,h,s), sigma (n,steps,s,a)
        for known, n in known_at(arena, unit.checkpoints, at):
            every = np.broadcast_to(table, (n, *table.shape[1:]))
            ties = tie_breaks(planner, unit.seeds[:1], H, s)
            actions, values = backward(_always(known), every, planner, H, ties)
            sigma = np.stack([known.std(h)[0].reshape(-1, s, a) for h in steps], axis=1)
            seen.append((actions[0], values[0], sigma))
        actions, values, sigma = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    (data,) = arena.data()
    designs = data.designs()
    rows = [designs[0 if model.pooled else h] for h in steps]
    most = min(len(each) for each in rows)
    middle = a // 2
    return {
        "world": unit.names[0],
        "model": unit.names[1],
        "strategy": unit.names[2],
        "sizes": np.minimum(unit.checkpoints, most),
        "steps": np.array(steps),
        "reward": table[0, 0],
        "law": world.law(0)[:, middle],
        "law_action": world.actions[middle, 0],
        "sigma": sigma.astype(np.float32),
        "state": np.stack([world.states[data.state[each[:most]], 0] for each in rows]),
        "action": np.stack([world.actions[data.action[each[:most]], 0] for each in rows]),
        "value": values.astype(np.float32),  # (n,h,s)
        "policy": world.actions[actions, 0],
    }


def _always(known: FiniteEstimate) -> Callable[[int], FiniteEstimate]:
    """The same regressions for every step."""
    return lambda h: known


def make_portraits(
    wanted: Sequence[Sitting],
    path: Path,
    jobs: int | None = None,
    cluster: str | None = None,
    allow_imports: bool = False,
) -> Iterator[int]:
    """Look at the runs that are shown, say how many are done, and store what was seen of all of them."""
    by_world: dict[str, list[Sitting]] = {}
    for sitting in wanted:
        by_world.setdefault(sitting.unit.world, []).append(sitting)
    albums = [Album(tuple(own)) for own in by_world.values()]
    found: dict[Sitting, dict[str, Any]] = {}
    for album, maps in finished_units(albums, jobs, cluster, allow_imports):
        for sitting, seen in zip(album.sittings, maps, strict=True):
            found[sitting] = seen
            yield len(found)
    arrays: dict[str, Any] = {"key": np.array(_key(wanted))}
    for i, sitting in enumerate(wanted):
        arrays |= {f"{i}/{name}": np.asarray(value) for name, value in found[sitting].items()}
    write_arrays(path, "Portraits", FILE_VERSION, arrays)


def portraits_are_there(wanted: Sequence[Sitting], path: Path) -> bool:
    """Whether a file holds just these runs."""
    return path.exists() and str(read_arrays(path, "Portraits", FILE_VERSION)["key"]) == _key(wanted)


def _key(wanted: Sequence[Sitting]) -> str:
    return json.dumps([sitting.unit.key for sitting in wanted])


def read_portraits(path: Path) -> list[dict[str, Any]]:
    """The portraits of a file, world by world: what the world is like, and its runs."""
    arrays = read_arrays(path, "Portraits", FILE_VERSION)
    numbers = sorted({int(name.split("/")[0]) for name in arrays if "/" in name})
    worlds: dict[tuple[str, str], dict[str, Any]] = {}
    for i in numbers:
        own = {name.split("/", 1)[1]: value for name, value in arrays.items() if name.startswith(f"{i}/")}
        key = str(own["world"]), str(own["model"])
        world = worlds.setdefault(
            key,
            {
                "title": key[1],
                "steps": own["steps"].tolist(),
                "reward": own["reward"],
                "law": own["law"],
                "law_action": float(own["law_action"]),
                "runs": [],
            },
        )
        names = ("sizes", "sigma", "state", "action", "value", "policy")
        world["runs"].append({"strategy": str(own["strategy"]), **{name: own[name] for name in names}})
    return list(worlds.values())
