"""Values on a regular mesh of states, and between its nodes by convex interpolation."""

from __future__ import annotations

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

    def corners(self, states: Any) -> tuple[Any, Any]:
        """Of states (n,d), the nodes of their cells and the weights of these: (n,k) each, k = 2^d."""
        n, d = states.shape
        sides = np.array(self.sides)
        place = (states - self.low) / self.spacing
        place = np.where(self.angular, np.mod(place, sides), np.clip(place, 0.0, sides - 1.0))
        first = np.minimum(place.astype(np.int64), np.where(self.angular, sides - 1, sides - 2))
        share = place - first
        second = np.where(self.angular & (first + 1 >= sides), 0, first + 1)
        stride = np.append(np.cumprod(sides[:0:-1])[::-1], 1)
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

        found = [self.corners(each) for each in states]
        nodes = np.concatenate([each for each, _ in found], axis=1)
        weights = np.concatenate(
            [
                each * np.broadcast_to(share, len(each))[:, None]
                for (_, each), share in zip(found, shares, strict=True)
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
