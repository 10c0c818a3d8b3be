"""The paper's planning on real states: regress V at the next states seen, from the last step to the first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.data import Experience
from rewardfree.dynamics import GivenEndings
from rewardfree.dynamics.fitting import fitted_to
from rewardfree.dynamics.observed import Observed, Recursion
from rewardfree.model import Model
from rewardfree.planning.acting import Acting
from rewardfree.planning.finite import Planner
from rewardfree.rewards import RewardFunction, ends_of
from rewardfree.strategies.round import designer, open_ends
from rewardfree.threads import one_blas_thread
from rewardfree.ties import argmax_tied
from rewardfree.worlds.spaces import Spaces
from rewardfree.worlds.world import Observation

#: Candidates that a Box of actions gets.
ACTIONS = 11


@dataclass(frozen=True, eq=False, repr=False)
class FittedPlan(Acting):
    """Alg 1 on what was observed: greedy in Q_h = clip(r_h + mean_h[V_{h+1}] +- bonus). h counts from 0."""

    spaces: Spaces
    observation: Observation | None
    horizon: int
    planner: Planner
    provenance: Mapping[str, Any]
    reward: RewardFunction
    recursion: Recursion

    def __repr__(self) -> str:
        return f"FittedPlan({self.planner!r}, horizon {self.horizon})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as npz, without pickle; its reward must be a formula, which a file can hold."""
        from rewardfree.planning.stored import write_fitted_plan

        write_fitted_plan(path, self)

    def choose(self, states: Any, h: int) -> Any:
        """The actions at states (n,d)."""
        return self.recursion.observed.actions[argmax_tied(self.recursion.q(h, states).T)]

    def value(self, state: Any, h: int = 0) -> Any:
        """The planner's V_h at a state (d,) or states (n,d), in the reward's own units."""
        states, single = self._states(state, None)
        values = self.recursion.value(self._step(h), states)
        return float(values[0]) if single else values


def fitted_plans(
    data: Experience,
    rewards: Sequence[RewardFunction],
    planner: Planner,
    model: Model | None,
    horizon: int,
    discount: float,
    terminated: Any,
) -> list[FittedPlan]:
    """Alg 1 with that planner's bonus, for each reward, from one factorisation: that of the model, or
    without one that which the strategy explored with.

    Values are clipped to [0, H] if all rewards met lie in [0, 1], as in the paper, else, or with
    `clip="range"`, to what the steps to go can give. A reward of the next state is regressed with V.
    """
    plans = []
    with one_blas_thread():
        observed = _observed(data, model, horizon, terminated)
        for reward in rewards:
            recursion = recursion_for(observed, reward, planner, horizon, discount)
            recursion.learnt(0)  # from the last step to the first, now and not when it acts
            about = (data.spaces, data.observation, horizon, planner, data.provenance)
            plans.append(FittedPlan(*about, reward, recursion))
    return plans


def recursion_for(
    observed: Observed, reward: RewardFunction, planner: Planner, horizon: int, discount: float
) -> Recursion:
    """The recursion of a planner and a reward on what was observed."""
    low, high = _range(observed, reward, horizon)
    unit = planner.clip == "paper" and low >= 0.0 and high <= 1.0
    most = horizon * max(1.0, abs(low), abs(high))

    def bounds(to_go: int) -> tuple[float, float]:
        return (0.0, float(horizon)) if unit else (min(to_go * low, 0.0), max(to_go * high, 0.0))

    def gained(h: int) -> Any:
        return reward(h, *observed.seen(h)[:3])

    def known(h: int, state: Any, action: Any) -> Any:
        return reward(h, state, action, state)  # which does not look at the next state

    return Recursion(
        observed,
        horizon - 1,
        lambda sigma: np.clip(planner.weight * sigma, -most, most),
        bounds,
        reward=None if reward.uses_next else known,
        gained=gained if reward.uses_next else None,
        discount=discount,
    )


def _observed(data: Experience, model: Model | None, horizon: int, terminated: Any) -> Observed:
    own = data.model if model is None else model
    fitted = data.fitted if model is None else None
    if fitted is None:
        rows = np.flatnonzero(data.kept)
        seen = data.state[rows], data.action[rows], data.next_state[rows]
        fitted = fitted_to(data.spaces, own, *seen, model is None and open_ends(data.strategy))
    maker = designer(data.strategy) if model is None else None
    observed = Observed(data.spaces, fitted, horizon, data.spaces.action.candidates(ACTIONS), maker)
    ended = data.terminated
    if terminated is not None:
        ended = GivenEndings(data.spaces.state, *ends_of(terminated, data.spaces))(data.next_state)
    for h, rows in enumerate(data.designs(own.pooled)[:horizon]):
        if len(rows):
            observed.load(h, data.state[rows], data.action[rows], data.next_state[rows], ended[rows])
    return observed


def _range(observed: Observed, reward: RewardFunction, horizon: int) -> tuple[float, float]:
    """The smallest and the largest reward of all transitions and of all actions where they lead."""
    lows, highs = [], []
    for h in range(horizon if reward.uses_step or len(observed.designs) > 1 else 1):
        if observed.count(h) == 0:
            continue
        state, action, following, _ = observed.seen(h)
        found = [reward(h, state, action, following)]
        if not reward.uses_next:
            pairs = observed.spaces.every_pair(following, observed.actions)
            found.append(reward(h, *pairs, pairs[0]))
        lows.append(min(each.min() for each in found))
        highs.append(max(each.max() for each in found))
    return (float(min(lows)), float(max(highs))) if lows else (0.0, 1.0)
