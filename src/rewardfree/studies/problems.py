"""The worlds on which methods are compared, and what comparisons on them share."""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import Unit
from rewardfree.report.numbers import standard_error
from rewardfree.streams import stream
from rewardfree.studies.study import SeededStudy
from rewardfree.worlds.hard_suite import suite_names

#: The paper's own kernels, each with a world drawn from it.
PAPER = {
    "paper-squared-exponential": rf.SquaredExponential(lengthscale=0.1),
    "paper-matern-1.5": rf.Matern(nu=1.5, lengthscale=0.1),
    "paper-matern-2.5": rf.Matern(nu=2.5, lengthscale=0.1),
}
REWARDS = 5
#: The measures of a gap: at the start, and its mean and largest over all states.
MEASURES = ("start", "mean", "max")


@dataclass(frozen=True)
class WorldUnit(Unit):
    """One run on one of these worlds of all methods that are compared there."""

    world: str
    seed: int
    quick: bool = False

    @property
    def names(self) -> tuple[str, str, str]:
        return self.world, "all", f"seed {self.seed}"


def hard_and_paper() -> tuple[str, ...]:
    """The names of the hard suite and of the paper's worlds."""
    return (*suite_names(), *PAPER)


def instance_named(name: str) -> rf.Instance:
    """A world with its rewards and the learner's model."""
    if name in TABULAR:
        return TABULAR[name](name)
    if name not in PAPER:
        return rf.hard_suite([name])[0]
    kernel = PAPER[name]
    draws = [rf.rkhs_world(kernel, seed=seed) for seed in range(REWARDS)]
    rewards = np.stack([draw.reward for draw in draws])
    return rf.Instance(name, "a draw of the paper's", draws[0].world, rewards, draws[0].model)


def _garnet(name: str) -> rf.Instance:
    world = rf.worlds.garnet_world()
    rewards = stream(0, "rewards", name).random((REWARDS, *world.grid.shape))
    return rf.Instance(
        name, "a random world: every (s,a) leads to three of ten states", world, rewards, _TOLD
    )


def _riverswim(name: str) -> rf.Instance:
    world = rf.worlds.riverswim_world()
    S, A = world.grid.shape
    paid = np.repeat(np.eye(S)[1:, :, None], A, axis=2)  # each for being at one state beyond the first
    return rf.Instance(name, "a chain of six states against a current", world, paid, _TOLD)


#: What a learner is told where no state says anything about another.
_TOLD = rf.Model(rf.kernels.Delta(), ridge=1.0)
#: Small worlds without any geometry.
TABULAR: dict[str, Callable[[str], rf.Instance]] = {"garnet": _garnet, "riverswim": _riverswim}


@dataclass(frozen=True)
class WorldProfile:
    """What a world asks of a learner; means over its rewards."""

    world: str
    optimal: float  # V* at the start
    row_distance: float  # of rows of P from their mean, in total variation
    next_states: float  # their effective number
    reachable: float  # share of states
    levels: Mapping[str, Mapping[str, Any]]  # gaps that need no data, by policy and measure, for each reward

    @classmethod
    def named(cls, name: str) -> WorldProfile:
        instance = instance_named(name)
        of_rewards = [rf.describe(instance.world, reward) for reward in instance.rewards]
        first, optimal = of_rewards[0], float(np.mean([seen.optimal for seen in of_rewards]))
        levels = {
            "myopic": measured([seen.myopic for seen in of_rewards]),
            "random": measured([seen.random for seen in of_rewards]),
        }
        return cls(name, optimal, first.row_distance, first.next_states, first.reachable, levels)

    @property
    def policies(self) -> dict[str, float]:
        """The gap at the start of each policy that needs no data."""
        return {policy: float(np.mean(gaps["start"])) for policy, gaps in self.levels.items()}


def measured(gaps: Sequence[Any], digits: int | None = None) -> dict[str, list[float]]:
    """A number for each reward of every measure, as a record has them; all digits by default."""
    values = {measure: [float(getattr(gap, measure)) for gap in gaps] for measure in MEASURES}
    if digits is None:
        return values
    return {measure: [round(value, digits) for value in column] for measure, column in values.items()}


class Comparison:
    """Records of runs by world, method and budget, beside what the worlds ask of a learner."""

    def __init__(
        self,
        records: Iterable[Mapping[str, Any]],
        profiles: Sequence[WorldProfile] = (),
        *,
        method: Sequence[str],
        budget: str,
    ) -> None:
        self.records = list(records)
        self.profiles = {profile.world: profile for profile in profiles}
        self._grouped: dict[tuple[str, ...], dict[int, list[Mapping[str, Any]]]] = {}
        for record in self.records:
            key = (record["world"], *(record[name] for name in method))
            self._grouped.setdefault(key, {}).setdefault(record[budget], []).append(record)

    @property
    def levels(self) -> dict[str, dict[str, float]]:
        """Gaps that need no data, by world and policy."""
        return {world: profile.policies for world, profile in self.profiles.items()}

    def runs(self, world: str, method: Sequence[str]) -> dict[int, list[Mapping[str, Any]]]:
        """The records of a method's runs at each budget, ascending."""
        return dict(sorted(self._grouped.get((world, *method), {}).items()))

    def gaps(self, world: str, method: Sequence[str], budget: int, measure: str = "start") -> Any:
        """(runs, rewards), or None."""
        records = self.runs(world, method).get(budget)
        return None if records is None else np.array([record[measure] for record in records])

    def gaps_of_runs(self, world: str, method: Sequence[str]) -> Any:
        """The gaps at the start, means over rewards: (runs, budgets)."""
        of_budgets = self.runs(world, method).values()
        return np.array([[np.mean(record["start"]) for record in records] for records in of_budgets]).T

    def places(self, world: str, method: Sequence[str], axis: str) -> Any:
        """Where the budgets lie on an axis."""
        of_budgets = self.runs(world, method).values()
        return np.array([np.mean([record[axis] for record in records]) for records in of_budgets])

    def curve(self, world: str, method: Sequence[str], axis: str) -> tuple[Any, Any, Any]:
        """Places on an axis, mean gaps at the start, and their standard errors over runs."""
        gaps = list(self.gaps_of_runs(world, method).T)
        means, errors = [run.mean() for run in gaps], [standard_error(run) for run in gaps]
        return self.places(world, method, axis), np.array(means), np.array(errors)


@dataclass(frozen=True)
class ComparisonStudy(SeededStudy[Comparison]):
    """Methods on many of these worlds."""

    unit: ClassVar[type[WorldUnit]]
    columns: ClassVar[tuple[str, ...]]  # of results.csv, before the gaps
    method: ClassVar[tuple[str, ...]]  # what names a method in a record
    budget: ClassVar[str]

    @property
    @abstractmethod
    def worlds(self) -> Sequence[str]:
        """On which it runs."""

    def units(self) -> Sequence[Unit]:
        return [self.unit(world, seed, self.quick) for seed in self.seeds for world in self.worlds]

    def read(self, store: Store) -> Comparison:
        profiles = [WorldProfile.named(world) for world in self.worlds]
        return Comparison(store.tables(), profiles, method=self.method, budget=self.budget)

    def csv(self, comparison: Comparison) -> str:
        """A row for each record: the mean of its gaps over rewards, and that for the worst reward."""
        file = io.StringIO()
        writer = csv.writer(file)
        gaps = [f"{measure}_{of}" for measure in MEASURES for of in ("mean_reward", "worst_reward")]
        writer.writerow([*self.columns, *gaps])
        for record in comparison.records:
            values = [f"{of(record[measure]):.6g}" for measure in MEASURES for of in (np.mean, np.max)]
            writer.writerow([*(record[name] for name in self.columns), *values])
        return file.getvalue()
