"""Exploration that uses every step: go where the model says there is most to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Array
from rewardfree.dynamics.curiosity import EPSILONS, check_variables
from rewardfree.objectives import Objective, objective_named
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.episodic import WholeEpisodes
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.knowledge import PILOT, Renewed, refitted_at
from rewardfree.tables import tabled
from rewardfree.ties import Ties


@tabled
@dataclass(frozen=True)
class Scout(WholeEpisodes):
    """Greedy in E_h = gain(sigma_h) + E[max_a E_{h+1}] through the learnt model; every step is kept.

    `objective` is the gain: "sigma", "variance", "information", or by default the best known: the variance on
    finite worlds, sigma on real states. One policy for a whole episode, ties broken at random. On real states
    (at most four variables, a pooled model) E = max_a [gain + discount E(s')], and some episodes act at
    random now and then: without it all of them may get stuck at the same place.
    """

    objective: Objective | None = None

    @property
    def ties(self) -> Ties:
        return "random"

    def __post_init__(self) -> None:
        if self.objective is not None:
            objective_named(self.objective)

    def _prepare(self, arena: Arena) -> dict[int, Array]:
        return arena.curiosity(objective_named(self.objective or "variance"))

    def _action(self, arena: Arena, h: int, state: Array, q: dict[int, Array]) -> Array:
        return arena.best(h, arena.at_states(q[h], state))

    def travel(self, journey: Journey) -> None:
        if not journey.model.pooled:
            raise ValueError("Scout plans with one model for all steps: use Model(..., pooled=True)")
        check_variables(journey.spaces)
        renewed = Renewed(journey, objective_named(self.objective or "sigma"))

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
