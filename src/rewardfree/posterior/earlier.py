"""A lattice as it was earlier: the first n rows of L and of C^-1 give the posterior of the first n points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rewardfree.arrays import Array
from rewardfree.posterior.protocol import Designs
from rewardfree.threads import one_blas_thread

if TYPE_CHECKING:
    from rewardfree.posterior.lattice import Lattice


class EarlierPosteriors:
    """The posteriors of a lattice when its designs had n points, for several n in one pass over L.

    There is one column for each n. See `Lattice.as_of`.
    """

    def __init__(self, lattice: Lattice, sizes: Sequence[int]) -> None:
        self._lattice, self._sizes = lattice, list(sizes)
        with one_blas_thread():
            lattice._settle(lattice._select(None))

    def mean(self, targets: Array, *, designs: Designs = None) -> Array:
        """The means at all of Z, of targets (g,n,c): (g,m,c). Column j uses the first sizes[j] targets.

        There are as many columns as sizes, or a multiple: then the sizes are repeated in order.
        """
        lattice, xp = self._lattice, self._lattice._backend.xp
        chosen = lattice._select(designs)
        columns, _ = lattice._columns(targets, chosen)
        sizes = np.resize(self._sizes, columns.shape[2])
        mask = lattice._backend.array(np.arange(columns.shape[1])[:, None] < sizes)  # (n,c)
        with one_blas_thread():
            weights = lattice._factors.weights(chosen, columns * mask) * xp.permute_dims(mask, (1, 0))
            means = lattice._pass(chosen, weights, 0, 0)
        return xp.permute_dims(means, (0, 2, 1))

    def std(self, *, designs: Designs = None) -> Array:
        """sigma at all of Z, (g,c,m)."""
        lattice, xp = self._lattice, self._lattice._backend.xp
        chosen = lattice._select(designs)
        longest = lattice._longest(chosen)
        sizes = [min(n, longest) for n in self._sizes]
        ends = sorted({0, *sizes})
        variance = {0: lattice._backend.zeros((len(chosen), len(lattice._set))) + lattice._prior.diagonal}
        for first, last in pairwise(ends):
            variance[last] = variance[first] - lattice._rows.squares(chosen, first, last)
        stacked = xp.stack([variance[n] for n in sizes], axis=1)
        return xp.sqrt(lattice._factors.floor.clipped(stacked, longest))

    def length(self, designs: Designs = None) -> int:
        """How many targets `mean` wants for each design."""
        return self._lattice.length(designs)
