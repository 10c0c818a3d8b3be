"""A policy from learnt dynamics and values on a mesh."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.dynamics import Transport
from rewardfree.planning.acting import Acting
from rewardfree.planning.values import Values
from rewardfree.rewards import RewardFunction
from rewardfree.worlds.spaces import Spaces
from rewardfree.worlds.world import Observation


@dataclass(frozen=True, eq=False, repr=False)
class MeshPlan(Acting):
    """Greedy in r + discount V(s') through the learnt dynamics, `depth` steps ahead. h counts from 0."""

    spaces: Spaces
    observation: Observation | None
    horizon: int | None  # None: no end, discounted
    planner: Any
    provenance: Mapping[str, Any]
    reward: RewardFunction
    transport: Transport
    values: Values
    depth: int
    expected: float  # the mean return inside the model by which it was chosen

    @property
    def discount(self) -> float:
        """Of the values; chosen by returns inside the model where a horizon was given."""
        return self.values.discount

    def __repr__(self) -> str:
        end = "no horizon" if self.horizon is None else f"horizon {self.horizon}"
        sides = " x ".join(map(str, self.values.mesh.sides))
        return (
            f"MeshPlan({self.planner!r}, {end}, {sides} nodes, discount {self.discount:g}, "
            f"depth {self.depth}, expects {self.expected:.4g})"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as npz, without pickle; `rf.load_plan` reads it.

        No file can hold a Python function. Where the reward or the termination is one, its values at the
        nodes are written, and the plan that is read acts on interpolated ones; formulas stay exact.
        """
        from rewardfree.planning.stored import write_mesh_plan

        write_mesh_plan(path, self)

    def q(self, state: Any, h: int, depth: int | None = None) -> Any:
        """r + discount E[V(s')] of every action at states (n,d): (a,n)."""
        depth = self.depth if depth is None else depth
        transport, spaces = self.transport, self.spaces
        states, actions = spaces.every_pair(state, transport.actions)
        mean = transport.moves.next_state(states, actions)
        shape = (len(transport.actions), len(state))
        if not transport.noisy:
            return self.gain(states, actions, mean, h, depth).reshape(shape)
        shifts = np.tile(transport.noise(state), (1, len(transport.actions), 1))  # (k,a*n,d)
        k = len(shifts)
        following = transport.moved(np.tile(mean, (k, 1)), shifts.reshape(k * len(mean), -1))
        times = (k,) + (1,) * (actions.ndim - 1)
        q = self.gain(np.tile(states, (k, 1)), np.tile(actions, times), following, h, depth)
        return q.reshape(k, *shape).mean(axis=0)

    def value(self, state: Any, h: int = 0) -> Any:
        """The planner's V_h at a state (d,) or states (n,d), in the reward's own units."""
        states, single = self._states(state, None)
        values = self.values.at(states, self._to_go(h))
        return float(values[0]) if single else values

    def choose(self, states: Any, h: int) -> Any:
        """The actions at states (n,d)."""
        return self.transport.actions[np.argmax(self.q(states, h), axis=0)]

    def gain(self, states: Any, actions: Any, following: Any, h: int, depth: int) -> Any:
        """r + discount V of one possible next state of each pair."""
        gained = self.reward(h, states, actions, following)
        left = 0 if self.horizon is None else self._to_go(h) - 1
        if left == 0 and self.horizon is not None:
            return gained
        if depth <= 1:
            later = self.values.at(following, left)
        else:
            later = self.q(following, h + 1, depth - 1).max(axis=0)
        return gained + self.discount * np.where(self.transport.is_end(following), 0.0, later)

    def later(self, nodes: Any, weights: Any, h: int) -> Any:
        """V after step h, of states by the corners of their cells, (n,k) each."""
        return self.values.between(nodes, weights, 0 if self.horizon is None else self._to_go(h) - 1)

    def _to_go(self, h: int) -> int:
        return 0 if self.horizon is None else self.horizon - self._step(h)
