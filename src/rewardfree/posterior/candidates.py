"""The finite set Z of a lattice: which of its members a caller means."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardfree.arrays import Array, as_points, namespace, to_numpy
from rewardfree.posterior.engine.backend import Backend


class Candidates:
    """Points (m,d) that are named by their index, or looked up by their coordinates."""

    def __init__(self, points: Array, backend: Backend) -> None:
        self.points = backend.own(points)
        self._backend = backend
        self._lookup: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def indices(self, named: Any, axes: tuple[int, ...] = (1,)) -> Array:
        """Candidate indices, checked: (m,), or another number of axes where that is allowed."""
        if not hasattr(named, "dtype"):
            named = np.asarray(named)
        if 0 in named.shape:
            return self._backend.zeros(tuple(named.shape), index=True)
        odd = isinstance(named, np.ndarray) and named.dtype.kind in "OUS"  # no number at all
        if odd or not namespace(named).isdtype(named.dtype, "integral"):
            raise ValueError(f"candidate indices must be whole numbers, got {named.dtype}")
        if named.ndim not in axes:
            wanted = " or ".join(str(n) for n in axes)
            raise ValueError(f"candidate indices must have {wanted} axes, got shape {tuple(named.shape)}")
        return self._in_range(self._backend.index(named))

    def at(self, points: Any) -> Array:
        """The indices (m,) of points (m,d), each of which must be a candidate."""
        points = as_points(points, "points", self.points.shape[1])
        if self._lookup is None:  # backwards, so that of equal points the first one counts
            self._lookup = {key: i for i, key in reversed(list(enumerate(_keys(self.points))))}
        try:
            return self._backend.index([self._lookup[key] for key in _keys(self._backend.array(points))])
        except KeyError:
            raise ValueError(
                "every point must be one of the lattice's candidates, got one that is not: "
                "name candidates by index, or use a Design for points anywhere"
            ) from None

    def _in_range(self, indices: Array) -> Array:
        xp, total = self._backend.xp, len(self)

        def error(excess: float) -> Exception:
            return ValueError(
                f"candidate indices must lie in 0..{total - 1}, got one {-excess:.0f} beyond that"
            )

        self._backend.require("lowest index", xp.min(indices), error)
        self._backend.require("highest index", total - 1 - xp.max(indices), error)
        # An index that a deferred check has yet to see must do no harm.
        return xp.clip(indices, 0, total - 1) if self._backend.deferred else indices


def _keys(points: Array) -> list[bytes]:
    """Each point as bytes; adding zero makes -0.0 and 0.0 the same."""
    return [point.tobytes() for point in to_numpy(points) + 0.0]
