"""Exploration that uses every step: go where the model says there is most to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.dynamics.curiosity import EPSILONS, check_variables
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.knowledge import PILOT, Renewed, refitted_at
from rewardfree.tables import tabled


@tabled
@dataclass(frozen=True)
class Scout:
    """Greedy in E = max_a [sigma + discount E(s')] through the learnt dynamics; every step is kept.

    Needs real state variables (at most four) and a pooled model: the dynamics must not change with h. Some
    episodes act at random now and then: without it all of them may get stuck at the same place.
    """

    generative = False

    def travel(self, journey: Journey) -> None:
        if not journey.model.pooled:
            raise ValueError("Scout plans with one model for all steps: use Model(..., pooled=True)")
        check_variables(journey.spaces)
        renewed = Renewed(journey)

        def choose(state: Any, h: int) -> Any:
            if journey.kept < PILOT:
                return journey.random_action()
            if journey.kept == refitted_at(journey.kept):
                journey.know_sigma(renewed.largest_sigma)
            curiosity = renewed.curiosity()
            rng = journey.rng("action", len(journey.log.rows))
            if rng.random() < journey.rng("epsilon", journey.episodes).choice(EPSILONS):
                return curiosity.actions[rng.integers(len(curiosity.actions))]
            q, _ = curiosity.choices(state[None])
            return curiosity.actions[int(np.argmax(q[:, 0]))]

        while True:
            journey.episode(choose)
            journey.round_done()
