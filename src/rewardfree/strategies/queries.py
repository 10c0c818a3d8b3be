"""Alg 2 on a continuous world: batches of the queries with the largest sigma, over a set of candidates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from rewardfree.dynamics.curiosity import check_variables, curious_posterior
from rewardfree.dynamics.fitting import fitted_to
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.knowledge import PILOT, Renewed, next_refit, quick, refitted_at
from rewardfree.worlds.spaces import Box, Discrete, Space

Candidates: TypeAlias = Literal["reachable", "sobol", "box"]
CANDIDATES = ("reachable", "sobol", "box")
#: How many candidates a batch is chosen from, and how long the model's rollouts are.
POINTS, ROLLOUT = 2048, 100


def query_journey(journey: Journey, candidates: Candidates) -> None:
    """Explore by queries until a limit is reached."""
    if not journey.world.generative:
        raise ValueError(
            f"{type(journey.world).__name__} cannot be put into any state, as Generative() needs: use Scout()"
        )
    box = isinstance(journey.spaces.state, Box)
    reachable = box and candidates == "reachable"
    if reachable:
        check_variables(journey.spaces)
    elif isinstance(journey.spaces.state, Box):
        journey.spaces.state.need_bounds(f'Generative(candidates="{candidates}")')
    if reachable or journey.model.automatic:  # something must be learnt before one can ask well
        while journey.kept < PILOT:
            journey.episode(
                lambda state, h: journey.random_action(), min(journey.horizon, PILOT - journey.kept)
            )
    first_states = journey.first_states
    renewed = Renewed(journey)
    # Without a pooled model every query is made at every step.
    steps = range(1) if journey.model.pooled else range(journey.horizon)
    while True:
        start = journey.kept
        size = (next_refit(start) - start) if journey.model.pooled else 1

        def batch(start: int = start, size: int = size) -> tuple[Any, Any]:
            if reachable:
                return _reachable_batch(journey, renewed, first_states, start, size)
            return _set_batch(journey, _fixed_set(journey, candidates, start), start, size)

        chosen = _Once(batch)
        for i in range(size):
            for h in steps:
                journey.query(functools.partial(chosen.pair, i), h)
            journey.round_done()


class _Once:
    """A batch that is computed when its first query is really made."""

    def __init__(self, batch: Callable[[], tuple[Any, Any]]) -> None:
        self._batch = batch
        self._found: tuple[Any, Any] | None = None

    def pair(self, i: int) -> tuple[Any, Any]:
        if self._found is None:
            self._found = self._batch()
        states, actions = self._found
        return states[i], actions[i]


def _reachable_batch(
    journey: Journey, renewed: Renewed, first_states: Any, start: int, size: int
) -> tuple[Any, Any]:
    """Of what the model reaches from first states, the greatest sigma."""
    curiosity = renewed.curiosity(start)
    rng = journey.rng("reach", start)
    starts = np.repeat(first_states, 2, axis=0)
    state, action = curiosity.reachable(starts, min(journey.horizon, ROLLOUT), POINTS, rng)
    points = curiosity.dynamics.fitted.scaling(journey.spaces.features(state, action))
    posterior = curiosity.posterior
    asked = refitted_at(start)
    if asked < start:  # what was asked since then, where every round is a batch of its own
        posterior = curious_posterior(curiosity.dynamics.fitted, journey.model.automatic)
        states, actions, _, _ = journey.transitions(start)
        posterior.extend(curiosity.dynamics.fitted.scaling(journey.spaces.features(states, actions)))
    chosen, sigma = posterior.greedy(points, size)
    journey.know_sigma(lambda: float(sigma[0]))
    return state[chosen], action[chosen]


def _set_batch(journey: Journey, candidates: tuple[Any, Any], start: int, size: int) -> tuple[Any, Any]:
    """Of a set of states and actions, the greatest sigma."""
    state, action, following, _ = journey.transitions(start)
    if not journey.model.automatic:
        fitted = fitted_to(journey.spaces, journey.model, None, None, None)
    else:
        fitted = fitted_to(journey.spaces, quick(journey.model), state, action, following)
    posterior = curious_posterior(fitted, journey.model.automatic)
    if len(state):
        # Without a pooled model all steps have the same points: those of the first one stand for all.
        own = (
            slice(None)
            if journey.model.pooled
            else np.array([row[1] for row in journey.log.rows if row[6]][:start]) == 0
        )
        posterior.extend(fitted.scaling(journey.spaces.features(state[own], action[own])))
    states, actions = candidates
    points = fitted.scaling(journey.spaces.features(states, actions))
    chosen, sigma = posterior.greedy(points, size)
    journey.know_sigma(lambda: float(sigma[0]))
    return states[chosen], actions[chosen]


def _fixed_set(journey: Journey, candidates: Candidates, start: int) -> tuple[Any, Any]:
    """All pairs of labels; of boxes, a scrambled Sobol set, or points anywhere drawn anew for every batch."""
    spaces = journey.spaces
    if isinstance(spaces.state, Discrete):
        actions = spaces.action.candidates(9)
        return np.repeat(np.arange(spaces.state.n), len(actions)), np.tile(
            actions, (spaces.state.n,) + (1,) * (actions.ndim - 1)
        )
    size = sum(space.size for space in (spaces.state, spaces.action))
    if candidates == "sobol":
        from scipy.stats import qmc  # which takes longer to import than all the rest

        unit = qmc.Sobol(size, scramble=True, rng=journey.rng("sobol")).random(POINTS)
    else:
        unit = journey.rng("box", start).random((POINTS, size))
    split = spaces.state.size
    return _spread(spaces.state, unit[:, :split]), _spread(spaces.action, unit[:, split:])


def _spread(space: Space, unit: Any) -> Any:
    """Points of the unit cube over a space."""
    if isinstance(space, Discrete):
        return np.minimum((unit[:, 0] * space.n).astype(np.int64), space.n - 1)
    return np.array(space.low) + unit * (np.array(space.high) - np.array(space.low))
