"""What is run: data sets of nine systems, what is said of each, and what plans made of it gain."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.evaluation.diagnosis import diagnose
from rewardfree.experiments.store import SECONDS
from rewardfree.experiments.unit import InstanceCache, Unit
from rewardfree.planning import PlanRequest, plan_on_mesh
from rewardfree.streams import stream
from rewardfree.studies.control.specification import OTHER_HORIZON, SOURCES, TASKS, TrueDynamics
from rewardfree.studies.doubling.worlds import WORLDS
from rewardfree.threads import one_blas_thread

#: Transitions of a data set.
SIZES = (6, 25, 60, 150, 400, 1000)
#: Of a control task, its own reward and the next ones.
REWARDS = 3
#: Where the plans with the true dynamics stand among the sources: they say what can be reached.
TRUE_DYNAMICS = "true dynamics"
#: The rule behind the words was made on these; the others were run once it stood.
DEVELOPED_ON = ("Pendulum", "MountainCar", "CartPole", "unicycle")


@dataclass(frozen=True)
class System:
    """A world, rewards for it, and where its episodes end."""

    name: str
    world: Callable[[], Any]
    rewards: Mapping[str, str]
    terminated: str | None = None

    @property
    def developed_on(self) -> bool:
        return self.name in DEVELOPED_ON


def _systems() -> dict[str, System]:
    tasks = [
        System(
            task.name,
            lambda env=task.env: rf.from_gymnasium(env),
            dict(list(task.rewards.items())[:REWARDS]),
            task.terminated,
        )
        for task in TASKS
    ]
    walled = [System(name, world, world.rewards) for name, world in WORLDS.items()]
    return {system.name: system for system in (*tasks, *walled)}


SYSTEMS = _systems()


@dataclass(frozen=True)
class VerdictUnit(Unit):
    """One data set: its verdict, and returns of a plan for each reward; or plans with the true dynamics."""

    system: str
    source: str
    size: int
    seed: int
    episodes: int = 10
    version: ClassVar[int] = 1

    @property
    def names(self) -> tuple[str, str, str]:
        return self.system, f"{self.size} transitions", f"{self.source}, seed {self.seed}"

    def run(self, cache: InstanceCache) -> list[dict[str, Any]]:
        """One record: what is said of the data, and for each reward what plans and random actions gain."""
        with one_blas_thread():
            return [{**asdict(self), **self.played(self.explored())}]

    @property
    def world(self) -> rf.World:
        made: rf.World = SYSTEMS[self.system].world()
        return made

    def explored(self) -> rf.Experience:
        """The data set."""
        strategy = SOURCES["generative" if self.source == TRUE_DYNAMICS else self.source]
        data = rf.explore(
            self.world, strategy=strategy, transitions=self.size, seed=self.seed, progress=False
        )
        if data.stopped_by != "transitions":  # what was cut short must not be stored as if it were whole
            raise KeyboardInterrupt
        return data

    def played(self, data: rf.Experience) -> dict[str, Any]:
        """What is said of these data, and the returns."""
        system, world = SYSTEMS[self.system], self.world
        returns, at_random = {}, {}
        for name, reward in system.rewards.items():
            horizon = world.horizon if name == "own" else min(world.horizon, OTHER_HORIZON)
            plan = self._plan(data, world, reward, horizon)
            seed = 10_000 + self.seed  # the same episodes for every data set
            score = rf.rollouts(world, plan, reward, self.episodes, seed)
            returns[name] = [float(value) for value in score.returns]
            chance = RandomPolicy(world, stream(seed, "random policy"))
            score = rf.rollouts(world, chance, reward, self.episodes, seed, horizon=horizon)
            at_random[name] = [float(value) for value in score.returns]
        return {"returns": returns, "random": at_random}

    def _plan(self, data: rf.Experience, world: rf.World, reward: str, horizon: int) -> Any:
        terminated = SYSTEMS[self.system].terminated
        if self.source != TRUE_DYNAMICS:
            return rf.plan(data, reward, horizon=horizon, terminated=terminated)
        request = PlanRequest(data, [reward], horizon=horizon, terminated=terminated)
        (plan,) = plan_on_mesh(rf.DynamicsPlanner(), request, TrueDynamics(world))
        return plan


class RandomPolicy:
    """Actions that are all equally likely."""

    def __init__(self, world: rf.World, rng: np.random.Generator) -> None:
        self._space, self._rng = world.action, rng

    def act(self, state: Any, h: int) -> Any:
        space = self._space
        if isinstance(space, rf.Box):
            return self._rng.uniform(space.low, space.high, (len(state), space.size))
        return self._rng.integers(space.n, size=len(state))
