"""Points that came last, conditioned on exactly, beside those that are seen through inducing points."""

from __future__ import annotations

from typing import Any

from rewardfree.arrays import Array, at_least_zero
from rewardfree.posterior.projected import Projected

#: The most points that are conditioned on exactly: a question costs O(m^2 + m w) for w of them.
MOST_RECENT = 256


class RecentPoints:
    """w points W, and G = c(W,W) + ridge I for the covariance that the earlier points leave,

    c(z,z') = k(z,z') - phi(z)^T phi(z') + ridge phi(z)^T B^-1 phi(z').
    """

    def __init__(self, seen: Projected, most: int) -> None:
        self.seen, self.most, self.count = seen, most, 0
        self._points: Any = None  # (most,f), of which `count` rows are in use, as of the next ones
        self._phi: Any = None  # (most,m)
        self._white: Any = None  # D^-1 phi, (most,m)
        self._inverse: Any = None  # the inverse of the Cholesky factor of G, (most,most)

    def __len__(self) -> int:
        return self.count

    @property
    def points(self) -> Array:
        """(w,f)."""
        return self._points[: self.count]

    def add(self, points: Array) -> None:
        """Condition on more points (p,f): O(m^2 + m w) each. On an error nothing changes."""
        inducing, ridge, n, p = self.seen.inducing, self.seen.growing.ridge, self.count, len(points)
        algebra = inducing.algebra
        points = algebra.array(points)
        phi = inducing.features(points)
        white = self.seen.growing.white(algebra.own(phi))
        variance = self.seen.left(inducing.prior(points), phi) + ridge * algebra.squares(white)
        nugget = max(ridge, inducing.jitter)  # c is known up to about the jitter, which hides a smaller ridge
        if n == 0:
            self._points = algebra.zeros(self.most, points.shape[1])
            self._phi, self._white = (algebra.zeros(self.most, len(inducing)) for _ in range(2))
            self._inverse = algebra.zeros(self.most, self.most)
        for held, new in ((self._points, points), (self._phi, phi), (self._white, white)):
            held[n : n + p] = new
        cross = self._between(points, phi, white, n + p)
        for i in range(n, n + p):
            earlier = self._inverse[:i, :i]
            across = earlier @ cross[i - n, :i]
            pivot = (at_least_zero(variance[i - n] - across @ across) + nugget) ** 0.5
            self._inverse[i, :i] = -(across @ earlier) / pivot
            self._inverse[i, i] = 1.0 / pivot
        self.count = n + p

    def white(self, at: Array, phi: Array, white: Array) -> Array:
        """Rows x (b,w) with x x'^T = c(q,W) G^-1 c(W,q'), for queries with these features."""
        cross = self._between(at, phi, white, self.count)
        return cross @ self._inverse[: self.count, : self.count].T

    def weights(self, of_features: Array, targets: Array) -> tuple[Array, Array]:
        """(m,c) and (w,c) of phi(q) and k(q,W) for targets of W (w,c), from those of phi(q) without W."""
        n, growing = self.count, self.seen.growing
        phi, white, inverse = self._phi[:n], self._white[:n], self._inverse[:n, :n]
        weights = inverse.T @ (inverse @ (targets - phi @ of_features))
        known = growing.ridge * growing.unwhitened(white.T @ weights) - phi.T @ weights
        return of_features + known, weights

    def _between(self, at: Array, phi: Array, white: Array, count: int) -> Array:
        """c(q, z) for queries with these features and the first points that are held, (b,count)."""
        inducing, ridge = self.seen.inducing, self.seen.growing.ridge
        known = phi @ self._phi[:count].T - ridge * (white @ self._white[:count].T)
        return inducing.algebra.kernel_rows(inducing.kernel, at, self._points[:count]) - known
