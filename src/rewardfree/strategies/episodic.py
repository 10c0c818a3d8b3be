"""Strategies whose rounds are one whole episode, every step of which is kept."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

from rewardfree.arrays import Array
from rewardfree.estimates import Backup
from rewardfree.strategies.current import CurrentEstimate, EpisodePlan
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.strategy import Strategy
from rewardfree.strategies.world_run import WorldRun


class EpisodicStrategy(Strategy):
    """One episode a round. A subclass says which action to take."""

    def play_batch(self, batch: RunBatch) -> None:
        q = self.prepare(batch)
        points, next_states = batch.episode(lambda h, state: self.action(batch, h, state, q))
        if self.uses_posterior:
            batch.estimate.add_all(points, next_states)

    def prepare(self, batch: RunBatch) -> dict[int, Array]:
        """Q_h (b,1,z), where an episode is planned before it begins."""
        return {}

    @abstractmethod
    def action(self, batch: RunBatch, h: int, state: Array, q: dict[int, Array]) -> Array:
        """The actions (b,1) at states (b,1)."""


class ValueStrategy(EpisodicStrategy):
    """Greedy in the Q of one Bellman line, planned before every episode from all that is known."""

    @abstractmethod
    def backup(self, horizon: int, prior_sigma: Callable[[], float]) -> Backup:
        """The line; `prior_sigma()` is the largest sigma before there are samples."""

    def prepare(self, batch: RunBatch) -> dict[int, Array]:
        return batch.backwards(batch.horizon - 1, self._backup_of(batch))

    def action(self, batch: RunBatch, h: int, state: Array, q: dict[int, Array]) -> Array:
        limits = self._backup_of(batch).limits(batch.horizon - h)
        return batch.act(h, batch.at_states(q[h], state), limits)

    def play_world(self, run: WorldRun) -> None:
        current = CurrentEstimate(run)
        while True:
            run.know_sigma(current.largest_sigma)
            plan = EpisodePlan(current, run, self.backup)
            run.episode(partial(plan.action, last=run.horizon - 1))
            run.round_done()

    def _backup_of(self, batch: RunBatch) -> Backup:
        return self.backup(batch.horizon, lambda: batch.estimate.prior_sigma)
