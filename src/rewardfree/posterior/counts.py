"""Visit counts on a finite candidate set, for many designs at once: the tabular estimate.

With a ridge they are the delta kernel's posterior: a sum of the targets, and no factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.arrays import Array, as_array, as_points, count, float_dtype, positive, to_numpy
from rewardfree.posterior.engine.backend import Selection


class Counts:
    """g independent designs over one set Z, n visits of each z: the delta kernel's ridge regression.

    Its mean is sum/(n + ridge), its std sqrt(ridge/(n + ridge)). By default for a ridge that vanishes: the
    average, and as std the limit of sigma/tau, 1/sqrt(n). Where nothing was seen: 0 and 1. On the CPU.
    """

    def __init__(
        self,
        candidates: Array,
        *,
        ridge: float = 0.0,
        designs: int = 1,
        capacity: int = 64,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if device not in (None, "cpu"):
            raise ValueError(f'visits are counted on the CPU: leave device= out, got "{device}"')
        self.ridge = positive(ridge, "ridge") if ridge else 0.0
        points = to_numpy(as_points(candidates, "candidates"))
        if len(points) == 0:
            raise ValueError("candidates must hold at least one point, got none")
        self._candidates = points.astype(points.dtype if dtype is None else float_dtype(dtype))
        g, capacity = count(designs, "designs"), count(capacity, "capacity")
        self._points = np.zeros((g, capacity), np.int64)
        self._lengths = np.zeros(g, np.int64)
        self._visits = np.zeros((g, len(points)))

    @property
    def candidates(self) -> Array:
        return self._candidates

    def visits(self, designs: Any = None) -> Array:
        """How often each candidate was seen, (g,m)."""
        return self._visits[self._chosen(designs)]

    def indices(self, design: int = 0) -> Any:
        """The points of one design as candidate indices, in the order in which they came."""
        return self._points[design, : self._lengths[design]].copy()

    def append(self, designs: Any, indices: Any) -> None:
        chosen = self._numbers(designs)
        self._add(chosen, np.asarray(indices, np.int64)[:, None])

    def extend_each(self, indices: Any) -> None:
        self._add(self._numbers(None), np.asarray(indices, np.int64))

    def mean(self, targets: Array, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """The average of the targets (g,n,c) at each candidate, shrunk by the ridge: (g,m,c)."""
        chosen, targets = self._numbers(designs), to_numpy(as_array(targets, "targets"))
        g, place, z = self._seen(chosen, 0, targets.shape[1])
        visits, at_z, values = self._visits[chosen], g * self._visits.shape[1] + z, targets[g, place]
        sums = [np.bincount(at_z, column, visits.size).reshape(visits.shape) for column in values.T]
        means = np.stack(sums, axis=2) if sums else np.zeros((*visits.shape, 0))
        means = (means / self._shares(visits)[:, :, None]).astype(targets.dtype, copy=False)
        wanted = self._rows(at, rows, len(chosen))
        return means if wanted is None else np.take_along_axis(means, wanted[:, :, None], axis=1)

    def std(self, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """(g,m), see above."""
        visits = self.visits(designs)
        std = np.sqrt((self.ridge or 1.0) / self._shares(visits)).astype(self._candidates.dtype)
        wanted = self._rows(at, rows, len(visits))
        return std if wanted is None else np.take_along_axis(std, wanted, axis=1)

    def of_labels(
        self, labels: Array, size: int, since: int = 0, *, designs: Any = None, before: Array | None = None
    ) -> Array:
        """P^ (g,size,m) with mean = V P^ for the targets y_i = V[label_i]: how often each label was seen.

        As `Lattice.of_labels`: labels (g,n); `before` is P^ of the first `since` points, and is changed.
        """
        chosen, labels = self._numbers(designs), np.asarray(labels)
        g, place, z = self._seen(chosen, since, labels.shape[1])
        visits = self._visits[chosen]
        if before is None:
            before = np.zeros((len(chosen), size, visits.shape[1]), self._candidates.dtype)
        earlier = visits.copy()
        np.subtract.at(earlier, (g, z), 1.0)
        sums = before
        sums *= self._shares(earlier)[:, None, :]
        np.rint(sums, out=sums)  # they are whole numbers: no rounding adds up
        np.add.at(sums, (g, labels[g, since + place], z), 1.0)
        sums /= self._shares(visits)[:, None, :]
        return sums

    def length(self, designs: Any = None) -> int:
        return int(self._lengths[self._chosen(designs)].max())

    def repeat(self, step: Callable[[], None], times: int) -> None:
        for _ in range(times):
            step()

    def _add(self, chosen: Any, added: Any) -> None:
        """Candidates (g,p)."""
        p, m = added.shape[1], self._visits.shape[1]
        if not p or not len(chosen):
            return
        if added.min() < 0 or added.max() >= m:
            raise ValueError(f"candidate indices must lie in 0..{m - 1}, got {added.min()}..{added.max()}")
        places = self._lengths[chosen][:, None] + np.arange(p)
        short = int(places.max()) + 1 - self._points.shape[1]
        if short > 0:
            room = max(short, self._points.shape[1])
            self._points = np.pad(self._points, ((0, 0), (0, room)))
        self._points[chosen[:, None], places] = added
        self._lengths[chosen] += p
        if p == 1:  # no design has two of them
            self._visits[chosen, added[:, 0]] += 1.0
        else:
            np.add.at(self._visits, (chosen[:, None], added), 1.0)

    def _shares(self, visits: Any) -> Any:
        """What sums are divided by: n + ridge, or 1 where that is nothing."""
        return visits + self.ridge if self.ridge else np.maximum(visits, 1.0)

    def _seen(self, chosen: Any, since: int, n: int) -> tuple[Any, Any, Any]:
        """Of designs' points since .. n-1 those that there are: which design, which place, which z."""
        lengths = self._lengths[chosen]
        g, place = np.nonzero(np.arange(since, n) < lengths[:, None])
        return g, place, self._points[chosen[g], since + place]

    def _rows(self, at: Any, rows: Any, designs: int) -> Any:
        """The candidates that are asked about, (g,m); None: all."""
        if at is not None:
            raise ValueError("visits are counted by index: name candidates by rows=")
        return None if rows is None else np.broadcast_to(rows, (designs, np.shape(rows)[-1]))

    def _chosen(self, designs: Any) -> Any:
        """Designs as an index: a slice gives a view."""
        if designs is None or isinstance(designs, slice):
            return designs or slice(None)
        return self._numbers(designs)

    def _numbers(self, designs: Any) -> Any:
        every = np.arange(len(self._lengths))
        if designs is None or isinstance(designs, slice):
            return every[designs or slice(None)]
        return Selection.named(designs, len(every)).numbers
