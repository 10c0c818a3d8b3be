"""Alg 1 on real states: regress V at the next states seen, from the last step to the first."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rewardfree.arrays import Actions, Floats, States
from rewardfree.data import Experience
from rewardfree.estimates import Backup, SampledEstimate, SampledRecursion, alg1_q
from rewardfree.planning.planner import PlanRequest, WorldPlan, check_work, largest_spread
from rewardfree.progress import parts
from rewardfree.rewards import RewardFunction
from rewardfree.threads import one_blas_thread
from rewardfree.ties import argmax_tied
from rewardfree.worlds import ScaledModel, StateChange

if TYPE_CHECKING:
    from rewardfree.planning.alg1 import ValuePlanner

#: Candidates that a Box of actions gets.
PLANNED_ACTIONS = 11


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SampledPlan(WorldPlan):
    """Alg 1 on samples: greedy in Q_h = clip(r_h + mean_h[V_{h+1}] +- bonus). h counts from 0."""

    horizon: int
    reward: RewardFunction
    recursion: SampledRecursion

    @property
    def reward_text(self) -> str | None:
        return self.reward.text

    def expects(self, reward: Any, starts: States, discount: float) -> tuple[Floats, Floats] | None:
        """Its values, unless these are optimistic, and the most that returns within their limits spread."""
        planner = self.planner.by_values
        plain = planner is not None and planner.weight <= 0.0 and discount == self.discount
        if not plain or not self.reward.is_made_of(reward):
            return None
        mean = self.values_at(starts, 0)
        return mean, largest_spread(mean, *self.recursion.backup.limits(self.horizon))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as npz, without pickle; its reward must be a formula, which a file can hold."""
        from rewardfree.planning.plan_files import write_sampled_plan

        write_sampled_plan(path, self)

    def choose(self, states: States, h: int) -> Actions:
        return np.asarray(self.recursion.estimate.actions[argmax_tied(self.recursion.q(h, states).T)])

    def values_at(self, states: States, h: int) -> Floats:
        return np.asarray(self.recursion.value(h, states))


def plan_sampled(planner: ValuePlanner, request: PlanRequest) -> list[SampledPlan]:
    """Alg 1 with that planner's bonus, for each reward, from one factorisation.

    With `clip="paper"` all rewards that are met must lie in [0,1]; with `clip="range"` values are clipped to
    what the steps to go can give. A reward of the next state is regressed with V.
    """
    data = request.data
    assert isinstance(data, Experience)
    if planner.ties != "lowest":
        raise ValueError('ties="random" is for finite worlds: values of real states have no ties to speak of')
    horizon, discount = request.steps, request.counted_discount
    plans = []
    with one_blas_thread():
        estimate = _estimate(request, horizon)
        request.tell(0.0)  # a fit is no measure of what is left
        transitions = sum(map(len, estimate.posteriors))
        check_work(horizon, transitions, "transitions")
        shares = parts(request.tell, len(request.rewards))
        for reward, tell in zip(request.rewards, shares, strict=True):
            function = RewardFunction(reward, data.spaces)
            recursion = recursion_for(estimate, function, planner, horizon, discount)
            for h in reversed(range(horizon)):  # now and not when it acts
                recursion.regression(h)
                tell(1.0 - h / horizon)
            plans.append(
                SampledPlan(
                    **request.header(planner, model=estimate.scaled.model, source=request.own_source),
                    horizon=horizon,
                    transitions=transitions,
                    reward=function,
                    recursion=recursion,
                )
            )
    return plans


def recursion_for(
    estimate: SampledEstimate, reward: RewardFunction, planner: ValuePlanner, horizon: int, discount: float
) -> SampledRecursion:
    """The recursion of a planner and a reward on an estimate."""
    low, high = _range(estimate, reward, horizon)
    planner.check_rewards(low, high, may_end=True)
    limits = planner.limits(np.full(horizon, low), np.full(horizon, high), discount, may_end=True)
    later = 1.0 if reward.uses_next else discount  # which is otherwise in the targets

    def q(r: Any, mean: Any, sigma: Any, to_go: int) -> Any:
        lowest, highest = limits(horizon - to_go)
        return alg1_q(r, mean, sigma, planner.weight, highest - lowest, later)

    backup = Backup(q, lambda to_go: limits(horizon - to_go), uses_sigma=planner.weight != 0.0)
    if not reward.uses_next:
        return SampledRecursion(
            estimate,
            horizon - 1,
            backup,
            reward=lambda h, state, action: reward(h, state, action, state),  # it does not look at the last
        )

    def gained(h: int) -> Any:
        samples = estimate.samples(h)
        return reward(h, samples.state, samples.action, samples.next_state)

    return SampledRecursion(estimate, horizon - 1, backup, gained=gained, discount=discount)


def _estimate(request: PlanRequest, horizon: int) -> SampledEstimate:
    """The estimate from the kept samples, with the posteriors of the strategy, or of a named model."""
    data = request.data_with_ends
    assert isinstance(data, Experience)
    scaled, source = data.fitted if request.model is None else None, request.source
    kept = data.at(np.flatnonzero(data.kept))
    if scaled is None or StateChange.of(data.spaces, kept.state, kept.next_state).meets_walls:
        scaled = ScaledModel.fit(data.spaces, request.used_model, kept, source.open_ends, behind_walls=False)
    designs = data.designs(request.used_model.pooled)[:horizon]
    scaled = replace(scaled, model=scaled.model.for_points(max(map(len, designs))))
    estimate = SampledEstimate(
        data.spaces, scaled, horizon, data.spaces.action.candidates(PLANNED_ACTIONS), source
    )
    for h, rows in enumerate(designs):
        if len(rows):
            estimate.load(h, data.at(rows))
    return estimate


def _range(estimate: SampledEstimate, reward: RewardFunction, horizon: int) -> tuple[float, float]:
    """The smallest and the largest reward of all transitions and of all actions where they lead."""
    lows, highs = [], []
    for h in range(horizon if reward.uses_step or estimate.steps > 1 else 1):
        if estimate.count(h) == 0:
            continue
        samples = estimate.samples(h)
        met = [reward(h, samples.state, samples.action, samples.next_state)]
        if not reward.uses_next:
            pairs = estimate.spaces.every_pair(samples.next_state, estimate.actions)
            met.append(reward(h, *pairs, pairs[0]))
        lows.append(min(values.min() for values in met))
        highs.append(max(values.max() for values in met))
    return (float(min(lows)), float(max(highs))) if lows else (0.0, 1.0)
