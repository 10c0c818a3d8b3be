"""The exact posterior on a finite candidate set, for many designs at once: the fast path.

With C C^T = K_n + ridge I, a lattice keeps L = k(Z, Z_n) C^-T, the variance at every candidate and C^-1. A
new point z adds the row (k(z, Z) - L[:, z]^T L)/sqrt(var(z) + ridge), and the mean for y is (C^-1 y)^T L: no
refit, O(n |Z|) each. Both are products with L, and cost the reading of L from memory. So `append` leaves its
row outstanding, and the next question computes it in the same pass over L as its answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from rewardfree.arrays import Array, as_array, as_points, count, positive, to_numpy
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.backend import Backend, Places, Recording, Selection, choose_backend, no_room
from rewardfree.posterior.candidates import Candidates
from rewardfree.posterior.prior import prior_rows
from rewardfree.posterior.variance import not_positive_definite, rounding_floor
from rewardfree.threads import one_blas_thread

#: So many points are added at once where they are known beforehand: enough to keep the processor busy with
#: each row of L that it reads, few enough for their own rows to stay near it.
BLOCK_POINTS = 16


class Lattice:
    """g independent designs over one candidate set Z, each with its own points; no targets.

    `mean` and `std` answer at all of Z, `at` points of it (m,d), or at `rows`: candidate indices (m,) for all
    designs or (g,m) for each. `designs` narrows them to some designs. Results lead with the axis g.
    """

    def __init__(
        self,
        kernel: Kernel,
        candidates: Array,
        *,
        ridge: float,
        designs: int = 1,
        capacity: int = 64,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.kernel = as_kernel(kernel)
        self.ridge = positive(ridge, "ridge")
        candidates = as_points(candidates, "candidates")
        if candidates.shape[0] == 0:
            raise ValueError("candidates must hold at least one point, got none")
        self._backend: Backend = choose_backend(candidates, device, dtype)
        self.kernel.checked(self._backend.array(candidates), "candidates")
        self._build(candidates, count(designs, "designs"), count(capacity, "capacity"))

    def _build(self, candidates: Array, designs: int, capacity: int) -> None:
        backend = self._backend
        self._set = Candidates(candidates, backend)
        prior = self.kernel._at(self.candidates)
        self._prior = float(backend.xp.max(prior))
        self._eps = float(backend.xp.finfo(self.candidates.dtype).eps)
        self._rows = backend.rows(designs, len(self._set), capacity)  # the largest first, if it does not fit
        self._variance = backend.zeros((designs, len(self._set)))
        self._variance += prior
        self._inverse = backend.zeros((designs, capacity, capacity))  # C^-1
        self._indices = backend.zeros((designs, capacity), index=True)  # the points, as candidates
        self._counts = np.zeros(designs, np.int64)
        self._outstanding = np.zeros(designs, bool)  # the newest point's row is still to be computed
        self._recording: Recording | None = None
        self._prior_rows = prior_rows(self.kernel, self.candidates, backend, designs * capacity)
        self._selections: dict[tuple[int, int, int], Selection] = {}

    def __repr__(self) -> str:
        designs, m = self._variance.shape
        return f"Lattice({self.kernel!r}, ridge={self.ridge:g}, {designs} designs on {m} candidates)"

    @property
    def batch(self) -> tuple[int, ...]:
        return (len(self._counts),)

    @property
    def candidates(self) -> Array:
        """The candidate set Z, (m,d)."""
        return self._set.points

    @property
    def counts(self) -> Any:
        """How many points each design has, (g,)."""
        return self._counts.copy()

    def indices(self, design: int = 0) -> Any:
        """The points of one design as candidate indices, in the order in which they came."""
        self._backend.settle_checks()
        chosen = self._select([count(design, "design", at_least=0)]).numbers[0]
        return to_numpy(self._indices[int(chosen), : int(self._counts[chosen])]).copy()

    def append(self, designs: Any, indices: Any) -> None:
        """Add candidate `indices[i]` to design `designs[i]`: any designs, each once, or None for all."""
        chosen = self._select(designs)
        added = self._set.indices(indices)
        if tuple(added.shape) != (len(chosen),):
            raise ValueError(
                f"indices must name one candidate for each of {len(chosen)} designs, "
                f"got shape {tuple(added.shape)}"
            )
        if len(chosen):
            with one_blas_thread():
                self._append(chosen, added)

    def extend(self, points: Array) -> None:
        """Add the same points (p,d), each one a candidate, to every design."""
        indices = self._set.at(points)
        self.extend_each(self._backend.xp.broadcast_to(indices, (len(self._counts), indices.shape[0])))

    def extend_each(self, indices: Any) -> None:
        """Add p points to every design at once: candidate indices (g,p). One pass over L serves them all."""
        added = self._set.indices(indices, axes=(2,))
        if added.shape[0] != len(self._counts):
            raise ValueError(
                f"indices must have {len(self._counts)} rows, one per design, got {added.shape[0]}"
            )
        with one_blas_thread():
            for chosen, some in self._in_blocks(added):
                # A block needs designs of one length.
                if (self._counts[chosen.numbers] == self._counts[chosen.numbers[0]]).all():
                    self._append_block(chosen, some)
                else:
                    for i in range(some.shape[1]):
                        self._append(chosen, some[:, i])

    def mean(self, targets: Array, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """k_n(q)^T (K_n + ridge I)^-1 y: targets (g,n) give (g,m), c columns (g,n,c) give (g,m,c).

        Designs with fewer than n points ignore the rest of their targets.
        """
        chosen = self._select(designs)
        targets = as_array(targets, "targets")
        columns = self._columns(targets, chosen)  # (g,n,c)
        with one_blas_thread():
            n = columns.shape[1]
            inverse = self._backend.take(self._inverse, chosen.index)[:, :n, :n]
            weights = self._transposed(inverse @ columns)  # (C^-1 y)^T, (g,c,n)
            queries = self._queries(at, rows, chosen)
            if queries is None:
                means = self._pass(chosen, weights)
            else:
                self._settle(chosen)
                means = weights @ self._rows.at(chosen, queries, n)
        return means[:, 0, :] if targets.ndim == 2 else self._transposed(means)

    def std(self, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """sigma_n(q) = sqrt(k(q,q) - k_n(q)^T (K_n + ridge I)^-1 k_n(q)), shape (g,m)."""
        chosen = self._select(designs)
        with one_blas_thread():
            self._settle(chosen)
        variance = self._backend.take(self._variance, chosen.index)
        queries = self._queries(at, rows, chosen)
        if queries is not None:
            variance = self._backend.xp.take_along_axis(variance, queries, axis=1)
        return self._backend.xp.sqrt(self._clipped(variance, chosen))

    def information_gain(self, *, designs: Any = None) -> Array:
        """1/2 logdet(I + K_n/ridge) = sum of 1/2 log(1 + sigma^2/ridge) over the appended points, (g,)."""
        backend, xp = self._backend, self._backend.xp
        backend.settle_checks()
        chosen = self._select(designs)
        diagonal = xp.linalg.diagonal(backend.take(self._inverse, chosen.index))  # 1/sqrt(sigma^2 + ridge)
        used = xp.where(diagonal > 0.0, diagonal * math.sqrt(self.ridge), xp.ones_like(diagonal))
        return -xp.sum(xp.log(used), axis=1)

    def length(self, designs: Any = None) -> int:
        """How many targets `mean` wants per design: the largest count, or more inside a recorded round."""
        return self._longest(self._select(designs))

    def repeat(self, step: Callable[[], None], times: int) -> None:
        """Call `step` that often; on CUDA by recording it now and then and playing the recording.

        There, thousands of small launches cost more than the work itself. `step` must do the same each time
        on the same arrays: append to the same designs, take the number of targets from `length` (any finite
        ones beyond a design's points), index by arrays what changes from round to round, read nothing back.
        """
        times = count(times, "times", at_least=0)
        # A recording cannot stop to have the CPU compute a row of the kernel.
        if self._backend.replays and self._prior_rows.on_device:
            from rewardfree.posterior.replay import replay

            replay(self, cast(Any, self._backend), step, times)
        else:
            for _ in range(times):
                step()

    def _append(self, chosen: Selection, added: Array) -> None:
        backend, xp = self._backend, self._backend.xp
        self._settle(chosen)
        n = self._longest(chosen)
        if self._recording is None:  # a recording finds room made for it
            self._reserve(n + 1)
        cross = self._rows.at(chosen, added[:, None], n)  # (g,n,1)
        variance = backend.take(self._variance, chosen.index)
        variance = self._clipped(xp.take_along_axis(variance, added[:, None], axis=1)[:, 0], chosen)
        # C gains the row (cross, pivot), so C^-1 gains (-cross C^-1, 1)/pivot.
        reciprocal = (variance + self.ridge) ** -0.5
        inverse = backend.take(self._inverse, chosen.index)[:, :n, :n]
        last = (xp.permute_dims(cross, (0, 2, 1)) @ inverse)[:, 0, :] * -reciprocal[:, None]
        new = self._places(chosen, 0)
        backend.put(self._inverse, (*new, slice(0, n)), last)
        backend.put(self._inverse, (*new, new[1]), reciprocal)
        backend.put(self._indices, new, added)
        self._counts[chosen.numbers] += 1
        self._outstanding[chosen.numbers] = True
        if self._recording:
            backend.add(self._recording.counts, chosen.index, 1)

    def _in_blocks(self, added: Array) -> Iterator[tuple[Selection, Array]]:
        """Designs, and points for them (g,p), in the pieces that the backend is best with."""
        designs, points = self._backend.block_designs or added.shape[0], BLOCK_POINTS
        g, p = added.shape
        for first in range(0, g, designs):
            chosen = self._select(slice(first, first + designs))
            for start in range(0, p, points):
                # min: the array API promises nothing for slices beyond the end.
                yield chosen, added[first : min(first + designs, g), start : min(start + points, p)]

    def _append_block(self, chosen: Selection, added: Array) -> None:
        """Points (g,p) for designs of n points each: the rows of p appends, computed together."""
        backend, xp, designs = self._backend, self._backend.xp, chosen.index
        self._settle(chosen)
        n, p = self._longest(chosen), added.shape[1]
        self._reserve(n + p)
        cross = self._transposed(self._rows.at(chosen, added, n))  # (g,p,n)
        rows = xp.stack([self._prior_rows(added[:, i]) for i in range(p)], axis=1)
        rows -= self._rows.product(cross, chosen)  # (g,p,|Z|): the covariance with the new points
        schur = xp.take_along_axis(rows, xp.broadcast_to(added[:, None, :], (len(chosen), p, p)), axis=2)
        schur = 0.5 * (schur + self._transposed(schur)) + self.ridge * backend.array(np.eye(p))
        try:
            factor = xp.linalg.cholesky(schur)
        except backend.not_positive_definite:
            raise not_positive_definite(self.kernel, self.ridge, n + p, "no Cholesky factor") from None
        whiten = xp.linalg.inv(factor)  # triangular, p is small, and the ridge keeps it well conditioned
        rows = whiten @ rows
        # C gains the rows (cross, factor), so C^-1 gains whiten (-cross C^-1, 1).
        self._inverse[designs, n : n + p, :n] = -whiten @ (cross @ self._inverse[designs, :n, :n])
        self._inverse[designs, n : n + p, n : n + p] = whiten
        self._indices[designs, n : n + p] = added
        for i in range(p):
            backend.subtract_square(self._variance, designs, rows[:, i, :])
            self._rows.write((designs, n + i), rows[:, i, :])
        self._counts[chosen.numbers] += p

    def _settle(self, chosen: Selection) -> None:
        """Compute the rows that earlier appends to these designs still owe."""
        owing = chosen.numbers[self._outstanding[chosen.numbers]]
        if len(owing):
            owing = Selection.of(owing)
            self._pass(owing, self._backend.zeros((len(owing), 0, self._longest(owing))))

    def _pass(self, chosen: Selection, weights: Array) -> Array:
        """weights (g,c,n) times L, (g,c,|Z|), writing outstanding rows on the way: one pass over L."""
        owing = self._outstanding[chosen.numbers]
        if owing.any() and not owing.all():
            self._settle(chosen)
            owing = self._outstanding[chosen.numbers]
        try:
            if owing.any():
                return self._pass_with_row(chosen, weights)
            return self._rows.product(weights, chosen)
        except self._backend.out_of_memory as error:
            if self._recording:
                raise
            if len(chosen) == 1:
                raise no_room("the device", (weights.shape[1] + 1, len(self._set)), 8) from error
        # Nothing was changed before memory ran out: answer half of the designs at a time.
        halves = chosen.halves()
        middle = len(halves[0])
        return self._backend.xp.concat(
            [self._pass(halves[0], weights[:middle]), self._pass(halves[1], weights[middle:])]
        )

    def _pass_with_row(self, chosen: Selection, weights: Array) -> Array:
        backend, xp = self._backend, self._backend.xp
        n = weights.shape[2]
        place = self._places(chosen, -1)
        added = backend.take(self._indices, place)
        cross = xp.permute_dims(self._rows.at(chosen, added[:, None], n), (0, 2, 1))
        # The outstanding row of L is still zero, so its own weight has no effect in the product ...
        product = self._rows.product(xp.concat([cross, weights], axis=1), chosen)
        reciprocal = backend.take(self._inverse, (*place, place[1]))
        row = (self._prior_rows(added) - product[:, 0, :]) * reciprocal[:, None]
        means = product[:, 1:, :]
        # ... and is added here, once the row is known.
        backend.add_outer(means, self._own_weight(weights, place[1]), row)
        # Last, and first what takes memory: if that runs out, nothing has been changed yet.
        backend.subtract_square(self._variance, chosen.index, row)
        self._rows.write(place, row)
        self._outstanding[chosen.numbers] = False
        return means

    def _own_weight(self, weights: Array, newest: Any) -> Array:
        """Each design's weight on its newest point: (g,c) of weights (g,c,n)."""
        if isinstance(newest, int):
            return weights[:, :, newest]
        xp, (g, c, _) = self._backend.xp, weights.shape
        index = xp.broadcast_to(self._backend.index(newest)[:, None, None], (g, c, 1))
        return xp.take_along_axis(weights, index, axis=2)[:, :, 0]

    def _places(self, chosen: Selection, offset: int) -> Places:
        """Where each design's next entry goes (offset 0), or its newest one is (offset -1)."""
        if self._recording is None:
            return chosen.places(self._counts[chosen.numbers] + offset)
        numbers = self._backend.take(self._recording.numbers, chosen.index)
        return numbers, self._backend.take(self._recording.counts, chosen.index) + offset

    def _longest(self, chosen: Selection) -> int:
        if self._recording:
            return self._recording.length
        return int(self._counts[chosen.numbers].max()) if len(chosen) else 0

    def _clipped(self, variance: Array, chosen: Selection) -> Array:
        """`variance` with rounding below zero removed; what rounding does not explain is an error."""
        if 0 in variance.shape:
            return variance
        xp, kernel, ridge = self._backend.xp, self.kernel, self.ridge
        points = self._longest(chosen)
        floor = rounding_floor(self._prior, ridge, points, self._eps)

        def error(value: float) -> Exception:
            return not_positive_definite(kernel, ridge, points, f"a variance of {value + floor:.3g}")

        self._backend.require("variance", xp.min(variance) - floor, error)
        return self._backend.at_least_zero(variance)

    def _transposed(self, values: Array) -> Array:
        return self._backend.xp.permute_dims(values, (0, 2, 1))

    def _reserve(self, need: int) -> None:
        """Room for `need` points in every design."""
        capacity = self._indices.shape[1]
        if need <= capacity:
            return
        grown = max(need, 2 * capacity)
        self._rows.grow(grown)
        self._inverse = self._padded(self._inverse, (grown, grown))
        self._indices = self._padded(self._indices, (grown,), index=True)

    def _padded(self, values: Array, shape: tuple[int, ...], index: bool = False) -> Array:
        """`values` with its last axes grown to `shape`, by zeros."""
        grown = self._backend.zeros((values.shape[0], *shape), index)
        grown[tuple(slice(0, size) for size in values.shape)] = values
        return grown

    def _select(self, designs: Any) -> Selection:
        total = len(self._counts)
        if designs is None or isinstance(designs, slice):
            key = slice(None).indices(total) if designs is None else designs.indices(total)
            if key not in self._selections:  # asked for again in every round of a loop
                self._selections[key] = Selection.of(np.arange(*key))
            return self._selections[key]
        return Selection.named(designs, total)

    def _columns(self, targets: Array, chosen: Selection) -> Array:
        """`targets` checked, as (g,n,c)."""
        g, n = len(chosen), self._longest(chosen)
        if targets.ndim not in (2, 3) or tuple(targets.shape[:2]) != (g, n):
            raise ValueError(
                f"targets must have shape ({g}, {n}) or ({g}, {n}, c), one row per design and one entry "
                f"per point, got {tuple(targets.shape)}"
            )
        targets = self._backend.array(targets)
        self._backend.require("targets", self._backend.finite(targets), _not_finite)
        return targets[:, :, None] if targets.ndim == 2 else targets

    def _queries(self, at: Any, rows: Any, chosen: Selection) -> Array | None:
        """Candidate indices (g,m) of the points or rows asked about; None for all of them."""
        if at is None and rows is None:
            return None
        if at is not None and rows is not None:
            raise ValueError("at (points) and rows (candidate indices) are two ways to ask: give one of them")
        queries = self._set.at(at) if rows is None else self._set.indices(rows, axes=(1, 2))
        if queries.ndim == 2 and queries.shape[0] != len(chosen):
            raise ValueError(f"rows must have {len(chosen)} rows, one per design, got {queries.shape[0]}")
        return self._backend.xp.broadcast_to(queries, (len(chosen), queries.shape[-1]))


def _not_finite(_: float) -> Exception:
    return ValueError("targets must be finite, got NaN or infinity")
