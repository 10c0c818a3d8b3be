"""The factorisations of many designs on one finite set: their points and C^-1, with C C^T = K_n + ridge I.

They are small, n^2 numbers for each design, and answer questions about a few points without L.
"""

from typing import Any

import array_api_compat
import numpy as np

from rewardfree.arrays import Array
from rewardfree.kernels import Kernel
from rewardfree.posterior.engine.backend import Backend, Places, Recording, Selection, padded
from rewardfree.posterior.engine.prior import PriorRows
from rewardfree.posterior.variance import VarianceFloor


class Factors:
    """g designs, each with its points as candidate indices and its C^-1. Entries beyond them are zero."""

    def __init__(
        self, kernel: Kernel, ridge: float, prior: PriorRows, backend: Backend, designs: int, capacity: int
    ) -> None:
        self._prior, self._backend = prior, backend
        self.floor = VarianceFloor.of(kernel, ridge, prior.diagonal, backend)
        self._inverse = backend.zeros((designs, capacity, capacity))
        self._indices = backend.zeros((designs, capacity), index=True)
        self.counts = np.zeros(designs, np.int64)  # (g,) points of each design
        self.recording: Recording | None = None

    @property
    def capacity(self) -> int:
        return int(self._indices.shape[1])

    def points(self, chosen: Selection) -> Array:
        """The points of some designs as candidate indices, (g,n). Entries beyond them are arbitrary."""
        return self._backend.take(self._indices, chosen.index)[:, : self.longest(chosen)]

    def longest(self, chosen: Selection) -> int:
        """The largest number of points among some designs, or more inside a recorded round."""
        if self.recording:
            return self.recording.length
        return int(self.counts[chosen.numbers].max()) if len(chosen) else 0

    def append(self, chosen: Selection, added: Array) -> None:
        """Add points (g,p) to some designs; for p > 1 these must have the same number of points."""
        backend, xp = self._backend, self._backend.xp
        n, p = self.longest(chosen), added.shape[1]
        inverse = backend.take(self._inverse, chosen.index)[:, :n, :n]
        prior = self._prior.between(added, self.points(chosen))  # (g,p,n)
        cross = prior @ xp.permute_dims(inverse, (0, 2, 1))
        schur = self._prior.between(added, added) - cross @ xp.permute_dims(cross, (0, 2, 1))
        whiten = self.floor.whitening(schur, n + p)
        # C gains the rows (cross, whiten^-1), so C^-1 gains whiten (-cross C^-1, 1).
        rows, place = -whiten @ (cross @ inverse), self.places(chosen, 0, p)
        backend.put(self._inverse, (*place, slice(0, n)), rows[:, 0, :] if p == 1 else rows)
        backend.put(self._inverse, _square(place, p), whiten[:, 0, 0] if p == 1 else whiten)
        backend.put(self._indices, place, added[:, 0] if p == 1 else added)
        self.counts[chosen.numbers] += p
        if self.recording:
            backend.add(self.recording.counts, chosen.index, p)

    def white(self, chosen: Selection, queries: Array) -> Array:
        """C^-1 k_n(q) at candidates (g,m): (g,n,m)."""
        n = self.longest(chosen)
        inverse = self._backend.take(self._inverse, chosen.index)[:, :n, :n]
        return inverse @ self._prior.between(self.points(chosen), queries)

    def weights(self, chosen: Selection, columns: Array, first: int = 0) -> Array:
        """(C^-1 y)^T for targets (g,n,c), from entry `first` on: (g,c,n-first). One design serves all g."""
        n = columns.shape[1]
        inverse = self._backend.take(self._inverse, chosen.index)[:, first:n, :n]
        return self._backend.xp.permute_dims(inverse @ columns, (0, 2, 1))

    def block(self, chosen: Selection, offset: int, p: int) -> tuple[Array, Array]:
        """p consecutive points (g,p) at `offset` from a design's end, and their block of C^-1 (g,p,p)."""
        take, place = self._backend.take, self.places(chosen, offset, p)
        points, square = take(self._indices, place), take(self._inverse, _square(place, p))
        return (points[:, None], square[:, None, None]) if p == 1 else (points, square)

    def places(self, chosen: Selection, offset: int, p: int = 1) -> Places:
        """The index of p consecutive entries of each design, (g,p), or (g,) if p = 1.

        The first is at `offset` from the design's end: 0 is the next entry, -1 the newest.
        """
        if self.recording is None:
            designs, position = chosen.places(self.counts[chosen.numbers] + offset)
        else:
            designs = self._backend.take(self.recording.numbers, chosen.index)
            position = self._backend.take(self.recording.counts, chosen.index) + offset
        if p == 1:
            return designs, position
        if isinstance(position, int):
            return designs, slice(position, position + p)
        # Made on the device: a recording cannot copy numbers from the host.
        xp, device = self._backend.xp, array_api_compat.device(self._indices)
        steps = xp.arange(p, dtype=self._indices.dtype, device=device)
        return self._backend.index(designs)[:, None], self._backend.index(position)[:, None] + steps[None, :]

    def pivots(self, chosen: Selection) -> Array:
        """The diagonal of C^-1, (g,capacity)."""
        return self._backend.xp.linalg.diagonal(self._backend.take(self._inverse, chosen.index))

    def cut_back(self, counts: Any) -> None:
        """Forget the points beyond the first `counts` (g,) of each design."""
        for design in np.flatnonzero(self.counts > counts).tolist():
            self._inverse[design, int(counts[design]) :, :] = 0.0
        self.counts[:] = counts

    def reserve(self, need: int) -> None:
        """Make room for `need` points in every design; if there is too little, at least double it."""
        designs, capacity = self._indices.shape
        if need > capacity:
            grown = max(need, 2 * capacity)
            self._inverse = padded(self._backend, self._inverse, (designs, grown, grown))
            self._indices = padded(self._backend, self._indices, (designs, grown), index=True)


def _square(place: Places, p: int) -> tuple[Any, ...]:
    """The index of the block of C^-1 whose rows and columns are at `place`."""
    designs, position = place
    if p == 1 or isinstance(position, slice):
        return designs, position, position
    return designs[:, :, None], position[:, :, None], position[:, None, :]
