"""What posteriors of many designs on one finite set share: the set, and the checks of arguments."""

from abc import abstractmethod

import numpy as np

from rewardfree.arrays import Array, DType, as_array, as_points, count, namespace, positive, to_numpy
from rewardfree.posterior.engine.backend import Backend, DesignSelector, Selection, choose_backend
from rewardfree.posterior.protocol import Designs, Posteriors
from rewardfree.posterior.variance import gain_of_pivots
from rewardfree.threads import one_blas_thread


class CandidateSet:
    """The points Z (m,d), and the checked indices of those that a caller names."""

    def __init__(self, points: Array, backend: Backend) -> None:
        self.points = backend.own(points)
        self._backend = backend
        self._lookup: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def indices(self, values: Array, axes: tuple[int, ...] = (1,)) -> Array:
        """Candidate indices that a caller gives, checked: (m,), or of other numbers of axes."""
        if not hasattr(values, "dtype"):
            values = np.asarray(values)
        if 0 in values.shape:
            return self._backend.zeros(tuple(values.shape), index=True)
        is_text = isinstance(values, np.ndarray) and values.dtype.kind in "OUS"
        if is_text or not namespace(values).isdtype(values.dtype, "integral"):
            raise ValueError(f"candidate indices must be whole numbers, got {values.dtype}")
        if values.ndim not in axes:
            numbers = " or ".join(map(str, axes))
            raise ValueError(f"candidate indices must have {numbers} axes, got shape {tuple(values.shape)}")
        return self._in_range(self._backend.index(values))

    def at(self, points: Array) -> Array:
        """The indices (m,) of points (m,d), each of which must be a candidate."""
        points = as_points(points, "points", self.points.shape[1])
        if self._lookup is None:  # in reverse, so that of equal points the first one is kept
            self._lookup = {key: i for i, key in reversed(list(enumerate(_keys(self.points))))}
        try:
            return self._backend.index([self._lookup[key] for key in _keys(self._backend.array(points))])
        except KeyError:
            raise ValueError(
                "every point must be one of the lattice's candidates, got one that is not: "
                "name candidates by index, or use a Design for points anywhere"
            ) from None

    def _in_range(self, indices: Array) -> Array:
        xp, total = self._backend.xp, len(self)

        def error(excess: float) -> Exception:
            return ValueError(
                f"candidate indices must lie in 0..{total - 1}, got one {-excess:.0f} beyond that"
            )

        self._backend.require("lowest index", xp.min(indices), error)
        self._backend.require("highest index", total - 1 - xp.max(indices), error)
        # With deferred checks a wrong index is still used, and must stay inside the arrays.
        return xp.clip(indices, 0, total - 1) if self._backend.deferred else indices


def _keys(points: Array) -> list[bytes]:
    """Each point as bytes. Adding zero turns -0.0 into 0.0."""
    return [point.tobytes() for point in to_numpy(points) + 0.0]


class FinitePosteriors(Posteriors):
    """g designs over one candidate set Z, each with its own points; no targets.

    `mean` and `std` answer at all of Z, `at` points of it (m,d), or at `rows`: candidate indices (m,) for all
    designs or (g,m) for each. `designs` narrows them to some designs. Results lead with the axis g.
    """

    def __init__(
        self,
        candidates: Array,
        *,
        ridge: float,
        designs: int,
        capacity: int,
        device: str | None,
        dtype: DType | None,
    ) -> None:
        self.ridge = positive(ridge, "ridge")
        candidates = as_points(candidates, "candidates")
        if candidates.shape[0] == 0:
            raise ValueError("candidates must hold at least one point, got none")
        self._backend: Backend = choose_backend(candidates, device, dtype)
        self._build(candidates, count(designs, "designs"), count(capacity, "capacity"))

    def _build(self, candidates: Array, designs: int, capacity: int) -> None:
        """Make the arrays of empty designs, with room for `capacity` points in each."""
        self._set = CandidateSet(candidates, self._backend)
        self._select = DesignSelector(designs)

    @abstractmethod
    def _append(self, chosen: Selection, added: Array) -> None:
        """Add points (g,p) to some designs."""

    def _extend_each(self, added: Array) -> None:
        """Add points (g,p) to all designs."""
        self._append(self._select(None), added)

    @abstractmethod
    def _means(self, chosen: Selection, columns: Array, queries: Array | None) -> Array:
        """For targets (g,n,c) the means (g,c,m) at candidates (g,m), or at all of Z."""

    @abstractmethod
    def _stds(self, chosen: Selection, queries: Array | None) -> Array:
        """sigma at candidates (g,m), or at all of Z: (g,m)."""

    @abstractmethod
    def _pivots(self, chosen: Selection) -> Array:
        """The diagonal of C^-1 with C C^T = K_n + ridge I, (g,n); 0 beyond a design's points."""

    @abstractmethod
    def _longest(self, chosen: Selection) -> int:
        """The largest number of points among some designs."""

    @property
    def batch(self) -> tuple[int, ...]:
        """(g,), the number of designs."""
        return (self._select.total,)

    @property
    def candidates(self) -> Array:
        return self._set.points

    def append(self, designs: Designs, indices: Array) -> None:
        """Add candidate `indices[i]` to design `designs[i]`: any designs, each once, or None for all."""
        chosen, added = self._select(designs), self._set.indices(indices)
        if tuple(added.shape) != (len(chosen),):
            raise ValueError(
                f"indices must name one candidate for each of {len(chosen)} designs, "
                f"got shape {tuple(added.shape)}"
            )
        if len(chosen):
            with one_blas_thread():
                self._append(chosen, added[:, None])

    def extend(self, points: Array) -> None:
        """Add the same points (p,d), each one a candidate, to every design."""
        indices = self._set.at(points)
        self.extend_each(self._backend.xp.broadcast_to(indices, (*self.batch, indices.shape[0])))

    def extend_each(self, indices: Array) -> None:
        added, designs = self._set.indices(indices, axes=(2,)), self._select.total
        if added.shape[0] != designs:
            raise ValueError(f"indices must have {designs} rows, one per design, got {added.shape[0]}")
        if added.shape[1]:
            with one_blas_thread():
                self._extend_each(added)

    def mean(
        self, targets: Array, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None
    ) -> Array:
        """The posterior means: targets (g,n) give (g,m), c columns (g,n,c) give (g,m,c).

        Designs with fewer than n points ignore the rest of their targets.
        """
        chosen = self._select(designs)
        columns, flat = self._columns(targets, chosen)
        queries = self._queries(at, rows, chosen)
        with one_blas_thread():
            means = self._means(chosen, columns, queries)
        return means[:, 0, :] if flat else self._backend.xp.permute_dims(means, (0, 2, 1))

    def std(self, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None) -> Array:
        """sigma_n(q) = sqrt(k(q,q) - k_n(q)^T (K_n + ridge I)^-1 k_n(q)), shape (g,m)."""
        chosen = self._select(designs)
        queries = self._queries(at, rows, chosen)
        with one_blas_thread():
            return self._stds(chosen, queries)

    def information_gain(self, *, designs: Designs = None) -> Array:
        """1/2 logdet(I + K_n/ridge) = sum of 1/2 log(1 + sigma^2/ridge) over the appended points, (g,)."""
        self._backend.settle_checks()
        with one_blas_thread():
            return gain_of_pivots(self._pivots(self._select(designs)), self.ridge)

    def length(self, designs: Designs = None) -> int:
        return self._longest(self._select(designs))

    def _columns(self, targets: Array, chosen: Selection) -> tuple[Array, bool]:
        """Targets (g,n) or (g,n,c) as finite columns (g,n,c), and whether there was no axis c."""
        targets, shape = as_array(targets, "targets"), (len(chosen), self._longest(chosen))
        if targets.ndim not in (2, 3) or tuple(targets.shape[:2]) != shape:
            g, n = shape
            raise ValueError(
                f"targets must have shape ({g}, {n}) or ({g}, {n}, c), one row per design and one entry "
                f"per point, got {tuple(targets.shape)}"
            )
        columns = self._backend.array(targets)
        self._backend.require("targets", self._backend.finite(columns), _not_finite)
        return (columns[:, :, None], True) if columns.ndim == 2 else (columns, False)

    def _queries(self, at: Array | None, rows: Array | None, chosen: Selection) -> Array | None:
        """Candidate indices (g,m) of the points or rows that are asked about; None for all of Z."""
        if at is None and rows is None:
            return None
        if at is not None and rows is not None:
            raise ValueError("at (points) and rows (candidate indices) are two ways to ask: give one of them")
        g = len(chosen)
        queries = self._set.at(at) if rows is None else self._set.indices(rows, axes=(1, 2))
        if queries.ndim == 2 and queries.shape[0] != g:
            raise ValueError(f"rows must have {g} rows, one per design, got {queries.shape[0]}")
        return self._backend.xp.broadcast_to(queries, (g, queries.shape[-1]))


def _not_finite(_: float) -> Exception:
    return ValueError("targets must be finite, got NaN or infinity")
