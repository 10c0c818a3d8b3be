"""What is run of the worlds with walls: one exploration, and a plan for each reward from ever more of it."""

import time
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

import rewardfree as rf
from rewardfree.experiments.store import SECONDS
from rewardfree.experiments.unit import InstanceCache, Unit
from rewardfree.studies.doubling.worlds import WORLDS
from rewardfree.studies.exploring import RandomPolicy, explored_whole
from rewardfree.threads import one_blas_thread

#: How many transitions plans are made from: the first of one exploration.
SIZES = (250, 500, 1000, 2000)
#: A variable is at a wall if it is this close to one of its bounds, as a share of its range.
AT_WALL = 1e-6


@dataclass(frozen=True)
class DoublingUnit(Unit):
    """One seed of one world."""

    world: str
    seed: int
    sizes: tuple[int, ...] = SIZES
    episodes: int = 20
    version: ClassVar[int] = 1

    @property
    def names(self) -> tuple[str, str, str]:
        return self.world, "AutoKernel", f"seed {self.seed}"

    def run(self, cache: InstanceCache) -> list[dict[str, Any]]:
        """A record for each size and reward; a reward is played from the same first states at every size."""
        world = WORLDS[self.world]()
        records: list[dict[str, Any]] = []
        with one_blas_thread():
            started = time.process_time()  # of one thread: what an idle core would take
            data = explored_whole(world, transitions=max(self.sizes), seed=self.seed)
            explored = time.process_time() - started
            start_seed = 10_000 + self.seed
            for n in self.sizes:
                first = data.first(transitions=n)
                for name, reward in world.rewards.items():
                    started = time.process_time()
                    plan = rf.plan(first, reward)
                    planned = time.process_time() - started
                    at_random = RandomPolicy(world.action, self.seed)
                    policies: dict[str, Any] = {"returns": plan, "random": at_random}
                    played = {
                        key: rf.rollouts(
                            world, policy, reward, self.episodes, seed=start_seed
                        ).returns.tolist()
                        for key, policy in policies.items()
                    }
                    records.append(
                        {
                            **asdict(self),
                            "transitions": n,
                            "reward": name,
                            **played,
                            "expected": plan.expected,
                            "at_wall": share_at_walls(first),
                            SECONDS: {"explore": explored, "plan": planned},
                        }
                    )
        return records


def share_at_walls(data: Any) -> float:
    """The share of steps that led to a bound of a variable, or stayed there."""
    space = data.spaces.state
    low, high = np.array(space.low), np.array(space.high)
    close = AT_WALL * (high - low)
    at_wall = (data.next_state <= low + close) | (data.next_state >= high - close)
    return float((at_wall & ~space.angular).any(axis=1).mean())
