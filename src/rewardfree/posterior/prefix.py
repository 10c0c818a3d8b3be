"""A lattice as it was earlier: the first n rows of L and of C^-1 are the posterior of the first n points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rewardfree.arrays import Array
from rewardfree.threads import one_blas_thread

if TYPE_CHECKING:
    from rewardfree.posterior.lattice import Lattice


class Prefixes:
    """The posteriors of a lattice when its designs had n points, for several n side by side, one a column.

    So one pass over L answers for all of them. See `Lattice.as_of`.
    """

    def __init__(self, lattice: Lattice, sizes: Sequence[int]) -> None:
        self._lattice, self._sizes = lattice, list(sizes)
        with one_blas_thread():
            lattice._settle(lattice._select(None))

    def mean(self, targets: Array, *, designs: Any = None) -> Array:
        """At all of Z, each column for the first n of its targets: (g,n,c) gives (g,m,c).

        Columns take the sizes in turns: there is one for each n, or that many times over.
        """
        lattice, xp = self._lattice, self._lattice._backend.xp
        chosen = lattice._select(designs)
        columns, _ = lattice._columns(targets, chosen)
        sizes = np.resize(self._sizes, columns.shape[2])
        used = np.arange(columns.shape[1])[:, None] < sizes  # (n,c)
        mask = lattice._backend.array(used)
        with one_blas_thread():
            weights = lattice._factors.weights(chosen, columns * mask) * xp.permute_dims(mask, (1, 0))
            means = lattice._pass(chosen, weights, 0, 0)
        return xp.permute_dims(means, (0, 2, 1))

    def std(self, *, designs: Any = None) -> Array:
        """sigma at all of Z, (g,c,m)."""
        lattice, xp = self._lattice, self._lattice._backend.xp
        chosen = lattice._select(designs)
        longest = lattice._factors.longest(chosen)
        sizes = [min(n, longest) for n in self._sizes]
        ends = sorted({0, *sizes})
        variance = {0: lattice._backend.zeros((len(chosen), len(lattice._set))) + lattice._prior.diagonal}
        for first, last in pairwise(ends):
            variance[last] = variance[first] - lattice._rows.squares(chosen, first, last)
        stacked = xp.stack([variance[n] for n in sizes], axis=1)
        return xp.sqrt(lattice._factors.clipped(stacked, longest))

    def length(self, designs: Any = None) -> int:
        return self._lattice.length(designs)
