"""What is run beyond the paper: every explorer, model and planner, at equal environment steps."""

import functools
import itertools
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import rewardfree as rf
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.evaluation.exact import Gap, gap_of_values, optimal_value, values_of_actions
from rewardfree.experiments.store import SECONDS
from rewardfree.experiments.unit import InstanceCache
from rewardfree.planning import ValuePlanner
from rewardfree.planning.finite import RewardColumns, backward, estimates_of
from rewardfree.rewards import reward_table
from rewardfree.studies.problems import WorldUnit, instance_named, measured
from rewardfree.threads import one_blas_thread

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
EVERY_WAY = set(itertools.product(MODELS, PLANNERS))
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
#: What the paper plans with, and what the library does where a user names nothing.
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

    version: ClassVar[int] = 2

    def run(self, cache: InstanceCache) -> list[dict[str, Any]]:
        """Explore with every strategy and plan with every model and planner: the gaps, exactly."""
        instance = instance_named(self.world)
        compared, curve = (COMPARED[:1], CURVE[:1]) if self.quick else (COMPARED, CURVE)
        evaluation = _Evaluation(instance)
        records: list[dict[str, Any]] = []
        with one_blas_thread():
            for name, (strategy, model) in EXPLORERS.items():
                started = time.process_time()
                data = rf.explore(
                    instance.world,
                    MODELS[model](instance),
                    strategy,
                    steps=max(compared),
                    seed=self.seed,
                    progress=False,
                )
                seconds = {"explore": round(time.process_time() - started, 2)}
                samples = {name: data} | ({ALL: data.using_all()} if name == ALL_OF else {})
                for label, run in samples.items():
                    lines = {line[1:] for line in LINES if line[0] == label}
                    for steps in sorted({*compared, *curve} if lines else compared):
                        first = run.first(steps=steps)
                        cost = {
                            "steps": first.steps,
                            "episodes": first.episodes,
                            "samples_per_step": int(first.kept.sum()) / first.horizon,
                        }
                        for gaps in evaluation.records(first, EVERY_WAY if steps in compared else lines):
                            run_of = {"world": self.world, "seed": self.seed, "explorer": label}
                            records.append({**run_of, **gaps, **cost, SECONDS: seconds})
        return records


class _Evaluation:
    """The gaps of models and planners on data of one instance, from as few factorisations as possible."""

    def __init__(self, instance: rf.Instance) -> None:
        self.instance = instance
        world = instance.world
        self.tables = [reward_table(reward, world.grid, world.horizon) for reward in instance.rewards]
        self.optimal = [optimal_value(world, reward)[0] for reward in instance.rewards]

    def records(self, run: Any, ways: Collection[tuple[str, str]]) -> Iterator[dict[str, Any]]:
        """One for each wanted pair of a model and a planner."""
        shared: dict[rf.Model, Callable[[int], FiniteEstimate]] = {}
        for name, make in MODELS.items():
            planners = [planner for planner in PLANNERS if (name, planner) in ways]
            if not planners:
                continue
            model = make(self.instance)
            uncentred = replace(model, centred=False)
            if uncentred not in shared:
                shared.clear()  # one at a time: they are large
                shared[uncentred] = estimates_of(run, uncentred)
            estimates = functools.partial(_centred, shared[uncentred], model.centred)
            for planner in planners:
                gaps = measured(self._gaps(estimates, PLANNERS[planner]), digits=5)
                yield {"model": name, "planner": planner, **gaps}

    def _gaps(self, estimates: Callable[[int], FiniteEstimate], planner: ValuePlanner) -> list[Gap]:
        world = self.instance.world
        rewards = RewardColumns(list(self.instance.rewards), world.grid, world.horizon, planner)
        actions, _ = backward(estimates, rewards, planner, world.horizon)
        return [
            gap_of_values(world, best, values_of_actions(world.P, table, chosen)[0])
            for best, table, chosen in zip(self.optimal, self.tables, actions[0], strict=True)
        ]


def _centred(estimates: Callable[[int], FiniteEstimate], centred: bool, h: int) -> FiniteEstimate:
    return estimates(h).centred(centred)
