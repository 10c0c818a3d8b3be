"""Units of work: frozen values that say what to run, and whose content is their key."""

import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from rewardfree.evaluation.exact import myopic_gap, random_gap
from rewardfree.experiments.curves import learning_curves
from rewardfree.registry import build, canonical
from rewardfree.worlds import Instance, as_instance

#: A unit whose worker dies this often is given up, and a sweep after as many such units.
ATTEMPTS = 3
#: What stands in the place of a strategy where there was none.
NO_DATA = "no data"


class InstanceCache:
    """The last instances that a process made, for the units that share them: a draw takes a second or two."""

    size = 4

    def __init__(self, allow_imports: bool = False) -> None:
        self.allow_imports = allow_imports
        self._made: dict[str, Instance] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def instance(self, table: str) -> Instance:
        """What a table describes. Of two threads that want it at once the second waits for the first."""
        with self._lock:
            drawing = self._locks.setdefault(table, threading.Lock())
        with drawing:
            made = self._made.get(table)
            if made is None:
                made = as_instance(build("world", json.loads(table), self.allow_imports))
                with self._lock:
                    self._made[table] = made
                    while len(self._made) > self.size:
                        del self._made[next(iter(self._made))]
        return made


@dataclass(frozen=True)
class Unit(ABC):
    """What to run. The same unit gives the same records, wherever it is run."""

    #: Part of the key: raised when the same unit would give other numbers.
    version: ClassVar[int]

    @property
    @abstractmethod
    def names(self) -> tuple[str, str, str]:
        """The names of its world, model and strategy, for tables and messages."""

    @property
    def device(self) -> str:
        """The device that it runs on."""
        return "cpu"

    @abstractmethod
    def run(self, cache: InstanceCache) -> list[Any]:
        """Its records: `GapRecord`s, or tables that JSON can hold."""

    @property
    def text(self) -> str:
        """Its content."""
        return canonical([type(self).__name__, asdict(self)])

    @property
    def key(self) -> str:
        """The hash of its content."""
        return hashlib.sha256(canonical([self.version, self.text]).encode()).hexdigest()


@dataclass(frozen=True)
class GapRecord:
    """The gap of one run's plan at one checkpoint, and what the run had cost by then."""

    seed: int
    planner: str
    samples: int
    episodes: int
    steps: int
    start: float
    mean: float
    max: float


@dataclass(frozen=True)
class SweepUnit(Unit):
    """Some runs of one strategy on one world. Tables are kept as canonical text."""

    world: str
    model: str
    strategy: str
    planners: tuple[tuple[str, str], ...]  # name and table
    budget: str  # samples_per_step or transitions
    checkpoints: tuple[int, ...]
    seeds: tuple[int, ...]  # played together
    device: str = "cpu"
    dtype: str = "float64"
    names: tuple[str, str, str] = ("", "", "")
    version: ClassVar[int] = 2

    def built(self, kind: str, table: str, cache: InstanceCache) -> Any:
        """The object of one of its tables."""
        return build(kind, json.loads(table), cache.allow_imports)

    def run(self, cache: InstanceCache) -> list[GapRecord]:
        """Explore, plan and evaluate."""
        instance = cache.instance(self.world)
        curves = learning_curves(
            instance.world,
            self.built("model", self.model, cache),
            self.built("strategy", self.strategy, cache),
            instance.reward,
            {name: self.built("planner", table, cache) for name, table in self.planners},
            seeds=self.seeds,
            device=self.device,
            dtype=self.dtype,
            batch=len(self.seeds) if self.device == "cpu" else None,  # there as many as its memory holds
            progress=False,
            **{self.budget: self.checkpoints},
        )
        return [
            GapRecord(
                seed, name, int(c.samples[i]), int(c.used_episodes[b, i]), int(c.used_steps[b, i]),
                float(c.start[b, i]), float(c.mean[b, i]), float(c.max[b, i]),
            )
            for b, seed in enumerate(self.seeds)
            for name, c in curves.items()
            for i in range(len(self.checkpoints))
        ]  # fmt: skip


@dataclass(frozen=True)
class ReferenceUnit(Unit):
    """What needs no data on a world: its records are those of planners "myopic" and "random" at 0 samples."""

    world: str  # as in a SweepUnit
    names: tuple[str, str, str] = ("", "", "")
    version: ClassVar[int] = 2

    def run(self, cache: InstanceCache) -> list[GapRecord]:
        instance = cache.instance(self.world)
        gaps = {
            "myopic": myopic_gap(instance.world, instance.reward),
            "random": random_gap(instance.world, instance.reward),
        }
        return [
            GapRecord(0, name, 0, 0, 0, float(gap.start), float(gap.mean), float(gap.max))
            for name, gap in gaps.items()
        ]


@contextmanager
def errors_of(unit: Unit) -> Iterator[None]:
    """An error in the block says which unit it came from."""
    try:
        yield
    except (ValueError, OSError, MemoryError) as error:
        raise ValueError(f"{_described(unit)}: {error}") from error


def given_up(deadly: Sequence[Unit], deaths: int = ATTEMPTS) -> ChildProcessError:
    """The error for units whose workers died repeatedly, though each was run alone."""
    return ChildProcessError(
        f"a worker died {deaths} times on {' and on '.join(map(_described, deadly))}: "
        "is there enough memory? use a smaller batch"
    )


def _described(unit: Unit) -> str:
    world, model, strategy = unit.names
    return f"world {world}, model {model}, strategy {strategy}"
