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

from rewardfree.arrays import (
    Array,
    DType,
    Floats,
    Integers,
    Placement,
    as_array,
    at_least_zero,
    check_finite,
    count,
    positive,
    targets_of,
    to_numpy,
)
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.engine.linear_algebra import check_kernel, linear_algebra
from rewardfree.posterior.greedy import largest_sigma_first
from rewardfree.posterior.growing_factor import GrowingFactor
from rewardfree.posterior.inducing import InducingPoints
from rewardfree.posterior.protocol import PointPosterior
from rewardfree.threads import one_blas_thread

#: Inducing points are chosen again when new points are this share of the earlier ones, if of a new point they
#: leave more than this multiple of the variance that they leave of an earlier one, on average, and of all
#: points together more than this share of the ridge.
GROWN, LEFT_MORE, WORTH_IT = 0.25, 2.0, 0.01


class Sparse(PointPosterior):
    """Kernel ridge regression through at most `inducing` of the points seen; no targets.

    A point costs O(m^2), and so does a question about sigma; besides the n points it takes O(m^2) memory. New
    targets cost a pass over all points. `sigma_factor` says how far sigma may be from the exact one. On a
    CUDA device all of it is torch's; NumPy arrays are answered by NumPy arrays, tensors by tensors there.
    `dtype` is that of points and of kernel values in means; what is solved is float64.
    """

    def __init__(
        self,
        kernel: Kernel,
        ridge: float,
        inducing: int = 1000,
        device: str = "cpu",
        dtype: DType | None = None,
    ) -> None:
        self.kernel, self.ridge = as_kernel(kernel), positive(ridge, "ridge")
        self.most = count(inducing, "inducing")
        placement = Placement(device, dtype)
        check_kernel(self.kernel, placement)
        self._algebra = linear_algebra(placement)
        self._parts: list[Array] = []  # the points, as they came
        self._count = 0
        self._inducing: Any = None
        self._growing: Any = None  # B
        self._left_out = 0.0
        self._asked: tuple[Array, Array] | None = None  # the last targets, and their sum over all points
        self._at_choice = 0, 0.0  # how many points there were, and what was left out, at the last choice

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        m = len(self.inducing)
        return f"Sparse({self.kernel!r}, ridge={self.ridge:g}, {self._count} points, {m} inducing)"

    @property
    def points(self) -> Floats:
        """The points, (n,f), in the order in which they came."""
        return np.asarray(to_numpy(self._points), np.float64) if self._count else np.empty((0, 0))

    @property
    def inducing(self) -> Floats:
        """The inducing points, (m,f)."""
        return np.empty((0, 0)) if self._inducing is None else np.asarray(to_numpy(self._inducing.points))

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
            self._parts.append(self._algebra.own(points))
            self._count, self._left_out = self._count + len(points), left_out
            if self._shall_choose_again():
                self._choose(self._parts)

    def mean(self, targets: Array, at: Array) -> Array:
        """phi(q)^T B^-1 sum_i phi_i y_i: targets (n,) give (m,), c columns (n,c) give (m,c)."""
        columns, queries = self._targets(targets), self._checked(at, "at")
        result = self._algebra.zeros(len(queries), *columns.shape[1:])
        if self._count:
            with one_blas_thread():
                weights = self._weights(columns.reshape(self._count, -1))
                result = self._inducing.weighted(queries, weights).reshape(result.shape)
        return self._algebra.answer(result, at)

    def std(self, at: Array) -> Array:
        """sigma(q) = sqrt(k(q,q) - |phi(q)|^2 + ridge phi(q)^T B^-1 phi(q)), (m,)."""
        queries = self._checked(at, "at")
        variance = self._prior(queries)
        if self._count:
            with one_blas_thread():
                for block in self._blocks(len(queries)):
                    phi = self._inducing.features(queries[block])
                    left = self._left(variance[block], phi)
                    variance[block] = left + self.ridge * self._growing.quadratic(phi)
        return self._algebra.answer(self._algebra.xp.sqrt(variance), at)

    def greedy(self, candidates: Array, queries: int) -> tuple[Integers, Floats]:
        """The q candidates (m,f) to add next, each where sigma is then largest: indices and sigma, (q,)."""
        algebra, candidates = self._algebra, self._algebra.array(self._checked(candidates, "candidates"))
        variance = self._prior(candidates)
        phi = white = algebra.zeros(len(candidates), 0)
        with one_blas_thread():
            if self._count:
                phi = self._inducing.features(candidates)
                white = self._growing.white(algebra.own(phi))
                variance = self._left(variance, phi) + self.ridge * algebra.squares(white)

            def covariance(i: int) -> Array:
                row = algebra.kernel_rows(self.kernel, candidates[i : i + 1], candidates)[0]
                return row - phi @ phi[i] + self.ridge * (white @ white[i])

            rows = algebra.zeros(queries, len(candidates))
            return largest_sigma_first(
                variance, covariance, rows, queries, self.ridge, lambda variance, _: at_least_zero(variance)
            )

    def information_gain(self) -> float:
        """1/2 logdet(I + Q_n/ridge), Q_n = [phi_i^T phi_j]: at most that of K_n."""
        if self._count == 0:
            return 0.0
        with one_blas_thread():
            return float(self._growing.half_logdet())

    def basis(self, at: Array) -> Array:
        """k(q, inducing points), (q,m)."""
        return self._algebra.answer(self._inducing.kernel_rows(self._checked(at, "at")), at)

    def weights(self, targets: Array) -> Array:
        """Those of `basis` for targets (n,c), (m,c): C^-T B^-1 sum_i phi_i y_i."""
        with one_blas_thread():
            return self._algebra.answer(self._weights(self._targets(targets)), targets)

    def energy(self, targets: Array) -> Floats:
        """y^T (Q_n + ridge I)^-1 y for each column of targets (n,c): (c,)."""
        xp, targets = self._algebra.xp, self._targets(targets)
        with one_blas_thread():
            projected = self._projected(targets)
            explained = xp.sum(projected * self._growing.solve(projected), axis=0)
        energy = (xp.sum(targets * targets, axis=0) - explained) / self.ridge
        return np.asarray(to_numpy(energy))

    def missed(self, targets: Array, parts: Sequence[Integers] | None = None) -> Floats:
        """y of a part minus its prediction from all others: (I - F B^-1 F^T)^-1 (y - F w).

        F are the features of the part and w = B^-1 sum_i phi_i y_i. The inducing points stay as they are.
        """
        targets, points, growing = self._targets(targets), self._points, self._growing
        missed: list[Array] = []
        with one_blas_thread():
            weights = growing.solve(self._projected(targets))
            for part in self._blocks(self._count) if parts is None else parts:
                rows = self._algebra.index(part)
                phi = self._inducing.features(points[rows])
                rest = targets[rows] - phi @ weights
                if parts is None:
                    missed.append(rest / (1.0 - growing.quadratic(phi))[:, None])
                else:
                    missed.append(growing.without(phi, rest))
        return np.asarray(to_numpy(self._algebra.xp.concat(missed)))

    @property
    def _points(self) -> Array:
        """The points, (n,f), where they are."""
        if len(self._parts) > 1:
            self._parts = [self._algebra.xp.concat(self._parts)]
        return self._parts[0]

    def _checked(self, points: Array, name: str) -> Any:
        points = self._algebra.points(as_array(points, name), name)
        return self.kernel.checked(points, name, self._inducing.points if self._count else None)

    def _targets(self, targets: Array) -> Array:
        targets = self._algebra.array(targets_of(targets, self._count))
        check_finite(targets, "targets")
        return targets

    def _prior(self, points: Array) -> Array:
        """k(z,z) of b points, (b,)."""
        return self._algebra.own(self.kernel._at(self._algebra.array(points)))

    def _left(self, prior: Array, phi: Array) -> Array:
        """k(z,z) - |phi(z)|^2 of b points, (b,)."""
        return at_least_zero(prior - self._algebra.squares(phi))

    def _choose(self, parts: list[Array]) -> None:
        """Choose the inducing points from all points there are, and pass over all of them."""
        points = self._algebra.xp.concat(parts)
        inducing = InducingPoints.chosen(self._algebra, self.kernel, points, self.most)
        growing = GrowingFactor(self._algebra, len(inducing), self.ridge)
        self._inducing, self._growing, self._parts, self._count = inducing, growing, [points], len(points)
        self._left_out = sum(
            self._took(inducing, growing, points[block]) for block in self._blocks(len(points))
        )
        self._at_choice = self._count, self._left_out

    def _took(self, inducing: InducingPoints, growing: GrowingFactor, points: Array) -> float:
        """Add points to B; what the inducing points leave of them."""
        phi = inducing.features(points)
        growing.add(phi)
        return float(self._left(self._prior(points), phi).sum())

    def _shall_choose_again(self) -> bool:
        n, left_out = self._at_choice
        new, left = self._count - n, self._left_out - left_out
        if new < GROWN * n or self._left_out <= WORTH_IT * self.ridge:
            return False
        return left / new > LEFT_MORE * left_out / n

    def _weights(self, targets: Array) -> Array:
        """Those of k(q, inducing points), (m,c), for targets (n,c)."""
        return self._inducing.weights(self._growing.solve(self._projected(targets)))

    def _projected(self, targets: Array) -> Array:
        """sum_i phi_i y_i, (m,c), for targets (n,c); kept, for the same targets are often asked about again.

        C^-1 K_mn Y would need one solve only, and lose up to half of the digits.
        """
        if self._asked is None or not self._is_asked(targets):
            total = self._algebra.zeros(len(self._inducing), targets.shape[1])
            for block in self._blocks(self._count):
                total += self._inducing.features(self._points[block]).T @ targets[block]
            self._asked = self._algebra.own(targets), total
        return self._asked[1]

    def _is_asked(self, targets: Array) -> bool:
        assert self._asked is not None
        before, xp = self._asked[0], self._algebra.xp
        return before.shape == targets.shape and bool(xp.all(before == targets))

    def _blocks(self, points: int) -> Iterator[slice]:
        size = max(1, self._algebra.block // len(self._inducing))
        return (slice(start, start + size) for start in range(0, points, size))
