"""How far below zero rounding can push a posterior variance, and the error beyond that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rewardfree.arrays import Array, at_least_zero, namespace
from rewardfree.kernels import Kernel

if TYPE_CHECKING:
    from rewardfree.posterior.engine.backend import Backend


def rounding_floor(kernel_prior: float, ridge: float, points: int, eps: float) -> float:
    """The most negative variance that rounding explains: n eps times the condition number of K + ridge I."""
    return -8.0 * (points + 8) * eps * kernel_prior * (1.0 + kernel_prior / ridge)


def not_positive_definite(kernel: Kernel, ridge: float, points: int, symptom: str) -> Exception:
    """The error of a factorisation that fails by more than rounding."""
    return np.linalg.LinAlgError(
        f"{kernel!r} with ridge {ridge:g} on {points} points gave {symptom}: "
        "use a larger ridge or float64, or check that the kernel is positive semi-definite"
    )


def clipped_variance(variance: Array, kernel: Kernel, prior: float, ridge: float, points: int) -> Array:
    """max(variance, 0) of one posterior. One so negative that rounding does not explain it is an error."""
    xp = namespace(variance)
    lowest = float(xp.min(variance))
    if not lowest >= rounding_floor(prior, ridge, points, float(xp.finfo(variance.dtype).eps)):
        raise not_positive_definite(kernel, ridge, points, f"a variance of {lowest:.3g}")
    return at_least_zero(variance)


@dataclass(frozen=True)
class VarianceFloor:
    """The checks of the variances and factorisations of posteriors on a finite set."""

    kernel: Kernel
    ridge: float
    largest: float  # of all k(z,z)
    eps: float
    backend: Backend

    @classmethod
    def of(cls, kernel: Kernel, ridge: float, diagonal: Array, backend: Backend) -> VarianceFloor:
        """By k(z,z) at all candidates, (m,)."""
        xp = backend.xp
        return cls(kernel, ridge, float(xp.max(diagonal)), float(xp.finfo(diagonal.dtype).eps), backend)

    def clipped(self, variance: Array, points: int) -> Array:
        """max(variance, 0). A variance so negative that rounding does not explain it is an error."""
        if 0 in variance.shape:
            return variance
        kernel, ridge = self.kernel, self.ridge
        floor = rounding_floor(self.largest, ridge, points, self.eps)

        def error(value: float) -> Exception:
            return not_positive_definite(kernel, ridge, points, f"a variance of {value + floor:.3g}")

        self.backend.require("variance", self.backend.xp.min(variance) - floor, error)
        return self.backend.at_least_zero(variance)

    def whitening(self, schur: Array, points: int) -> Array:
        """The inverse Cholesky factor of schur + ridge I, (g,p,p)."""
        backend, xp, p = self.backend, self.backend.xp, schur.shape[1]
        diagonal = self.clipped(xp.linalg.diagonal(schur), points) + self.ridge
        if p == 1:
            return (diagonal**-0.5)[:, :, None]
        try:
            factor = xp.linalg.cholesky(schur + self.ridge * backend.array(np.eye(p)))
        except backend.not_positive_definite:
            raise not_positive_definite(self.kernel, self.ridge, points, "no Cholesky factor") from None
        return xp.linalg.inv(factor)  # p is small, and the ridge keeps the factor well conditioned


def gain_of_pivots(pivots: Array, ridge: float) -> Array:
    """1/2 logdet(I + K_n/ridge), (g,), from the diagonal of C^-1 (g,n); an entry 0 belongs to no point."""
    xp = namespace(pivots)
    scaled = xp.where(pivots > 0.0, pivots * math.sqrt(ridge), xp.ones_like(pivots))
    return -xp.sum(xp.log(scaled), axis=1)
