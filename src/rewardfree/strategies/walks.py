"""The paper's online strategies on a continuous world, by regressions of V at the next states seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.arrays import clip
from rewardfree.dynamics.observed import Recursion
from rewardfree.strategies.error_bounds import largest_errors
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.knowledge import Tracked


def random_walk(journey: Journey) -> None:
    """Uniformly random actions."""
    tracked = Tracked(journey)
    while True:
        journey.know_sigma(tracked.largest_sigma)
        journey.episode(lambda state, h: journey.random_action())
        journey.round_done()


def greedy_walk(journey: Journey, empty: str) -> None:
    """a = argmax sigma_h(s,a), with all that is known by then."""
    tracked = Tracked(journey)

    def choose(state: Any, h: int) -> Any:
        if not tracked.ready(journey.kept):
            return journey.random_action()
        observed = tracked.observed()
        if empty == "zero" and observed.count(h) == 0:
            return observed.actions[journey.largest(np.zeros(len(observed.actions)))]
        states, actions = observed.spaces.every_pair(state[None], observed.actions)
        sigma = observed.designs[observed.step(h)].std(observed.points(states, actions))
        return observed.actions[journey.largest(sigma)]

    while True:
        journey.know_sigma(tracked.largest_sigma)
        journey.episode(choose)
        journey.round_done()


def target_walk(journey: Journey, beta: float, fresh: bool, empty: str) -> None:
    """Alg 3: an episode for every step h0, of which the last transition alone is kept.

    An episode that ends before step h0 leaves its last transition to its own step.
    """
    tracked, H = Tracked(journey), journey.horizon
    while True:
        journey.know_sigma(tracked.largest_sigma)
        known = _Lazy(tracked, H, lambda sigma: beta * sigma, empty)
        for target in range(H):
            if fresh:
                known = _Lazy(tracked, H, lambda sigma: beta * sigma, empty)
            journey.episode(_chooser(journey, known, target), target + 1, keep="last")
        journey.round_done()


def optimistic_walk(journey: Journey, beta: float, empty: str) -> None:
    """Qiu et al.: greedy in Q_h = clip(mean_h[V_{h+1}] + u + u/H, 0, H), u = min(beta sigma_h, H)."""
    H = journey.horizon

    def optimism(sigma: Any) -> Any:
        return clip(beta * sigma, 0.0, float(H)) * (1.0 + 1.0 / H)

    planned_walk(journey, optimism, empty)


def planned_walk(
    journey: Journey,
    optimism: Callable[[Any], Any],
    empty: str,
    growth: float = 1.0,
    most: Callable[[int], float] | None = None,
) -> None:
    """Episodes that are greedy in Q_h = clip(growth mean_h[V_{h+1}] + optimism(sigma_h), 0, most(to go)).

    With `most` V is regressed around what it is where nothing is known; without it that is 0, and `most` H.
    """
    tracked, H = Tracked(journey), journey.horizon
    while True:
        journey.know_sigma(tracked.largest_sigma)
        known = _Lazy(tracked, H, optimism, empty, growth, most)
        journey.episode(_chooser(journey, known, H - 1))
        journey.round_done()


class _Lazy:
    """Recursions with what was known when this was made, one for each target.

    A pooled model is the same at every step, so that of the last target serves all: it is asked later.
    """

    def __init__(
        self,
        tracked: Tracked,
        horizon: int,
        bonus: Callable[[Any], Any],
        empty: str,
        growth: float = 1.0,
        most: Callable[[int], float] | None = None,
    ) -> None:
        self._tracked, self._horizon, self._bonus, self._empty = tracked, horizon, bonus, empty
        self._growth, self._most = growth, most or (lambda to_go: float(horizon))
        self._bounds_errors = most is not None
        self._recursions: dict[int, Recursion] = {}
        self._known = tracked.kept  # now: what comes later is not known here
        self._observed: Any = None

    def ready(self) -> bool:
        return self._tracked.ready(self._known)

    def q(self, target: int, h: int, state: Any) -> tuple[Any, Any]:
        """Q_h of every action at one state, (a,), and the actions."""
        if self._observed is None:
            self._observed = self._tracked.observed(self._known)
        observed, H = self._observed, self._horizon
        pooled = len(observed.designs) == 1
        last, step = (H - 1, H - 1 - (target - h)) if pooled else (target, h)
        if last not in self._recursions:
            self._recursions[last] = Recursion(
                observed,
                last,
                self._bonus,
                lambda to_go: (0.0, self._most(to_go)),
                discount=self._growth,
                empty=self._empty,
                unknown=self._unknown(observed) if self._bounds_errors else None,
            )
        return self._recursions[last].q(step, state[None])[:, 0], observed.actions

    def _unknown(self, observed: Any) -> Callable[[int], float]:
        """By the steps to go: what the targets of that step's regression are where nothing is known."""
        prior = math.sqrt(max(design.prior for design in observed.designs))
        largest = largest_errors(self._bonus, prior, self._growth, self._most, self._horizon)
        return lambda to_go: self._growth * largest[to_go - 1]


def _chooser(journey: Journey, known: _Lazy, target: int) -> Callable[[Any, int], Any]:
    def choose(state: Any, h: int) -> Any:
        if not known.ready():
            return journey.random_action()
        q, actions = known.q(target, h, state)
        return actions[journey.largest(q)]

    return choose
