"""A kernel and a ridge found from transitions alone: no reward enters, the targets are what followed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lapack

from rewardfree.arrays import count
from rewardfree.kernels import Kernel, Linear, Matern, SquaredExponential
from rewardfree.tables import tabled
from rewardfree.threads import one_blas_thread

#: log lengthscale, log weight of the linear part, log ridge. A ridge below 1e-8 is rounding in K^-1.
BOUNDS = {"lengthscale": (math.log(0.05), math.log(30.0)), "weight": (math.log(1e-3), math.log(10.0))}
NO_WEIGHT = -50.0  # whose square is nothing beside 1
RIDGE = (math.log(1e-8), math.log(10.0))
#: Smoothness of the families that are tried; infinity is the squared exponential.
FAMILIES = (math.inf, 2.5, 1.5)
#: The family is chosen on so many times as many points as the likelihood is computed on.
JUDGES = 2


@dataclass(frozen=True)
class Fit:
    """What was found for points (n,f) and targets (n,c)."""

    kernel: Kernel
    ridge: float
    loss: float  # negative log likelihood per target
    leave_one_out: float  # mean square of the errors at points left out, in units of the targets' own


@tabled
@dataclass(frozen=True)
class AutoKernel:
    """k = family(ARD lengthscales) + w^2 (1 + x.x'), and the ridge, by marginal likelihood.

    Minimises sum_c n/2 log(y_c' K^-1 y_c / n) + c/2 log det K on at most `most` points, for each family (the
    smoothness of a Matern kernel, infinity the squared exponential). The family is the one with the least
    leave-one-out error, on twice as many: likelihood trusts smooth kernels at a wall too much. On finite
    worlds the linear part is left away.
    """

    families: tuple[float, ...] = FAMILIES
    most: int = 600

    def __post_init__(self) -> None:
        if (
            not isinstance(self.families, (tuple, list))
            or not self.families
            or set(self.families) - set(FAMILIES)
        ):
            raise ValueError(f"families must be some of {FAMILIES}, got {self.families!r}")
        object.__setattr__(self, "families", tuple(map(float, self.families)))
        object.__setattr__(self, "most", count(self.most, "most", at_least=10))

    def fit(
        self,
        points: Any,
        targets: Any,
        groups: Any = None,
        ridge: float | None = None,
        rows: Any = None,
        linear: bool = True,
    ) -> Fit:
        """The best of the families for standardised points (n,f) and targets (n,c).

        `groups` (f,) gives features of one group a common lengthscale; `ridge` holds it fixed. Of more than
        `most` points an even selection is used, or `rows`. `linear=False` leaves the linear part away.
        """
        if rows is None:
            rows = evenly(len(points), self.most)
        groups = tuple(range(points.shape[1])) if groups is None else tuple(groups)
        moving = np.ptp(targets[rows], axis=0) > 0.0
        if len(rows) < 2 or not moving.any():
            raise ValueError("a kernel cannot be fitted to states that never change")
        problem = _Likelihood(points[rows], targets[rows][:, moving], groups, ridge, linear)
        # A wall may be seen in few points, and those must not be among the ones that are passed over.
        judges = evenly(len(points), JUDGES * self.most)
        fits, start = [], None
        with one_blas_thread():
            for nu in sorted(
                self.families, key=lambda nu: nu != 2.5
            ):  # the middle one first: others start there
                found = problem.minimised(nu, start)
                start = found if start is None else start
                fits.append(problem.fit(nu, found, points[judges], targets[judges][:, moving]))
        return min(fits, key=lambda fit: fit.leave_one_out)


class _Likelihood:
    """The objective on one set of points, by (log lengthscale of each group, log w, log ridge)."""

    def __init__(
        self, points: Any, targets: Any, groups: tuple[int, ...], ridge: float | None, linear: bool = True
    ) -> None:
        self.x, self.y, self.ridge, self.has_linear = points, targets, ridge, linear
        self.names = sorted(set(groups))
        self.groups = np.array([self.names.index(group) for group in groups])
        n = len(points)
        self.square = np.zeros((len(self.names), n * n))  # squared distances by group
        for f, group in enumerate(self.groups):
            difference = points[:, f, None] - points[None, :, f]
            self.square[group] += (difference * difference).reshape(-1)

    @cached_property
    def linear(self) -> Any:
        return 1.0 + self.x @ self.x.T

    def minimised(self, nu: float, start: Any = None) -> Any:
        """The parameters of least loss."""
        from scipy.optimize import minimize  # here: it would double the time of importing the package

        size = len(self.names)
        bounds = [BOUNDS["lengthscale"]] * size + [BOUNDS["weight"], RIDGE]
        if not self.has_linear:
            bounds[-2] = (NO_WEIGHT, NO_WEIGHT)
        if self.ridge is not None:
            bounds[-1] = (math.log(self.ridge),) * 2
        if start is None:
            start = np.array([math.log(3.0)] * size + [0.0, math.log(1e-4)])
        start = np.clip(start, *np.array(bounds).T)
        options = {"maxiter": 60, "ftol": 1e-5}
        found = minimize(
            self.loss, start, args=(nu,), jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return found.x

    def loss(self, theta: Any, nu: float) -> tuple[float, Any]:
        """The objective per target value, and its gradient."""
        n, c = self.y.shape
        scaled = np.exp(-2.0 * theta[:-2])
        weight, ridge = math.exp(2.0 * theta[-2]), math.exp(theta[-1])
        values, slope = _correlation(nu, (scaled @ self.square))
        matrix = values.reshape(n, n) + weight * self.linear
        matrix[np.diag_indices(n)] += ridge
        try:
            factor = cholesky(matrix, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros_like(theta)
        inverse = _inverse(factor)
        alpha = inverse @ self.y
        energy = np.einsum("nc,nc->c", self.y, alpha)
        loss = 0.5 * n * np.log(energy / n).sum() + c * np.log(np.diagonal(factor)).sum()
        pull = 0.5 * c * inverse - 0.5 * n * (alpha / energy) @ alpha.T  # d loss / d K
        by_length = (self.square @ (slope * pull.reshape(-1))) * (-2.0 * scaled)
        gradient = np.concatenate(
            [by_length, [2.0 * weight * np.vdot(pull, self.linear), ridge * np.trace(pull)]]
        )
        return float(loss / (n * c)), gradient / (n * c)

    def fit(self, nu: float, theta: Any, points: Any, targets: Any) -> Fit:
        """The parameters as a kernel, judged by what it misses of points (n,f) and targets (n,c) left out."""
        kernel, ridge = self.kernel(nu, theta), math.exp(theta[-1])
        matrix = kernel.between(points, points)
        matrix[np.diag_indices(len(points))] += ridge
        errors = leave_one_out(matrix, targets)
        return Fit(kernel, ridge, self.loss(theta, nu)[0], float((errors**2).mean() / (targets**2).mean()))

    def kernel(self, nu: float, theta: Any) -> Kernel:
        lengths = tuple(float(length) for length in np.exp(theta[:-2])[self.groups])
        family = SquaredExponential(lengths) if nu == math.inf else Matern(nu, lengths)
        if not self.has_linear:
            return family
        return family + math.exp(2.0 * theta[-2]) * Linear(bias=1.0)


def evenly(n: int, most: int) -> Any:
    """At most so many of n rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def leave_one_out(matrix: Any, targets: Any) -> Any:
    """y_i minus its prediction from all other points, (n,c), for K + ridge I: [K^-1 y]_i / [K^-1]_ii."""
    inverse = _inverse(cholesky(matrix, lower=True, check_finite=False))
    return (inverse @ targets) / np.diagonal(inverse)[:, None]


def _inverse(factor: Any) -> Any:
    """(C C^T)^-1."""
    half, _ = lapack.dpotri(factor, lower=1)
    return np.tril(half) + np.tril(half, -1).T


def _correlation(nu: float, square: Any) -> tuple[Any, Any]:
    """k(r^2) and its derivative by r^2."""
    if nu == math.inf:
        values = np.exp(-0.5 * square)
        return values, -0.5 * values
    t = np.sqrt(2.0 * nu * square)
    fall = np.exp(-t)
    if nu == 1.5:
        return (1.0 + t) * fall, -1.5 * fall
    return (1.0 + t + t * t / 3.0) * fall, -(5.0 / 6.0) * (1.0 + t) * fall
