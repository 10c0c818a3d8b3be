"""What is run: data sets of nine systems, what is said of each, and what plans made of it gain."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import rewardfree as rf
from rewardfree.doubts import Doubt
from rewardfree.evaluation.diagnosis import diagnose
from rewardfree.experiments.store import SECONDS
from rewardfree.experiments.unit import InstanceCache, Unit
from rewardfree.planning import PlanRequest
from rewardfree.studies.control.specification import OTHER_HORIZON, SOURCES, TASKS, TrueDynamics
from rewardfree.studies.doubling.worlds import WORLDS
from rewardfree.studies.exploring import RandomPolicy, explored_whole
from rewardfree.threads import one_blas_thread

#: Transitions of a data set.
SIZES = (6, 25, 60, 150, 400, 1000)
#: The first steps of every strategy are random: data sets of at most this size have one source.
RANDOM = 50
#: Of a control task, its own reward and the next ones.
REWARDS = 3
#: Where the plans with the true dynamics stand among the sources: they say what can be reached.
TRUE_DYNAMICS = "true dynamics"
#: The rule behind the words was made on these, with seed 0; the others were run once it stood.
DEVELOPED_ON = ("Pendulum", "MountainCar", "CartPole", "unicycle")


@dataclass(frozen=True)
class VerdictTask:
    """A world, rewards for it, and where its episodes end."""

    world: Callable[[], Any]
    rewards: Mapping[str, str]
    terminated: str | None = None


SYSTEMS = {
    **{
        task.name: VerdictTask(
            partial(rf.from_gymnasium, task.env), dict(list(task.rewards.items())[:REWARDS]), task.terminated
        )
        for task in TASKS
    },
    **{name: VerdictTask(world, world.rewards) for name, world in WORLDS.items()},
}


def sources_of(size: int) -> tuple[str, ...]:
    """Where data sets of that many transitions come from."""
    return ("uniform",) if size <= RANDOM else tuple(SOURCES)


@dataclass(frozen=True)
class VerdictUnit(Unit):
    """One data set: its verdict, and returns of a plan for each reward; or plans with the true dynamics."""

    system: str
    source: str
    size: int
    seed: int
    episodes: int = 10
    reward: str = ""  # the only one; by default all of the system's
    version: ClassVar[int] = 1

    @property
    def names(self) -> tuple[str, str, str]:
        source = f"{self.source} {self.reward}".strip()
        return self.system, f"{self.size} transitions", f"{source}, seed {self.seed}"

    @property
    def world(self) -> Any:
        return SYSTEMS[self.system].world()

    def run(self, cache: InstanceCache) -> list[dict[str, Any]]:
        """One record: what is said of the data, and for each reward what plans and any actions gain."""
        with one_blas_thread():
            started = time.process_time()
            data = self.explored()
            record = {**asdict(self), **self._said(data), **self._played(data)}
            return [{**record, SECONDS: {"all": time.process_time() - started}}]

    def explored(self) -> rf.Experience:
        """The data set."""
        strategy = SOURCES["generative" if self.source == TRUE_DYNAMICS else self.source]
        return explored_whole(self.world, None, strategy, transitions=self.size, seed=self.seed)

    def _said(self, data: rf.Experience) -> dict[str, Any]:
        if self.source == TRUE_DYNAMICS:
            return {}
        said = diagnose(data)
        return {
            "score": said.score,
            "verdict": said.verdict,
            "error": [float(error) for error in said.error],
            "seen": [float(share) for share in said.seen],
            "visited": said.visited,
            "bounds": list(said.bounds),
        }

    def _played(self, data: rf.Experience) -> dict[str, Any]:
        """Returns of plans and of any actions, and the doubts that were raised, each by reward."""
        system, world = SYSTEMS[self.system], self.world
        returns, at_random, doubts = {}, {}, {}
        seed = 10_000 + self.seed  # the same episodes for every data set
        rewards = {self.reward: system.rewards[self.reward]} if self.reward else system.rewards
        for name, reward in rewards.items():
            horizon = world.horizon if name == "own" else min(world.horizon, OTHER_HORIZON)
            with warnings.catch_warnings(record=True) as raised:
                warnings.simplefilter("always")
                plan = self._plan(data, reward, horizon)
                score = rf.rollouts(world, plan, reward, self.episodes, seed)
            doubts[name] = [w.category.__name__ for w in raised if issubclass(w.category, Doubt)]
            returns[name] = score.returns.tolist()
            policy = RandomPolicy(world.action, self.seed)
            score = rf.rollouts(world, policy, reward, self.episodes, seed, horizon=horizon)
            at_random[name] = score.returns.tolist()
        return {"returns": returns, "random": at_random, "doubts": doubts}

    def _plan(self, data: rf.Experience, reward: str, horizon: int) -> Any:
        terminated = SYSTEMS[self.system].terminated
        if self.source != TRUE_DYNAMICS:
            return rf.plan(data, reward, horizon=horizon, terminated=terminated)
        request = PlanRequest(data, [reward], horizon=horizon, terminated=terminated)
        (plan,) = rf.DynamicsPlanner().plan(request, TrueDynamics(self.world))
        return plan
