"""Ridge regression in the space of d features (Wang et al. 2020): that of the kernel phi(z)^T phi(z').

With A = ridge I + sum_i phi_i phi_i^T and W the inverse of its Cholesky factor, the mean is
phi(q)^T A^-1 sum_i phi_i y_i and sigma(q)^2 = ridge phi(q)^T A^-1 phi(q) = ridge |W phi(q)|^2.
"""

import math
from typing import Any

import numpy as np

from rewardfree.arrays import Array, DType, as_points, as_targets, cast, positive, to_numpy
from rewardfree.posterior.engine.backend import Selection, padded
from rewardfree.posterior.feature_maps import FeatureMap, features_at
from rewardfree.posterior.finite_posteriors import FinitePosteriors
from rewardfree.posterior.protocol import BasisPosterior


class FeatureDesign(BasisPosterior):
    """The features of the points seen so far, by a map for any points; no targets."""

    def __init__(self, features: FeatureMap, *, ridge: float = 1.0) -> None:
        if not callable(features):
            raise ValueError(
                "features of points anywhere must be a function of them, such as "
                f"rf.posterior.PolynomialFeatures(2), got {features!r:.200}"
            )
        self.features, self.ridge = features, positive(ridge, "ridge")
        self._dim: int | None = None  # of the points
        self._phi: Any = None  # (n,d)
        self._whiten: Any = None  # W, until a point is added

    def __len__(self) -> int:
        return 0 if self._phi is None else len(self._phi)

    def extend(self, points: Array) -> None:
        """Condition on more points (p,d_z)."""
        phi = self.basis(points)
        self._dim = np.shape(points)[1]
        self._phi = phi if self._phi is None else np.concatenate([self._phi, phi])
        self._whiten = None

    def mean(self, targets: Array, at: Array) -> Array:
        """phi(q)^T A^-1 sum_i phi_i y_i: targets (n,) give (m,), c columns (n,c) give (m,c)."""
        targets, phi = as_targets(targets, len(self), np.float64), self.basis(at)
        if not len(self):
            return np.zeros((len(phi), *targets.shape[1:]))
        means = phi @ self.weights(targets if targets.ndim == 2 else targets[:, None])
        return means[:, 0] if targets.ndim == 1 else means

    def std(self, at: Array) -> Array:
        """sqrt(ridge phi(q)^T A^-1 phi(q)), (m,)."""
        phi = self.basis(at)
        white = phi @ self._whitening(phi.shape[1]).T
        return math.sqrt(self.ridge) * np.linalg.norm(white, axis=1)

    def information_gain(self) -> float:
        """1/2 logdet(A/ridge) = 1/2 logdet(I + K_n/ridge)."""
        if self._phi is None:
            return 0.0
        pivots = np.diagonal(self._whitening(self._phi.shape[1]))
        return -float(np.sum(np.log(pivots * math.sqrt(self.ridge))))

    def basis(self, at: Array) -> Array:
        """phi(q), (m,d)."""
        return features_at(self.features, as_points(at, "points", self._dim))

    def weights(self, targets: Array) -> Array:
        """A^-1 sum_i phi_i y_i for targets (n,c): (d,c)."""
        whiten = self._whitening(self._phi.shape[1])
        return whiten.T @ (whiten @ (self._phi.T @ cast(targets, np.float64)))

    def _whitening(self, d: int) -> Any:
        if self._whiten is None:
            gram = 0.0 if self._phi is None else self._phi.T @ self._phi
            self._whiten = np.linalg.inv(np.linalg.cholesky(gram + self.ridge * np.eye(d)))
        return self._whiten


class FeatureLattice(FinitePosteriors):
    """g designs over one candidate set Z with features (m,d), see `Lattice`; sigma costs O(d^2 |Z|)."""

    def __init__(
        self,
        features: Any,
        candidates: Array,
        *,
        ridge: float = 1.0,
        designs: int = 1,
        capacity: int = 64,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        self.features = features
        super().__init__(
            candidates, ridge=ridge, designs=designs, capacity=capacity, device=device, dtype=dtype
        )

    def _build(self, candidates: Array, designs: int, capacity: int) -> None:
        super()._build(candidates, designs, capacity)
        backend, table = self._backend, features_at(self.features, to_numpy(candidates))
        d = table.shape[1]
        self._features = backend.own(table)  # (m,d)
        self._columns_of_z = backend.own(table.T)  # (d,m)
        self._gram = backend.zeros((designs, d, d)) + backend.array(self.ridge * np.eye(d))  # A
        self._whiten = backend.zeros((designs, d, d)) + backend.array(self.ridge**-0.5 * np.eye(d))  # W
        self._stale = np.zeros(designs, bool)  # whether W is older than A
        self._points = backend.zeros((designs, capacity), index=True)
        self._counts = np.zeros(designs, np.int64)

    def _append(self, chosen: Selection, added: Array) -> None:
        backend, p = self._backend, added.shape[1]
        self._reserve(self._longest(chosen) + p)
        phi = backend.take(self._features, added)  # (g,p,d)
        gram = backend.take(self._gram, chosen.index) + backend.xp.permute_dims(phi, (0, 2, 1)) @ phi
        backend.put(self._gram, chosen.index, gram)
        places = self._counts[chosen.numbers][:, None] + np.arange(p)
        backend.put(self._points, (chosen.numbers[:, None], places), added)
        self._counts[chosen.numbers] += p
        self._stale[chosen.numbers] = True

    def _means(self, chosen: Selection, columns: Array, queries: Array | None) -> Array:
        """phi(q)^T A^-1 sum_i phi_i y_i."""
        backend, xp, n = self._backend, self._backend.xp, columns.shape[1]
        used = np.arange(n)[None, :] < self._counts[chosen.numbers][:, None]
        phi = backend.take(self._features, backend.take(self._points, chosen.index)[:, :n])  # (g,n,d)
        sums = xp.permute_dims(phi, (0, 2, 1)) @ (columns * backend.array(used)[:, :, None])
        whiten = self._whitening(chosen)
        weights = xp.permute_dims(whiten @ sums, (0, 2, 1)) @ whiten  # (g,c,d)
        return weights @ self._features_at(queries)

    def _stds(self, chosen: Selection, queries: Array | None) -> Array:
        """sqrt(ridge phi(q)^T A^-1 phi(q))."""
        xp, white = self._backend.xp, self._whitening(chosen) @ self._features_at(queries)
        return math.sqrt(self.ridge) * xp.sqrt(xp.sum(white * white, axis=1))

    def _pivots(self, chosen: Selection) -> Array:
        """The diagonal of W, which gives the same gain: 1/2 logdet(A/ridge)."""
        return self._backend.xp.linalg.diagonal(self._whitening(chosen))

    def _longest(self, chosen: Selection) -> int:
        return int(self._counts[chosen.numbers].max(initial=0))

    def _whitening(self, chosen: Selection) -> Array:
        """W of some designs, (g,d,d)."""
        backend, xp = self._backend, self._backend.xp
        if self._stale[chosen.numbers].any():  # to renew all of them costs little more
            factor = xp.linalg.cholesky(backend.take(self._gram, chosen.index))
            backend.put(self._whiten, chosen.index, xp.linalg.inv(factor))
            self._stale[chosen.numbers] = False
        return backend.take(self._whiten, chosen.index)

    def _features_at(self, queries: Array | None) -> Array:
        """phi at all of Z (d,m), or at candidates (g,m): (g,d,m)."""
        if queries is None:
            return self._columns_of_z
        return self._backend.xp.permute_dims(self._backend.take(self._features, queries), (0, 2, 1))

    def _reserve(self, need: int) -> None:
        """Make room for `need` points in every design; if there is too little, at least double it."""
        designs, capacity = self._points.shape
        if need > capacity:
            shape = (designs, max(need, 2 * capacity))
            self._points = padded(self._backend, self._points, shape, index=True)
