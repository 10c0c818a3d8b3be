"""The posterior for very many points: what m of them can tell apart (Nystrom approximation).

With the features phi of inducing points and B = ridge I + sum_i phi_i phi_i^T

    mean(q)    = phi(q)^T B^-1 sum_i phi_i y_i
    sigma(q)^2 = k(q,q) - |phi(q)|^2 + ridge phi(q)^T B^-1 phi(q)

The variance is that of deterministic training conditionals (DTC; Seeger et al. 2003, Calandriello et al.
2019): what the inducing points cannot tell, k(q,q) - |phi(q)|^2, stays uncertain however much is seen. FITC
adds it to the ridge of each point instead: another regression for every choice of inducing points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rewardfree.arrays import Array, Floats, Integers, as_array, as_targets, cast, count, positive
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.greedy import largest_sigma_first
from rewardfree.posterior.growing_factor import GrowingFactor
from rewardfree.posterior.inducing import InducingPoints
from rewardfree.posterior.products import kernel_rows
from rewardfree.posterior.protocol import PointPosterior
from rewardfree.threads import one_blas_thread

#: Points are passed over in blocks of at most this many features.
BLOCK = 2**20
#: Inducing points are chosen again when new points are this share of the earlier ones, if of a new point they
#: leave more than this multiple of the variance that they leave of an earlier one, on average, and of all
#: points together more than this share of the ridge.
GROWN, LEFT_MORE, WORTH_IT = 0.25, 2.0, 0.01


class Sparse(PointPosterior):
    """Kernel ridge regression through at most `inducing` of the points seen; no targets.

    A point costs O(m^2), and so does a question about sigma; besides the n points it takes O(m^2) memory. New
    targets cost a pass over all points. `sigma_factor` says how far sigma may be from the exact one.
    """

    def __init__(self, kernel: Kernel, ridge: float, inducing: int = 1000) -> None:
        self.kernel, self.ridge = as_kernel(kernel), positive(ridge, "ridge")
        self.most = count(inducing, "inducing")
        self._parts: list[Floats] = []  # the points, as they came
        self._count = 0
        self._inducing: Any = None
        self._growing: Any = None  # B
        self._left_out = 0.0
        self._asked: tuple[Floats, Floats] | None = None  # the last targets, and their sum over all points
        self._at_choice = 0, 0.0  # how many points there were, and what was left out, at the last choice

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        m = len(self.inducing)
        return f"Sparse({self.kernel!r}, ridge={self.ridge:g}, {self._count} points, {m} inducing)"

    @property
    def points(self) -> Floats:
        """The points, (n,f), in the order in which they came."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0] if self._parts else np.empty((0, 0))

    @property
    def inducing(self) -> Floats:
        """The inducing points, (m,f)."""
        return np.empty((0, 0)) if self._inducing is None else self._inducing.points

    @property
    def basis_points(self) -> Floats:
        """The inducing points, (m,f)."""
        return self.inducing

    @property
    def left_out(self) -> float:
        """The trace of what the inducing points leave of K_n: sum of k(z,z) - |phi(z)|^2."""
        return self._left_out

    @property
    def sigma_factor(self) -> float:
        """Neither sigma nor the exact sigma is more than this many times the other, anywhere.

        With t = left_out/ridge it is sqrt(1 + a), a = (t + sqrt(t^2 + 4t))/2. In feature space, with the
        covariance C of all points, the projection P on the inducing points and E = (I-P) C (I-P):
        PCP <= (1 + a) C + (1 + 1/a) E for any a > 0, the same with C and PCP exchanged, and E <= left_out I.
        """
        t = self._left_out / self.ridge
        return math.sqrt(1.0 + 0.5 * (t + math.sqrt(t * t + 4.0 * t)))

    def extend(self, points: Array) -> None:
        """Condition on more points (p,f): O(m^2) each. On an error nothing changes."""
        points = self._checked(points, "points")
        if len(points) == 0:
            return
        self._asked = None
        with one_blas_thread():
            if self._inducing is None:
                self._choose([points])
                return
            left_out = self._left_out
            for block in self._blocks(len(points)):
                left_out += self._took(self._inducing, self._growing, points[block])
            self._parts.append(points.copy())
            self._count, self._left_out = self._count + len(points), left_out
            if self._shall_choose_again():
                self._choose(self._parts)

    def mean(self, targets: Array, at: Array) -> Array:
        """phi(q)^T B^-1 sum_i phi_i y_i: targets (n,) give (m,), c columns (n,c) give (m,c)."""
        targets, at = as_targets(targets, self._count, np.float64), self._checked(at, "at")
        if self._count == 0:
            return np.zeros((len(at), *targets.shape[1:]))
        weights = self.weights(targets.reshape(self._count, -1))
        result = np.empty((len(at), weights.shape[1]))
        with one_blas_thread():
            for block in self._blocks(len(at)):
                result[block] = kernel_rows(self.kernel, at[block], self.inducing) @ weights
        return result[:, 0] if targets.ndim == 1 else result

    def std(self, at: Array) -> Array:
        """sigma(q) = sqrt(k(q,q) - |phi(q)|^2 + ridge phi(q)^T B^-1 phi(q)), (m,)."""
        at = self._checked(at, "at")
        variance = np.array(self.kernel._at(at), np.float64)
        if self._count:
            with one_blas_thread():
                for block in self._blocks(len(at)):
                    phi = self._inducing.features(at[block])
                    left = _left(variance[block], phi)
                    variance[block] = left + self.ridge * self._growing.quadratic(phi)
        return np.sqrt(variance)

    def greedy(self, candidates: Array, queries: int) -> tuple[Integers, Floats]:
        """The q candidates (m,f) to add next, each where sigma is then largest: indices and sigma, (q,)."""
        candidates = self._checked(candidates, "candidates")
        variance = np.array(self.kernel._at(candidates), np.float64)
        phi = white = np.zeros((len(candidates), 0))
        with one_blas_thread():
            if self._count:
                phi = self._inducing.features(candidates)
                white = self._growing.white(phi.copy())
                variance = _left(variance, phi) + self.ridge * np.einsum("bm,bm->b", white, white)

            def covariance(i: int) -> Floats:
                row = kernel_rows(self.kernel, candidates[i : i + 1], candidates)[0]
                return np.asarray(row - phi @ phi[i] + self.ridge * (white @ white[i]))

            rows = np.empty((queries, len(candidates)))
            return largest_sigma_first(variance, covariance, rows, queries, self.ridge, _at_least_zero)

    def information_gain(self) -> float:
        """1/2 logdet(I + Q_n/ridge), Q_n = [phi_i^T phi_j]: at most that of K_n."""
        if self._count == 0:
            return 0.0
        with one_blas_thread():
            return float(self._growing.half_logdet())

    def basis(self, at: Array) -> Array:
        """k(q, inducing points), (q,m)."""
        return kernel_rows(self.kernel, self._checked(at, "at"), self.inducing)

    def weights(self, targets: Array) -> Array:
        """Those of `basis` for targets (n,c), (m,c): C^-T B^-1 sum_i phi_i y_i."""
        with one_blas_thread():
            return self._inducing.weights(self._growing.solve(self._projected(cast(targets, np.float64))))

    def energy(self, targets: Array) -> Floats:
        """y^T (Q_n + ridge I)^-1 y for each column of targets (n,c): (c,)."""
        targets = cast(targets, np.float64)
        with one_blas_thread():
            projected = self._projected(targets)
            explained = np.einsum("mc,mc->c", projected, self._growing.solve(projected))
        return np.asarray((np.einsum("nc,nc->c", targets, targets) - explained) / self.ridge)

    def missed(self, targets: Array, parts: Sequence[Integers] | None = None) -> Floats:
        """y of a part minus its prediction from all others: (I - F B^-1 F^T)^-1 (y - F w).

        F are the features of the part and w = B^-1 sum_i phi_i y_i. The inducing points stay as they are.
        """
        targets, points, growing = cast(targets, np.float64), self.points, self._growing
        missed: list[Floats] = []
        with one_blas_thread():
            weights = growing.solve(self._projected(targets))
            for rows in self._blocks(self._count) if parts is None else parts:
                phi = self._inducing.features(points[rows])
                rest = targets[rows] - phi @ weights
                if parts is None:
                    missed.append(rest / (1.0 - growing.quadratic(phi))[:, None])
                else:
                    missed.append(growing.without(phi, rest))
        return np.concatenate(missed)

    def _checked(self, points: Array, name: str) -> Any:
        points = as_array(points, name)
        if not isinstance(points, np.ndarray):
            raise ValueError(f"Sparse takes NumPy arrays, {name} is {type(points)}")
        return self.kernel.checked(cast(points, np.float64), name, self.inducing if self._count else None)

    def _choose(self, parts: list[Floats]) -> None:
        """Choose the inducing points from all points there are, and pass over all of them."""
        points = np.concatenate(parts)
        inducing = InducingPoints.chosen(self.kernel, points, self.most)
        growing = GrowingFactor(len(inducing), self.ridge)
        self._inducing, self._growing, self._parts, self._count = inducing, growing, [points], len(points)
        self._left_out = sum(
            self._took(inducing, growing, points[block]) for block in self._blocks(len(points))
        )
        self._at_choice = self._count, self._left_out

    def _took(self, inducing: InducingPoints, growing: GrowingFactor, points: Floats) -> float:
        """Add points to B; what the inducing points leave of them."""
        phi = inducing.features(points)
        growing.add(phi)
        return float(_left(self.kernel._at(points), phi).sum())

    def _shall_choose_again(self) -> bool:
        n, left_out = self._at_choice
        new, left = self._count - n, self._left_out - left_out
        if new < GROWN * n or self._left_out <= WORTH_IT * self.ridge:
            return False
        return left / new > LEFT_MORE * left_out / n

    def _projected(self, targets: Floats) -> Floats:
        """sum_i phi_i y_i, (m,c), for targets (n,c); kept, for the same targets are often asked about again.

        C^-1 K_mn Y would need one solve only, and lose up to half of the digits.
        """
        if self._asked is None or not np.array_equal(self._asked[0], targets):
            total, points = np.zeros((len(self._inducing), targets.shape[1])), self.points
            for block in self._blocks(self._count):
                total += self._inducing.features(points[block]).T @ targets[block]
            self._asked = targets.copy(), total
        return np.asarray(self._asked[1])

    def _blocks(self, points: int) -> Iterator[slice]:
        size = max(1, BLOCK // len(self._inducing))
        return (slice(start, start + size) for start in range(0, points, size))


def _left(prior: Array, phi: Floats) -> Floats:
    """k(z,z) - |phi(z)|^2 of b points, (b,)."""
    return _at_least_zero(prior - np.einsum("bm,bm->b", phi, phi))


def _at_least_zero(variance: Floats, points: int = 0) -> Floats:
    return np.maximum(variance, 0.0)
