"""Values on a regular mesh of states, and between its nodes by convex interpolation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np


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

        corners = [self.corners(points) for points in states]
        nodes = np.concatenate([corner for corner, _ in corners], axis=1)
        weights = np.concatenate(
            [
                weight * np.broadcast_to(share, len(weight))[:, None]
                for (_, weight), share in zip(corners, shares, strict=True)
            ],
            axis=1,
        )
        n, k = nodes.shape
        starts = np.arange(0, n * k + 1, k, dtype=np.int32 if n * k < 2**31 else np.int64)
        return csr_array((weights.reshape(-1), nodes.reshape(-1), starts), shape=(n, self.size))

    def at(self, values: Any, states: Any) -> Any:
        """Values (m,) or (m,c) of the nodes, interpolated at states (n,d)."""
        nodes, weights = self.corners(states)
        return np.einsum("nk...,nk->n...", values[nodes], weights)
