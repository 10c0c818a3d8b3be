"""Which designs a caller means, and the cheapest index that picks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import Integers, to_numpy

#: One entry in each of several designs, as an index: (designs, positions).
Places: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True)
class Selection:
    """Some of the designs of a lattice."""

    numbers: Integers  # (g,), each at most once
    index: Any  # a slice (a view, no copy) where the numbers are evenly spaced, else the numbers

    @classmethod
    def named(cls, designs: Any, total: int) -> Selection:
        """Designs as a caller names them: whole numbers below `total`, each once."""
        numbers = (to_numpy(designs) if hasattr(designs, "shape") else np.asarray(designs)).reshape(-1)
        if len(numbers) and numbers.dtype.kind not in "iu":
            raise ValueError(f"designs must be whole numbers, got {numbers.dtype}")
        numbers = numbers.astype(np.int64)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= total):
            raise ValueError(f"designs must lie in 0..{total - 1}, got {numbers.min()}..{numbers.max()}")
        if len(np.unique(numbers)) != len(numbers):
            raise ValueError("designs must be named once each, got a repeated one")
        return cls.of(numbers)

    @classmethod
    def of(cls, numbers: Integers) -> Selection:
        """The designs of these numbers, which are valid."""
        if len(numbers) == 1:
            return cls(numbers, slice(int(numbers[0]), int(numbers[0]) + 1))
        steps = np.diff(numbers)
        if len(steps) and steps[0] > 0 and (steps == steps[0]).all():
            return cls(numbers, slice(int(numbers[0]), int(numbers[-1]) + 1, int(steps[0])))
        return cls(numbers, numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def places(self, position: Any) -> Places:
        """The index of entry `position[i]` (g,) of each design; plain numbers where all are the same."""
        first = int(position[0])
        if isinstance(self.index, slice) and (position == first).all():
            return self.index, first
        return self.numbers, position

    def halves(self) -> tuple[Selection, Selection]:
        """The first and the second half of the designs."""
        middle = len(self) // 2
        return Selection.of(self.numbers[:middle]), Selection.of(self.numbers[middle:])


class DesignSelector:
    """Selections of `total` designs by what callers name. Slices are cached: loops ask for them again."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._slices: dict[tuple[int, int, int], Selection] = {}

    def __call__(self, designs: Any) -> Selection:
        if designs is not None and not isinstance(designs, slice):
            return Selection.named(designs, self.total)
        key = (designs or slice(None)).indices(self.total)
        if key not in self._slices:
            self._slices[key] = Selection.of(np.arange(*key))
        return self._slices[key]
