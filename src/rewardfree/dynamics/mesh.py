"""A regular mesh of states: values by convex interpolation, and where actions lead from its nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np

from rewardfree.arrays import CPU, Placement
from rewardfree.dynamics.stencils import added_up
from rewardfree.dynamics.termination import nearest
from rewardfree.estimates.backups import until_end
from rewardfree.posterior import linear_algebra
from rewardfree.worlds.spaces import Box, Spaces

#: A noisy next state is represented by this many draws, or fewer where the matrix would grow too large.
DRAWS, MOST_WEIGHTS = 32, 40_000_000
#: On more state variables a mesh has too many nodes, or too coarse ones.
MOST_VARIABLES = 4


def has_mesh(spaces: Spaces) -> bool:
    """Whether a mesh can be laid over the states."""
    return isinstance(spaces.state, Box) and spaces.state.size <= MOST_VARIABLES


@dataclass(frozen=True, eq=False)
class Mesh:
    """A regular mesh over the box low..high (d,), `sides` nodes for each variable; angles go round.

    Interpolation is multilinear: weights are at least 0 and sum to 1, so values never leave the range of the
    nodes' own, and value iteration cannot diverge. States outside are moved to the nearest point of the box.
    """

    low: Any  # (d,)
    high: Any  # (d,)
    sides: tuple[int, ...]
    angular: Any  # (d,) bool

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return math.prod(self.sides)

    @cached_property
    def spacing(self) -> Any:
        """The distance of neighbours in each variable, (d,)."""
        gaps = np.array(self.sides) - np.where(self.angular, 0, 1)
        return (self.high - self.low) / gaps

    @cached_property
    def nodes(self) -> Any:
        """All nodes (m,d), the last variable fastest."""
        axes = [
            low + step * np.arange(side)
            for low, step, side in zip(self.low, self.spacing, self.sides, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(self.sides))

    @cached_property
    def _counts(self) -> tuple[Any, Any, Any, Any]:
        """Sides, largest place and largest first node in each variable, and the stride of each: (d,)."""
        sides = np.array(self.sides)
        last = np.where(self.angular, sides, sides - 1)
        return sides, last.astype(np.float64), last - 1, np.append(np.cumprod(sides[:0:-1])[::-1], 1)

    def numbered(self, cells: Any) -> Any:
        """The numbers (...,) of nodes that are counted in each variable, (...,d); angles may go round."""
        sides, _, _, stride = self._counts
        return np.where(self.angular, cells % sides, cells) @ stride

    def corners(self, states: Any) -> tuple[Any, Any]:
        """Of states (n,d), the nodes of their cells and the weights of these: (n,k) each, k = 2^d."""
        n, d = states.shape
        sides, last, last_first, stride = self._counts
        turning = bool(self.angular.any())
        place = (states - self.low) / self.spacing
        if turning:
            place = np.where(self.angular, np.mod(place, sides), place)
        place = np.minimum(np.maximum(place, 0.0), last)
        first = np.minimum(place.astype(np.int64), last_first)
        share = place - first
        second = first + 1
        if turning:
            second = np.where(self.angular, second % sides, second)
        ends = (first * stride, second * stride)
        parts = (1.0 - share, share)
        nodes, weights = np.empty((n, 2**d), np.int32), np.empty((n, 2**d))
        for k, corner in enumerate(product((0, 1), repeat=d)):
            nodes[:, k] = sum(ends[bit][:, i] for i, bit in enumerate(corner))
            weight = parts[corner[0]][:, 0].copy()
            for i, bit in enumerate(corner[1:], start=1):
                weight *= parts[bit][:, i]
            weights[:, k] = weight
        return nodes, weights

    def matrix(self, states: Sequence[Any], shares: Sequence[Any]) -> Any:
        """Interpolation at several sets of states (n,d), added with weights `shares` (n,): sparse, (n,m)."""
        from scipy.sparse import csr_array

        if len(states) > 1:
            return added_up(self, states, shares)
        (points,), (share,) = states, shares
        nodes, weights = self.corners(points)
        weights *= np.broadcast_to(share, len(weights))[:, None]
        n, k = nodes.shape
        starts = np.arange(0, n * k + 1, k, dtype=np.int32 if n * k < 2**31 else np.int64)
        return csr_array((weights.reshape(-1), nodes.reshape(-1), starts), shape=(n, self.size))

    def at(self, values: Any, states: Any) -> Any:
        """Values (m,) or (m,c) of the nodes, interpolated at states (n,d)."""
        nodes, weights = self.corners(states)
        return np.einsum("nk...,nk->n...", values[nodes], weights)


class NextStateModel(Protocol):
    """Whatever predicts next states: learnt dynamics, or a simulator itself."""

    def next_state(self, state: Any, action: Any) -> Any:
        """The next states (n,d) of states (n,d) and actions."""

    def inside(self, state: Any) -> Any:
        """States (n,d) with angles wrapped, moved to the nearest ones that can be."""


class NoisyModel(NextStateModel, Protocol):
    """One that also says how next states differ from its predictions."""

    @property
    def noise_sample(self) -> tuple[Any, Any]:
        """Points (k,f) as the kernel sees them, their first columns being the states', and what it missed
        there (k,d)."""

    def state_inputs(self, state: Any) -> Any:
        """States (n,d) as the kernel sees them."""


class MeshDynamics:
    """The next states of all actions (a) at all nodes (m) of a mesh, their ends, and their interpolation.

    With `noise` next states are random: what that model missed is added to the predictions.
    """

    def __init__(
        self,
        spaces: Spaces,
        predictor: NextStateModel,
        mesh: Mesh,
        actions: Any,
        is_end: Callable[[Any], Any],
        noise: NoisyModel | None = None,
        most_draws: int = DRAWS,
        placement: Placement = CPU,
    ) -> None:
        self.spaces, self.predictor, self.mesh, self.actions = spaces, predictor, mesh, actions
        self.is_end, self._noise_model, self.most_draws = is_end, noise, most_draws
        self.algebra = linear_algebra(placement)  # of value iteration

    @property
    def noisy(self) -> bool:
        """Whether next states are random."""
        return self._noise_model is not None

    @property
    def _random(self) -> NoisyModel:
        """The model that noise is drawn from."""
        assert self._noise_model is not None
        return self._noise_model

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
        actions = len(self.actions)
        shifts = self.noise(self.mesh.nodes, self.draws)  # those of a state are the same for all its actions
        return [self.moved(self.next_states, np.tile(shift, (actions, 1))) for shift in shifts]

    @property
    def draws(self) -> int:
        """How many outcomes stand for a noisy next state."""
        per_draw = len(self.actions) * self.mesh.size * 2 ** len(self.mesh.sides)
        return min(
            int(np.clip(MOST_WEIGHTS // per_draw, 4, self.most_draws)), len(self._random.noise_sample[0])
        )

    @cached_property
    def matrix(self) -> Any:
        """V at the nodes -> E[V(s')] for every action and node, (a*m,m); nothing follows an end."""
        return self.mesh.matrix(self.outcomes, self.going)

    @property
    def going(self) -> list[Any]:
        """The chance of each outcome where it goes on, 0 where it ends: (a*m,) each."""
        share = np.float64(1.0 / len(self.outcomes))
        return [until_end(share, self.is_end(next_state)) for next_state in self.outcomes]

    @cached_property
    def transitions(self) -> Any:
        """The matrix where values are iterated."""
        return self.algebra.sparse(self.matrix)

    def through(self, predictor: NoisyModel) -> MeshDynamics:
        """The same on the CPU, with another predictor of the same next states: what is computed is kept."""
        here = copy(self)
        here.predictor, here.algebra = predictor, linear_algebra(CPU)
        here._noise_model = predictor if self.noisy else None
        here.__dict__.pop("transitions", None)
        return here

    def noise(self, state: Any, draws: int = DRAWS) -> Any:
        """What the transitions nearest to states (n,d) missed when left out, (k,n,d).

        Resampling from neighbours follows noise that differs from place to place. All actions of a state get
        the same draws, or the best of them would be the luckiest; these are centred, so that the mean stays
        the regression's, and stretched by what centring takes away.
        """
        _, residuals = self._random.noise_sample
        draws = min(draws, len(residuals))
        near = nearest(self._neighbours, self._random.state_inputs(state), draws)
        missed = residuals[near]  # (n,k,d)
        missed = (missed - missed.mean(axis=1, keepdims=True)) * np.sqrt(draws / (draws - 1.0))
        return np.moveaxis(missed, 1, 0)

    @cached_property
    def _neighbours(self) -> Any:
        from scipy.spatial import cKDTree

        points, _ = self._random.noise_sample
        return cKDTree(points[:, : len(self.spaces.state.groups)])

    def moved(self, state: Any, shift: Any) -> Any:
        """States (n,d) shifted, angles wrapped, within the bounds."""
        return self.predictor.inside(state + shift)

    @cached_property
    def change(self) -> Any:
        """s' - s at the nodes, (m,a,d): a smooth field, from which next states can be interpolated."""
        space: Any = self.spaces.state
        change = space.change(self.pairs[0], self.next_states)
        return np.ascontiguousarray(change.reshape(len(self.actions), self.mesh.size, -1).swapaxes(0, 1))
