"""Inducing points: those of many that tell most about the rest, and the features they give to any point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Array, at_least_zero, count
from rewardfree.kernels import Kernel
from rewardfree.kernels.fitting import evenly
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra
from rewardfree.posterior.greedy import largest_sigma_first
from rewardfree.posterior.variance import rounding_floor

#: Inducing points are chosen from at most this many points, evenly spread over all of them.
POOL = 10_000
#: What is added to the diagonal of K_mm, as a share of the largest k(z,z): without it the factor of nearly
#: equal points fails. A point that is left with a few times this variance tells nothing new.
JITTER, FEW = 1e-12, 10.0


def as_inducing(value: Any) -> int:
    """`value` as a number of inducing points."""
    number = count(value, "inducing")
    if number > POOL:
        raise ValueError(
            f"inducing must be at most {POOL:,}, the points they are chosen from, got {number:,}: "
            "an exact posterior (inducing=None, rf.posterior.Design) has no such limit"
        )
    return number


@dataclass(frozen=True, eq=False)
class InducingPoints:
    """m points and the factor C C^T = K_mm: phi(z) = C^-1 k_m(z) are the m features of a point."""

    algebra: LinearAlgebra
    kernel: Kernel
    points: Array  # (m,f)
    factor: Any  # C, (m,m)
    jitter: float  # what was added to the diagonal of K_mm

    @classmethod
    def chosen(cls, algebra: LinearAlgebra, kernel: Kernel, points: Array, most: int) -> InducingPoints:
        """At most `most` of points (n,f): each where the variance given the others is largest.

        This is Alg 2 without noise, and a Cholesky factorisation of the kernel matrix with pivots.
        """
        pool = algebra.array(points[algebra.index(evenly(len(points), POOL))])
        variance = algebra.own(kernel._at(pool))
        prior = float(algebra.xp.max(variance))
        jitter, queries = _jitter(prior), min(most, len(pool))

        def clipped(variance: Array, points: int) -> Array:
            lowest = float(algebra.xp.min(variance))
            if not lowest >= rounding_floor(prior, jitter, points, np.finfo(np.float64).eps):
                raise _not_semidefinite(kernel, points, f"a variance of {lowest:.3g}")
            return at_least_zero(variance)

        rows, sigma = largest_sigma_first(
            variance,
            algebra.each_row(kernel, pool),
            algebra.zeros(queries, len(pool)),
            queries,
            jitter,
            clipped,
        )
        telling = sigma**2 > FEW * jitter
        telling[0] = True
        return cls.of(algebra, kernel, pool[algebra.index(rows[telling])])

    @classmethod
    def of(cls, algebra: LinearAlgebra, kernel: Kernel, points: Array) -> InducingPoints:
        """These points (m,f)."""
        jitter = _jitter(float(algebra.xp.max(kernel._at(points))))
        matrix = kernel.between(points, points) + algebra.identity(len(points), jitter)
        try:
            return cls(algebra, kernel, points, algebra.cholesky(matrix), jitter)
        except np.linalg.LinAlgError:
            raise _not_semidefinite(kernel, len(points), "no Cholesky factor") from None

    def __len__(self) -> int:
        return len(self.points)

    def features(self, at: Array) -> Array:
        """phi of points (b,f): (b,m). C^-1 multiplies rounding, so it sees kernel values in float64 alone."""
        rows = self.algebra.kernel_rows(self.kernel, self.algebra.array(at), self.points)
        return self.algebra.whitened(self.factor, rows)

    def prior(self, at: Array) -> Array:
        """k(z,z) of points (b,f): (b,)."""
        return self.algebra.own(self.kernel._at(self.algebra.array(at)))

    def weights(self, of_features: Array) -> Array:
        """Weights (m,c) of k(q, inducing points) that are the same as these of phi(q): C^-T w."""
        return self.algebra.solved(self.factor, of_features, transposed=True)


def _jitter(prior: float) -> float:
    """For that largest k(z,z). It may be 0, as of Linear() at the origin: one point, which tells nothing."""
    return JITTER * (prior if prior > 0.0 else 1.0)


def _not_semidefinite(kernel: Kernel, points: int, symptom: str) -> Exception:
    return np.linalg.LinAlgError(
        f"{kernel!r} on {points} of the points gave {symptom}: check that it is positive semi-definite. "
        "One that is so up to rounding alone needs inducing=None and a larger ridge"
    )
