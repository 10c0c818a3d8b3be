"""The posterior for very many points: what m of them can tell apart (Nystrom approximation).

With the features phi of inducing points and B = ridge I + sum_i phi_i phi_i^T over the points seen so

    mean(q)    = phi(q)^T B^-1 sum_i phi_i y_i
    c(q,q')    = k(q,q') - phi(q)^T phi(q') + ridge phi(q)^T B^-1 phi(q'),      sigma(q)^2 = c(q,q)

The variance is that of deterministic training conditionals (DTC; Seeger et al. 2003, Calandriello et al.
2019): what the inducing points cannot tell, k(q,q) - |phi(q)|^2, stays uncertain however much is seen. FITC
adds it to the ridge of each point instead: another regression for every choice of inducing points. The last
points W, up to some hundred, are conditioned on exactly, with c as their covariance:

    mean(q) += c(q,W) G^-1 (y_W - mean(W)),   sigma(q)^2 = c(q,q) - c(q,W) G^-1 c(W,q),   G = c(W,W) + ridge I
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    positive,
    targets_of,
    to_numpy,
)
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.engine.linear_algebra import check_kernel, linear_algebra
from rewardfree.posterior.greedy import largest_sigma_first
from rewardfree.posterior.inducing import InducingPoints, as_inducing
from rewardfree.posterior.projected import Projected, chosen_again
from rewardfree.posterior.protocol import PointPosterior
from rewardfree.posterior.recent import MOST_RECENT, RecentPoints
from rewardfree.threads import one_blas_thread


class Sparse(PointPosterior):
    """Kernel ridge regression through at most `inducing` of the points seen; no targets.

    A point costs O(m^2), and so does a question about sigma; besides the n points it takes O(m^2) memory, and
    128 MB at most for what is kept of them. `sigma_factor` says how far sigma may be from the exact one. On a
    CUDA device all of it is torch's; NumPy arrays are answered by NumPy arrays, tensors by tensors there.
    `dtype` is that in which points are kept; what is computed is float64.
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
        self.most = as_inducing(inducing)
        placement = Placement(device, dtype)
        check_kernel(self.kernel, placement)
        self._algebra = linear_algebra(placement)
        self._parts: list[Array] = []  # the points, as they came
        self._seen: Any = None  # `Projected`: all but the recent points, through the inducing ones
        self._recent: Any = None  # `RecentPoints`
        self._all: Projected | None = None  # all points through inducing ones, once it was asked for
        self._asked: tuple[Array, Array] | None = None  # the last targets of what is seen, and their sum

    def __len__(self) -> int:
        return self._seen.count + len(self._recent) if self._seen is not None else 0

    def __repr__(self) -> str:
        m = 0 if self._seen is None else len(self._seen.inducing)
        return f"Sparse({self.kernel!r}, ridge={self.ridge:g}, {len(self)} points, {m} inducing)"

    @property
    def points(self) -> Floats:
        """A copy of the points, (n,f), in the order in which they came."""
        return np.array(to_numpy(self._points), np.float64) if len(self) else np.empty((0, 0))

    @property
    def inducing(self) -> Floats:
        """A copy of the inducing points, (m,f)."""
        return np.empty((0, 0)) if self._seen is None else np.array(to_numpy(self._seen.inducing.points))

    @property
    def basis_points(self) -> Floats:
        """The inducing points, and the recent ones that are conditioned on exactly: (p,f)."""
        if not len(self):
            return np.empty((0, 0))
        return np.array(to_numpy(self._basis))

    @property
    def left_out(self) -> float:
        """What inducing points leave of the points seen through them: the sum of k(z,z) - |phi(z)|^2."""
        return 0.0 if self._seen is None else self._seen.left_out

    @property
    def sigma_factor(self) -> float:
        """Neither sigma nor the exact sigma is more than this many times the other, anywhere.

        With t = left_out/ridge it is sqrt(1 + a), a = (t + sqrt(t^2 + 4t))/2. In feature space, with the
        covariance C of all points, C' that of their approximations and E that of what these leave out:
        C' <= (1 + a) C + (1 + 1/a) E for any a > 0, the same with C and C' exchanged, and E <= left_out I.
        """
        t = self.left_out / self.ridge
        return math.sqrt(1.0 + 0.5 * (t + math.sqrt(t * t + 4.0 * t)))

    def extend(self, points: Array) -> None:
        """Condition on more points (p,f): O(m^2) each. On an error nothing changes."""
        points = self._checked(points, "points")
        if len(points) == 0:
            return
        parts = [*self._parts, self._algebra.own(points)]
        with one_blas_thread():
            if self._seen is not None and len(self._recent) + len(points) <= self._recent.most:
                self._recent.add(points)
                self._parts, self._all = parts, None
            else:
                self._take_in(parts)

    def restore(self, points: Array, inducing: Array) -> None:
        """Condition an empty posterior on points (n,f) through inducing points (m,f) of an earlier one."""
        assert not len(self)
        points, inducing = self._checked(points, "points"), self._checked(inducing, "inducing points")
        with one_blas_thread():
            through = InducingPoints.of(self._algebra, self.kernel, self._algebra.array(inducing))
            self._now(Projected.through(through, self.ridge, points), [self._algebra.own(points)])

    def mean(self, targets: Array, at: Array) -> Array:
        """mean(q) as above, but for the recent points: targets (n,) give (m,), c columns (n,c) give (m,c)."""
        columns, queries = self._targets(targets), self._checked(at, "at")
        result = self._algebra.zeros(len(queries), *columns.shape[1:])
        if len(self):
            with one_blas_thread():
                weights = self._weights(columns.reshape(len(self), -1))
                products = self._algebra.weighted(self.kernel, queries, self._basis, weights)
                result = products.reshape(result.shape)
        return self._algebra.answer(result, at)

    def std(self, at: Array) -> Array:
        """sigma(q) as above, (m,)."""
        queries = self._algebra.array(self._checked(at, "at"))
        variance = self._prior(queries)
        if len(self):
            with one_blas_thread():
                for block in self._seen.blocks(len(queries)):
                    variance[block] = self._answers(queries[block], variance[block])[0]
        return self._algebra.answer(self._algebra.xp.sqrt(variance), at)

    def greedy(self, candidates: Array, queries: int) -> tuple[Integers, Floats]:
        """The q candidates (m,f) to add next, each where sigma is then largest: indices and sigma, (q,)."""
        algebra, candidates = self._algebra, self._algebra.array(self._checked(candidates, "candidates"))
        variance = self._prior(candidates)
        phi = white = recent = algebra.zeros(len(candidates), 0)
        with one_blas_thread():
            if len(self):
                variance, phi, white, recent = self._answers(candidates, variance)

            def covariance(i: int) -> Array:
                row = algebra.kernel_rows(self.kernel, candidates[i : i + 1], candidates)[0]
                return row - phi @ phi[i] + self.ridge * (white @ white[i]) - recent @ recent[i]

            rows = algebra.zeros(queries, len(candidates))
            return largest_sigma_first(
                variance, covariance, rows, queries, self.ridge, lambda variance, _: at_least_zero(variance)
            )

    def information_gain(self) -> float:
        """1/2 logdet(I + Q_n/ridge), Q_n = [phi_i^T phi_j] of all points: at most that of K_n."""
        if not len(self):
            return 0.0
        with one_blas_thread():
            return float(self._through_inducing.growing.half_logdet())

    def basis(self, at: Array) -> Array:
        """k(q, basis points), (q,p)."""
        queries = self._algebra.array(self._checked(at, "at"))
        if not len(self):
            return self._algebra.answer(self._algebra.zeros(len(queries), 0), at)
        return self._algebra.answer(self._algebra.kernel_rows(self.kernel, queries, self._basis), at)

    def weights(self, targets: Array) -> Array:
        """Those of `basis` for targets (n,c), (p,c): C^-T B^-1 sum_i phi_i y_i, without recent points."""
        columns = self._columns(targets)
        if not len(self):
            return self._algebra.answer(columns, targets)
        with one_blas_thread():
            return self._algebra.answer(self._weights(columns), targets)

    def energy(self, targets: Array) -> Floats:
        """y^T (Q_n + ridge I)^-1 y for each column of targets (n,c): (c,)."""
        columns = self._columns(targets)
        if not len(self):
            return np.zeros(columns.shape[1])
        with one_blas_thread():
            return np.asarray(to_numpy(self._through_inducing.energy(self._points, columns)))

    def missed(self, targets: Array, parts: Sequence[Integers] | None = None) -> Floats:
        """y of a part minus its prediction from all others, all of them through the inducing points.

        Of the rows of all parts, in their order (r,c); without parts, of each point on its own (n,c).
        """
        columns = self._columns(targets)
        if not len(self):
            return np.zeros(tuple(columns.shape))
        with one_blas_thread():
            return np.asarray(to_numpy(self._through_inducing.missed(self._points, columns, parts)))

    @property
    def _points(self) -> Array:
        """The points, (n,f), where they are."""
        if len(self._parts) > 1:
            self._parts = [self._algebra.xp.concat(self._parts)]
        return self._parts[0]

    @property
    def _basis(self) -> Array:
        """Inducing and recent points, (p,f)."""
        if not len(self._recent):
            return self._seen.inducing.points
        return self._algebra.xp.concat([self._seen.inducing.points, self._recent.points])

    @property
    def _through_inducing(self) -> Projected:
        """All points, the recent ones too, through inducing points."""
        if self._all is None:
            self._all = self._taken_in(self._points, len(self._recent)) if len(self._recent) else self._seen
        return self._all

    def _take_in(self, parts: list[Array]) -> None:
        """See all points through inducing points; none is recent any more."""
        points = self._algebra.xp.concat(parts)
        if self._seen is None:
            seen = Projected.chosen(self._algebra, self.kernel, self.ridge, points, self.most)
        else:
            seen = self._taken_in(points, len(points) - self._seen.count)
            if seen.shall_be_chosen_again:
                seen = chosen_again(seen, points, self.most)
        self._now(seen, [points])

    def _taken_in(self, points: Array, new: int) -> Projected:
        """All points (n,f), the last ones new, through inducing points; exactly, if all may be inducing."""
        seen: Projected = self._seen.with_points(points[len(points) - new :])
        return chosen_again(seen, points, self.most) if len(points) <= self.most else seen

    def _now(self, seen: Projected, parts: list[Array]) -> None:
        self._parts, self._all, self._asked = parts, None, None
        self._seen, self._recent = seen, RecentPoints(seen, min(MOST_RECENT, self.most))

    def _checked(self, points: Array, name: str) -> Any:
        points = self._algebra.points(as_array(points, name), name)
        return self.kernel.checked(points, name, self._seen.inducing.points if len(self) else None)

    def _targets(self, targets: Array) -> Array:
        targets = self._algebra.array(targets_of(targets, len(self)))
        check_finite(targets, "targets")
        return targets

    def _columns(self, targets: Array) -> Array:
        columns = self._targets(targets)
        if columns.ndim == 1:
            raise ValueError(
                f"targets must have shape ({len(self)}, c), got ({len(self)},): write targets[:, None]"
            )
        return columns

    def _prior(self, points: Array) -> Array:
        """k(z,z) of b points, (b,)."""
        return self._algebra.own(self.kernel._at(self._algebra.array(points)))

    def _answers(self, at: Array, prior: Array) -> tuple[Array, Array, Array, Array]:
        """Of queries (b,f) sigma^2 (b,), and the rows x x'^T of which the parts of the covariance consist."""
        algebra, seen, recent = self._algebra, self._seen, self._recent
        phi = seen.inducing.features(at)
        white = seen.growing.white(algebra.own(phi))
        variance = seen.left(prior, phi) + self.ridge * algebra.squares(white)
        if not len(recent):
            return variance, phi, white, algebra.zeros(len(at), 0)
        known = recent.white(at, phi, white)
        return at_least_zero(variance - algebra.squares(known)), phi, white, known

    def _weights(self, targets: Array) -> Array:
        """Those of k(q, basis points), (p,c), for targets (n,c)."""
        seen, recent = self._seen, self._recent
        of_features = seen.growing.solve(self._projected(targets[: seen.count]))
        if not len(recent):
            return seen.inducing.weights(of_features)
        of_features, of_recent = recent.weights(of_features, targets[seen.count :])
        return self._algebra.xp.concat([seen.inducing.weights(of_features), of_recent])

    def _projected(self, targets: Array) -> Array:
        """sum_i phi_i y_i, (m,c); kept, for the same targets are often asked about again."""
        if self._asked is None or not self._is_asked(targets):
            total = self._seen.projected(self._points, targets)
            self._asked = self._algebra.own(targets), total
        return self._asked[1]

    def _is_asked(self, targets: Array) -> bool:
        assert self._asked is not None
        before, xp = self._asked[0], self._algebra.xp
        return before.shape == targets.shape and bool(xp.all(before == targets))
