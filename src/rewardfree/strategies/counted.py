"""Scout among labels: visits are counted, and shares of what was seen say where actions lead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.data import Row
from rewardfree.dynamics.exploration import DISCOUNT, SWEEPS
from rewardfree.dynamics.labels import LabelLaw
from rewardfree.estimates.backups import scout_q, settled
from rewardfree.strategies.world_run import WorldRun
from rewardfree.worlds import Discrete

#: E is computed anew after max(REFRESH, steps / REFRESH_SHARE) new steps.
REFRESH, REFRESH_SHARE = 20, 20


class CountedExploration:
    """E = max_a [gain(s,a) + discount E(s')] over labels, sigma being 1/sqrt(1 + visits).

    Visit counts are always current, E is computed now and then. What was never tried is worth the most that
    is expected anywhere.
    """

    def __init__(self, run: WorldRun, objective: Callable[[Any, float], Any]) -> None:
        state, action = run.spaces.state, run.spaces.action
        assert isinstance(state, Discrete) and isinstance(action, Discrete)
        self._run, self._objective = run, objective
        self.shape = state.n, action.n
        self._visits = np.zeros(self.shape)
        self._outcomes: dict[tuple[int, int], Counter[int]] = {}  # labels that did not end it
        self._counted, self._computed = 0, 0
        self._value = np.zeros(state.n)

    def choices(self, state: Any) -> Any:
        """gain + discount E(s') of every action at a label, (a,)."""
        self._count()
        visits, value = self._visits[state], self._value
        mean = np.full(len(visits), value.max())
        for action in np.flatnonzero(visits):
            outcomes = self._outcomes[int(state), int(action)]
            going = sum(times * value[following] for following, times in outcomes.items())
            mean[action] = going / visits[action]
        return scout_q(self._gain(visits), mean, DISCOUNT)

    def largest_sigma(self) -> float:
        """Over every action at the labels where one was."""
        self._count()
        met = self._visits.sum(axis=1) > 0
        return float(self._sigma(self._visits[met]).max(initial=0.0)) if met.any() else np.inf

    def _sigma(self, visits: Any) -> Any:
        return 1.0 / np.sqrt(1.0 + visits)

    def _gain(self, visits: Any) -> Any:
        return self._objective(self._sigma(visits), 1.0)

    def _count(self) -> None:
        """Take in the steps that are new."""
        rows = self._run.log.rows
        while self._counted < len(rows):
            row: Row = rows[self._counted]
            self._counted += 1
            pair = int(row.state), int(row.action)
            self._visits[pair] += 1.0
            outcomes = self._outcomes.setdefault(pair, Counter())
            if not row.terminated:
                outcomes[int(row.next_state)] += 1
            if self._counted >= self._computed + max(REFRESH, self._computed // REFRESH_SHARE):
                self._computed = self._counted
                self._value = self._expected()

    def _expected(self) -> Any:
        """E of every label, from the steps so far; of one that was never met it is the largest."""
        law = LabelLaw.of(self.shape, self._run.samples(self._computed))
        gain, tried = self._gain(law.visits), law.visits > 0

        def update(value: Any) -> Any:
            mean = np.where(tried, law.going @ value, value.max())
            return scout_q(gain, mean, DISCOUNT).reshape(self.shape).max(axis=1)

        return settled(update, np.zeros(self.shape[0]), SWEEPS)
