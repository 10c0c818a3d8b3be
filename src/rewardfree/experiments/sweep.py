"""A sweep is data: a TOML file of worlds, models, strategies and planners becomes a list of units."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardfree.arrays import count
from rewardfree.experiments.naming import build, canonical
from rewardfree.experiments.unit import Unit

PARTS = {"worlds": "world", "models": "model", "strategies": "strategy", "planners": "planner"}
SETTINGS = {"name", "runs", "batch", "seed", "samples_per_step", "transitions", "device", "dtype", *PARTS}


@dataclass(frozen=True)
class Sweep:
    """Every strategy on every world with every model that is meant for it."""

    name: str
    units: tuple[Unit, ...]

    @classmethod
    def load(cls, path: str | Path, allow_imports: bool = False) -> Sweep:
        """The sweep of a TOML file; mistakes are named with the file."""
        path = Path(path)
        try:
            return cls.of(tomllib.loads(path.read_text()), path.stem, allow_imports)
        except (ValueError, UnicodeDecodeError) as error:  # tomllib's own are ValueErrors
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def of(cls, table: Mapping[str, Any], name: str = "sweep", allow_imports: bool = False) -> Sweep:
        """The sweep that a table describes. Every object is built once here, so that mistakes come early."""
        unknown = sorted(set(table) - SETTINGS)
        if unknown:
            known = ", ".join(sorted(SETTINGS))
            raise ValueError(f"unknown settings {', '.join(unknown)}: a sweep has {known}")
        parts = {part: _named(table, part, kind, allow_imports) for part, kind in PARTS.items()}
        budget, checkpoints = _checkpoints(table)
        runs, batch = count(table.get("runs", 1), "runs"), count(table.get("batch", 2), "batch")
        first = count(table.get("seed", 0), "seed", at_least=0)
        seeds = [tuple(range(first + i, first + min(i + batch, runs))) for i in range(0, runs, batch)]
        planners = tuple((each, text) for each, (text, _) in parts["planners"].items())
        units = [
            Unit(
                world, model, strategy, planners, budget, checkpoints, some,
                str(table.get("device", "cpu")), str(table.get("dtype", "float64")), (w, m, s),
            )
            for (w, (world, _)), (m, (model, meant_for)), (s, (strategy, _)) in itertools.product(
                *(parts[part].items() for part in ("worlds", "models", "strategies"))
            )
            if meant_for is None or w in meant_for
            for some in seeds
        ]  # fmt: skip
        if not units:
            raise ValueError("no model is meant for any of the worlds: look at their `for` lists")
        return cls(str(table.get("name", name)), tuple(units))


def _named(
    table: Mapping[str, Any], part: str, kind: str, allow_imports: bool
) -> dict[str, tuple[str, list[str] | None]]:
    """The tables of one part by name, as canonical text, and the worlds that each is meant for."""
    entries = table.get(part)
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"a sweep needs at least one [[{part}]]")
    found: dict[str, tuple[str, list[str] | None]] = {}
    for entry in entries:
        options = {key: value for key, value in entry.items() if key not in ("name", "for")}
        name = str(entry.get("name", entry.get("type", "")))
        if name in found:
            raise ValueError(f"two [[{part}]] are called {name!r}: give them different names")
        if kind != "world":  # which takes a second to draw
            build(kind, options, allow_imports)
        found[name] = (canonical(options), entry.get("for"))
    return found


def _checkpoints(table: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    given = [unit for unit in ("samples_per_step", "transitions") if unit in table]
    if len(given) != 1 or not isinstance(table[given[0]], list) or not table[given[0]]:
        raise ValueError("give one list of checkpoints: samples_per_step = [10, 20], or transitions = [100]")
    return given[0], tuple(sorted({count(n, given[0]) for n in table[given[0]]}))
