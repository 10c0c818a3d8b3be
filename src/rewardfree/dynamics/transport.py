"""Where every action leads from every node of a mesh: all that planning needs of the dynamics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rewardfree.dynamics.mesh import Mesh
from rewardfree.worlds.spaces import Spaces

#: A noisy next state is represented by so many draws, or fewer where the matrix would grow too large.
DRAWS, MOST_WEIGHTS = 32, 40_000_000


class Moves(Protocol):
    """Anything that predicts next states: learnt dynamics, or a simulator itself."""

    def next_state(self, state: Any, action: Any) -> Any:
        """The next states (n,d) of states (n,d) and actions."""
        ...


class Transport:
    """The next states of all actions (a) at all nodes (m) of a mesh, their ends, and their interpolation."""

    def __init__(
        self, spaces: Spaces, moves: Moves, mesh: Mesh, actions: Any, ended: Callable[[Any], Any], noisy: bool
    ) -> None:
        self.spaces, self.moves, self.mesh, self.actions, self.is_end = spaces, moves, mesh, actions, ended
        self.noisy = noisy

    @cached_property
    def pairs(self) -> tuple[Any, Any]:
        """Every action at every node, action by action: states (a*m,d) and actions."""
        return self.spaces.every_pair(self.mesh.nodes, self.actions)

    @cached_property
    def following(self) -> Any:
        """The mean next states of these pairs, (a*m,d)."""
        return self.moves.next_state(*self.pairs)

    @cached_property
    def outcomes(self) -> list[Any]:
        """The next states (a*m,d) that are equally likely at each node and action: one if none is random."""
        if not self.noisy:
            return [self.following]
        per_draw = len(self.following) * 2 ** len(self.mesh.sides)
        draws = int(np.clip(MOST_WEIGHTS // per_draw, 4, DRAWS))
        return [self.moved(self.following, shift) for shift in self.noise(self.pairs[0], draws)]

    @cached_property
    def matrix(self) -> Any:
        """V at the nodes -> E[V(s')] for every action and node, (a*m,m); nothing follows an end."""
        share = 1.0 / len(self.outcomes)
        return self.mesh.matrix(self.outcomes, [np.where(self.is_end(s), 0.0, share) for s in self.outcomes])

    def noise(self, state: Any, draws: int = DRAWS) -> Any:
        """What the transitions nearest to states (n,d) missed when left out, (k,n,d).

        Resampling from neighbours follows noise that differs from place to place. All actions of a state get
        the same draws, or the best of them would be the luckiest; these are centred, so that the mean stays
        the regression's, and stretched by what centring takes away.
        """
        moves: Any = self.moves
        draws = min(draws, len(moves.points))
        _, nearest = self._neighbours.query(self._places(state), k=draws)
        found = moves.residuals[nearest]  # (n,k,d)
        found = (found - found.mean(axis=1, keepdims=True)) * np.sqrt(draws / (draws - 1.0))
        return np.moveaxis(found, 1, 0)

    @cached_property
    def _neighbours(self) -> Any:
        from scipy.spatial import cKDTree

        moves: Any = self.moves
        return cKDTree(moves.points[:, : len(self.spaces.state.groups)])

    def _places(self, state: Any) -> Any:
        """States as the kernel sees them."""
        moves: Any = self.moves
        size = len(self.spaces.state.groups)
        scaling = moves.fitted.scaling
        return (self.spaces.state.features(state) - scaling.centre[:size]) / scaling.scale[:size]

    def moved(self, state: Any, shift: Any) -> Any:
        """States (n,d) shifted, angles wrapped, within the bounds."""
        moves: Any = self.moves
        return moves.inside(state + shift)

    @cached_property
    def change(self) -> Any:
        """s' - s at the nodes, (m,a,d): a smooth field, from which next states can be interpolated."""
        space: Any = self.spaces.state
        change = space.change(self.pairs[0], self.following)
        return np.ascontiguousarray(change.reshape(len(self.actions), self.mesh.size, -1).swapaxes(0, 1))
