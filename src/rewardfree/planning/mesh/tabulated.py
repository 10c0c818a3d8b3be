"""A plan whose reward or termination was a Python function, as a file can hold it: values at the nodes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.dynamics import MeshDynamics
from rewardfree.estimates.backups import bellman_q
from rewardfree.model import Model
from rewardfree.planning.mesh.values import MeshValues
from rewardfree.planning.planner import Planner
from rewardfree.planning.world_plan import WorldPlan
from rewardfree.worlds.spaces import Spaces
from rewardfree.worlds.world import Observation


@dataclass(frozen=True, eq=False, repr=False)
class TabulatedPlan(WorldPlan):
    """Greedy in Q_h(s,a) = r + discount E V_{h+1}, interpolated between the nodes."""

    spaces: Spaces
    observation: Observation | None
    horizon: int | None
    planner: Planner
    provenance: Mapping[str, Any]
    model: Model
    transitions: int
    rewards: Any  # (a*m,) at every action and node
    going: Any  # (k,a*m) share of each outcome that goes on: 0 at ends
    on_mesh: MeshDynamics
    mesh_values: MeshValues
    expected: float
    chosen_by: Planner | None = None

    @property
    def discount(self) -> float:
        """Of the values."""
        return self.mesh_values.discount

    def save(self, path: str | os.PathLike[str]) -> None:
        from rewardfree.planning.plan_files import write_tabulated_plan

        write_tabulated_plan(path, self)

    def choose(self, states: Any, h: int) -> Any:
        nodes, weights = self.on_mesh.mesh.corners(states)
        a, m = len(self.on_mesh.actions), self.on_mesh.mesh.size
        rows = (nodes[None] + m * np.arange(a)[:, None, None]).reshape(-1)  # (a,n,k)
        q = self.rewards[rows]
        to_go = 0 if self.horizon is None else self.horizon - h - 1
        if self.horizon is None or to_go > 0:
            q = bellman_q(q, self._matrix[rows] @ self._table(to_go), self.discount)
        q = np.einsum("ank,nk->an", q.reshape(a, *nodes.shape), weights)
        return self.on_mesh.actions[np.argmax(q, axis=0)]

    def values_at(self, states: Any, h: int) -> Any:
        return self.mesh_values.at(states, 0 if self.horizon is None else self.horizon - h)

    def _details(self) -> list[str]:
        return [*super()._details(), f"expects {self.expected:.4g}"]

    def _table(self, to_go: int) -> Any:
        """V at the nodes; the last one is kept, for the next state is likely to ask for the same."""
        if to_go not in self._tables:
            self._tables.clear()
            self._tables[to_go] = self.mesh_values.at(self.on_mesh.mesh.nodes, to_go)
        return self._tables[to_go]

    @cached_property
    def _tables(self) -> dict[int, Any]:
        return {}

    @cached_property
    def _matrix(self) -> Any:
        return self.on_mesh.mesh.matrix(self.on_mesh.outcomes, self.going)
