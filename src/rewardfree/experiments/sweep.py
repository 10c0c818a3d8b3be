"""A sweep is data: a TOML file of worlds, models, strategies and planners becomes a list of units."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardfree.arrays import check_kind, count, float_dtype
from rewardfree.budget import LARGEST_BUDGET
from rewardfree.experiments.unit import NO_DATA, ReferenceUnit, SweepUnit, Unit
from rewardfree.model import Model
from rewardfree.planning import Planner
from rewardfree.registry import build, canonical, check
from rewardfree.strategies import Strategy

PARTS = {"worlds": "world", "models": "model", "strategies": "strategy", "planners": "planner"}
#: What the objects of a part must be, where they are made before a unit runs.
CONTRACTS: dict[str, tuple[type, str]] = {
    "models": (Model, "rf.Model"),
    "strategies": (Strategy, "an rf.strategies.Strategy"),
    "planners": (Planner, "an rf.planning.Planner, such as rf.Mean"),
}
#: Entries that may name those of another part with `for`.
MEANT_FOR = {"models": "worlds", "planners": "strategies"}
#: What a table says to the sweep, and not to the object that it describes.
ENTRY = {part: ("name", "for") if part in MEANT_FOR else ("name",) for part in PARTS}
#: Runs of a unit, unless a file says otherwise: on the CPU few, whose posteriors stay in its caches; on a
#: device many, which it computes together.
BATCH, DEVICE_BATCH = 2, 500
#: The most runs; a list of more units would not fit in memory.
MOST_RUNS = 1_000_000
SETTINGS = {"name", "runs", "batch", "seed", "samples_per_step", "transitions", "device", "dtype", *PARTS}


@dataclass(frozen=True)
class Entry:
    """One table of a part of a sweep, as canonical text."""

    text: str
    meant_for: frozenset[str] | None  # names of another part; None: all of them
    cpu_only: bool = False

    def suits(self, name: str) -> bool:
        """Whether it is meant for an entry of the other part."""
        return self.meant_for is None or name in self.meant_for


@dataclass(frozen=True)
class Sweep:
    """Every strategy on every world with every model that is meant for it, and what needs no data there."""

    name: str
    units: tuple[Unit, ...]
    cpu_only: frozenset[str] = frozenset()  # tables of strategies that run on the CPU only

    @classmethod
    def load(cls, path: str | Path, allow_imports: bool = False) -> Sweep:
        """The sweep of a TOML file; mistakes are named with the file."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                return cls.of(tomllib.load(file), path.stem, allow_imports)
        except ValueError as error:  # as tomllib's own are
            raise ValueError(f"{path}: {error}") from error
        except RecursionError:
            raise ValueError(f"{path} is nested too deep to be a sweep") from None

    @classmethod
    def of(cls, table: Mapping[str, Any], name: str = "sweep", allow_imports: bool = False) -> Sweep:
        """The sweep that a table describes. Everything is checked here, so that mistakes come early."""
        unknown = sorted(set(table) - SETTINGS)
        if unknown:
            settings = ", ".join(sorted(SETTINGS))
            raise ValueError(f"unknown settings {', '.join(unknown)}: a sweep has {settings}")
        parts = {part: _entries(table, part, allow_imports) for part in PARTS}
        for part, other in MEANT_FOR.items():
            for entry_name, entry in parts[part].items():
                absent = ", ".join(sorted((entry.meant_for or frozenset()) - set(parts[other])))
                if absent:
                    raise ValueError(
                        f"{PARTS[part]} {entry_name} is meant for {absent}, which is no {PARTS[other]} here"
                    )
        budget, checkpoints = _checkpoints(table)
        device, dtype = str(table.get("device", "cpu")), str(table.get("dtype", "float64"))
        float_dtype(dtype)
        check_device_name(device)
        seeds = _batches_of_seeds(table, BATCH if device == "cpu" else DEVICE_BATCH)
        units: list[Unit] = []
        for (w, world), (m, model) in itertools.product(parts["worlds"].items(), parts["models"].items()):
            if not model.suits(w):
                continue
            units.append(ReferenceUnit(world.text, (w, m, NO_DATA)))
            for s, strategy in parts["strategies"].items():
                planners = tuple(
                    (planner_name, planner.text)
                    for planner_name, planner in parts["planners"].items()
                    if planner.suits(s)
                )
                if not planners:
                    raise ValueError(f"no planner is meant for strategy {s}: its data would be for nothing")
                tables = (world.text, model.text, strategy.text, planners, budget, checkpoints)
                units += [SweepUnit(*tables, batch, device, dtype, (w, m, s)) for batch in seeds]
        cpu_only = {entry.text for entry in parts["strategies"].values() if entry.cpu_only}
        return cls(_file_name(table.get("name", name)), tuple(units), frozenset(cpu_only))

    def on(self, device: str) -> Sweep:
        """The same runs on that device, in batches that suit it; what the CPU alone can run stays there."""
        check_device_name(device)
        units: list[Unit] = []
        moved: dict[SweepUnit, list[int]] = {}
        for unit in self.units:
            where = "cpu" if not isinstance(unit, SweepUnit) or unit.strategy in self.cpu_only else device
            if isinstance(unit, SweepUnit) and where != unit.device:
                moved.setdefault(replace(unit, seeds=(), device=where), []).extend(unit.seeds)
            else:
                units.append(unit)
        for unit, seeds in moved.items():
            size = BATCH if unit.device == "cpu" else DEVICE_BATCH
            units += [replace(unit, seeds=tuple(seeds[i : i + size])) for i in range(0, len(seeds), size)]
        return replace(self, units=tuple(units))


def check_device_name(device: str) -> None:
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got "{device}"')


def _entries(table: Mapping[str, Any], part: str, allow_imports: bool) -> dict[str, Entry]:
    """The tables of one part by name."""
    tables = table.get(part)
    if not isinstance(tables, list) or not tables or not all(isinstance(entry, Mapping) for entry in tables):
        raise ValueError(f"a sweep needs tables [[{part}]], with two brackets, got {tables!r:.100}")
    entries: dict[str, Entry] = {}
    for entry in tables:
        options = {key: value for key, value in entry.items() if key not in ENTRY[part]}
        check(PARTS[part], options, allow_imports)
        cpu_only = False
        if part in CONTRACTS:  # a world may take its time
            made = build(PARTS[part], options, allow_imports)
            check_kind(made, CONTRACTS[part][0], f"the {PARTS[part]} {options['type']}", CONTRACTS[part][1])
            cpu_only = isinstance(made, Strategy) and made.cpu_only
            if isinstance(made, Planner) and not made.plans_finite:
                raise ValueError(
                    f"the {PARTS[part]} {options['type']} is for real states, a sweep for finite ones"
                )
        name, meant_for = _file_name(entry.get("name", options["type"])), entry.get("for")
        if name in entries:
            raise ValueError(f"two [[{part}]] are called {name!r}: give them different names")
        if meant_for is not None and not (isinstance(meant_for, list) and meant_for):
            raise ValueError(f"`for` must be a list of names of {MEANT_FOR[part]}, got {meant_for!r}")
        entries[name] = Entry(canonical(options), meant_for and frozenset(meant_for), cpu_only)
    return entries


def _file_name(name: Any) -> str:
    """A name that can be part of a file's."""
    if not isinstance(name, str) or not re.fullmatch(r"[^\s./\\][^/\\]*", name):
        raise ValueError(f"a name must be text without slashes that does not begin with a dot, got {name!r}")
    return name


def _batches_of_seeds(table: Mapping[str, Any], usual: int) -> list[tuple[int, ...]]:
    """The seeds of all runs, as many together as a unit has."""
    runs = count(table.get("runs", 1), "runs")
    batch = count(table.get("batch", usual), "batch")
    first = count(table.get("seed", 0), "seed", at_least=0)
    if runs > MOST_RUNS:
        raise ValueError(f"runs must be at most {MOST_RUNS:,}, got {runs}")
    if first + runs > 2**63:
        raise ValueError(f"seeds must stay below 2^63, got {first} and {runs} runs")
    return [tuple(range(first + i, first + min(i + batch, runs))) for i in range(0, runs, batch)]


def _checkpoints(table: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    given = [unit for unit in ("samples_per_step", "transitions") if unit in table]
    if len(given) != 1 or not isinstance(table[given[0]], list) or not table[given[0]]:
        raise ValueError("give one list of checkpoints: samples_per_step = [10, 20], or transitions = [100]")
    return given[0], tuple(sorted({count(n, given[0], at_most=LARGEST_BUDGET) for n in table[given[0]]}))
