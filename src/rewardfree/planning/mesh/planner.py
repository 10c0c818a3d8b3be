"""Planning through learnt dynamics: regress the state change, then iterate values on a mesh."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.arrays import as_number, count
from rewardfree.data import Experience
from rewardfree.dynamics.mesh_dynamics import NextStateModel
from rewardfree.planning.mesh.plan import MeshPlan
from rewardfree.planning.mesh.preparation import REFINED_ABOVE, SIDES, Preparation
from rewardfree.planning.mesh.search import Search, better
from rewardfree.planning.planner import Planner, PlanRequest
from rewardfree.registry import registered
from rewardfree.rewards import RewardFunction
from rewardfree.streams import stream
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.spaces import Box

__all__ = ["SIDES", "DynamicsPlanner", "plan_on_mesh"]

#: A lookahead may ask for this many next states at its last step.
MOST_LEAVES, DEEPEST = 250, 5
#: Plans are compared from this many first states.
STARTS = 12
#: With a horizon H the larger discount is 1 - this/H. At exactly 1 waiting costs nothing, and a plan may
#: leave everything to the last moment, where a small error of the model is the end of it.
IMPATIENCE = 0.2


@registered("planner", "dynamics")
@dataclass(frozen=True)
class DynamicsPlanner(Planner):
    """KRR of the state change, then value iteration with convex interpolation on a mesh; up to 4 variables.

    `actions` is how many candidates a Box of actions gets, `discounts` and `depths` (of lookahead) what is
    tried: the ones with the best return inside the model are used. `noise`: next states are random, None to
    let the data say. `sides` nodes for each variable. On more than two variables the mesh is laid again over
    what the first plan meets, `rounds` times.
    """

    actions: int = 11
    discounts: tuple[float, ...] | None = None
    depths: tuple[int, ...] | None = None
    sides: int | None = None
    rounds: int = 2
    noise: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", count(self.actions, "actions", at_least=2))
        object.__setattr__(self, "rounds", count(self.rounds, "rounds", at_least=0))
        for name in ("discounts", "depths"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, (tuple, list)) or not given):
                raise ValueError(f"{name} must be some numbers, such as (1.0, 0.99), or None, got {given!r}")
        if self.noise not in (None, True, False):
            raise ValueError(f"noise must be True, False or None, got {self.noise!r}")
        if self.discounts is not None:
            numbers = tuple(as_number(discount, "discount") for discount in self.discounts)
            if not all(0.0 < discount <= 1.0 for discount in numbers):
                raise ValueError(f"discounts must lie in (0, 1], got {self.discounts!r}")
            object.__setattr__(self, "discounts", numbers)
        if self.depths is not None:
            object.__setattr__(self, "depths", tuple(count(depth, "depth") for depth in self.depths))
        if self.sides is not None:
            object.__setattr__(self, "sides", count(self.sides, "sides", at_least=3))

    def plan(self, request: PlanRequest) -> list[MeshPlan]:
        """For each reward the plan with the best return inside the model, from the first states seen."""
        return plan_on_mesh(self, request)

    def discounts_for(self, horizon: int | None, discount: float | None) -> tuple[float, ...]:
        """Those to try: a user's own, or by the horizon, one of them nearly 1."""
        if discount is not None:
            return (discount,)
        if self.discounts is not None:
            return self.discounts
        assert horizon is not None
        return tuple(sorted({1.0 - IMPATIENCE / max(horizon, 20), 0.99}, reverse=True))

    def depths_for(self, actions: int, variables: int) -> tuple[int, ...]:
        """The depths to try, ascending: one on fine meshes, else also as deep as the actions allow."""
        if self.depths is not None:
            return tuple(sorted(set(self.depths)))
        if variables <= REFINED_ABOVE:
            return (1,)
        deepest = max(depth for depth in range(1, DEEPEST + 1) if depth == 1 or actions**depth <= MOST_LEAVES)
        return tuple(sorted({1, min(3, deepest), deepest}))


def plan_on_mesh(
    planner: DynamicsPlanner, request: PlanRequest, predictor: NextStateModel | None = None
) -> list[MeshPlan]:
    """What `DynamicsPlanner` does. `predictor` replaces the learnt dynamics: a simulator, for comparison."""
    data = request.data
    if not isinstance(data, Experience):
        raise ValueError(
            "DynamicsPlanner() is for real states: use Mean(), Optimistic(beta) or Pessimistic(beta)"
        )
    horizon = _horizon(request)
    rewards = [RewardFunction(reward, data.spaces) for reward in request.rewards]
    if horizon is None and any(reward.uses_step for reward in rewards):
        raise ValueError("a reward that changes with h needs an end to count from: give horizon=")
    with one_blas_thread():
        preparation = Preparation.of(planner, data, request.model, request.terminated, predictor)
        starts = _starts(preparation.dynamics.space, data, request.starts)
        counted = 1.0 if request.discount is None else request.discount
        searches = [Search(preparation, reward, horizon, counted, starts) for reward in rewards]
        return [_best(planner, search, request.discount) for search in searches]


def _best(planner: DynamicsPlanner, search: Search, discount: float | None) -> MeshPlan:
    """The plan with the best return inside the model, of some discounts, meshes and depths."""
    preparation = search.preparation
    variables = preparation.dynamics.space.size
    depths = planner.depths_for(len(preparation.actions), variables)
    middle = depths[min(1, len(depths) - 1)]
    best = search.best(preparation.on_mesh, middle, planner.discounts_for(search.horizon, discount))
    if variables > REFINED_ABOVE:
        for _ in range(planner.rounds):
            if search.is_perfect(best):
                break
            finer = preparation.over(best.met, search.starts)
            best = better(best, search.best(finer, middle, (best.plan.discount,)))
        if depths[-1] > middle and not search.is_perfect(best):
            (deeper,) = search.tried(best.plan.on_mesh, [best.plan.mesh_values], depths[-1])
            best = better(deeper, best)
    return replace(best.plan, expected=float(best.returns.mean()))


def _horizon(request: PlanRequest) -> int | None:
    """The steps of an episode; None: no end, with a discount alone."""
    if request.horizon is not None:
        return request.horizon
    if request.discount is None:
        return request.data.horizon
    if request.discount >= 1.0:
        raise ValueError("discount must be below 1 where there is no horizon, got 1: give horizon=")
    return None


def _starts(space: Box, data: Experience, starts: Any) -> Any:
    """At least `STARTS` first states: those given or seen, and points between them."""
    if starts is not None:
        starts = data.spaces.state.checked(np.atleast_2d(starts), "starts")
    states = data.starts if starts is None else starts
    if not len(states):
        states = data.state[data.kept][:1]
    states = space.wrapped(states)
    if len(states) >= STARTS:
        return states[:STARTS]
    rng = stream(0, "between starts")
    one, other = (states[rng.integers(len(states), size=STARTS - len(states))] for _ in range(2))
    between = one + rng.random((len(one), 1)) * space.change(one, other)
    return np.concatenate([states, space.wrapped(between)])
