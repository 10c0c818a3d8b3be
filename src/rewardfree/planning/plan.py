"""The public door of planning: data and a reward give a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from rewardfree.arrays import DType, Placement, States, check_kind
from rewardfree.data import Experience, RunData, Transitions
from rewardfree.model import Model
from rewardfree.planning.default import DefaultPlanner
from rewardfree.planning.finite import FinitePlan
from rewardfree.planning.planner import Planner, PlanRequest
from rewardfree.planning.world_plan import WorldPlan
from rewardfree.rewards import FiniteReward, Termination, WorldReward


@overload
def plan(
    data: Transitions,
    reward: FiniteReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
) -> FinitePlan: ...


@overload
def plan(
    data: Experience,
    reward: WorldReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
) -> WorldPlan: ...


@overload
def plan(
    data: Transitions | Experience,
    reward: FiniteReward | WorldReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
) -> FinitePlan | WorldPlan: ...


def plan(
    data: Transitions | Experience,
    reward: FiniteReward | WorldReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
) -> FinitePlan | WorldPlan:
    """A policy for a reward that the data never saw: an array (s,a) or (h,s,a), a function, or a formula.

    Without a `planner` it is `DefaultPlanner()`; the plan says what it was made of. `model` overrides the one
    of the data. `horizon` defaults to the data's; `DynamicsPlanner` plans for no end with a `discount` alone.
    On real states `terminated` says where episodes end (a function or a formula; by default as the data saw
    it), `starts` (k,d) where they begin; `seed`, `device` and `dtype` are for finite worlds.
    """
    placement = Placement(device, dtype)
    request = PlanRequest(data, [reward], model, horizon, discount, terminated, starts, seed, placement)
    policy: FinitePlan | WorldPlan = _planner(planner).plan(request)[0]
    return policy


@overload
def plan_many(
    data: Transitions,
    rewards: Sequence[FiniteReward],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
) -> list[FinitePlan]: ...


@overload
def plan_many(
    data: Experience,
    rewards: Sequence[WorldReward],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
) -> list[WorldPlan]: ...


def plan_many(
    data: RunData,
    rewards: Sequence[Any],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
) -> list[Any]:
    """`plan` for many rewards from one factorisation: what needs no reward is computed once."""
    placement = Placement(device, dtype)
    request = PlanRequest(data, rewards, model, horizon, discount, terminated, starts, seed, placement)
    return _planner(planner).plan(request)


def plan_runs(
    runs: Sequence[Transitions],
    rewards: Sequence[FiniteReward],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
) -> list[list[FinitePlan]]:
    """`plan_many` for each of several runs on one grid: [run][reward]. Runs that share points go together."""
    for run in runs:
        check_kind(run, Transitions, "data", "what rf.explore returns; plan_runs takes several")
    placement = Placement(device, dtype)
    requests = [
        PlanRequest(run, rewards, model, horizon, discount, seed=seed, placement=placement) for run in runs
    ]
    return _planner(planner).plan_runs(requests)


def _planner(planner: Planner | None) -> Planner:
    planner = DefaultPlanner() if planner is None else planner
    check_kind(
        planner, Planner, "planner", "DefaultPlanner(), DynamicsPlanner(), Mean(), Optimistic(beta) and so on"
    )
    return planner
