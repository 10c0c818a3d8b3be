"""A sweep is data: a TOML file of worlds, models, strategies and planners becomes a list of units."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardfree.arrays import count, float_dtype
from rewardfree.experiments.naming import KNOWN, build, canonical, check
from rewardfree.experiments.unit import NO_DATA, Reference, Unit, Work
from rewardfree.strategies import Strategy

PARTS = {"worlds": "world", "models": "model", "strategies": "strategy", "planners": "planner"}
#: Entries that may name those of another part with `for`.
MEANT_FOR = {"models": "worlds", "planners": "strategies"}
#: Runs of a unit, unless somebody says otherwise: on the CPU few, whose posteriors stay in its caches; on a
#: device many, which it computes together.
BATCH, DEVICE_BATCH = 2, 500
#: More was hardly meant: a list of their units alone would fill the memory.
MOST_RUNS = 1_000_000
SETTINGS = {"name", "runs", "batch", "seed", "samples_per_step", "transitions", "device", "dtype", *PARTS}


@dataclass(frozen=True)
class Sweep:
    """Every strategy on every world with every model that is meant for it, and what needs no data there."""

    name: str
    units: tuple[Work, ...]

    @classmethod
    def load(cls, path: str | Path, allow_imports: bool = False) -> Sweep:
        """The sweep of a TOML file; mistakes are named with the file."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                return cls.of(tomllib.load(file), path.stem, allow_imports)
        except ValueError as error:  # as tomllib's own are
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def of(cls, table: Mapping[str, Any], name: str = "sweep", allow_imports: bool = False) -> Sweep:
        """The sweep that a table describes. Everything is checked here, so that mistakes come early."""
        unknown = sorted(set(table) - SETTINGS)
        if unknown:
            known = ", ".join(sorted(SETTINGS))
            raise ValueError(f"unknown settings {', '.join(unknown)}: a sweep has {known}")
        parts = {part: _named(table, part, kind, allow_imports) for part, kind in PARTS.items()}
        for part, of in MEANT_FOR.items():
            for own, (_, meant_for) in parts[part].items():
                unknown = sorted(set(meant_for or []) - set(parts[of]))
                if unknown:
                    absent = f"{', '.join(unknown)}, which is no {PARTS[of]} here"
                    raise ValueError(f"{PARTS[part]} {own} is meant for {absent}")
        budget, checkpoints = _checkpoints(table)
        device, dtype = str(table.get("device", "cpu")), str(table.get("dtype", "float64"))
        float_dtype(dtype)
        check_device_name(device)
        runs = count(table.get("runs", 1), "runs")
        batch = count(table.get("batch", BATCH if device == "cpu" else DEVICE_BATCH), "batch")
        first = count(table.get("seed", 0), "seed", at_least=0)
        if runs > MOST_RUNS:
            raise ValueError(f"runs must be at most {MOST_RUNS:,}, got {runs}")
        if first + runs > 2**63:
            raise ValueError(f"seeds must stay below 2^63, got {first} and {runs} runs")
        seeds = [tuple(range(first + i, first + min(i + batch, runs))) for i in range(0, runs, batch)]
        units: list[Work] = []
        for (w, (world, _)), (m, (model, worlds)) in itertools.product(
            parts["worlds"].items(), parts["models"].items()
        ):
            if worlds is not None and w not in worlds:
                continue
            units.append(Reference(world, (w, m, NO_DATA)))
            for s, (strategy, _) in parts["strategies"].items():
                planners = tuple(
                    (name, planner)
                    for name, (planner, strategies) in parts["planners"].items()
                    if strategies is None or s in strategies
                )
                if not planners:
                    raise ValueError(f"no planner is meant for strategy {s}: its data would be for nothing")
                about = (world, model, strategy, planners, budget, checkpoints)
                units += [Unit(*about, some, device, dtype, (w, m, s)) for some in seeds]
        return cls(_name(table.get("name", name)), tuple(units))

    def on(self, device: str) -> Sweep:
        """The same runs on that device, in batches that suit it; what the CPU alone can run stays there."""
        check_device_name(device)
        units: list[Work] = []
        moved: dict[Unit, list[int]] = {}
        for unit in self.units:
            if isinstance(unit, Reference) or _where(unit, device) == unit.device:
                units.append(unit)
            else:
                moved.setdefault(replace(unit, seeds=(), device=_where(unit, device)), []).extend(unit.seeds)
        for unit, seeds in moved.items():
            size = BATCH if unit.device == "cpu" else DEVICE_BATCH
            units += [replace(unit, seeds=tuple(seeds[i : i + size])) for i in range(0, len(seeds), size)]
        return Sweep(self.name, tuple(units))


def _where(unit: Unit, device: str) -> str:
    """A strategy that runs on the CPU only, such as one that counts visits, stays there."""
    made = KNOWN["strategy"].get(json.loads(unit.strategy)["type"])
    return "cpu" if isinstance(made, type) and issubclass(made, Strategy) and made.cpu_only else device


def check_device_name(device: str) -> None:
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got "{device}"')


def _named(
    table: Mapping[str, Any], part: str, kind: str, allow_imports: bool
) -> dict[str, tuple[str, list[str] | None]]:
    """The tables of one part by name, as canonical text, and what each is `for`, if it says so."""
    entries = table.get(part)
    if not isinstance(entries, list) or not entries or not all(isinstance(e, Mapping) for e in entries):
        raise ValueError(f"a sweep needs tables [[{part}]], with two brackets, got {entries!r:.100}")
    found: dict[str, tuple[str, list[str] | None]] = {}
    for entry in entries:
        own = ("name", "for") if part in MEANT_FOR else ("name",)
        options = {key: value for key, value in entry.items() if key not in own}
        check(kind, options, allow_imports)
        if kind != "world":  # which may take its time
            build(kind, options, allow_imports)
        name, meant_for = _name(entry.get("name", options["type"])), entry.get("for")
        if part not in MEANT_FOR:
            meant_for = None
        if name in found:
            raise ValueError(f"two [[{part}]] are called {name!r}: give them different names")
        if meant_for is not None and not (isinstance(meant_for, list) and meant_for):
            raise ValueError(f"`for` must be a list of names of {MEANT_FOR[part]}, got {meant_for!r}")
        found[name] = (canonical(options), meant_for)
    return found


def _name(name: Any) -> str:
    """A name that can be part of a file's."""
    if not isinstance(name, str) or not re.fullmatch(r"[^\s./\\][^/\\]*", name):
        raise ValueError(f"a name must be text without slashes that does not begin with a dot, got {name!r}")
    return name


def _checkpoints(table: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    given = [unit for unit in ("samples_per_step", "transitions") if unit in table]
    if len(given) != 1 or not isinstance(table[given[0]], list) or not table[given[0]]:
        raise ValueError("give one list of checkpoints: samples_per_step = [10, 20], or transitions = [100]")
    return given[0], tuple(sorted({count(n, given[0]) for n in table[given[0]]}))
