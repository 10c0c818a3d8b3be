"""Separate posteriors in the form of `Posteriors`."""

from collections.abc import Sequence

import numpy as np

from rewardfree.arrays import Array, as_points, to_numpy
from rewardfree.posterior.engine.backend import DesignSelector
from rewardfree.posterior.protocol import Designs, Posterior, Posteriors


class PosteriorList(Posteriors):
    """Separate posteriors of any kind over one finite set Z, computed one by one."""

    def __init__(self, posteriors: Sequence[Posterior], candidates: Array) -> None:
        self._posteriors = list(posteriors)
        self._candidates = to_numpy(as_points(candidates, "candidates"))
        self._counts = np.zeros(len(self._posteriors), np.int64)
        self._select = DesignSelector(len(self._posteriors))
        for posterior in self._posteriors:
            if posterior.batch != ():
                raise ValueError(f"a list takes single posteriors, got one of batch {posterior.batch}")

    @property
    def candidates(self) -> Array:
        return self._candidates

    def append(self, designs: Designs, indices: Array) -> None:
        for number, index in zip(self._select(designs).numbers, to_numpy(indices), strict=True):
            self._posteriors[number].extend(self._candidates[index][None, :])
            self._counts[number] += 1

    def extend_each(self, indices: Array) -> None:
        for number, added in enumerate(to_numpy(indices)):
            self._posteriors[number].extend(self._candidates[added])
            self._counts[number] += len(added)

    def mean(
        self, targets: Array, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None
    ) -> Array:
        questions = zip(self._questions(at, rows, designs), targets, strict=True)
        return np.stack(
            [self._posteriors[i].mean(y[: self._counts[i]], points) for (i, points), y in questions]
        )

    def std(self, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None) -> Array:
        questions = self._questions(at, rows, designs)
        return np.stack([self._posteriors[i].std(points) for i, points in questions])

    def length(self, designs: Designs = None) -> int:
        return int(self._counts[self._select(designs).numbers].max())

    def _questions(self, at: Array | None, rows: Array | None, designs: Designs) -> list[tuple[int, Array]]:
        """The number of each design that is asked, with the points in question."""
        numbers = self._select(designs).numbers
        if rows is None:
            return [(i, self._candidates if at is None else at) for i in numbers]
        indices = np.broadcast_to(rows, (len(numbers), np.shape(rows)[-1]))
        return [(i, self._candidates[row]) for i, row in zip(numbers, indices, strict=True)]
