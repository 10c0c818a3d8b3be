"""Ridge regression in the space of d features (Wang et al. 2020): that of the kernel phi(z)^T phi(z').

With A = ridge I + sum_i phi_i phi_i^T and W the inverse of its Cholesky factor, the mean is
phi(q)^T A^-1 sum_i phi_i y_i and sigma(q)^2 = ridge phi(q)^T A^-1 phi(q) = ridge |W phi(q)|^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.arrays import Array, as_array, as_points, cast, check_finite, count, positive, to_numpy
from rewardfree.posterior.candidates import Candidates
from rewardfree.posterior.engine.backend import Backend, Selection, choose_backend
from rewardfree.posterior.maps import FeatureMap, features_at
from rewardfree.posterior.selections import (
    Selections,
    one_for_each,
    query_indices,
    some_for_each,
    target_columns,
)
from rewardfree.threads import one_blas_thread


class FeatureDesign:
    """The features of the points seen so far and A; no targets. For any points and a map of them."""

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

    @property
    def batch(self) -> tuple[int, ...]:
        return ()

    def extend(self, points: Array) -> None:
        """Condition on more points (p,d_z)."""
        phi = self.basis(points)
        self._dim = np.shape(points)[1]
        self._phi = phi if self._phi is None else np.concatenate([self._phi, phi])
        self._whiten = None

    def mean(self, targets: Array, at: Array) -> Array:
        """phi(q)^T A^-1 sum_i phi_i y_i: targets (n,) give (m,), c columns (n,c) give (m,c)."""
        targets = as_array(targets, "targets")
        if targets.ndim not in (1, 2) or targets.shape[0] != len(self):
            raise ValueError(
                f"targets must have shape ({len(self)},) or ({len(self)}, c), one per point in the order of "
                f"extend, got {tuple(targets.shape)}"
            )
        check_finite(targets, "targets")
        phi = self.basis(at)
        if not len(self):
            return np.zeros((len(phi), *targets.shape[1:]))
        columns = targets if targets.ndim == 2 else targets[:, None]
        found = phi @ self.weights(columns)
        return found[:, 0] if targets.ndim == 1 else found

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
        """phi(q), (m,d): what `weights` are weights of."""
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


class FeatureLattice:
    """g such designs over one candidate set Z of features (m,d), see `Lattice`; sigma costs O(d^2 |Z|)."""

    def __init__(
        self,
        features: Any,
        candidates: Array,
        *,
        ridge: float = 1.0,
        designs: int = 1,
        capacity: int = 64,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.ridge = positive(ridge, "ridge")
        candidates = as_points(candidates, "candidates")
        self._backend: Backend = choose_backend(candidates, device, dtype)
        table = features_at(features, to_numpy(candidates))
        self._build(candidates, table, count(designs, "designs"), count(capacity, "capacity"))

    def _build(self, candidates: Array, table: Any, designs: int, capacity: int) -> None:
        backend, d = self._backend, table.shape[1]
        self._set = Candidates(candidates, backend)
        self._features = backend.own(table)  # (m,d)
        self._across = backend.own(table.T)  # (d,m)
        self._gram = backend.zeros((designs, d, d)) + backend.array(self.ridge * np.eye(d))  # A
        self._whiten = backend.zeros((designs, d, d)) + backend.array(self.ridge**-0.5 * np.eye(d))  # W
        self._stale = np.zeros(designs, bool)  # whose W is not that of A
        self._points = backend.zeros((designs, capacity), index=True)
        self._counts = np.zeros(designs, np.int64)
        self._select = Selections(designs)

    @property
    def batch(self) -> tuple[int, ...]:
        return (len(self._counts),)

    @property
    def candidates(self) -> Array:
        """The candidate set Z, (m,d_z)."""
        return self._set.points

    def append(self, designs: Any, indices: Any) -> None:
        """Add candidate `indices[i]` to design `designs[i]`: any designs, each once, or None for all."""
        chosen = self._select(designs)
        self._add(chosen, one_for_each(self._set, indices, chosen)[:, None])

    def extend(self, points: Array) -> None:
        """Add the same points (p,d_z), each one a candidate, to every design."""
        indices = self._set.at(points)
        self.extend_each(self._backend.xp.broadcast_to(indices, (*self.batch, indices.shape[0])))

    def extend_each(self, indices: Any) -> None:
        """Add p points to every design, candidate indices (g,p)."""
        self._add(self._select(None), some_for_each(self._set, indices, len(self._counts)))

    def mean(self, targets: Array, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """phi(q)^T A^-1 sum_i phi_i y_i: targets (g,n) give (g,m), c columns (g,n,c) give (g,m,c).

        Designs with fewer than n points ignore the rest of their targets.
        """
        backend, xp, chosen, n = self._backend, self._backend.xp, self._select(designs), self.length(designs)
        columns, flat = target_columns(targets, backend, len(chosen), n)
        queries = query_indices(self._set, backend, at, rows, len(chosen))
        if not n:
            m = len(self._set) if queries is None else queries.shape[1]
            means = backend.zeros((len(chosen), columns.shape[2], m))
        else:
            with one_blas_thread():
                used = np.arange(n)[None, :] < self._counts[chosen.numbers][:, None]
                phi = backend.take(self._features, backend.take(self._points, chosen.index)[:, :n])  # (g,n,d)
                sums = xp.permute_dims(phi, (0, 2, 1)) @ (columns * backend.array(used)[:, :, None])
                whiten = self._whitening(chosen)
                weights = xp.permute_dims(whiten @ sums, (0, 2, 1)) @ whiten  # (g,c,d)
                means = weights @ self._features_at(queries)
        return means[:, 0, :] if flat else xp.permute_dims(means, (0, 2, 1))

    def std(self, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """sqrt(ridge phi(q)^T A^-1 phi(q)), (g,m)."""
        xp, chosen = self._backend.xp, self._select(designs)
        queries = query_indices(self._set, self._backend, at, rows, len(chosen))
        with one_blas_thread():
            white = self._whitening(chosen) @ self._features_at(queries)
        return math.sqrt(self.ridge) * xp.sqrt(xp.sum(white * white, axis=1))

    def information_gain(self, *, designs: Any = None) -> Array:
        """1/2 logdet(A/ridge) = 1/2 logdet(I + K_n/ridge), (g,)."""
        xp = self._backend.xp
        pivots = xp.linalg.diagonal(self._whitening(self._select(designs)))
        return -xp.sum(xp.log(pivots * math.sqrt(self.ridge)), axis=1)

    def length(self, designs: Any = None) -> int:
        """How many targets `mean` wants per design: the largest count."""
        return int(self._counts[self._select(designs).numbers].max(initial=0))

    def repeat(self, step: Callable[[], None], times: int) -> None:
        """Call `step` that often."""
        for _ in range(count(times, "times", at_least=0)):
            step()

    def _add(self, chosen: Selection, added: Array) -> None:
        """Points (g,p) for some designs."""
        backend, xp, p = self._backend, self._backend.xp, added.shape[1]
        if not len(chosen) or not p:
            return
        self._reserve(int(self._counts[chosen.numbers].max()) + p)
        phi = backend.take(self._features, added)  # (g,p,d)
        gram = backend.take(self._gram, chosen.index) + xp.permute_dims(phi, (0, 2, 1)) @ phi
        backend.put(self._gram, chosen.index, gram)
        places = self._counts[chosen.numbers][:, None] + np.arange(p)
        backend.put(self._points, (chosen.numbers[:, None], places), added)
        self._counts[chosen.numbers] += p
        self._stale[chosen.numbers] = True

    def _whitening(self, chosen: Selection) -> Array:
        """W of some designs, (g,d,d)."""
        backend, xp = self._backend, self._backend.xp
        if self._stale[chosen.numbers].any():  # those beside them cost little more
            factor = xp.linalg.cholesky(backend.take(self._gram, chosen.index))
            backend.put(self._whiten, chosen.index, xp.linalg.inv(factor))
            self._stale[chosen.numbers] = False
        return backend.take(self._whiten, chosen.index)

    def _features_at(self, queries: Array | None) -> Array:
        """phi at all of Z (d,m), or at candidates (g,m): (g,d,m)."""
        if queries is None:
            return self._across
        return self._backend.xp.permute_dims(self._backend.take(self._features, queries), (0, 2, 1))

    def _reserve(self, need: int) -> None:
        designs, capacity = self._points.shape
        if need > capacity:
            wider = self._backend.zeros((designs, max(need, 2 * capacity)), index=True)
            wider[:, :capacity] = self._points
            self._points = wider
