"""The public door of planning: which planner serves which data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardfree.arrays import as_number, check_kind, count
from rewardfree.data import Experience, Transitions
from rewardfree.model import Model
from rewardfree.planning import finite
from rewardfree.planning.dynamics import SIDES, DynamicsPlanner
from rewardfree.planning.finite import Planner
from rewardfree.planning.fitted import fitted_plans
from rewardfree.rewards import RewardFunction
from rewardfree.strategies.round import designer


def plan(
    data: Transitions | Experience,
    reward: Any,
    planner: Planner | DynamicsPlanner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    terminated: Any = None,
    starts: Any = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: Any = None,
) -> Any:
    """A policy for a reward that the data never saw: an array (s,a) or (h,s,a), a function, or a formula.

    Without a `planner`, a finite world is planned by `Mean(clip="range")` with every transition, centred, and
    real states by `DynamicsPlanner()` where it can be used: the plan says which. `model` overrides the one of
    the data. `horizon` defaults to the data's; `DynamicsPlanner` plans for no end with a `discount` alone. On
    real states `terminated` says where episodes end (a function or a formula; by default as the data saw it),
    `starts` (k,d) where they begin.
    """
    options: dict[str, Any] = {"seed": seed, "device": device, "dtype": dtype}
    about: dict[str, Any] = {"terminated": terminated, "starts": starts}
    return plan_many(data, [reward], planner, model, horizon, discount, **about, **options)[0]


def plan_many(
    data: Transitions | Experience,
    rewards: Sequence[Any],
    planner: Planner | DynamicsPlanner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    terminated: Any = None,
    starts: Any = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: Any = None,
) -> list[Any]:
    """One plan for each reward from one factorisation: what needs no reward is computed once."""
    if not isinstance(data, Experience):
        if terminated is not None or starts is not None:
            raise ValueError("terminated= and starts= are for real states: a finite world knows its own")
        options: dict[str, Any] = {"seed": seed, "device": device, "dtype": dtype}
        if isinstance(planner, DynamicsPlanner):
            raise ValueError(
                "DynamicsPlanner() is for real states: use Mean(), Optimistic(beta) or Pessimistic(beta)"
            )
        return finite.plan_many(data, rewards, planner, model, horizon, discount, **options)
    if device != "cpu" or dtype is not None or count(seed, "seed", at_least=0) != 0:
        raise ValueError("device=, dtype= and seed= are for finite worlds: this plan runs on the CPU")
    if isinstance(rewards, str):
        raise ValueError(f"rewards must be a list of rewards, got the one formula {rewards!r}: use plan")
    if not len(rewards):
        raise ValueError("rewards must hold at least one reward, got none")
    if model is not None:
        check_kind(model, Model, "model", "rf.Model(kernel, ridge)")
    chosen = default_planner(data, model) if planner is None else planner
    gamma = None if discount is None else as_number(discount, "discount")
    if gamma is not None and not 0.0 < gamma <= 1.0:
        raise ValueError(f"discount must lie in (0, 1], got {discount}")
    found = [RewardFunction(reward, data.spaces) for reward in rewards]
    if isinstance(chosen, DynamicsPlanner):
        steps = _steps(data, horizon, gamma)
        first = _starts(data, starts)
        if steps is None and any(each.uses_step for each in found):
            raise ValueError("a reward that changes with h needs an end to count from: give horizon=")
        return chosen.plan(data, found, model, steps, gamma, terminated, first)
    check_kind(chosen, Planner, "planner", "DynamicsPlanner(), Optimistic(beta), Mean() or Pessimistic(beta)")
    own, steps = model or data.model, data.horizon if horizon is None else count(horizon, "horizon")
    if steps > data.horizon and not own.pooled:
        raise ValueError(
            f"horizon must be at most the {data.horizon} steps of these data, got {steps}: "
            "only a pooled model can go beyond them"
        )
    if chosen.ties != "lowest":
        raise ValueError('ties="random" is for finite worlds: values of real states have no ties to speak of')
    if starts is not None:
        raise ValueError(
            f"starts= is for DynamicsPlanner(), which compares plans from there: {chosen!r} does not"
        )
    return fitted_plans(data, found, chosen, model, steps, gamma or 1.0, terminated)


def default_planner(data: Experience, model: Model | None = None) -> DynamicsPlanner | Planner:
    """`DynamicsPlanner()` for up to four real variables and one model for all steps, else the mean.

    The mean also for data of a strategy with posteriors of its own, which are for regressions of V.
    """
    if model is None and designer(data.strategy) is not None:
        return finite.default_planner()
    own = model or data.model
    if data.is_box and data.spaces.state.size in SIDES and own.pooled:
        return DynamicsPlanner()
    return finite.default_planner()


def _steps(data: Experience, horizon: int | None, discount: float | None) -> int | None:
    if horizon is not None:
        return count(horizon, "horizon")
    if discount is None:
        return data.horizon
    if discount >= 1.0:
        raise ValueError("discount must be below 1 where there is no horizon, got 1: give horizon=")
    return None


def _starts(data: Experience, starts: Any) -> Any:
    if starts is not None:
        starts = data.spaces.state.checked(np.atleast_2d(starts), "starts")
    found = data.starts if starts is None else starts
    if not len(found):
        found = data.state[data.kept][:1]
    return data.spaces.state.wrapped(found)
