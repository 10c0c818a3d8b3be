"""What is run of the systems that the paper names, and of ours: how each explores, estimates and plans."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.experiments.store import SECONDS
from rewardfree.experiments.unit import InstanceCache
from rewardfree.planning import ValuePlanner
from rewardfree.studies.problems import TABULAR, WorldUnit, instance_named, measured

#: Kept samples of every step (or episodes, for one regression of all steps) at which a run is planned.
SIZES, TABULAR_SIZES, QUICK_SIZES = (10, 20, 40, 80, 160), (20, 80, 320, 1280), (4, 8)
BETA, EPSILON, DELTA = 0.1, 0.5, 0.1
#: An accuracy at which tabular exploration does not stop before the budget: sizes are compared, not stops.
NEVER = 1e-3
#: What widths of tabular systems are multiplied with: with the theory's own (1) they stay clipped, and
#: exploration uniform, at every size that can be run. On 100 states with 100 actions 0.01 is still that.
UCRL_SCALE, LARGE_UCRL_SCALE, EXPRESS_SCALE, JIN_SCALE = 0.01, 1e-5, 1e-5, 0.02
#: Monomials of z up to this degree are the features of the linear system.
DEGREE = 5
#: Of the kernel analogues. At 1 RF-Express's clip at H would leave its first steps to ties.
UCRL_BETA, EXPRESS_BETA = 1.0, 0.5


class Rate(Enum):
    """The paper whose guarantee applies to a system."""

    GENERATIVE, ONLINE, QIU, VAKILI, LINEAR, JIN, COUNTS, NONE = range(8)


@dataclass(frozen=True)
class System:
    """How a system explores, estimates and plans on an instance, and what is promised of it."""

    strategy: Callable[[rf.Instance], Any]
    model: Callable[[rf.Instance], rf.Model]
    planner: ValuePlanner | None  # None: the library's own choice
    rate: Rate
    estimate: str = "a regression for each step"  # in words
    tabular: bool = True  # whether it can be used where states have no geometry


def _given(instance: rf.Instance) -> rf.Model:
    return instance.model


def _pooled(instance: rf.Instance) -> rf.Model:
    return replace(instance.model, pooled=True)


def _default(instance: rf.Instance) -> rf.Model:
    return rf.default_model(instance.world)


def _features(instance: rf.Instance) -> Any:
    """Polynomials of z, or an entry for each z."""
    if instance.name not in TABULAR:
        return rf.posterior.PolynomialFeatures(DEGREE)
    return np.eye(len(instance.world.grid.points))


def _ucrl(instance: rf.Instance) -> rf.baselines.RFUCRL:
    return rf.baselines.RFUCRL(NEVER, DELTA, UCRL_SCALE if instance.name in TABULAR else LARGE_UCRL_SCALE)


def _jin(instance: rf.Instance) -> rf.baselines.Jin:
    """With enough episodes to learn each of its S H goals, where there are few."""
    return rf.baselines.Jin(episodes_per_goal=100 if instance.name in TABULAR else 1, bonus_scale=JIN_SCALE)


_BONUS = rf.Optimistic(BETA)
_CELLS, _FEATURES, _VISITS = "one in each cell and step", "features, for each step", "visits, for each step"
_ONE = "one regression of all steps"
#: By the names that tables and figures use.
SYSTEMS: dict[str, System] = {
    "generative": System(lambda _: rf.Generative(), _given, _BONUS, Rate.GENERATIVE),
    "online": System(lambda _: rf.Online(BETA), _given, _BONUS, Rate.ONLINE),
    "qiu": System(lambda _: rf.Qiu(BETA), _given, _BONUS, Rate.QIU),
    "greedy": System(lambda _: rf.GreedyMaxVariance(), _given, _BONUS, Rate.NONE),
    "uniform": System(lambda _: rf.Uniform(), _given, _BONUS, Rate.NONE),
    "partitioned": System(
        lambda _: rf.baselines.Partitioned(BETA), _given, _BONUS, Rate.VAKILI, _CELLS, tabular=False
    ),
    "linear": System(
        lambda i: rf.baselines.LinearRewardFree(_features(i), BETA), _given, _BONUS, Rate.LINEAR, _FEATURES
    ),
    "jin": System(_jin, _given, rf.Mean(), Rate.JIN, _VISITS),
    "rf-ucrl": System(_ucrl, _given, rf.Mean(), Rate.COUNTS, _VISITS),
    "rf-express": System(
        lambda _: rf.baselines.RFExpress(NEVER, DELTA, EXPRESS_SCALE), _given, rf.Mean(), Rate.COUNTS, _VISITS
    ),
    "kernel rf-ucrl": System(lambda _: rf.baselines.KernelRFUCRL(UCRL_BETA), _given, rf.Mean(), Rate.NONE),
    "kernel rf-express": System(
        lambda _: rf.baselines.KernelRFExpress(EXPRESS_BETA), _given, rf.Mean(), Rate.NONE
    ),
    "uniform, pooled": System(lambda _: rf.Uniform(), _pooled, rf.Mean(), Rate.NONE, _ONE),
    "cme": System(lambda _: rf.baselines.MeanEmbedding(BETA), _pooled, rf.Mean(), Rate.NONE, _ONE),
    "scout": System(
        lambda _: rf.Scout(), _default, None, Rate.NONE, "one, centred, kernel from data", tabular=False
    ),
}


@dataclass(frozen=True)
class BaselineUnit(WorldUnit):
    """One run of every system on one world."""

    version: ClassVar[int] = 2

    def run(self, cache: InstanceCache) -> list[dict[str, Any]]:
        """Explore with every system and plan at every size: the gaps, exactly, and the seconds it took."""
        instance = instance_named(self.world)
        world, rewards = instance.world, instance.rewards
        sizes = QUICK_SIZES if self.quick else TABULAR_SIZES if self.world in TABULAR else SIZES
        records = []
        for name in systems_on(self.world):
            system = SYSTEMS[name]
            model, strategy = system.model(instance), system.strategy(instance)
            budget = "episodes" if model.pooled else "samples_per_step"  # one sample of each step, for both
            started = time.process_time()
            limit: dict[str, Any] = {budget: sizes[-1]}
            data = rf.explore(world, model, strategy, **limit, seed=self.seed, progress=False)
            explored = time.process_time() - started
            for size in sizes:
                started = time.process_time()
                first = data.first(**{budget: size})
                plans = rf.plan_many(first, rewards, system.planner)
                planned = time.process_time() - started
                gaps = [rf.gap(world, plan, reward) for plan, reward in zip(plans, rewards, strict=True)]
                records.append(
                    {
                        "world": self.world,
                        "seed": self.seed,
                        "system": name,
                        "size": size,
                        "steps": first.steps,
                        "episodes": first.episodes,
                        **measured(gaps, digits=5),
                        SECONDS: {"explore": round(explored, 3), "plan": round(planned, 3)},
                    }
                )
        return records


def systems_on(world: str) -> list[str]:
    """The systems that can run on a world."""
    return [name for name, system in SYSTEMS.items() if system.tabular or world not in TABULAR]
