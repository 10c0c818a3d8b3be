"""UCBVI with the Bernstein bonus (Azar et al. 2017), for the reward of being at one state at one step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rewardfree.arrays import Array
from rewardfree.estimates import FiniteEstimate


def bernstein_bonus(
    visits: Array, variance: Array, later: Array, log_term: float, most: float = 1.0
) -> Array:
    """sqrt(8 L Var/n) + 14 m L/(3n) + sqrt(8 D/n): L = `log_term`, Var = Var_{s' ~ P^} V(s'), V in [0,m].

    D = `later` is the mean under P^ of `later_spread`. For n of at least 1.
    """
    n = np.maximum(visits, 1.0)
    return (
        np.sqrt(8.0 * log_term * np.maximum(variance, 0.0) / n)
        + 14.0 * most * log_term / (3.0 * n)
        + np.sqrt(8.0 * later / n)
    )


def later_spread(visits: Array, log_term: float, sizes: tuple[int, int, int], most: float = 1.0) -> Array:
    """min(100^2 m^2 H S^2 A L^2/N(s'), m^2): how far V may be from V* at s', visited N(s') times at its step.

    Azar et al. write H for m, the most that an episode pays; `sizes` are S, A and H.
    """
    S, A, H = sizes
    return most**2 * np.minimum(1e4 * H * S**2 * A * log_term**2 / np.maximum(visits, 1.0), 1.0)


@dataclass
class ReachingLearner:
    """b learners that want to be at state `goal` at step `last`: reward 1{s_last = goal}, nothing after it.

    Q_h = min(Q_h before, 1, P^ V_{h+1} + bonus_scale * bonus) for h < last, and 1 without a visit.
    """

    estimate: FiniteEstimate
    last: int
    goal: int
    log_term: float
    bonus_scale: float
    _q: list[Array] = field(init=False)  # (b,s,a) for each step before the last

    def __post_init__(self) -> None:
        self._q = [np.ones((self.estimate.runs, *self.estimate.grid.shape)) for _ in range(self.last)]

    def plan(self) -> list[Array]:
        """Q (b,s,a) of the steps before the last with all that was learnt; from there on nothing matters."""
        S, A = self.estimate.grid.shape
        value = np.zeros((self.estimate.runs, S))
        value[:, self.goal] = 1.0
        later = np.zeros((self.estimate.runs, S))  # V is known at the last step
        for h in reversed(range(self.last)):
            q, visits = self._upper(h, value, later), self.estimate.visits(h)
            self._q[h] = np.minimum(self._q[h], np.where(visits > 0, q, 1.0).reshape(-1, S, A))
            value = self._q[h].max(axis=2)
            state_visits = visits.reshape(-1, S, A).sum(axis=2)
            later = later_spread(state_visits, self.log_term, (S, A, self.estimate.horizon))
        return self._q

    def learn(self, points: Array, next_states: Array) -> None:
        """An episode of every learner: points and next states (b,h)."""
        self.estimate.add_all(points, next_states)

    def _upper(self, h: int, value: Array, later: Array) -> Array:
        """P^ V + bonus, (b,z), for V and the spread (b,s) of the next step."""
        # One product for V, V^2 and D.
        mean, square, spread = np.moveaxis(
            self.estimate.mean(h, np.stack([value, value**2, later], axis=2)), 1, 0
        )
        visits = self.estimate.visits(h)
        bonus = bernstein_bonus(visits, square - mean**2, spread, self.log_term)
        return mean + self.bonus_scale * bonus
