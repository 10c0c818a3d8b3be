"""Every system that the paper names, and ours, on the same worlds and the same axes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.experiments.instances import TABULAR, instance_named
from rewardfree.planning.finite import Planner

#: Part of every unit's name: raised when it would give other numbers.
RESULTS_VERSION = 1
#: Kept samples of every step (or episodes, for one regression of all steps) at which a run is planned.
SIZES, TABULAR_SIZES, QUICK_SIZES = (10, 20, 40, 80, 160), (20, 80, 320, 1280), (4, 8)
BETA, EPSILON, DELTA = 0.1, 0.5, 0.1
#: Of every gap: at the start, and its mean and largest over all states.
MEASURES = ("start", "mean", "max")
#: Monomials of z up to this degree are the features of the linear system.
DEGREE = 5


@dataclass(frozen=True)
class System:
    """How a system explores, estimates and plans on an instance, and its row of Table 1."""

    strategy: Callable[[rf.Instance], Any]
    model: Callable[[rf.Instance], rf.Model]
    planner: Planner | None  # None: the library's own choice
    row: str  # of Table 1, or why there is none
    tabular: bool = True  # whether it can be used where states have no geometry


def _told(instance: rf.Instance) -> rf.Model:
    return instance.model


def _pooled(instance: rf.Instance) -> rf.Model:
    return replace(instance.model, pooled=True)


def _features(instance: rf.Instance) -> Any:
    """Polynomials of z, or an entry for each z."""
    if instance.name not in TABULAR:
        return rf.PolynomialFeatures(DEGREE)
    return np.eye(len(instance.world.grid.points))


def _goals(instance: rf.Instance) -> int:
    """Episodes that Jin et al. get for each of their S H goals."""
    return 10 if instance.name in TABULAR else 1


_BONUS = rf.Optimistic(BETA)
KERNEL, TABLE, OURS = "kernel", "tabular", "none: not in it"
#: By the names that tables and figures use.
SYSTEMS: dict[str, System] = {
    "generative": System(lambda _: rf.Generative(), _told, _BONUS, KERNEL),
    "online": System(lambda _: rf.Online(BETA), _told, _BONUS, KERNEL),
    "qiu": System(lambda _: rf.Qiu(BETA), _told, _BONUS, KERNEL),
    "greedy": System(lambda _: rf.GreedyMaxVariance(), _told, _BONUS, OURS),
    "uniform": System(lambda _: rf.Uniform(), _told, _BONUS, OURS),
    "partitioned": System(lambda _: rf.Partitioned(BETA), _told, _BONUS, KERNEL, tabular=False),
    "linear": System(lambda i: rf.LinearRewardFree(_features(i), BETA), _told, _BONUS, "linear"),
    "jin": System(lambda i: rf.Jin(episodes_per_goal=_goals(i)), _told, rf.Mean(), TABLE),
    "rf-ucrl": System(lambda _: rf.RFUCRL(EPSILON, DELTA), _told, rf.Mean(), TABLE),
    "rf-express": System(lambda _: rf.RFExpress(EPSILON, DELTA), _told, rf.Mean(), TABLE),
    "kernel rf-ucrl": System(lambda _: rf.KernelRFUCRL(1.0), _told, rf.Mean(), OURS),
    "kernel rf-express": System(lambda _: rf.KernelRFExpress(1.0), _told, rf.Mean(), OURS),
    "cme": System(lambda _: rf.MeanEmbedding(BETA), _pooled, rf.Mean(), OURS),
    "scout": System(lambda _: rf.Scout(), lambda i: rf.default_model(i.world), None, OURS, tabular=False),
}


@dataclass(frozen=True)
class BaselineUnit:
    """One run of every system on one world."""

    world: str
    seed: int
    quick: bool = False

    @property
    def key(self) -> str:
        return f"{self.world}-{self.seed}{'-quick' * self.quick}-{RESULTS_VERSION}"

    @property
    def names(self) -> tuple[str, str, str]:
        """Of its world, model and strategy, for messages."""
        return self.world, "all", f"seed {self.seed}"

    def run(self, allow_imports: bool = False) -> list[dict[str, Any]]:
        """Its records; a worker's job."""
        return run_unit(self)


def systems_on(world: str) -> list[str]:
    """Those that can be used there."""
    return [name for name, system in SYSTEMS.items() if system.tabular or world not in TABULAR]


def run_unit(unit: BaselineUnit) -> list[dict[str, Any]]:
    """Explore with every system and plan at every size: the gaps, exactly, and the seconds that it took."""
    instance = instance_named(unit.world)
    sizes = QUICK_SIZES if unit.quick else TABULAR_SIZES if unit.world in TABULAR else SIZES
    records = []
    for name in systems_on(unit.world):
        system = SYSTEMS[name]
        model = system.model(instance)
        budget: dict[str, Any] = {_axis(model): sizes[-1]}
        started = time.process_time()
        data = rf.explore(
            instance.world,
            model,
            system.strategy(instance),
            **budget,
            seed=unit.seed,
            progress=False,
        )
        explored = time.process_time() - started
        for size in sizes:
            started = time.process_time()
            first = data.first(**{_axis(model): size})
            plans = rf.plan_many(first, instance.rewards, system.planner)
            planned = time.process_time() - started
            gaps = [
                rf.gap(instance.world, plan, reward)
                for plan, reward in zip(plans, instance.rewards, strict=True)
            ]
            records.append(
                {
                    "world": unit.world,
                    "seed": unit.seed,
                    "system": name,
                    "size": size,
                    "steps": first.steps,
                    "episodes": first.episodes,
                    **{each: [round(float(getattr(gap, each)), 5) for gap in gaps] for each in MEASURES},
                    "explore_seconds": round(explored, 3),
                    "plan_seconds": round(planned, 3),
                }
            )
    return records


def _axis(model: rf.Model) -> str:
    """How a budget is counted: an episode leaves a regression of all steps one sample of each."""
    return "episodes" if model.pooled else "samples_per_step"
