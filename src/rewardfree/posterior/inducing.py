"""Inducing points: those of many that tell most about the rest, and the features they give to any point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.blas import dtrsm

from rewardfree.arrays import Floats
from rewardfree.kernels import Kernel
from rewardfree.kernels.fitting import evenly
from rewardfree.posterior.design import Design
from rewardfree.posterior.growing_factor import whitened
from rewardfree.posterior.products import kernel_rows
from rewardfree.posterior.variance import not_positive_definite

#: Inducing points are chosen from at most this many points, evenly spread over all of them.
POOL = 10_000
#: What is added to the diagonal of K_mm, as a share of the largest k(z,z): without it the factor of nearly
#: equal points fails. A point that is left with a few times this variance tells nothing new.
JITTER, FEW = 1e-12, 10.0


@dataclass(frozen=True, eq=False)
class InducingPoints:
    """m points and the factor C C^T = K_mm: phi(z) = C^-1 k_m(z) are the m features of a point."""

    kernel: Kernel
    points: Floats  # (m,f)
    factor: Any  # C, (m,m) in column order

    @classmethod
    def chosen(cls, kernel: Kernel, points: Floats, most: int) -> InducingPoints:
        """At most `most` of points (n,f): each where the variance given the others is largest.

        This is Alg 2 without noise, and a Cholesky factorisation of the kernel matrix with pivots.
        """
        pool = points[evenly(len(points), POOL)]
        jitter = JITTER * float(kernel._at(pool).max())
        rows, sigma = Design(kernel, ridge=jitter).greedy(pool, min(most, len(pool)))
        kept = pool[rows[sigma**2 > FEW * jitter]]
        matrix = kernel.between(kept, kept)
        matrix[np.diag_indices(len(kept))] += jitter
        try:
            return cls(kernel, kept, np.asfortranarray(cholesky(matrix, lower=True, check_finite=False)))
        except LinAlgError:
            raise not_positive_definite(kernel, jitter, len(kept), "no Cholesky factor") from None

    def __len__(self) -> int:
        return len(self.points)

    def features(self, at: Floats) -> Floats:
        """phi of points (b,f): (b,m)."""
        return whitened(self.factor, kernel_rows(self.kernel, at, self.points))

    def weights(self, of_features: Floats) -> Floats:
        """Weights (m,c) of k(q, inducing points) that are the same as these of phi(q): C^-T w."""
        return np.asarray(dtrsm(1.0, self.factor, of_features, lower=1, trans_a=1))
