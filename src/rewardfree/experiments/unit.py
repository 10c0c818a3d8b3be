"""One unit of work of a sweep: some runs of one strategy on one world, as a frozen value."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from rewardfree.evaluation.exact import myopic_gap, random_gap
from rewardfree.experiments.curves import learning_curves
from rewardfree.experiments.naming import build, canonical
from rewardfree.worlds import Instance
from rewardfree.worlds.hard import as_instance

#: Part of every key: raised when the same unit would give other numbers.
RESULTS_VERSION = 2


@dataclass(frozen=True)
class Unit:
    """What to run. Tables are kept as canonical text; batch, device and dtype are part of what it is."""

    world: str
    model: str
    strategy: str
    planners: tuple[tuple[str, str], ...]  # name and table
    budget: str  # samples_per_step or transitions
    checkpoints: tuple[int, ...]
    seeds: tuple[int, ...]  # played together
    device: str = "cpu"
    dtype: str = "float64"
    names: tuple[str, str, str] = ("", "", "")  # world, model and strategy, for tables and figures

    @property
    def key(self) -> str:
        """The hash of its content."""
        return _hash(asdict(self))

    @property
    def text(self) -> str:
        return canonical(asdict(self))

    def run(self, allow_imports: bool = False) -> list[Record]:
        """Explore, plan and evaluate."""
        instance = made_world(self.world, allow_imports)
        planners = {name: build("planner", json.loads(table), allow_imports) for name, table in self.planners}
        curves = learning_curves(
            instance.world,
            build("model", json.loads(self.model), allow_imports),
            build("strategy", json.loads(self.strategy), allow_imports),
            instance.reward,
            planners,
            seeds=self.seeds,
            device=self.device,
            dtype=self.dtype,
            batch=len(self.seeds) if self.device == "cpu" else None,  # there as many as its memory holds
            progress=False,
            **{self.budget: self.checkpoints},
        )
        return [
            Record(
                seed, name, int(c.samples[i]), int(c.used_episodes[b, i]), int(c.used_steps[b, i]),
                float(c.start[b, i]), float(c.mean[b, i]), float(c.max[b, i]),
            )
            for b, seed in enumerate(self.seeds)
            for name, c in curves.items()
            for i in range(len(self.checkpoints))
        ]  # fmt: skip


#: What stands in the place of a strategy where there was none.
NO_DATA = "no data"


@dataclass(frozen=True)
class Reference:
    """What needs no data on a world: its records are those of planners "myopic" and "random" at 0 samples."""

    world: str  # as in a Unit
    names: tuple[str, str, str]

    @property
    def key(self) -> str:
        return _hash(["reference", asdict(self)])

    @property
    def text(self) -> str:
        return canonical(asdict(self))

    def run(self, allow_imports: bool = False) -> list[Record]:
        instance = made_world(self.world, allow_imports)
        world, reward = instance.world, instance.reward
        gaps = {"myopic": myopic_gap(world, reward), "random": random_gap(world, reward)}
        return [Record(0, name, 0, 0, 0, gap.start, gap.mean, gap.max) for name, gap in gaps.items()]


@dataclass(frozen=True)
class Record:
    """The gap of one run's plan at one checkpoint, and what the run had cost by then."""

    seed: int
    planner: str
    samples: int
    episodes: int
    steps: int
    start: float
    mean: float
    max: float


#: What a store can hold the results of.
Work: TypeAlias = Unit | Reference


def _hash(content: Any) -> str:
    return hashlib.sha256(canonical([RESULTS_VERSION, content]).encode()).hexdigest()


class _Making:
    """A world that is made once, by whoever comes first; others wait for it."""

    def __init__(self) -> None:
        self._lock, self._made = threading.Lock(), list[Instance]()

    def of(self, table: str, allow_imports: bool) -> Instance:
        with self._lock:
            if not self._made:
                self._made.append(as_instance(build("world", json.loads(table), allow_imports)))
            return self._made[0]


def made_world(table: str, allow_imports: bool) -> Instance:
    """The instance that a table describes; units share it, because a draw takes a second or two."""
    with _finding:
        making = _making(table, allow_imports)
    return making.of(table, allow_imports)


#: Two threads that miss in the cache at the same time would get two of them.
_finding = threading.Lock()


@lru_cache(maxsize=4)
def _making(table: str, allow_imports: bool) -> _Making:
    return _Making()
