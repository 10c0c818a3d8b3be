"""Maximal information gain Gamma(n) = sup 1/2 logdet(I + K_n/ridge): greedy values, and bounds from above."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import as_points, count, non_negative, positive, to_numpy
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior import Lattice
from rewardfree.theory.spectrum import Spectrum, fitted_line
from rewardfree.threads import one_blas_thread
from rewardfree.ties import argmax_tied

#: An upper bound on Gamma as a function of n.
Law: TypeAlias = Callable[[float], float]
#: A residual diagonal below this fraction of the prior is rounding, and is raised to it.
ROUNDING = 1e-14


def information_gain(kernel: Kernel, points: Any, ridge: float) -> float:
    """1/2 logdet(I + K/ridge); points may repeat."""
    points = as_points(points, "points")
    matrix = as_kernel(kernel)(points) / positive(ridge, "ridge") + np.eye(len(points))
    return 0.5 * float(np.linalg.slogdet(matrix)[1])


@dataclass(frozen=True, eq=False)
class GreedyGain:
    """The gain of greedy queries: maximal variance is maximal gain, so these are the queries of Alg 2."""

    ridge: float
    gains: Any  # (n+1,) I_0 .. I_n
    largest: Any  # (n+1,) the largest sigma^2 over the candidates after 0..n queries
    smallest: Any  # (n+1,) the smallest one

    @property
    def n(self) -> int:
        return len(self.gains) - 1

    def first(self, n: int) -> GreedyGain:
        """The same after its first n queries."""
        return GreedyGain(self.ridge, self.gains[: n + 1], self.largest[: n + 1], self.smallest[: n + 1])


def greedy_gain(kernel: Kernel, candidates: Any, ridge: float, n: int) -> GreedyGain:
    """n queries, each where sigma is largest; the gain of a query is 1/2 log(1 + sigma^2/ridge)."""
    n, ridge = count(n, "n", at_least=0), positive(ridge, "ridge")
    lattice = Lattice(kernel, as_points(candidates, "candidates"), ridge=ridge, capacity=max(n, 1))
    gains, largest, smallest = [0.0], [], []
    with one_blas_thread():
        for i in range(n + 1):
            std = to_numpy(lattice.std())[0]
            largest.append(float(std.max()) ** 2)
            smallest.append(float(std.min()) ** 2)
            if i < n:
                query = int(argmax_tied(std))
                gains.append(gains[-1] + 0.5 * math.log1p(float(std[query]) ** 2 / ridge))
                lattice.append(None, [query])
    return GreedyGain(ridge, np.array(gains), np.array(largest), np.array(smallest))


def greedy_upper(greedy: GreedyGain) -> float:
    """I_n / (1 - (1 - 1/n)^n) >= Gamma(n): the gain is submodular, so greedy has that share of the best."""
    n = greedy.n
    if n == 0:
        return 0.0
    return float(greedy.gains[n]) / -math.expm1(n * math.log1p(-1.0 / n) if n > 1 else -math.inf)


def variance_upper(greedy: GreedyGain, n: float) -> float:
    """min_j I_j + (n/2) log(1 + max sigma_j^2/ridge): after j queries, none gains more than that."""
    n = non_negative(n, "n")
    return float((greedy.gains + 0.5 * n * np.log1p(greedy.largest / greedy.ridge)).min())


def residual_diagonal(kernel: Kernel, candidates: Any, rank: int) -> Any:
    """(rank+1,) the largest k(z,z) - q(z,z), q the pivoted Cholesky factor of rank 0, 1, ..."""
    points, kernel = as_points(candidates, "candidates"), as_kernel(kernel)
    rank = min(count(rank, "rank", at_least=0), len(points))
    residual = np.asarray(kernel.diag(points), float).copy()
    factor, largest = np.zeros((rank, len(points))), [residual.max()]
    floor = ROUNDING * largest[0]
    with one_blas_thread():
        for i in range(rank):
            pivot = int(residual.argmax())
            if residual[pivot] <= floor:
                break
            row = kernel.between(points[pivot : pivot + 1], points)[0] - factor[:i, pivot] @ factor[:i]
            factor[i] = row / math.sqrt(residual[pivot])
            residual = np.maximum(residual - factor[i] ** 2, 0.0)
            largest.append(residual.max())
    return np.maximum(np.array(largest), floor)


def low_rank_law(residuals: Any, ridge: float, points: int | None = None) -> Law:
    """Gamma(n) <= min_D (D/2) log(1 + n k/(ridge D)) + n d_D/(2 ridge), d_D the residual of rank D, k = d_0.

    K_n = A + B: A has rank D and trace at most n k, B a diagonal of at most d_D, and logdet(I + A + B)
    <= logdet(I + A) + tr B. With `points` candidates, D = points leaves no rest, which serves any n.
    """
    ridge, residuals = positive(ridge, "ridge"), np.asarray(residuals, float)
    ranks = np.arange(len(residuals), dtype=float)
    if points is not None:
        ranks, residuals = np.append(ranks, count(points, "points")), np.append(residuals, 0.0)
    prior = float(residuals[0])

    def law(n: float) -> float:
        share = np.divide(n * prior / ridge, ranks, out=np.zeros_like(ranks), where=ranks > 0)
        return float((0.5 * ranks * np.log1p(share) + 0.5 * n * residuals / ridge).min())

    return law


def rate_law(greedy: GreedyGain, p: float, dim: int) -> Law:
    """Gamma(n) = c n^(1/p) log(1+n)^(1-1/p), through the last greedy value: the growth that theory states.

    This is for eigenvalues m^-p; for exponential ones (p infinite) it is c log(1+n)^(d+1). Up to the last
    query it is the greedy value itself. It is an extrapolation, not a bound.
    """
    if greedy.n == 0 or not p > 1.0:
        raise ValueError(f"a rate needs queries and p > 1, got {greedy.n} queries and p = {p:g}")
    last, logs = float(greedy.gains[-1]), count(dim, "dim") + 1.0 if math.isinf(p) else 1.0 - 1.0 / p

    def shape(n: float) -> float:
        return float(n ** (1.0 / p) * math.log1p(n) ** logs)

    def law(n: float) -> float:
        if n <= greedy.n:
            return float(np.interp(n, np.arange(greedy.n + 1), greedy.gains))
        return last * shape(n) / shape(greedy.n)

    return law


def spectral_law(spectrum: Spectrum, ridge: float, prior: float = 1.0) -> Law:
    """Gamma(n) <= min_D (D/2) log(1 + n k/(ridge D)) + n psi_max^2 (sum of eigenvalues after D)/(2 ridge).

    After D eigenfunctions, the rest of the kernel is at most psi_max^2 times the tail if |psi_m| <= psi_max
    for all m. Here psi_max is estimated on the nodes, so the bound is as good as that estimate.
    """
    ridge, k = positive(ridge, "ridge"), positive(prior, "prior")
    ranks = np.arange(1, len(spectrum.eigenvalues) + 1, dtype=float)
    tails = np.maximum(spectrum.trace - np.cumsum(spectrum.eigenvalues), 0.0)
    rest = np.minimum(spectrum.psi_max(len(ranks)) ** 2 * tails, k)

    def law(n: float) -> float:
        return float((0.5 * ranks * np.log1p(n * k / (ridge * ranks)) + 0.5 * n * rest / ridge).min())

    return law


def smaller_law(one: Law, other: Law) -> Law:
    """The smaller of two laws at each n."""
    return lambda n: min(one(n), other(n))


@dataclass(frozen=True)
class Growth:
    """Gamma(n) ~ e^constant n^exponent, fitted on the upper half of the queries."""

    exponent: float
    constant: float
    r_squared: float


def fit_growth(greedy: GreedyGain) -> Growth:
    """The power of n by which the gain grows; for eigenvalues m^-p theory says n^(1/p) up to logarithms."""
    if greedy.n < 8:
        raise ValueError(f"growth needs 8 queries and more, got {greedy.n}")
    n = np.arange(greedy.n // 2, greedy.n + 1)
    return Growth(*fitted_line(np.log(n), np.log(greedy.gains[n])))


def potential_bound(gain: float, ridge: float, prior: float = 1.0) -> float:
    """sum_n sigma_{n-1}^2(z_n) <= 2 Gamma/log(1 + 1/ridge), for k(z,z) <= 1 only."""
    if positive(prior, "prior") > 1.0 + 1e-12:
        raise ValueError(f"the elliptical potential lemma needs k(z,z) <= 1, got {prior:g}: scale the kernel")
    return 2.0 * non_negative(gain, "gain") / math.log1p(1.0 / positive(ridge, "ridge"))
