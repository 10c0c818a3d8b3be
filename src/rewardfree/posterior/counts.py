"""Visit counts on a finite candidate set, for many designs at once: the tabular estimate.

With a ridge this is the posterior of the delta kernel: sums of targets, and no factorisation.
"""

from typing import Any

import numpy as np

from rewardfree.arrays import (
    Array,
    DType,
    Floats,
    Integers,
    as_array,
    as_points,
    check_counts_on,
    count,
    float_dtype,
    positive,
    to_numpy,
)
from rewardfree.posterior.engine.backend import DesignSelector
from rewardfree.posterior.protocol import Designs, Posteriors


class Counts(Posteriors):
    """g independent designs over one set Z, n visits of each z: ridge regression with the delta kernel.

    The mean is sum/(n + ridge), the std sqrt(ridge/(n + ridge)). The default is the limit of a vanishing
    ridge: the average, and the limit 1/sqrt(n) of sigma/tau. Without visits they are 0 and 1. On the CPU.
    """

    def __init__(
        self,
        candidates: Array,
        *,
        ridge: float = 0.0,
        designs: int = 1,
        capacity: int = 64,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        check_counts_on(device, "this posterior")
        self.ridge = positive(ridge, "ridge") if ridge else 0.0
        points = to_numpy(as_points(candidates, "candidates"))
        if len(points) == 0:
            raise ValueError("candidates must hold at least one point, got none")
        self._candidates = points.astype(points.dtype if dtype is None else float_dtype(dtype))
        g, capacity = count(designs, "designs"), count(capacity, "capacity")
        self._points = np.zeros((g, capacity), np.int64)
        self._lengths = np.zeros(g, np.int64)
        self._visits = np.zeros((g, len(points)))
        self._select = DesignSelector(g)

    @property
    def candidates(self) -> Array:
        return self._candidates

    def visits(self, designs: Designs = None) -> Array:
        """How often each candidate was visited, (g,m)."""
        return self._visits[self._select(designs).index]

    def indices(self, design: int = 0) -> Integers:
        """The points of one design as candidate indices, in the order in which they came."""
        return self._points[design, : self._lengths[design]].copy()

    def append(self, designs: Designs, indices: Array) -> None:
        self._add(self._select(designs).numbers, np.asarray(indices, np.int64)[:, None])

    def extend_each(self, indices: Array) -> None:
        self._add(self._select(None).numbers, np.asarray(indices, np.int64))

    def mean(
        self, targets: Array, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None
    ) -> Array:
        """The average of the targets (g,n,c) at each candidate, shrunk by the ridge: (g,m,c)."""
        numbers, targets = self._select(designs).numbers, to_numpy(as_array(targets, "targets"))
        g, place, z = self._entries(numbers, 0, targets.shape[1])
        visits, bins, values = self._visits[numbers], g * self._visits.shape[1] + z, targets[g, place]
        sums = [np.bincount(bins, column, visits.size).reshape(visits.shape) for column in values.T]
        means = np.stack(sums, axis=2) if sums else np.zeros((*visits.shape, 0))
        means = (means / self._divisors(visits)[:, :, None]).astype(targets.dtype, copy=False)
        queries = self._queries(at, rows, len(numbers))
        return means if queries is None else np.take_along_axis(means, queries[:, :, None], axis=1)

    def std(self, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None) -> Array:
        """sqrt(ridge/(n + ridge)), or 1/sqrt(n) without a ridge, (g,m)."""
        visits = self.visits(designs)
        std = np.sqrt((self.ridge or 1.0) / self._divisors(visits)).astype(self._candidates.dtype)
        queries = self._queries(at, rows, len(visits))
        return std if queries is None else np.take_along_axis(std, queries, axis=1)

    def of_labels(
        self,
        labels: Array,
        size: int,
        since: int = 0,
        *,
        designs: Designs = None,
        before: Array | None = None,
    ) -> Array:
        """P^ (g,size,m) with mean = V P^ for the targets y_i = V[label_i]: the share of each label.

        As `Lattice.of_labels`, for labels (g,n). `before`, P^ of the first `since` points, is overwritten.
        """
        numbers, labels = self._select(designs).numbers, np.asarray(labels)
        g, place, z = self._entries(numbers, since, labels.shape[1])
        visits = self._visits[numbers]
        if before is None:
            before = np.zeros((len(numbers), size, visits.shape[1]), self._candidates.dtype)
        earlier = visits.copy()
        np.subtract.at(earlier, (g, z), 1.0)
        sums = before
        sums *= self._divisors(earlier)[:, None, :]
        np.rint(sums, out=sums)  # sums are whole numbers: rounding errors must not add up
        np.add.at(sums, (g, labels[g, since + place], z), 1.0)
        sums /= self._divisors(visits)[:, None, :]
        return sums

    def length(self, designs: Designs = None) -> int:
        return int(self._lengths[self._select(designs).index].max())

    def _add(self, numbers: Integers, added: Integers) -> None:
        """Add candidates (g,p) to designs (g,)."""
        p, m = added.shape[1], self._visits.shape[1]
        if not p or not len(numbers):
            return
        if added.min() < 0 or added.max() >= m:
            raise ValueError(f"candidate indices must lie in 0..{m - 1}, got {added.min()}..{added.max()}")
        places = self._lengths[numbers][:, None] + np.arange(p)
        missing = int(places.max()) + 1 - self._points.shape[1]
        if missing > 0:
            self._points = np.pad(self._points, ((0, 0), (0, max(missing, self._points.shape[1]))))
        self._points[numbers[:, None], places] = added
        self._lengths[numbers] += p
        if p == 1:  # faster, and right where no design gets two points
            self._visits[numbers, added[:, 0]] += 1.0
        else:
            np.add.at(self._visits, (numbers[:, None], added), 1.0)

    def _divisors(self, visits: Floats) -> Floats:
        """The divisor of sums: n + ridge; without a ridge n, or 1 if n = 0."""
        return visits + self.ridge if self.ridge else np.maximum(visits, 1.0)

    def _entries(self, numbers: Integers, since: int, n: int) -> tuple[Integers, Integers, Integers]:
        """The points since .. n-1 of designs, as far as they have them: row of the design, place, and z."""
        lengths = self._lengths[numbers]
        g, place = np.nonzero(np.arange(since, n) < lengths[:, None])
        return g, place, self._points[numbers[g], since + place]

    def _queries(self, at: Array | None, rows: Array | None, designs: int) -> Any:
        """The candidates that are asked about, (g,m), or None for all."""
        if at is not None:
            raise ValueError("visits are counted by index: name candidates by rows=")
        return None if rows is None else np.broadcast_to(rows, (designs, np.shape(rows)[-1]))
