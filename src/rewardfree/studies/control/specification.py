"""What is run of the classic-control tasks: each is explored without a reward, and planned for several."""

import time
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.experiments.store import SECONDS
from rewardfree.experiments.unit import InstanceCache, Unit
from rewardfree.planning import PlanRequest
from rewardfree.studies.exploring import explored_whole
from rewardfree.threads import one_blas_thread


@dataclass(frozen=True)
class ControlTask:
    """An environment, where its episodes end, and rewards for it: its own first."""

    env: str
    terminated: str | None
    rewards: dict[str, str]
    best_published: float  # RL Zoo's best for it
    published_steps: int  # of its training budget, with rewards

    @property
    def name(self) -> str:
        return self.env.rsplit("-", 1)[0]


_HEIGHT = "-cos({0}theta1) - cos({0}theta1 + {0}theta2)"
#: Best mean returns of RL Baselines3 Zoo, and after how many rewarded steps: facts to compare with.
TASKS = (
    ControlTask(
        "Pendulum-v1",
        None,
        {
            "own": "-(theta**2 + 0.1*omega**2 + 0.001*torque**2)",
            "upright": "where(cos(theta) > 0.95, 1, 0)",
            "spin": "-abs(omega - 5)",
            "hang still": "-(1 + cos(theta)) - 0.1*omega**2",
        },
        -151.9,
        20_000,
    ),
    ControlTask(
        "MountainCar-v0",
        "position >= 0.5 and velocity >= 0",
        {
            "own": "-1",
            "left hill": "where(position < -1, 1, 0)",
            "half way": "-10*(position + 0.9)**2",
            "speed": "100*abs(velocity)",
        },
        -100.8,
        120_000,
    ),
    ControlTask(
        "MountainCarContinuous-v0",
        "position >= 0.45 and velocity >= 0",
        {
            "own": "100*(next_position >= 0.45 and next_velocity >= 0) - 0.1*force**2",
            "left hill": "where(position < -1, 1, 0) - 0.1*force**2",
            "half way": "-10*(position + 0.9)**2 - 0.1*force**2",
            "speed": "100*abs(velocity) - 0.1*force**2",
        },
        96.7,
        500_000,
    ),
    ControlTask(
        "CartPole-v1",
        "abs(x) > 2.4 or abs(theta) > 12*pi/180",
        {
            "own": "1",
            "stand at 1": "1 - abs(x - 1)",
            "drive right": "1 - abs(v - 0.2)",
            "swing": "1 + abs(v)",
        },
        500.0,
        50_000,
    ),
    ControlTask(
        "Acrobot-v1",
        f"{_HEIGHT.format('')} > 1",
        {
            "own": f"-1 + ({_HEIGHT.format('next_')} > 1)",
            "second link fast": "abs(omega2)/10",
            "first link level": "-abs(theta1 - 1.5)",
            "just below": f"-abs({_HEIGHT.format('')} - 0.5)",
        },
        -69.1,
        100_000,
    ),
)
#: Steps of an episode for the rewards that are not the task's own.
OTHER_HORIZON = 200
MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
#: Where the data come from.
SOURCES = {"generative": rf.Generative(), "online": rf.Scout(), "uniform": rf.Uniform()}


def task_named(name: str) -> ControlTask:
    """A task by its environment, with or without the version."""
    for task in TASKS:
        if name in (task.env, task.name):
            return task
    raise ValueError(f"there is {', '.join(task.name for task in TASKS)}, got {name!r}")


@dataclass(frozen=True)
class ControlUnit(Unit):
    """One seed of one task: three data sets, or none for the plans with the true dynamics."""

    env: str
    seed: int
    transitions: int = 1000
    episodes: int = 20
    oracle: bool = False
    version: ClassVar[int] = 1

    @property
    def names(self) -> tuple[str, str, str]:
        return self.env, "AutoKernel", f"seed {self.seed}"

    def run(self, cache: InstanceCache) -> list[dict[str, Any]]:
        """Explore, plan for every reward, and play in Gymnasium: a record for each source and reward."""
        task, world = task_named(self.env), rf.from_gymnasium(self.env)
        assert isinstance(world, rf.World)
        records: list[dict[str, Any]] = []
        with one_blas_thread():
            for source in ("oracle",) if self.oracle else SOURCES:
                started = time.process_time()  # of one thread: what an idle core would take
                strategy = SOURCES["generative" if self.oracle else source]
                data = explored_whole(world, MODEL, strategy, transitions=self.transitions, seed=self.seed)
                explored = time.process_time() - started
                predictor = TrueDynamics(world) if self.oracle else None
                for name, reward in task.rewards.items():
                    horizon = world.horizon if name == "own" else min(world.horizon, OTHER_HORIZON)
                    started = time.process_time()
                    request = PlanRequest(data, [reward], horizon=horizon, terminated=task.terminated)
                    (plan,) = rf.DynamicsPlanner().plan(request, predictor)
                    planned = time.process_time() - started
                    score = rf.rollouts(world, plan, reward, self.episodes, seed=10_000 + self.seed)
                    records.append(
                        {
                            **asdict(self),
                            "source": source,
                            "reward": name,
                            "steps": data.steps,
                            "returns": [float(value) for value in score.returns],
                            "expected": plan.expected,
                            "depth": plan.depth,
                            "discount": plan.discount,
                            SECONDS: {"explore": explored, "plan": planned},
                        }
                    )
        return records


class TrueDynamics:
    """The simulator itself in the place of learnt dynamics."""

    def __init__(self, world: Any) -> None:
        self._world, self._rng = world, np.random.default_rng(0)

    def next_state(self, state: Any, action: Any) -> Any:
        following, _ = self._world.sample(state, action, 0, self._rng)
        return self._world.state.wrapped(following)

    def inside(self, state: Any) -> Any:
        """States (n,d) with angles wrapped, within the bounds."""
        return self._world.state.inside(self._world.state.wrapped(state))
