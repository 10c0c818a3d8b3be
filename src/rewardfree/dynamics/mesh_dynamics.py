"""Where every action leads from every node of a mesh: all that value iteration needs of the dynamics."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rewardfree.dynamics.mesh import Mesh
from rewardfree.worlds.spaces import Spaces

#: A noisy next state is represented by so many draws, or fewer where the matrix would grow too large.
DRAWS, MOST_WEIGHTS = 32, 40_000_000


class NextStateModel(Protocol):
    """Whatever predicts next states: learnt dynamics, or a simulator itself."""

    def next_state(self, state: Any, action: Any) -> Any:
        """The next states (n,d) of states (n,d) and actions."""


class MeshDynamics:
    """The next states of all actions (a) at all nodes (m) of a mesh, their ends, and their interpolation."""

    def __init__(
        self,
        spaces: Spaces,
        predictor: NextStateModel,
        mesh: Mesh,
        actions: Any,
        is_end: Callable[[Any], Any],
        noisy: bool,
    ) -> None:
        self.spaces, self.predictor, self.mesh, self.actions = spaces, predictor, mesh, actions
        self.is_end, self.noisy = is_end, noisy

    @cached_property
    def pairs(self) -> tuple[Any, Any]:
        """Every action at every node, action by action: states (a*m,d) and actions."""
        return self.spaces.every_pair(self.mesh.nodes, self.actions)

    @cached_property
    def next_states(self) -> Any:
        """The mean next states of these pairs, (a*m,d)."""
        return self.predictor.next_state(*self.pairs)

    @cached_property
    def outcomes(self) -> list[Any]:
        """The next states (a*m,d) that are equally likely at each node and action: one if none is random."""
        if not self.noisy:
            return [self.next_states]
        per_draw = len(self.next_states) * 2 ** len(self.mesh.sides)
        draws = int(np.clip(MOST_WEIGHTS // per_draw, 4, DRAWS))
        return [self.moved(self.next_states, shift) for shift in self.noise(self.pairs[0], draws)]

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
        dynamics: Any = self.predictor
        draws = min(draws, len(dynamics.points))
        _, nearest = self._neighbours.query(self._state_inputs(state), k=draws)
        missed = dynamics.residuals[nearest]  # (n,k,d)
        missed = (missed - missed.mean(axis=1, keepdims=True)) * np.sqrt(draws / (draws - 1.0))
        return np.moveaxis(missed, 1, 0)

    @cached_property
    def _neighbours(self) -> Any:
        from scipy.spatial import cKDTree

        dynamics: Any = self.predictor
        return cKDTree(dynamics.points[:, : len(self.spaces.state.groups)])

    def _state_inputs(self, state: Any) -> Any:
        """States as the kernel sees them."""
        dynamics: Any = self.predictor
        size = len(self.spaces.state.groups)
        scaling = dynamics.scaled.scaling
        return (self.spaces.state.features(state) - scaling.centre[:size]) / scaling.scale[:size]

    def moved(self, state: Any, shift: Any) -> Any:
        """States (n,d) shifted, angles wrapped, within the bounds."""
        dynamics: Any = self.predictor
        return dynamics.inside(state + shift)

    @cached_property
    def change(self) -> Any:
        """s' - s at the nodes, (m,a,d): a smooth field, from which next states can be interpolated."""
        space: Any = self.spaces.state
        change = space.change(self.pairs[0], self.next_states)
        return np.ascontiguousarray(change.reshape(len(self.actions), self.mesh.size, -1).swapaxes(0, 1))
