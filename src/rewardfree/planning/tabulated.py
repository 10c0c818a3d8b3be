"""A plan whose reward or termination was a Python function, as a file can hold it: values at the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.dynamics import Transport
from rewardfree.planning.acting import Acting
from rewardfree.planning.values import Values
from rewardfree.worlds.spaces import Spaces
from rewardfree.worlds.world import Observation


@dataclass(frozen=True, eq=False, repr=False)
class TabulatedPlan(Acting):
    """Greedy in Q_h(s,a) = r + discount E V_{h+1}, interpolated between the nodes."""

    spaces: Spaces
    observation: Observation | None
    horizon: int | None
    planner: Any
    provenance: Mapping[str, Any]
    rewards: Any  # (a*m,) at every action and node
    going: Any  # (k,a*m) share of each outcome that goes on: 0 at ends
    transport: Transport
    values: Values
    expected: float

    def __repr__(self) -> str:
        end = "no horizon" if self.horizon is None else f"horizon {self.horizon}"
        return f"TabulatedPlan({self.planner!r}, {end}, expects {self.expected:.4g})"

    @property
    def discount(self) -> float:
        """Of the values."""
        return self.values.discount

    def choose(self, states: Any, h: int) -> Any:
        """The actions at states (n,d)."""
        nodes, weights = self.transport.mesh.corners(states)
        a, m = len(self.transport.actions), self.transport.mesh.size
        rows = (nodes[None] + m * np.arange(a)[:, None, None]).reshape(-1)  # (a,n,k)
        q = self.rewards[rows]
        left = 0 if self.horizon is None else self.horizon - h - 1
        if self.horizon is None or left > 0:
            table = (
                self.values.at(self.transport.mesh.nodes, left)
                if left not in self._tables
                else self._tables[left]
            )
            self._tables.clear()
            self._tables[left] = table  # the next state is likely to ask for the same
            q = q + self.values.discount * (self._matrix[rows] @ table)
        q = np.einsum("ank,nk->an", q.reshape(a, *nodes.shape), weights)
        return self.transport.actions[np.argmax(q, axis=0)]

    def value(self, state: Any, h: int = 0) -> Any:
        """The planner's V_h at a state (d,) or states (n,d), in the reward's own units."""
        states, single = self._states(state, None)
        values = self.values.at(states, 0 if self.horizon is None else self.horizon - self._step(h))
        return float(values[0]) if single else values

    @cached_property
    def _tables(self) -> dict[int, Any]:
        return {}

    @cached_property
    def _matrix(self) -> Any:
        return self.transport.mesh.matrix(self.transport.outcomes, self.going)
