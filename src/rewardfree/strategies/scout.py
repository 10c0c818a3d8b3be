"""Exploration that uses every step: go where the model says there is most to learn."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rewardfree.arrays import Array
from rewardfree.dynamics.exploration import EPSILONS, check_variables
from rewardfree.dynamics.labels import are_labels, counts_visits
from rewardfree.estimates.backups import Objective, objective_named
from rewardfree.registry import registered
from rewardfree.strategies.counted import CountedExploration
from rewardfree.strategies.current import PILOT, CurrentExploration, refitted_at
from rewardfree.strategies.episodic import EpisodicStrategy
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.world_run import WorldRun


@registered("strategy", "scout")
@dataclass(frozen=True)
class Scout(EpisodicStrategy):
    """Greedy in E_h = gain(sigma_h) + E[max_a E_{h+1}] through the learnt model; every step is kept.

    `objective` is the gain: "sigma", "variance", "information", or by default the best known: the variance on
    finite worlds, sigma on real states. One policy for a whole episode, ties broken at random. On real states
    (at most four variables, a pooled model) E = max_a [gain + discount E(s')], and some episodes act at
    random now and then: without it all of them may get stuck at the same place. Among labels sigma is
    1/sqrt(1 + visits), and E goes by the shares of what was seen.
    """

    objective: Objective | None = None

    ties = "random"
    stops_at_ends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective is not None:
            objective_named(self.objective)

    def prepare(self, batch: RunBatch) -> dict[int, Array]:
        return batch.exploration(objective_named(self.objective or "variance"))

    def action(self, batch: RunBatch, h: int, state: Array, q: dict[int, Array]) -> Array:
        return batch.best(h, batch.at_states(q[h], state))

    def play_world(self, run: WorldRun) -> None:
        if not run.model.pooled:
            raise ValueError("Scout plans with one model for all steps: use Model(..., pooled=True)")
        if are_labels(run.spaces):
            if not counts_visits(run.model):
                raise ValueError("among labels Scout counts visits, and needs no kernel: leave the model out")
            counted = CountedExploration(run, objective_named(self.objective or "variance"))
            run.play(lambda state, h: run.largest(counted.choices(state)), counted.largest_sigma)
            return
        check_variables(run.spaces)
        current = CurrentExploration(run, objective_named(self.objective or "sigma"))

        def choose(state: Any, h: int) -> Any:
            if run.kept < PILOT or not run.can_fit(refitted_at(run.kept)):
                return run.random_action()
            if run.kept == refitted_at(run.kept):
                run.know_sigma(current.largest_sigma)
            value = current.up_to_date()
            rng = run.rng("action", run.steps)
            if rng.random() < run.rng("epsilon", run.episodes).choice(EPSILONS):
                return value.actions[rng.integers(len(value.actions))]
            q, _ = value.choices(state[None])
            return value.actions[int(np.argmax(q[:, 0]))]

        run.play(choose)
