"""Alg 1 on finite worlds, for one reward or many, one run or many."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from rewardfree.arrays import (
    CPU,
    Actions,
    Array,
    DType,
    Floats,
    Integers,
    Placement,
    States,
    is_cpu,
    to_numpy,
)
from rewardfree.data import Transitions
from rewardfree.estimates import FiniteEstimate, alg1_q, best_of_clipped
from rewardfree.model import MODEL_POSTERIORS, Model, ModelPosteriors
from rewardfree.planning.planner import Plan, Planner, PlanRequest
from rewardfree.posterior.engine.backend import room_for
from rewardfree.progress import Tell, tell_nobody
from rewardfree.rewards import TabledReward
from rewardfree.streams import stream
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.grid import Grid

if TYPE_CHECKING:
    from rewardfree.planning.alg1 import ValuePlanner

#: The estimate to use at each step; it is asked once for each, from the last step to the first.
Estimates = Callable[[int], FiniteEstimate]


@dataclass(frozen=True, eq=False, repr=False)
class FinitePlan(Plan):
    """A deterministic policy on finitely many states, and the values it was chosen by. h counts from 0."""

    grid: Grid
    horizon: int
    planner: Planner
    model: Model | None
    transitions: int
    discount: float
    actions: Integers  # (h,s) indices
    values: Floats  # (h,s) the planner's own V_h, not the policy's true value
    chosen_by: Planner | None = None
    source: ModelPosteriors | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def choose(self, states: States, h: int) -> Actions:
        return np.asarray(self.actions[h][states])

    def values_at(self, states: States, h: int) -> Floats:
        return np.asarray(self.values[h][states])

    def save(self, path: str | os.PathLike[str]) -> None:
        from rewardfree.planning.plan_files import write_finite_plan

        write_finite_plan(path, self)

    def _details(self) -> list[str]:
        return [*super()._details(), f"{self.grid.shape[0]} states"]

    def _states(self, state: Any, observation: Any) -> tuple[Any, bool]:
        states, single = super()._states(state, observation)  # the state itself is what is observed
        states = states if states.size else states.astype(np.int64)
        if states.dtype.kind not in "iu":
            raise ValueError(f"state must be an index or indices, got {states.dtype}")
        if states.size and (states.min() < 0 or states.max() >= self.grid.shape[0]):
            raise ValueError(f"state must lie in 0..{self.grid.shape[0] - 1}, got {state}")
        return states, single


def plan_finite(planner: ValuePlanner, requests: Sequence[PlanRequest]) -> list[list[FinitePlan]]:
    """Alg 1 for the same rewards on the data of each request: [request][reward]."""
    if not requests:
        return []
    first = requests[0]
    runs: list[Any] = [request.data for request in requests]
    grid, horizon = runs[0].grid, min(request.steps for request in requests)
    if any(run.horizon != runs[0].horizon or not run.grid.same_as(grid) for run in runs):
        raise ValueError("runs that are planned together must come from one grid and horizon")
    rewards = RewardColumns(first.rewards, grid, horizon, planner)
    discount = first.counted_discount
    plans: list[list[FinitePlan]] = []
    with one_blas_thread():
        for group, model, same in _together(requests, first.placement):
            data: list[Any] = [request.data for request in group]
            estimates = _estimates(data, model, same, first.placement, group[0].source)
            ties = tie_breaks(planner, [run.seed for run in data], horizon, len(grid.states), first.seed)
            ends = np.stack([states_that_end(run) for run in data])
            known = ends if ends.any() else None
            backed = backward(estimates, rewards, planner, horizon, ties, discount, known, first.tell)
            actions, values = map(to_numpy, backed)
            samples = [sum(map(len, run.designs(model.pooled)[:horizon])) for run in data]
            source = group[0].own_source
            plans += [
                [
                    FinitePlan(grid, horizon, planner, model, used, discount, action, value, source=source)
                    for action, value in zip(*policies, strict=True)
                ]
                for used, *policies in zip(samples, actions, values, strict=True)
            ]
    return plans


class RewardColumns:
    """c rewards as columns of a backward pass, checked for a planner, each of them `times` over.

    `low` and `high`, (c,h), are what a step pays.
    """

    def __init__(
        self, rewards: Sequence[Any], grid: Grid, horizon: int, planner: ValuePlanner, times: int = 1
    ) -> None:
        self._rewards = [TabledReward(reward, grid, horizon) for reward in rewards] * times
        for low, high in (reward.ends for reward in self._rewards):
            planner.check_rewards(float(low.min()), float(high.max()))
        self.low, self.high = (
            np.stack([np.broadcast_to(reward.ends[i], horizon) for reward in self._rewards]) for i in range(2)
        )
        self._law: tuple[FiniteEstimate, int, Any] | None = None  # the last one: they are large

    def at(self, h: int, estimate: FiniteEstimate, ends: Any) -> Array:
        """r_h at every z, (c,z); if some depend on the next state (b,c,z), as the estimate expects it."""
        tables = [reward.at(h) for reward in self._rewards]
        if not any(reward.uses_next for reward in self._rewards):
            return estimate.numbers(np.stack([table.reshape(-1) for table in tables]))
        law = self._law_of(h, estimate, ends)
        columns = [estimate.expected(law, table.reshape(-1, *table.shape[2:])) for table in tables]
        return estimate.xp.stack(columns, axis=1)

    def _law_of(self, h: int, estimate: FiniteEstimate, ends: Any) -> Any:
        step = 0 if estimate.steps == 1 and not estimate.model.timed else h
        if self._law is None or self._law[0] is not estimate or self._law[1] != step:
            self._law = estimate, step, estimate.law(h, ends)
        return self._law[2]


def states_that_end(run: Transitions) -> Any:
    """The states in which an episode was seen to end, (s,) bool."""
    ends = np.zeros(run.grid.shape[0], bool)
    ends[run.next_state[run.terminated]] = True
    return ends


def tie_breaks(planner: ValuePlanner, runs: Sequence[int], horizon: int, states: int, seed: int = 0) -> Any:
    """Uniform numbers that decide between random ties, by the seeds of runs: (b,h,s); None if none do."""
    if planner.ties == "lowest":
        return None
    return np.stack([stream(seed, "planning ties", run).random((horizon, states)) for run in runs])


def backward(
    estimates: Estimates,
    rewards: RewardColumns,
    planner: ValuePlanner,
    horizon: int,
    ties: Any = None,
    discount: float = 1.0,
    ends: Any = None,
    tell: Tell = tell_nobody,
) -> tuple[Any, Any]:
    """Alg 1 for b runs and c rewards: the actions and the values V_h, (b,c,h,s), on the device.

    `ties` (b,h,s) decide between equal actions; None: the lowest index wins. `ends` (b,s) are states that are
    never left, which need not be estimated.
    """
    limits = planner.limits(rewards.low, rewards.high, discount)
    actions: list[Any] = [None] * horizon
    values: list[Any] = [None] * horizon
    value: Any = None
    for h in reversed(range(horizon)):
        estimate = estimates(h)
        xp, b, c, (s, a) = estimate.xp, estimate.runs, len(rewards.low), estimate.grid.shape
        r = rewards.at(h, estimate, ends)
        if value is None:
            mean = xp.zeros((b, c, s * a), dtype=r.dtype, device=estimate.device)
        else:
            mean = estimate.mean(h, value)
            if ends is not None:
                stays = estimate.of_own_state(xp.permute_dims(value, (0, 2, 1)))
                mean = xp.where(estimate.at_every_action(ends), stays, mean)
        low, high = (end if np.ndim(end) == 0 else estimate.numbers(end[:, None]) for end in limits(h))
        sigma = None
        if planner.weight:
            sigma = estimate.std(h)
            sigma = sigma if sigma.ndim == 3 else sigma[:, None, :]
            if ends is not None:
                sigma = xp.where(estimate.at_every_action(ends), xp.zeros_like(sigma), sigma)
        q = alg1_q(r, mean, sigma, planner.weight, high - low, discount)
        uniform = None if ties is None else estimate.exact(ties[:, None, h])
        values[h], actions[h] = best_of_clipped(xp.reshape(q, (b, c, s, a)), low, high, uniform)
        value = xp.permute_dims(values[h], (0, 2, 1))  # (b,s,c)
        tell(1.0 - h / horizon)
    return xp.stack(actions, axis=2), xp.stack(values, axis=2)


def estimates_of(run: Transitions, model: Model) -> Estimates:
    """The estimate of each step from one run; planners and rewards share it."""
    model = fitted_to_run(model, run)
    return functools.lru_cache(_estimates([run], model, _share_points([run], model)))


def fitted_to_run(model: Model, run: Transitions, dtype: DType | None = None) -> Model:
    """An automatic model with the kernel and the ridge that all kept transitions of a run ask for."""
    rows = np.flatnonzero(run.kept)
    return model.fitted_to_next_states(
        model.inputs(run.grid.points, run.horizon),
        run.points(rows, model.timed),
        run.grid.states,
        run.next_state[rows],
        dtype=dtype,
    )


def _together(
    requests: Sequence[PlanRequest], placement: Placement
) -> Iterator[tuple[list[PlanRequest], Model, bool]]:
    """Requests that are planned at once, their model, and whether all their regressions share their points.

    Requests that share their points are planned together, others as many as fit in memory.
    """

    def key(request: PlanRequest) -> tuple[Model, int]:
        return request.used_model, id(request.own_source)

    for (model, _), group in groupby(requests, key=key):
        alike = list(group)
        if model.automatic:  # each has its own kernel
            for request in alike:
                yield [request], fitted_to_run(model, _transitions(request), placement.dtype), False
            continue
        size, runs = len(alike), [_transitions(request) for request in alike]
        if not _share_points(runs, model):
            longest = max(len(rows) for run in runs for rows in run.designs(model.pooled))
            inputs = model.inputs(runs[0].grid.points, runs[0].horizon)
            # On the CPU nothing is gained by more than one at a time, and its posterior stays in the cache.
            per_run = 8 * max(1, longest) * len(inputs)
            size = 1 if is_cpu(placement.device) else max(1, room_for(placement.device or "cpu") // per_run)
        for first in range(0, len(alike), size):
            chosen = slice(first, first + size)
            yield alike[chosen], model, _share_points(runs[chosen], model)


def _transitions(request: PlanRequest) -> Transitions:
    assert isinstance(request.data, Transitions)
    return request.data


def _share_points(runs: Sequence[Transitions], model: Model) -> bool:
    """Whether all regressions of all runs have the same points in the same order."""
    points = [run.points(rows, model.timed) for run in runs for rows in run.designs(model.pooled)]
    return all(np.array_equal(points[0], other) for other in points)


def _estimates(
    runs: Sequence[Transitions],
    model: Model,
    same: bool,
    placement: Placement = CPU,
    source: ModelPosteriors = MODEL_POSTERIORS,
) -> Estimates:
    """The estimate for each step, from data: built step by step, or once where the steps share it."""
    designs = [run.designs(model.pooled) for run in runs]
    steps = range(len(designs[0]))
    points = [
        [run.points(rows[h], model.timed) for run, rows in zip(runs, designs, strict=True)] for h in steps
    ]
    next_states = [[run.next_state[rows[h]] for run, rows in zip(runs, designs, strict=True)] for h in steps]
    capacity = max(1, *(len(z) for step in points for z in step))

    def estimate_of(first: int, last: int, horizon: int) -> FiniteEstimate:
        estimate = FiniteEstimate(
            model,
            runs[0].grid,
            horizon,
            runs=len(runs),
            capacity=capacity,
            same_steps=same,
            same_runs=same,
            source=source,
            placement=placement,
        )
        estimate.load(points[first:last], next_states[first:last])
        return estimate

    if model.pooled or same:
        shared = estimate_of(0, len(points), runs[0].horizon if model.timed else len(points))
        return lambda h: shared
    return lambda h: estimate_of(h, h + 1, 1)
