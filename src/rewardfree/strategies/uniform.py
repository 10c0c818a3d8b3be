"""Uniformly random actions."""

from dataclasses import dataclass
from typing import ClassVar

from rewardfree.arrays import Array
from rewardfree.registry import registered
from rewardfree.strategies.current import CurrentEstimate
from rewardfree.strategies.episodic import EpisodicStrategy
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.world_run import WorldRun
from rewardfree.ties import Ties


@registered("strategy", "uniform")
@dataclass(frozen=True)
class Uniform(EpisodicStrategy):
    """Uniformly random actions: the reference that every exploration has to beat."""

    ties: Ties = "lowest"
    uses_posterior: ClassVar[bool] = False
    stops_at_ends: ClassVar[bool] = True

    def action(self, batch: RunBatch, h: int, state: Array, q: dict[int, Array]) -> Array:
        return batch.random_actions(h)

    def play_world(self, run: WorldRun) -> None:
        run.play(lambda state, h: run.random_action(), CurrentEstimate(run).largest_sigma)
