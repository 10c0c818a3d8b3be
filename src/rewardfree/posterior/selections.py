"""What callers of many posteriors on one finite set may name and hand in, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardfree.arrays import Array, as_array
from rewardfree.posterior.candidates import Candidates
from rewardfree.posterior.engine.backend import Backend, Selection


class Selections:
    """Designs as callers name them, out of `total`; slices are asked for again in every round of a loop."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._known: dict[tuple[int, int, int], Selection] = {}

    def __call__(self, designs: Any) -> Selection:
        if designs is None or isinstance(designs, slice):
            key = slice(None).indices(self.total) if designs is None else designs.indices(self.total)
            if key not in self._known:
                self._known[key] = Selection.of(np.arange(*key))
            return self._known[key]
        return Selection.named(designs, self.total)


def one_for_each(known: Candidates, indices: Any, chosen: Selection) -> Array:
    """Candidate indices (g,), one for each design."""
    added = known.indices(indices)
    if tuple(added.shape) != (len(chosen),):
        raise ValueError(
            f"indices must name one candidate for each of {len(chosen)} designs, "
            f"got shape {tuple(added.shape)}"
        )
    return added


def some_for_each(known: Candidates, indices: Any, total: int) -> Array:
    """Candidate indices (g,p), a row for each design."""
    added = known.indices(indices, axes=(2,))
    if added.shape[0] != total:
        raise ValueError(f"indices must have {total} rows, one per design, got {added.shape[0]}")
    return added


def target_columns(targets: Any, backend: Backend, g: int, n: int) -> tuple[Array, bool]:
    """Targets (g,n) or (g,n,c) as finite columns (g,n,c), and whether they were one flat column."""
    targets = as_array(targets, "targets")
    if targets.ndim not in (2, 3) or tuple(targets.shape[:2]) != (g, n):
        raise ValueError(
            f"targets must have shape ({g}, {n}) or ({g}, {n}, c), one row per design and one entry "
            f"per point, got {tuple(targets.shape)}"
        )
    columns = backend.array(targets)
    backend.require("targets", backend.finite(columns), _not_finite)
    return (columns[:, :, None], True) if columns.ndim == 2 else (columns, False)


def query_indices(known: Candidates, backend: Backend, at: Any, rows: Any, g: int) -> Array | None:
    """Candidate indices (g,m) of the points or rows asked about; None for all of them."""
    if at is None and rows is None:
        return None
    if at is not None and rows is not None:
        raise ValueError("at (points) and rows (candidate indices) are two ways to ask: give one of them")
    queries = known.at(at) if rows is None else known.indices(rows, axes=(1, 2))
    if queries.ndim == 2 and queries.shape[0] != g:
        raise ValueError(f"rows must have {g} rows, one per design, got {queries.shape[0]}")
    return backend.xp.broadcast_to(queries, (g, queries.shape[-1]))


def _not_finite(_: float) -> Exception:
    return ValueError("targets must be finite, got NaN or infinity")
