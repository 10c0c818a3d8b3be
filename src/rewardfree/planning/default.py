"""What plans where a user names no planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from rewardfree.data import Experience
from rewardfree.planning.alg1 import Mean
from rewardfree.planning.mesh.planner import SIDES, DynamicsPlanner
from rewardfree.planning.planner import Planner, PlanRequest
from rewardfree.registry import registered


@registered("planner", "default")
@dataclass(frozen=True)
class DefaultPlanner(Planner):
    """The best known planning: every transition counts, and one regression for all steps is centred.

    Then `DynamicsPlanner()` on up to four real variables, for a pooled model; else `Mean(clip="range")`, also
    for data of a strategy with posteriors of its own, which are for regressions of V. A regression for each
    step is not centred: with few samples at a place the midrange of all values is a worse guess than 0.
    """

    def plan(self, request: PlanRequest) -> list[Any]:
        request = _using_all(request)
        return [replace(plan, chosen_by=self) for plan in self.choose(request).plan(request)]

    def plan_runs(self, requests: Sequence[PlanRequest]) -> list[list[Any]]:
        return [
            [replace(plan, chosen_by=self) for plan in plans]
            for planner, group in groupby(map(_using_all, requests), key=self.choose)
            for plans in planner.plan_runs(list(group))
        ]

    def choose(self, request: PlanRequest) -> Planner:
        """The planner for these data."""
        data = request.data
        if not isinstance(data, Experience) or request.source.own_posteriors:
            return Mean(clip="range")
        if data.is_box and data.spaces.state.size in SIDES and request.used_model.pooled:
            return DynamicsPlanner()
        return Mean(clip="range")


def _using_all(request: PlanRequest) -> PlanRequest:
    """The same with every transition, and centred if one regression serves all steps."""
    model = request.model
    if model is not None:
        model = replace(model, centred=model.centred or model.pooled)
    return replace(request, data=request.data.using_all().centred(), model=model)
