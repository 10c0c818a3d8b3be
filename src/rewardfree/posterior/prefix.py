"""A lattice as it was earlier: the first n rows of L and of C^-1 are the posterior of the first n points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rewardfree.arrays import Array, as_array
from rewardfree.threads import one_blas_thread

if TYPE_CHECKING:
    from rewardfree.posterior.lattice import Lattice


class Prefix:
    """The posteriors of a lattice when its designs had n points; see `Lattice.as_of`."""

    def __init__(self, lattice: Lattice, n: int) -> None:
        self._lattice, self._n = lattice, n

    def mean(self, targets: Array, *, designs: Any = None) -> Array:
        """At all of Z, for the first n targets: (g,n,c) gives (g,m,c)."""
        lattice = self._lattice
        chosen = lattice._select(designs)
        columns = lattice._columns(as_array(targets, "targets"), chosen, self._n)
        with one_blas_thread():
            lattice._settle(chosen)
            weights = lattice._factors.weights(chosen, columns)
            means = lattice._pass(chosen, weights, 0, 0)
        return lattice._backend.xp.permute_dims(means, (0, 2, 1))

    def std(self, *, designs: Any = None) -> Array:
        """sigma at all of Z, (g,m)."""
        lattice = self._lattice
        chosen = lattice._select(designs)
        with one_blas_thread():
            lattice._settle(chosen)
            variance = lattice._prior.diagonal - lattice._rows.squares(chosen, self._n)
        return lattice._backend.xp.sqrt(lattice._factors.clipped(variance, self._n))

    def length(self, designs: Any = None) -> int:
        return min(self._n, self._lattice.length(designs))
