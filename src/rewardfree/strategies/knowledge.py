"""What a journey has learnt so far, brought up to date when it is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rewardfree.autokernel import AutoKernel
from rewardfree.dynamics import Curiosity
from rewardfree.dynamics.fitting import fitted_to
from rewardfree.dynamics.observed import Observed
from rewardfree.model import Model
from rewardfree.objectives import OBJECTIVES
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.round import designer, open_ends

#: Steps at random before anything is fitted.
PILOT = 50
#: While exploring, a kernel is fitted to so many points: it is fitted often, and again at the end.
MOST_POINTS = 300
ACTIONS = 9


def refitted_at(n: int) -> int:
    """The last number of transitions, up to n, at which kernels and plans are renewed."""
    return n - n % (50 if n < 200 else 100)


def next_refit(n: int) -> int:
    """The next one after n."""
    return refitted_at(n) + (50 if n < 200 else 100)


def quick(model: Model) -> Model:
    """The model with a fit on fewer points."""
    if not isinstance(model.kernel, AutoKernel):
        return model
    return replace(model, kernel=replace(model.kernel, most=min(MOST_POINTS, model.kernel.most)))


class Tracked:
    """The regressions of a journey with all that it kept; a fitted kernel is renewed now and then."""

    def __init__(self, journey: Journey) -> None:
        self._journey, self._base, self._added = journey, -1, 0
        self._observed: Observed | None = None

    @property
    def kept(self) -> int:
        """How many steps the journey has kept."""
        return self._journey.kept

    def ready(self, kept: int) -> bool:
        """Whether so many steps are enough to fit a kernel to, where one has to be."""
        return not self._journey.model.automatic or kept >= PILOT

    def observed(self, upto: int | None = None) -> Observed:
        """With the first `upto` kept steps, by default all; a later question must not ask for fewer.

        What came after the last fit is added one by one, whether or not the journey was resumed.
        """
        journey = self._journey
        rows = [row for row in journey.log.rows if row[6]][:upto]
        base = refitted_at(len(rows)) if journey.model.automatic else 0
        if self._observed is None or base != self._base:
            state, action, following, ended = journey.transitions(base)
            about = (journey.spaces, quick(journey.model), state, action, following)
            fitted = fitted_to(*about, open_ends(journey.strategy))
            actions = journey.spaces.action.candidates(ACTIONS)
            self._observed = Observed(
                journey.spaces, fitted, journey.horizon, actions, designer(journey.strategy)
            )
            self._base = self._added = base
            for h in range(len(self._observed.designs)):
                own = [
                    i for i, row in enumerate(rows[:base]) if len(self._observed.designs) == 1 or row[1] == h
                ]
                if own:
                    self._observed.load(h, state[own], action[own], following[own], ended[own])
        for _, h, state, action, following, ended, _ in rows[self._added :]:
            self._observed.add(h, state, action, following, ended)
        self._added = len(rows)
        return self._observed

    def largest_sigma(self) -> float:
        """Over every action at the next states seen."""
        if not self.ready(self.kept):
            return math.inf
        observed = self.observed()
        largest = -math.inf
        for h in range(len(observed.designs)):
            if observed.count(h) == 0:
                return math.inf  # nothing is known of this step
            _, sigma, ended = observed.at_following(h, h)
            largest = max(largest, float(sigma[:, ~ended].max(initial=0.0)))
        return largest


class Renewed:
    """Curiosity of a journey, renewed now and then."""

    def __init__(self, journey: Journey, worth: Callable[[Any, float], Any] = OBJECTIVES["sigma"]) -> None:
        self._journey, self._base, self._worth = journey, -1, worth
        self._found: Curiosity | None = None

    def curiosity(self, kept: int | None = None) -> Curiosity:
        """With the transitions up to the last renewal before so many were kept, by default all of them."""
        journey = self._journey
        base = refitted_at(journey.kept if kept is None else kept)
        if self._found is None or base != self._base:
            state, action, following, ended = journey.transitions(base)
            about = (journey.spaces, quick(journey.model), state, action, following, ended)
            self._found, self._base = Curiosity(*about, worth=self._worth), base
        return self._found

    def largest_sigma(self) -> float:
        """Over every action at the next states seen."""
        found = self.curiosity()
        _, _, following, ended = self._journey.transitions(self._base)
        states, actions = found.spaces.every_pair(following[~ended], found.actions)
        return float(found.sigma(states, actions).max(initial=0.0))
