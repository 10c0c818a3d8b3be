"""Policies from learnt dynamics and values on a mesh."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.arrays import Actions, Floats, States, count
from rewardfree.dynamics import MeshDynamics
from rewardfree.estimates.backups import bellman_q, until_end
from rewardfree.planning.mesh.values import MeshValues
from rewardfree.planning.planner import WorldPlan
from rewardfree.rewards import RewardFunction

#: The most next states of one state that a user's own depth may ask for (more take minutes); the most steps.
MOST_NEXT_STATES, MOST_DEPTH = 1_000_000, 20
#: The most episodes that are imagined to be compared with what was played.
MOST_IMAGINED = 5


def as_depth(value: Any, actions: int) -> int:
    """`value` as a depth of lookahead over that number of actions."""
    depth = count(value, "depth", at_most=MOST_DEPTH)
    if actions**depth > MOST_NEXT_STATES:
        raise ValueError(
            f"depth {depth} over {actions} actions asks for {actions**depth:,} next states: "
            f"at most {MOST_NEXT_STATES:,}"
        )
    return depth


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeshPlan(WorldPlan):
    """Greedy in r + discount V(s') through the learnt dynamics, `depth` steps ahead. h counts from 0."""

    reward: RewardFunction
    on_mesh: MeshDynamics
    mesh_values: MeshValues
    depth: int
    expected: float  # by which it was chosen, and its discount where a horizon was given

    @property
    def reward_text(self) -> str | None:
        return self.reward.text

    @property
    def drawn_over(self) -> tuple[Floats, Floats]:
        return self.mesh_values.mesh.low, self.mesh_values.mesh.high

    def expects(self, reward: Any, starts: States, discount: float) -> tuple[Floats, Floats] | None:
        """The returns of the first `MOST_IMAGINED` episodes inside the model."""
        from rewardfree.planning.mesh.imagined import imagined_returns  # which follows such plans

        if not self.reward.is_made_of(reward):
            return None
        ((returns, _),) = imagined_returns([self], starts[:MOST_IMAGINED], discount)
        return returns, np.zeros(len(returns))  # they are drawn themselves

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as npz, without pickle; `rf.load_plan` reads it.

        No file can hold a Python function. Where the reward or the termination is one, its values at the
        nodes are written, and the plan that is read acts on interpolated ones; formulas stay exact.
        """
        from rewardfree.planning.plan_files import write_mesh_plan

        write_mesh_plan(path, self)

    def q(self, state: Any, h: int, depth: int | None = None) -> Any:
        """r + discount E[V(s')] of every action at states (n,d): (a,n)."""
        depth = self.depth if depth is None else depth
        on_mesh = self.on_mesh
        states, actions = self.spaces.every_pair(state, on_mesh.actions)
        mean = on_mesh.predictor.next_state(states, actions)
        shape = (len(on_mesh.actions), len(state))
        if not on_mesh.noisy:
            return self.gain(states, actions, mean, h, depth).reshape(shape)
        shifts = np.tile(on_mesh.noise(state), (1, len(on_mesh.actions), 1))  # (k,a*n,d)
        k = len(shifts)
        next_states = on_mesh.moved(np.tile(mean, (k, 1)), shifts.reshape(k * len(mean), -1))
        times = (k,) + (1,) * (actions.ndim - 1)
        q = self.gain(np.tile(states, (k, 1)), np.tile(actions, times), next_states, h, depth)
        return q.reshape(k, *shape).mean(axis=0)

    def choose(self, states: States, h: int) -> Actions:
        return np.asarray(self.on_mesh.actions[np.argmax(self.q(states, h), axis=0)])

    def values_at(self, states: States, h: int) -> Floats:
        return np.asarray(self.mesh_values.at(states, self._to_go(h)))

    def gain(self, states: Any, actions: Any, next_states: Any, h: int, depth: int) -> Any:
        """r + discount V of one possible next state of each pair."""
        reward = self.reward(h, states, actions, next_states)
        to_go = 0 if self.horizon is None else self._to_go(h) - 1
        if to_go == 0 and self.horizon is not None:
            return reward
        if depth <= 1:
            later = self.mesh_values.at(next_states, to_go)
        else:
            later = self.q(next_states, h + 1, depth - 1).max(axis=0)
        return bellman_q(reward, until_end(later, self.on_mesh.is_end(next_states)), self.discount)

    def later(self, nodes: Any, weights: Any, h: int) -> Any:
        """V after step h, of states by the corners of their cells, (n,k) each."""
        return self.mesh_values.between(nodes, weights, 0 if self.horizon is None else self._to_go(h) - 1)

    def _details(self) -> list[str]:
        sides = " x ".join(map(str, self.mesh_values.mesh.sides))
        return [
            *super()._details(),
            f"{sides} nodes",
            f"depth {self.depth}",
            f"expects {self.expected:.4g}",
        ]

    def _to_go(self, h: int) -> int:
        return 0 if self.horizon is None else self.horizon - h


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TabulatedPlan(WorldPlan):
    """Greedy in Q_h(s,a) = r + discount E V_{h+1}, interpolated between the nodes."""

    rewards: Any  # (a*m,) at every action and node
    going: Any  # (k,a*m) share of each outcome that goes on: 0 at ends
    on_mesh: MeshDynamics
    mesh_values: MeshValues
    expected: float

    def save(self, path: str | os.PathLike[str]) -> None:
        from rewardfree.planning.plan_files import write_tabulated_plan

        write_tabulated_plan(path, self)

    def choose(self, states: States, h: int) -> Actions:
        nodes, weights = self.on_mesh.mesh.corners(states)
        a, m = len(self.on_mesh.actions), self.on_mesh.mesh.size
        rows = (nodes[None] + m * np.arange(a)[:, None, None]).reshape(-1)  # (a,n,k)
        q = self.rewards[rows]
        to_go = 0 if self.horizon is None else self.horizon - h - 1
        if self.horizon is None or to_go > 0:
            q = bellman_q(q, self._matrix[rows] @ self._table(to_go), self.discount)
        q = np.einsum("ank,nk->an", q.reshape(a, *nodes.shape), weights)
        return np.asarray(self.on_mesh.actions[np.argmax(q, axis=0)])

    def values_at(self, states: States, h: int) -> Floats:
        return np.asarray(self.mesh_values.at(states, 0 if self.horizon is None else self.horizon - h))

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
