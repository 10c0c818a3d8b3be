"""Optimistic value iteration (Qiu et al. 2021), the baseline of the paper."""

from collections.abc import Callable
from dataclasses import dataclass

from rewardfree.estimates import Backup, Empty, qiu_q
from rewardfree.registry import registered
from rewardfree.strategies.episodic import ValueStrategy
from rewardfree.ties import Ties


class OptimisticStrategy(ValueStrategy):
    """Greedy in Q_h = clip(mean_h[V_{h+1}] + u/H + u, 0, H), u = min(beta sigma_h, H), by any posterior."""

    beta: float
    empty: Empty

    def backup(self, horizon: int, prior_sigma: Callable[[], float]) -> Backup:
        H = float(horizon)
        return Backup(
            lambda reward, mean, sigma, to_go: qiu_q(mean, sigma, self.beta, horizon),
            limits=lambda to_go: (0.0, H),
            empty=self.empty,
        )


@registered("strategy", "qiu")
@dataclass(frozen=True)
class Qiu(OptimisticStrategy):
    """Qiu et al. 2021: greedy in Q_h = clip(mean_h[V_{h+1}] + u/H + u, 0, H), u = min(beta sigma_h, H).

    Every sample of an episode is kept, so later ones depend on earlier ones and the means are biased.
    """

    beta: float
    ties: Ties = "lowest"
    empty: Empty = "zero"
