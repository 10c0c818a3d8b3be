"""Better than the paper: every explorer, model and planner, at equal environment steps."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.evaluation.exact import gap_of_values, optimal_value, values_of_actions
from rewardfree.experiments.instances import MEASURES, WorldUnit, instance_named
from rewardfree.experiments.unitfiles import SECONDS
from rewardfree.planning import ValuePlanner
from rewardfree.planning.finite import backward, estimates_of
from rewardfree.rewards import reward_table
from rewardfree.threads import one_blas_thread

#: Part of every unit's name: raised when it would give other numbers.
RESULTS_VERSION = 2
#: Environment steps at which everything is compared, and at which the curves are read besides.
COMPARED, CURVE = (400, 1200), (100, 200, 400, 800, 1200)
BETA = 0.1
PLANNERS: dict[str, ValuePlanner] = {
    "optimistic": rf.Optimistic(BETA),
    "optimistic, any range": rf.Optimistic(BETA, clip="range"),
    "mean": rf.Mean(clip="range"),
    "pessimistic": rf.Pessimistic(BETA, clip="range"),
}
#: How [PV] is estimated from the data, for an instance: the paper's way, each change alone, and all of them.
MODELS: dict[str, Callable[[rf.Instance], rf.Model]] = {
    "per step": lambda instance: instance.model,
    "per step, centred": lambda instance: replace(instance.model, centred=True),
    "pooled": lambda instance: replace(instance.model, pooled=True),
    "pooled, centred": lambda instance: replace(instance.model, pooled=True, centred=True),
    "default, not centred": lambda instance: replace(rf.default_model(instance.world), centred=False),
    "default": lambda instance: rf.default_model(instance.world),
    "default, not timed": lambda instance: replace(rf.default_model(instance.world), timed=False),
}
#: Who explores, with which of these models. "online, all" plans with what Alg 3 passes by as well.
EXPLORERS: dict[str, tuple[Any, str]] = {
    "generative": (rf.Generative(), "per step"),
    "online": (rf.Online(BETA), "per step"),
    "qiu": (rf.Qiu(BETA), "per step"),
    "greedy": (rf.GreedyMaxVariance(), "per step"),
    "uniform": (rf.Uniform(), "per step"),
    "scout, fixed kernel": (rf.Scout(), "pooled, centred"),
    "scout": (rf.Scout(), "default"),
    "scout, sigma": (rf.Scout("sigma"), "default"),
    "scout, information": (rf.Scout("information"), "default"),
}
ALL_OF, ALL = "online", "online, all"
PAPERS_FOUR = ("generative", "online", "qiu", "greedy")
#: What the paper plans with, and what the library does where nobody says otherwise.
PAPERS_WAY, DEFAULT_WAY = ("per step", "optimistic"), ("default", "mean")
#: The lines of the curves: an explorer, a model and a planner.
LINES = (
    *((name, *PAPERS_WAY) for name in (*PAPERS_FOUR, "uniform")),
    ("uniform", *DEFAULT_WAY),
    ("scout", *DEFAULT_WAY),
)


@dataclass(frozen=True)
class BeyondUnit(WorldUnit):
    """One run of everything on one world."""

    version: ClassVar[int] = RESULTS_VERSION

    def run(self, allow_imports: bool = False) -> list[dict[str, Any]]:
        return run_unit(self)


def run_unit(unit: BeyondUnit) -> list[dict[str, Any]]:
    """Explore with every strategy and plan with every model and planner: the gaps, exactly."""
    instance = instance_named(unit.world)
    compared = COMPARED[:1] if unit.quick else COMPARED
    curve = CURVE[:1] if unit.quick else CURVE
    gaps = _Gaps(instance)
    records: list[dict[str, Any]] = []
    with one_blas_thread():
        for name, (strategy, model) in EXPLORERS.items():
            started = time.process_time()
            data = rf.explore(
                instance.world,
                MODELS[model](instance),
                strategy,
                steps=max(compared),
                seed=unit.seed,
                progress=False,
            )
            seconds = time.process_time() - started
            sets = {name: data} | ({ALL: data.using_all()} if name == ALL_OF else {})
            for label, run in sets.items():
                lines = [line[1:] for line in LINES if line[0] == label]
                for steps in sorted({*compared, *curve} if lines else compared):
                    first = run.first(steps=steps)
                    wanted = None if steps in compared else lines
                    for found in gaps.of(first, wanted):
                        about = {"world": unit.world, "seed": unit.seed, "explorer": label, **found}
                        took = {SECONDS: {"explore": round(seconds, 2)}}
                        records.append({**about, **_axes(first), **took})
    return records


class _Gaps:
    """The gaps of all models and planners on data of one instance, from as few factorisations as possible."""

    def __init__(self, instance: rf.Instance) -> None:
        self.instance = instance
        world, rewards = instance.world, instance.rewards
        self.tables = [reward_table(reward, world.grid, world.horizon) for reward in rewards]
        self.optimal = [optimal_value(world, reward)[0] for reward in rewards]

    def of(self, run: Any, wanted: Any) -> list[dict[str, Any]]:
        """One record for each model and planner, or for those wanted."""
        world, found = self.instance.world, []
        shared: dict[rf.Model, Callable[[int], FiniteEstimate]] = {}
        for name, model in MODELS.items():
            planners = [each for each in PLANNERS if wanted is None or (name, each) in wanted]
            if not planners:
                continue
            own = model(self.instance)
            uncentred = replace(own, centred=False)
            if uncentred not in shared:
                shared.clear()  # one at a time: they are large
                shared[uncentred] = estimates_of(run, uncentred)
            stages = functools.partial(_centred, shared[uncentred], own.centred)
            for planner in planners:
                actions, _ = backward(stages, np.stack(self.tables), PLANNERS[planner], world.horizon)
                losses = [
                    gap_of_values(world, best, values_of_actions(world.P, table, chosen)[0])
                    for best, table, chosen in zip(self.optimal, self.tables, actions[0], strict=True)
                ]
                found.append(
                    {
                        "model": name,
                        "planner": planner,
                        **{
                            measure: [round(float(getattr(each, measure)), 5) for each in losses]
                            for measure in MEASURES
                        },
                    }
                )
        return found


def _centred(stages: Callable[[int], FiniteEstimate], centred: bool, h: int) -> FiniteEstimate:
    return stages(h).centred(centred)


def _axes(run: Any) -> dict[str, Any]:
    """What the data cost, on every axis."""
    kept = int(run.kept.sum())
    return {"steps": run.steps, "episodes": run.episodes, "samples_per_step": kept / run.horizon}
