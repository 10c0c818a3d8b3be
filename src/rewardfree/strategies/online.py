"""Exploration without a generative model (Alg 3): reach for the uncertainty of each step in turn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rewardfree.arrays import Array
from rewardfree.estimates import Backup, Empty, alg3_q
from rewardfree.registry import registered
from rewardfree.strategies.current import CurrentEstimate, EpisodePlan
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.strategy import Round, Strategy
from rewardfree.strategies.world_run import WorldRun
from rewardfree.ties import Ties


@registered("strategy", "online")
@dataclass(frozen=True)
class Online(Strategy):
    """Alg 3: an episode for every step h0, of which the sample of step h0 alone is kept, so it is unbiased.

    Episode h0 is greedy in Q_h = clip(mean_h[V_{h+1}] + beta sigma_h, 0, H), V_{h0+1} = 0. `fresh=False`
    plans all episodes of round n with the data of the rounds before, as the paper writes; `fresh=True` lets
    steps h < h0 use this round's samples, as the authors' scripts do: the episodes wait for each other.
    `empty` is what Q is at a step without data: 0 ("zero"), or what the prior gives ("prior"). On real
    states an episode that ends before step h0 leaves its last transition to its own step, which is biased.
    """

    beta: float
    fresh: bool = False
    ties: Ties = "lowest"
    empty: Empty = "zero"

    def round(self, horizon: int) -> Round:
        return Round.growing_episodes(horizon)

    def backup(self, horizon: int, prior_sigma: Callable[[], float] | None = None) -> Backup:
        """Alg 3, line 6."""
        H = float(horizon)
        return Backup(
            lambda reward, mean, sigma, to_go: alg3_q(mean, sigma, self.beta),
            limits=lambda to_go: (0.0, H),
            empty=self.empty,
        )

    def play_batch(self, batch: RunBatch) -> None:
        if self.fresh:
            for target in range(batch.horizon):
                self._play_alone(batch, target)
        else:
            self._play_together(batch)

    def play_world(self, run: WorldRun) -> None:
        current = CurrentEstimate(run)
        while True:
            run.know_sigma(current.largest_sigma)
            plan = EpisodePlan(current, run, self.backup)
            for target in range(run.horizon):
                if self.fresh:
                    plan = EpisodePlan(current, run, self.backup)
                run.episode(partial(plan.action, last=target), target + 1, keep="last")
            run.round_done()

    def _play_alone(self, batch: RunBatch, target: int) -> None:
        """The episode of one target, with all data there are by now."""
        backup = self.backup(batch.horizon)
        q, limits = batch.backwards(target, backup), backup.limits(target + 1)
        state = batch.starts()[:, target : target + 1]
        for h in range(target + 1):
            z = state * batch.actions + batch.act(h, batch.at_states(q[h], state), limits, target)
            state = batch.move(h, z, target)
        batch.estimate.add(target, z[:, 0], state[:, 0])

    def _play_together(self, batch: RunBatch) -> None:
        """All episodes of the round: at step h, the targets beyond h share one pass over the posterior."""
        xp, steps, backup = batch.estimate.xp, range(batch.horizon), self.backup(batch.horizon)
        limits = backup.limits(batch.horizon)  # the same at every step
        at_target: dict[int, Array] = {}  # Q of target h at step h, with no value behind it: (b,1,z)
        beyond: dict[int, Array] = {}  # Q of the targets beyond h, (b,c,z)
        value: Any = None
        for h in reversed(steps):
            mean, sigma = batch.mean_and_std(h, value, backup.empty)
            at_target[h] = backup.q(None, None, sigma, 1)
            if mean is not None:
                beyond[h] = backup.q(None, mean, sigma, batch.horizon - h)
            if h:
                values = [batch.value(q[h], limits) for q in (at_target, beyond) if h in q]
                value = xp.concat(values, axis=2)
        state, points, next_states = batch.starts(), [], []
        for h in steps:
            q = batch.at_states(at_target[h], state[:, :1])
            if h in beyond:
                q = xp.concat([q, batch.at_states(beyond[h], state[:, 1:])], axis=1)
            z = state * batch.actions + batch.act(h, q, limits)
            state = batch.move(h, z)
            points.append(z[:, 0])
            next_states.append(state[:, 0])
            state = state[:, 1:]
        batch.estimate.add_all(xp.stack(points, axis=1), xp.stack(next_states, axis=1))
