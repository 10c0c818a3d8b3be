"""Greedy maximal variance: a heuristic of the paper's experiments that does not look ahead."""

from dataclasses import dataclass
from typing import Any

from rewardfree.arrays import Array
from rewardfree.estimates.backups import Empty, greedy_q, zero_without_data
from rewardfree.registry import registered
from rewardfree.strategies.current import CurrentEstimate
from rewardfree.strategies.episodic import EpisodicStrategy
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.world_run import WorldRun
from rewardfree.ties import Ties


@registered("strategy", "greedy")
@dataclass(frozen=True)
class GreedyMaxVariance(EpisodicStrategy):
    """a_h = argmax_a sigma_h(s_h, a) along the real trajectory."""

    ties: Ties = "lowest"
    empty: Empty = "zero"

    def action(self, batch: RunBatch, h: int, state: Array, q: dict[int, Array]) -> Array:
        sigma = batch.sigma(h, batch.rows(state), self.empty)
        return batch.best(h, greedy_q(sigma))

    def play_world(self, run: WorldRun) -> None:
        current = CurrentEstimate(run)

        def choose(state: Any, h: int) -> Any:
            if not current.ready(run.kept):
                return run.random_action()
            estimate = current.estimate()
            pairs = estimate.spaces.every_pair(state[None], estimate.actions)
            sigma = estimate.std(h)(estimate.points(*pairs))
            sigma = zero_without_data(sigma, self.empty, estimate.count(h))
            return estimate.actions[run.largest(greedy_q(sigma))]

        run.play(choose, current.largest_sigma)
