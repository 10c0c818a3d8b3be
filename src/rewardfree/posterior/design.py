"""The exact posterior on any points of a continuous space."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, get_blas_funcs, get_lapack_funcs

from rewardfree.arrays import (
    Array,
    DType,
    Floats,
    Integers,
    as_array,
    as_targets,
    cast,
    float_dtype,
    positive,
)
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.kernels.fitting import leave_one_out, missed_by_parts
from rewardfree.posterior.greedy import largest_sigma_first
from rewardfree.posterior.products import kernel_rows
from rewardfree.posterior.protocol import PointPosterior
from rewardfree.posterior.variance import clipped_variance, not_positive_definite
from rewardfree.threads import one_blas_thread

#: Queries are answered in blocks whose kernel matrix stays below this many bytes.
BLOCK_BYTES = 64 * 2**20


class Design(PointPosterior):
    """The points seen so far and the Cholesky factor C of K + ridge I; no targets.

    C is packed row after row: a new point writes its row at the end of the buffer, and C is copied only when
    the buffer doubles. NumPy on the CPU, float64 or float32.
    """

    def __init__(self, kernel: Kernel, *, ridge: float, dtype: DType = np.float64) -> None:
        self.kernel = as_kernel(kernel)
        self.ridge = positive(ridge, "ridge")
        self.dtype = float_dtype(dtype)
        self._points = np.empty((0, 0), self.dtype)  # (capacity, d), the first n rows in use
        self._packed = np.empty(0, self.dtype)  # C, rows concatenated
        self._count = 0
        self._gain = 0.0
        self._prior = 0.0  # the largest k(z,z) of the points
        self._unpacked: Any = None  # C as a square array, while it is valid

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"Design({self.kernel!r}, ridge={self.ridge:g}, {self._count} points)"

    @property
    def prior(self) -> float:
        """The largest k(z,z) of the points seen."""
        return self._prior

    @property
    def points(self) -> Array:
        """A copy of the points, (n,d), in the order in which they came."""
        return self._points[: self._count].copy()

    @property
    def basis_points(self) -> Array:
        """All points, (n,d)."""
        return self.points

    def extend(self, points: Array) -> None:
        """Condition on more points (p,d): O(n^2) each. On an error nothing changes."""
        points = self._checked(points, "points")
        if len(points) == 0:
            return
        prior = max(self._prior, float(self.kernel._at(points).max()))
        with one_blas_thread():
            rows, pivots = self._new_rows(points, prior)
        self._reserve(points)
        self._unpacked = None
        n = self._count
        for i, row in enumerate(rows, start=n):
            self._packed[_packed_size(i) : _packed_size(i + 1)] = row[: i + 1]
        self._points[n : n + len(points)] = points
        self._count = n + len(points)
        self._prior = prior
        self._gain += float(np.sum(np.log(pivots.astype(np.float64) / math.sqrt(self.ridge))))

    def mean(self, targets: Array, at: Array) -> Array:
        """k_n(q)^T (K_n + ridge I)^-1 y: targets (n,) give (m,), c columns (n,c) give (m,c)."""
        targets, at = as_targets(targets, self._count, self.dtype), self._checked(at, "at")
        if self._count == 0:
            return np.zeros((len(at), *targets.shape[1:]), self.dtype)
        columns = targets.reshape(self._count, -1)
        with one_blas_thread():
            weights = self._solve(columns)
            result = np.empty((len(at), columns.shape[1]), self.dtype)
            for block in self._blocks(len(at)):
                result[block] = self._cross(at[block]) @ weights
        return result[:, 0] if targets.ndim == 1 else result

    def std(self, at: Array) -> Array:
        """sigma_n(q) = sqrt(k(q,q) - k_n(q)^T (K_n + ridge I)^-1 k_n(q)), shape (m,)."""
        at = self._checked(at, "at")
        variance = np.array(self.kernel._at(at), self.dtype)
        if self._count and len(at):
            prior = max(self._prior, float(variance.max()))
            with one_blas_thread():
                factor = self._factor() if len(at) > 1 else None
                for block in self._blocks(len(at)):
                    white = self._whiten(self._cross(at[block]), factor)
                    variance[block] -= np.einsum("mn,mn->m", white, white)
            variance = self._clipped(variance, prior, self._count)
        return np.sqrt(variance)

    def greedy(self, candidates: Array, queries: int) -> tuple[Integers, Floats]:
        """The q candidates (m,d) to add next, each where sigma is then largest: indices and sigma, (q,).

        O(n^2 m) once, and O((n + q) m) for each query.
        """
        candidates = self._checked(candidates, "candidates")
        variance = np.array(self.kernel._at(candidates), self.dtype)
        prior = max(self._prior, float(variance.max()))
        rows = np.empty((self._count + queries, len(candidates)), self.dtype)
        with one_blas_thread():
            if self._count:
                factor = self._factor()
                for block in self._blocks(len(candidates)):
                    rows[: self._count, block] = self._whiten(self._cross(candidates[block]), factor).T
                variance -= np.einsum("nm,nm->m", rows[: self._count], rows[: self._count])
            return largest_sigma_first(
                variance,
                lambda i: self.kernel.between(candidates[i : i + 1], candidates)[0],
                rows,
                queries,
                self.ridge,
                lambda variance, points: self._clipped(variance, prior, points),
            )

    def basis(self, at: Array) -> Array:
        """k(q, z_i), (m,n)."""
        return self._cross(self._checked(at, "at"))

    def weights(self, targets: Array) -> Array:
        """(K_n + ridge I)^-1 y for targets (n,c): (n,c)."""
        with one_blas_thread():
            return self._solve(cast(targets, self.dtype))

    def energy(self, targets: Array) -> Floats:
        return np.asarray(np.einsum("nc,nc->c", targets, self.weights(targets)))

    def missed(self, targets: Array, parts: Sequence[Integers] | None = None) -> Floats:
        """y of a part P minus its prediction from all others: [G^-1]_PP^-1 [G^-1 y]_P, G = K_n + ridge I."""
        targets = cast(targets, self.dtype)
        if parts is None:
            matrix = self.kernel.between(self._used(), self._used())
            matrix[np.diag_indices(self._count)] += self.ridge
            with one_blas_thread():
                return leave_one_out(matrix, targets)
        rows = np.concatenate(parts)
        chosen = np.zeros((self._count, len(rows)), self.dtype)
        chosen[rows, np.arange(len(rows))] = 1.0
        among = np.split(np.arange(len(rows)), np.cumsum([len(part) for part in parts])[:-1])
        return missed_by_parts(self.weights(chosen)[rows], self.weights(targets)[rows], among)

    def information_gain(self) -> float:
        """1/2 logdet(I + K_n/ridge)."""
        return self._gain

    def _checked(self, points: Array, name: str) -> Any:
        points = as_array(points, name)
        if not isinstance(points, np.ndarray):
            raise ValueError(f"a Design takes NumPy arrays, {name} is {type(points)}")
        like = self._used() if self._count else None
        return self.kernel.checked(cast(points, self.dtype), name, like)

    def _used(self) -> Any:
        return self._points[: self._count]

    def _cross(self, at: Any) -> Any:
        """k(at, points)."""
        return kernel_rows(self.kernel, at, self._used())

    def _new_rows(self, points: Any, prior: float) -> tuple[Any, Any]:
        """The rows (p, n+p) that the new points add to C, and their pivots (p,)."""
        p, n = len(points), self._count
        rows = np.zeros((p, n + p), self.dtype)
        schur = self.kernel.between(points, points)
        if n:
            factor = self._factor() if p > 1 else None
            rows[:, :n] = self._whiten(self.kernel.between(points, self._used()), factor)
            schur = schur - rows[:, :n] @ rows[:, :n].T
        diagonal = np.einsum("ii->i", schur)  # a view
        diagonal[:] = self._clipped(diagonal, prior, n + p) + self.ridge
        try:
            rows[:, n:] = cholesky(schur, lower=True, check_finite=False)
        except LinAlgError:
            raise not_positive_definite(self.kernel, self.ridge, n + p, "no Cholesky factor") from None
        return rows, np.diagonal(rows[:, n:])

    def _whiten(self, cross: Any, factor: Any) -> Any:
        """C^-1 k_n(q) for each row k_n(q) of `cross` (m,n), as rows (m,n). `cross` is overwritten."""
        if factor is None:  # one query: read the packed factor once, without unpacking it
            tpsv, _, _ = _lapack(self.dtype)
            return tpsv(self._count, self._packed, cross[0], trans=1)[None, :]
        # cross.T is in the column order of LAPACK, so it is solved in place.
        _, trsm, _ = _lapack(self.dtype)
        return trsm(1.0, factor, np.ascontiguousarray(cross).T, trans_a=1, overwrite_b=1).T

    def _clipped(self, variance: Any, prior: float, points: int) -> Any:
        """max(variance, 0). A variance so negative that rounding does not explain it is an error."""
        return clipped_variance(variance, self.kernel, prior, self.ridge, points)

    def _solve(self, columns: Any) -> Any:
        """(K_n + ridge I)^-1 columns, (n,c)."""
        tpsv, trsm, _ = _lapack(self.dtype)
        if columns.shape[1] == 1:
            white = tpsv(self._count, self._packed, columns[:, 0], trans=1)
            return tpsv(self._count, self._packed, white)[:, None]
        factor = self._factor()
        return trsm(1.0, factor, trsm(1.0, factor, columns, trans_a=1))

    def _factor(self) -> Any:
        """C^T as a square array in column order, kept until a point is added."""
        if self._unpacked is None:
            _, _, tpttr = _lapack(self.dtype)
            self._unpacked = tpttr(self._count, self._packed[: _packed_size(self._count)])[0]
        return self._unpacked

    def _blocks(self, queries: int) -> Iterator[slice]:
        size = max(1, BLOCK_BYTES // (self.dtype.itemsize * max(1, self._count)))
        return (slice(start, start + size) for start in range(0, queries, size))

    def _reserve(self, points: Any) -> None:
        """Make room for more points. Doubling keeps the cost of all copies at O(1) per entry."""
        need = self._count + len(points)
        if need <= len(self._points):
            return
        capacity = max(need, 2 * len(self._points), 16)
        grown = np.empty((capacity, points.shape[1]), self.dtype)
        if self._count:
            grown[: self._count] = self._used()
        packed = np.empty(_packed_size(capacity), self.dtype)
        used = _packed_size(self._count)
        packed[:used] = self._packed[:used]
        self._points, self._packed = grown, packed


@lru_cache(maxsize=2)
def _lapack(dtype: Any) -> tuple[Any, Any, Any]:
    """tpsv, trsm and tpttr. C packed by rows is C^T packed by columns, which LAPACK calls upper."""
    tpsv, trsm = get_blas_funcs(("tpsv", "trsm"), dtype=dtype)
    (tpttr,) = get_lapack_funcs(("tpttr",), dtype=dtype)
    return tpsv, trsm, tpttr


def _packed_size(n: int) -> int:
    """Entries of a packed lower triangle of n rows."""
    return n * (n + 1) // 2
