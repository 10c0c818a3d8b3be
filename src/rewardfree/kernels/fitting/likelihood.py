"""The marginal likelihood of a kernel's parameters, its gradient, and what a fit misses when left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lapack

from rewardfree.kernels.algebra import Kernel
from rewardfree.kernels.linear import Linear
from rewardfree.kernels.matern import closed_form, slope
from rewardfree.kernels.stationary import Matern, SquaredExponential

#: log lengthscale, log weight of the linear part, log ridge. A ridge below 1e-8 is rounding in K^-1.
BOUNDS = {"lengthscale": (math.log(0.05), math.log(30.0)), "weight": (math.log(1e-3), math.log(10.0))}
NO_WEIGHT = -50.0  # whose square is nothing beside 1
RIDGE = (math.log(1e-8), math.log(10.0))


@dataclass(frozen=True)
class Fit:
    """What was found for points (n,f) and targets (n,c)."""

    kernel: Kernel
    ridge: float
    loss: float  # negative log likelihood per target
    leave_one_out: float  # mean square of the errors at points left out, in units of the targets' own


class Likelihood:
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
        result = minimize(
            self.loss, start, args=(nu,), jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return result.x

    def loss(self, theta: Any, nu: float) -> tuple[float, Any]:
        """The objective per target value, and its gradient."""
        n, c = self.y.shape
        scaled = np.exp(-2.0 * theta[:-2])
        weight, ridge = math.exp(2.0 * theta[-2]), math.exp(theta[-1])
        square = scaled @ self.square
        matrix = closed_form(nu, square).reshape(n, n) + weight * self.linear
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
        by_length = (self.square @ (slope(nu, square) * pull.reshape(-1))) * (-2.0 * scaled)
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


def leave_one_out(matrix: Any, targets: Any) -> Any:
    """y_i minus its prediction from all other points, (n,c), for K + ridge I: [K^-1 y]_i / [K^-1]_ii."""
    inverse = _inverse(cholesky(matrix, lower=True, check_finite=False))
    return (inverse @ targets) / np.diagonal(inverse)[:, None]


def _inverse(factor: Any) -> Any:
    """(C C^T)^-1."""
    half, _ = lapack.dpotri(factor, lower=1)
    return np.tril(half) + np.tril(half, -1).T
