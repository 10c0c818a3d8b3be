"""Greedy maximal variance: a heuristic of the paper's experiments that does not look ahead."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Array
from rewardfree.estimates.backups import Empty, greedy_q
from rewardfree.registry import registered
from rewardfree.strategies.current import CurrentEstimate
from rewardfree.strategies.episodic import EpisodicStrategy
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.world_run import WorldRun
from rewardfree.ties import Ties, argmax_tied


@registered("strategy", "greedy")
@dataclass(frozen=True)
class GreedyMaxVariance(EpisodicStrategy):
    """a_h = argmax_a sigma_h(s_h, a) along the real trajectory."""

    ties: Ties = "lowest"
    empty: Empty = "zero"

    def action(self, batch: RunBatch, h: int, state: Array, q: dict[int, Array]) -> Array:
        sigma = batch.sigma(h, batch.rows(state), self.empty)
        return argmax_tied(greedy_q(sigma), batch.tie_breaks(h))

    def play_world(self, run: WorldRun) -> None:
        current = CurrentEstimate(run)

        def choose(state: Any, h: int) -> Any:
            if not current.ready(run.kept):
                return run.random_action()
            estimate = current.estimate()
            if self.empty == "zero" and estimate.count(h) == 0:
                sigma = np.zeros(len(estimate.actions))
            else:
                pairs = estimate.spaces.every_pair(state[None], estimate.actions)
                sigma = estimate.std(h)(estimate.points(*pairs))
            return estimate.actions[run.largest(greedy_q(sigma))]

        run.play(choose, current.largest_sigma)
