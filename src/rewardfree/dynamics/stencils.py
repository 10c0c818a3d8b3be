"""Interpolation at several equally possible next states, added up: each node stands once in its row.

Draws of one next state lie close together, so most of their cells are the same. Added up, 32 draws of three
variables take about 12 weights instead of 256, and a product with such a matrix is as much faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rewardfree.dynamics.mesh import Mesh

#: Rows that are looked at together: what is computed of their draws stays in the cache.
ROWS = 2048


def added_up(mesh: Mesh, states: Sequence[Any], shares: Sequence[Any]) -> Any:
    """Interpolation at k sets of states (n,d), added with weights `shares` (n,): sparse, (n,m)."""
    from scipy.sparse import csr_array

    n, k, d = len(states[0]), len(states), len(mesh.sides)
    lengths, stencils = np.empty(n, np.int64), []
    for start in range(0, n, ROWS):
        rows = slice(start, min(n, start + ROWS))
        places = [_place(mesh, i, np.stack([points[rows, i] for points in states])) for i in range(d)]
        share = np.stack([np.broadcast_to(part, n)[rows] for part in shares])
        first = [_first(mesh, i, place) for i, place in enumerate(places)]
        base = np.stack([cells.min(axis=0) for cells in first], axis=1)
        width = np.stack([cells.max(axis=0) for cells in first], axis=1) - base + 2
        # Draws that are scattered far are added up one by one: their common stencil would be mostly empty.
        width[width.prod(axis=1) > k * 2**d] = 0
        codes = np.ravel_multi_index(tuple(width.T), tuple(width.max(axis=0) + 1))
        for code in np.unique(codes):
            these = np.flatnonzero(codes == code)
            here = [place[:, these] for place in places]
            if width[these[0], 0]:
                stencil = _common(mesh, here, base[these], width[these[0]], share[:, these])
            else:
                cells = np.stack([cells[:, these] for cells in first], axis=-1)
                stencil = _one_by_one(mesh, here, cells, share[:, these])
            these += start
            lengths[these] = stencil[0].shape[1]
            stencils.append((these, *stencil))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    indices, data = np.empty(starts[-1], np.int32), np.empty(starts[-1])
    for these, nodes, weights in stencils:
        entries = starts[these][:, None] + np.arange(nodes.shape[1])
        indices[entries], data[entries] = nodes, weights
    if starts[-1] < 2**31:
        starts = starts.astype(np.int32)
    return csr_array((data, indices, starts), shape=(n, mesh.size))


def _place(mesh: Mesh, i: int, values: Any) -> Any:
    """Values (k,n) of variable i counted in nodes; those of an angle on the turn of the first draw."""
    side = mesh.sides[i]
    place = (values - mesh.low[i]) / mesh.spacing[i]
    if not mesh.angular[i]:
        return np.clip(place, 0.0, side - 1.0)
    return place - side * (np.floor(place[0] / side) + np.round((place - place[0]) / side))


def _first(mesh: Mesh, i: int, place: Any) -> Any:
    """The first node of the cells of variable i; the last node begins none but of an angle."""
    cells = np.floor(place).astype(np.int64)
    return cells if mesh.angular[i] else np.minimum(cells, mesh.sides[i] - 2)


def _common(mesh: Mesh, places: list[Any], base: Any, width: Any, share: Any) -> tuple[Any, Any]:
    """Nodes and weights (n,w) of rows whose draws all lie in w = prod(width) nodes from `base` (n,d) on."""
    hats = []  # of each variable the weights of its nodes, (k,n)
    for i, place in enumerate(places):
        away = place - base[:, i]
        hats.append([np.maximum(0.0, 1.0 - np.abs(away - j)) for j in range(width[i])])
    weights = np.empty((len(base), int(np.prod(width))))
    for column, corner in enumerate(product(*map(range, width))):
        weight = share
        for hat, j in zip(hats, corner, strict=True):
            weight = weight * hat[j]
        weights[:, column] = weight.sum(axis=0)
    corners = np.array(list(product(*map(range, width))))  # (w,d)
    return mesh.numbered(base[:, None] + corners), weights


def _one_by_one(mesh: Mesh, places: list[Any], cells: Any, share: Any) -> tuple[Any, Any]:
    """The same for rows whose draws are scattered, draw by draw; `cells` (k,n,d) are their first nodes."""
    two = np.full(cells.shape[-1], 2)
    stencils = [
        _common(mesh, [place[draw, None] for place in places], cells[draw], two, share[draw, None])
        for draw in range(len(cells))
    ]
    nodes, weights = (np.concatenate(part, axis=1) for part in zip(*stencils, strict=True))
    return nodes, weights
