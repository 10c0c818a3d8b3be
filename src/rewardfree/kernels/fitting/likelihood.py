"""The marginal likelihood of a kernel's parameters, its gradient, and leave-one-out errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lapack

from rewardfree.arrays import Floats, Integers
from rewardfree.kernels.algebra import Kernel, Sum
from rewardfree.kernels.linear import Linear
from rewardfree.kernels.stationary import Matern, SquaredExponential, closed_form, slope

#: Bounds of the log lengthscales, and of the log weight of the linear part.
BOUNDS = {"lengthscale": (math.log(0.05), math.log(30.0)), "weight": (math.log(1e-3), math.log(10.0))}
#: The log weight without a linear part: its square vanishes beside 1.
NO_WEIGHT = -50.0
#: Bounds of the log ridge. A ridge below 1e-8 is rounding in K^-1.
RIDGE = (math.log(1e-8), math.log(10.0))
#: A parameter within this factor of a bound sits on it.
NEAR = 1.01

#: With a linear part, the least noise of a target as a share of its variance. Without it a target that is
#: exactly linear (a heading that a robot turns) gains by every smaller ridge, and drives the kernel of all.
LEAST_NOISE = 1e-6

#: Lengthscale and ridge from which a fit starts, and where else it may.
STARTS = ((3.0, 1e-4), (1.0, 1e-2), (10.0, 1e-4))


@dataclass(frozen=True)
class Fit:
    """A kernel and a ridge fitted to points (n,f) and targets (n,c), and how well they fit."""

    kernel: Kernel
    ridge: float
    loss: float  # negative log likelihood per target
    left_out: float  # mean square of the errors at points, or parts, left out, over that of the targets
    shares: tuple[float, ...] = ()  # the same of each target

    @property
    def on_bounds(self) -> tuple[str, ...]:
        """The parameters that sit on a bound which matters, see `on_bounds`."""
        return on_bounds(self.kernel, self.ridge)


def on_bounds(kernel: Kernel, ridge: float) -> tuple[str, ...]:
    """What of a fit to standardised points sits on a bound that matters: "lengthscale", "ridge", or nothing.

    On its shortest lengthscale it says nothing between points. On its largest ridge it takes for noise all
    that the linear part does not say; if that has the larger variance, it may well be noise. The longest
    lengthscale (a variable does not count) and the least ridge (no noise) are ordinary.
    """
    part, trend = (kernel.left, kernel.right) if isinstance(kernel, Sum) else (kernel, None)
    shortest = float(np.min(getattr(part, "lengthscale", math.inf)))
    at_shortest = shortest <= NEAR * math.exp(BOUNDS["lengthscale"][0])
    at_largest = ridge >= math.exp(RIDGE[1]) / NEAR and ridge > getattr(trend, "variance", 0.0)
    return ("lengthscale",) * at_shortest + ("ridge",) * at_largest


class Likelihood:
    """The loss on points x (n,f) and targets y (n,c), and its minimum.

    The parameters theta are (log lengthscale of each group, log w, log ridge).
    """

    def __init__(
        self, points: Floats, targets: Floats, groups: Sequence[int], ridge: float | None, linear: bool = True
    ) -> None:
        self.x, self.y, self.ridge, self.has_linear = points, targets, ridge, linear
        names = sorted(set(groups))
        self.group_of = np.array([names.index(group) for group in groups])  # (f,)
        n = len(points)
        self.squares = np.zeros((len(names), n * n))  # squared distances of all pairs, group by group
        for f, group in enumerate(self.group_of):
            difference = points[:, f, None] - points[None, :, f]
            self.squares[group] += (difference * difference).reshape(-1)

    @cached_property
    def linear(self) -> Floats:
        """1 + x.x', (n,n)."""
        return np.asarray(1.0 + self.x @ self.x.T)

    @property
    def starts(self) -> list[Floats]:
        """Parameters to start from."""
        return [
            np.array([math.log(length)] * len(self.squares) + [0.0, math.log(ridge)])
            for length, ridge in STARTS
        ]

    def minimised(self, nu: float, start: Floats) -> Floats:
        """The parameters theta of least loss that descent from `start` reaches."""
        from scipy.optimize import minimize  # imported here: it doubles the time of importing the package

        size = len(self.squares)
        weight = BOUNDS["weight"] if self.has_linear else (NO_WEIGHT, NO_WEIGHT)
        ridge = RIDGE if self.ridge is None else (math.log(self.ridge), math.log(self.ridge))
        bounds = [BOUNDS["lengthscale"]] * size + [weight, ridge]
        start = np.clip(start, *np.array(bounds).T)
        options = {"maxiter": 60, "ftol": 1e-5}
        result = minimize(
            self.loss, start, args=(nu,), jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return np.asarray(result.x)

    def loss(self, theta: Floats, nu: float) -> tuple[float, Floats]:
        """The loss per target value, and its gradient in theta."""
        n, c = self.y.shape
        least = n * LEAST_NOISE * self.has_linear  # of the noise, energy * ridge / n
        inverse_squares = np.exp(-2.0 * theta[:-2])  # 1 / lengthscale^2
        weight, ridge = math.exp(2.0 * theta[-2]), math.exp(theta[-1])
        square = inverse_squares @ self.squares  # r^2
        matrix = closed_form(nu, square).reshape(n, n) + weight * self.linear
        matrix[np.diag_indices(n)] += ridge
        try:
            factor = cholesky(matrix, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros_like(theta)
        inverse = _inverse(factor)
        alpha = inverse @ self.y
        energy = np.einsum("nc,nc->c", self.y, alpha)
        floored = energy * ridge < least
        scale = np.where(floored, least / ridge, energy)  # n times the kernel's variance for each target
        beyond = energy / scale - 1.0  # 0 but for those
        loss = 0.5 * n * (np.log(scale / n) + beyond).sum() + c * np.log(np.diagonal(factor)).sum()
        by_kernel = 0.5 * c * inverse - 0.5 * n * (alpha / scale) @ alpha.T  # d loss / d K
        by_lengths = (self.squares @ (slope(nu, square) * by_kernel.reshape(-1))) * (-2.0 * inverse_squares)
        by_weight = 2.0 * weight * np.vdot(by_kernel, self.linear)
        by_ridge = ridge * np.trace(by_kernel) + 0.5 * n * beyond.sum()
        gradient = np.concatenate([by_lengths, [by_weight, by_ridge]])
        return float(loss / (n * c)), gradient / (n * c)

    def fit(
        self, nu: float, theta: Floats, points: Floats, targets: Floats, parts: Sequence[Integers] = ()
    ) -> Fit:
        """The kernel and ridge of theta, judged on points (n,f) and targets (n,c): see `Fit.left_out`."""
        kernel, ridge = self.kernel(nu, theta), math.exp(theta[-1])
        matrix = kernel.between(points, points)
        matrix[np.diag_indices(len(points))] += ridge
        errors = leave_parts_out(matrix, targets, parts) if parts else leave_one_out(matrix, targets)
        missed, known = errors**2, targets**2
        shares = tuple(map(float, missed.mean(axis=0) / known.mean(axis=0)))
        return Fit(kernel, ridge, self.loss(theta, nu)[0], float(missed.mean() / known.mean()), shares)

    def kernel(self, nu: float, theta: Floats) -> Kernel:
        """The kernel of theta."""
        lengths = tuple(float(length) for length in np.exp(theta[:-2])[self.group_of])
        family = SquaredExponential(lengths) if nu == math.inf else Matern(nu, lengths)
        if not self.has_linear:
            return family
        return family + math.exp(2.0 * theta[-2]) * Linear(bias=1.0)


def leave_one_out(matrix: Floats, targets: Floats) -> Floats:
    """y_i minus its prediction from all other points, (n,c), for K with the ridge: [K^-1 y]_i / [K^-1]_ii."""
    inverse = _inverse(cholesky(matrix, lower=True, check_finite=False))
    return np.asarray((inverse @ targets) / np.diagonal(inverse)[:, None])


def leave_parts_out(matrix: Floats, targets: Floats, parts: Sequence[Integers]) -> Floats:
    """y of a part minus its prediction from all other parts, (n,c): [K^-1]_PP^-1 [K^-1 y]_P for rows P."""
    inverse = _inverse(cholesky(matrix, lower=True, check_finite=False))
    return missed_by_parts(inverse, inverse @ targets, parts)


def missed_by_parts(inverse: Floats, weights: Floats, parts: Sequence[Integers]) -> Floats:
    """[K^-1]_PP^-1 [K^-1 y]_P for the rows of each part P, from K^-1 (n,n) and weights K^-1 y (n,c)."""
    for rows in parts:
        weights[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], weights[rows])
    return np.asarray(weights)


def _inverse(factor: Floats) -> Floats:
    """(C C^T)^-1 for a lower factor C."""
    lower, _ = lapack.dpotri(factor, lower=1)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)
