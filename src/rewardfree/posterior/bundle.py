"""Separate posteriors, one for each design, where a loop expects them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rewardfree.arrays import Array, as_points, to_numpy
from rewardfree.posterior.engine.backend import Selection
from rewardfree.posterior.protocol import Posterior


class Bundle:
    """Posteriors of any kind over one finite set Z: exact, but one by one; see `Posteriors`."""

    def __init__(self, posteriors: Sequence[Posterior], candidates: Array) -> None:
        self._posteriors = list(posteriors)
        self._candidates = to_numpy(as_points(candidates, "candidates"))
        self._counts = np.zeros(len(self._posteriors), np.int64)
        for posterior in self._posteriors:
            if posterior.batch != ():
                raise ValueError(f"a bundle takes single posteriors, got one of batch {posterior.batch}")

    @property
    def candidates(self) -> Array:
        return self._candidates

    def append(self, designs: Any, indices: Any) -> None:
        for number, index in zip(self._numbers(designs), to_numpy(indices), strict=True):
            self._posteriors[number].extend(self._candidates[index][None, :])
            self._counts[number] += 1

    def extend_each(self, indices: Any) -> None:
        for number, added in enumerate(to_numpy(indices)):
            self._posteriors[number].extend(self._candidates[added])
            self._counts[number] += len(added)

    def mean(self, targets: Array, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        asked = zip(self._asked(at, rows, designs), targets, strict=True)
        return np.stack([self._posteriors[i].mean(y[: self._counts[i]], points) for (i, points), y in asked])

    def std(self, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        return np.stack([self._posteriors[i].std(points) for i, points in self._asked(at, rows, designs)])

    def _asked(self, at: Any, rows: Any, designs: Any) -> list[tuple[int, Any]]:
        """The designs that are asked, each with the points that it is asked about."""
        numbers = self._numbers(designs)
        if rows is None:
            return [(i, self._candidates if at is None else at) for i in numbers]
        each = np.broadcast_to(rows, (len(numbers), np.shape(rows)[-1]))
        return [(i, self._candidates[row]) for i, row in zip(numbers, each, strict=True)]

    def length(self, designs: Any = None) -> int:
        return int(self._counts[self._numbers(designs)].max())

    def repeat(self, step: Callable[[], None], times: int) -> None:
        for _ in range(times):
            step()

    def _numbers(self, designs: Any) -> Any:
        every = np.arange(len(self._counts))
        if designs is None or isinstance(designs, slice):
            return every[designs or slice(None)]
        return Selection.named(designs, len(every)).numbers
