"""The finite set Z of a lattice, whose points are named by index or by coordinates."""

from __future__ import annotations

import numpy as np

from rewardfree.arrays import Array, as_points, namespace, to_numpy
from rewardfree.posterior.engine.backend import Backend


class CandidateSet:
    """The points Z (m,d), and the checked indices of those that a caller names."""

    def __init__(self, points: Array, backend: Backend) -> None:
        self.points = backend.own(points)
        self._backend = backend
        self._lookup: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def indices(self, values: Array, axes: tuple[int, ...] = (1,)) -> Array:
        """Candidate indices that a caller gives, checked: (m,), or of other numbers of axes."""
        if not hasattr(values, "dtype"):
            values = np.asarray(values)
        if 0 in values.shape:
            return self._backend.zeros(tuple(values.shape), index=True)
        is_text = isinstance(values, np.ndarray) and values.dtype.kind in "OUS"
        if is_text or not namespace(values).isdtype(values.dtype, "integral"):
            raise ValueError(f"candidate indices must be whole numbers, got {values.dtype}")
        if values.ndim not in axes:
            numbers = " or ".join(map(str, axes))
            raise ValueError(f"candidate indices must have {numbers} axes, got shape {tuple(values.shape)}")
        return self._in_range(self._backend.index(values))

    def at(self, points: Array) -> Array:
        """The indices (m,) of points (m,d), each of which must be a candidate."""
        points = as_points(points, "points", self.points.shape[1])
        if self._lookup is None:  # in reverse, so that of equal points the first one is kept
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
        # With deferred checks a wrong index is still used, and must stay inside the arrays.
        return xp.clip(indices, 0, total - 1) if self._backend.deferred else indices


def _keys(points: Array) -> list[bytes]:
    """Each point as bytes. Adding zero turns -0.0 into 0.0."""
    return [point.tobytes() for point in to_numpy(points) + 0.0]
