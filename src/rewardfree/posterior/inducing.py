"""Inducing points: those of many that tell most about the rest, and the features they give to any point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Array
from rewardfree.kernels import Kernel
from rewardfree.kernels.fitting import evenly
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra
from rewardfree.posterior.greedy import largest_sigma_first
from rewardfree.posterior.variance import clipped_variance, not_positive_definite

#: Inducing points are chosen from at most this many points, evenly spread over all of them.
POOL = 10_000
#: What is added to the diagonal of K_mm, as a share of the largest k(z,z): without it the factor of nearly
#: equal points fails. A point that is left with a few times this variance tells nothing new.
JITTER, FEW = 1e-12, 10.0


@dataclass(frozen=True, eq=False)
class InducingPoints:
    """m points and the factor C C^T = K_mm: phi(z) = C^-1 k_m(z) are the m features of a point."""

    algebra: LinearAlgebra
    kernel: Kernel
    points: Array  # (m,f)
    factor: Any  # C, (m,m)

    @classmethod
    def chosen(cls, algebra: LinearAlgebra, kernel: Kernel, points: Array, most: int) -> InducingPoints:
        """At most `most` of points (n,f): each where the variance given the others is largest.

        This is Alg 2 without noise, and a Cholesky factorisation of the kernel matrix with pivots.
        """
        pool = algebra.array(points[algebra.index(evenly(len(points), POOL))])
        variance = algebra.own(kernel._at(pool))
        prior = float(algebra.xp.max(variance))
        jitter, queries = JITTER * prior, min(most, len(pool))
        rows, sigma = largest_sigma_first(
            variance,
            algebra.each_row(kernel, pool),
            algebra.zeros(queries, len(pool)),
            queries,
            jitter,
            lambda variance, points: clipped_variance(variance, kernel, prior, jitter, points),
        )
        kept = pool[algebra.index(rows[sigma**2 > FEW * jitter])]
        matrix = kernel.between(kept, kept) + algebra.identity(len(kept), jitter)
        try:
            return cls(algebra, kernel, kept, algebra.cholesky(matrix))
        except np.linalg.LinAlgError:
            raise not_positive_definite(kernel, jitter, len(kept), "no Cholesky factor") from None

    def __len__(self) -> int:
        return len(self.points)

    def features(self, at: Array) -> Array:
        """phi of points (b,f): (b,m). C^-1 multiplies rounding, so it sees kernel values in float64 alone."""
        rows = self.algebra.kernel_rows(self.kernel, self.algebra.array(at), self.points)
        return self.algebra.whitened(self.factor, rows)

    def kernel_rows(self, at: Array) -> Array:
        """k(q, inducing points) of points (b,f), (b,m), in their dtype."""
        return self.algebra.kernel_rows(self.kernel, at, self._rounded)

    def weighted(self, at: Array, weights: Array) -> Array:
        """k(q, inducing points) @ weights, (b,c)."""
        return self.algebra.weighted(self.kernel, at, self._rounded, weights)

    def weights(self, of_features: Array) -> Array:
        """Weights (m,c) of k(q, inducing points) that are the same as these of phi(q): C^-T w."""
        return self.algebra.solved(self.factor, of_features, transposed=True)

    @property
    def _rounded(self) -> Array:
        """The points in the dtype of all."""
        return self.algebra.points(self.points, "inducing points")
