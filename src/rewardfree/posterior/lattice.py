"""The exact posterior on a finite candidate set, for many designs at once: the fast path.

With C C^T = K_n + ridge I, a lattice keeps L = k(Z, Z_n) C^-T and C^-1. A new point z adds to L the row
(k(z, Z) - L[:, z]^T L)/sqrt(var(z) + ridge), and the mean for y is (C^-1 y)^T L: O(n |Z|), the reading of L
from memory. So `append` leaves its row outstanding, and the next question computes it in the same pass over L
as its answer; a question about a few points is answered from C^-1 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, as_points, count, positive, to_numpy
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.candidates import Candidates
from rewardfree.posterior.engine.backend import Backend, Selection, choose_backend, no_room
from rewardfree.posterior.engine.factors import Factors
from rewardfree.posterior.engine.prior import prior_rows
from rewardfree.posterior.prefix import Prefixes
from rewardfree.posterior.selections import (
    Selections,
    one_for_each,
    query_indices,
    some_for_each,
    target_columns,
)
from rewardfree.threads import one_blas_thread

#: At most so many rows of L are computed in one pass: enough to keep the processor busy with each row that it
#: reads, few enough for the new ones to stay near it.
BLOCK_POINTS = 16
#: One question about less than this share of Z is answered without computing outstanding rows of L.
FEW_QUERIES = 4


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
        self._prior = prior_rows(self.kernel, self.candidates, backend, designs * capacity)
        self._rows = backend.rows(designs, len(self._set), capacity)  # the largest first, if it does not fit
        self._variance = backend.zeros((designs, len(self._set)))
        self._variance += self._prior.diagonal
        self._factors = Factors(self.kernel, self.ridge, self._prior, backend, designs, capacity)
        self._settled = np.zeros(designs, np.int64)  # rows of L that are computed; the rest are outstanding
        self._select = Selections(designs)

    def __repr__(self) -> str:
        designs, m = self._variance.shape
        return f"Lattice({self.kernel!r}, ridge={self.ridge:g}, {designs} designs on {m} candidates)"

    @property
    def batch(self) -> tuple[int, ...]:
        return (len(self._settled),)

    @property
    def candidates(self) -> Array:
        """The candidate set Z, (m,d)."""
        return self._set.points

    @property
    def counts(self) -> Any:
        """How many points each design has, (g,)."""
        return self._factors.counts.copy()

    def indices(self, design: int = 0) -> Any:
        """The points of one design as candidate indices, in the order in which they came."""
        self._backend.settle_checks()
        chosen = self._select([count(design, "design", at_least=0)])
        return to_numpy(self._factors.points(chosen)[0, :]).copy()

    def append(self, designs: Any, indices: Any) -> None:
        """Add candidate `indices[i]` to design `designs[i]`: any designs, each once, or None for all."""
        chosen = self._select(designs)
        added = one_for_each(self._set, indices, chosen)
        if len(chosen):
            with one_blas_thread():
                self._append(chosen, added[:, None])

    def extend(self, points: Array) -> None:
        """Add the same points (p,d), each one a candidate, to every design."""
        indices = self._set.at(points)
        self.extend_each(self._backend.xp.broadcast_to(indices, (*self.batch, indices.shape[0])))

    def extend_each(self, indices: Any) -> None:
        """Add p points to every design, candidate indices (g,p). On an error nothing changes."""
        every = self._select(None)
        added = some_for_each(self._set, indices, len(every))
        counts, p = self._factors.counts, added.shape[1]
        # Several at once where the designs are of one length.
        step = BLOCK_POINTS if (counts == counts[0]).all() and self._factors.recording is None else 1
        before = counts.copy()
        with one_blas_thread():
            try:
                for first in range(0, p, step):
                    self._append(every, added[:, first : min(first + step, p)])
            except np.linalg.LinAlgError:
                self._factors.cut_back(before)
                raise

    def mean(self, targets: Array, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """k_n(q)^T (K_n + ridge I)^-1 y: targets (g,n) give (g,m), c columns (g,n,c) give (g,m,c).

        Designs with fewer than n points ignore the rest of their targets.
        """
        chosen = self._select(designs)
        columns, flat = self._columns(targets, chosen)  # (g,n,c)
        with one_blas_thread():
            weights = self._factors.weights(chosen, columns)
            queries = self._queries(at, rows, chosen)
            means = (
                self._means(chosen, weights) if queries is None else weights @ self._white(chosen, queries)
            )
        return means[:, 0, :] if flat else self._transposed(means)

    def of_labels(
        self, labels: Array, size: int, since: int = 0, *, designs: Any = None, before: Array | None = None
    ) -> Array:
        """M (g,size,|Z|) with mean = V M for the targets y_i = V[label_i]: what points from `since` on add.

        Where targets take few values this is cheaper than `mean` from the second question on, and a new point
        changes it by one row of L times its own weights. Labels (g,n), or (r,n) for r runs of one design.
        It is added to `before`, the M of the points before them.
        """
        backend, xp = self._backend, self._backend.xp
        chosen = self._select(designs)
        labels = backend.index(labels)
        r, n = labels.shape
        every = xp.arange(size, dtype=labels.dtype, device=array_api_compat.device(labels))
        indicators = xp.astype(labels[:, :, None] == every, self._variance.dtype)
        with one_blas_thread():
            self._settle(chosen)
            weights = self._factors.weights(chosen, indicators, since)  # (r,size,n-since)
            added = self._rows.product(xp.reshape(weights, (len(chosen), -1, n - since)), chosen, since)
        added = xp.reshape(added, (r, size, len(self._set)))
        return added if before is None else before + added

    def std(self, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """sigma_n(q) = sqrt(k(q,q) - k_n(q)^T (K_n + ridge I)^-1 k_n(q)), shape (g,m)."""
        xp, take = self._backend.xp, self._backend.take
        chosen = self._select(designs)
        queries = self._queries(at, rows, chosen)
        with one_blas_thread():
            if queries is not None and self._answers_directly(chosen, queries):
                white = self._factors.white(chosen, queries)
                variance = take(self._prior.diagonal, queries) - xp.sum(white * white, axis=1)
            else:
                self._settle(chosen)
                variance = take(self._variance, chosen.index)
                if queries is not None:
                    variance = xp.take_along_axis(variance, queries, axis=1)
        return xp.sqrt(self._factors.clipped(variance, self._factors.longest(chosen)))

    def information_gain(self, *, designs: Any = None) -> Array:
        """1/2 logdet(I + K_n/ridge) = sum of 1/2 log(1 + sigma^2/ridge) over the appended points, (g,)."""
        self._backend.settle_checks()
        return self._factors.information_gain(self._select(designs))

    def length(self, designs: Any = None) -> int:
        """How many targets `mean` wants per design: the largest count, or more inside a recorded round."""
        return self._factors.longest(self._select(designs))

    def as_of(self, sizes: Sequence[int]) -> Prefixes:
        """These posteriors as they were when designs had n points, or all they have if fewer, for each n."""
        return Prefixes(self, [count(n, "sizes", at_least=0) for n in sizes])

    def repeat(self, step: Callable[[], None], times: int) -> None:
        """Call `step` that often; on CUDA by recording it now and then and playing the recording.

        There, thousands of small launches cost more than the work itself. `step` must do the same each time
        on the same arrays: append to the same designs, take the number of targets from `length` (any finite
        ones beyond a design's points), index by arrays what changes from round to round, read nothing back.
        """
        times = count(times, "times", at_least=0)
        # A recording cannot stop to have the CPU compute a row of the kernel.
        if self._backend.replays and self._prior.on_device:
            from rewardfree.posterior.engine.replay import replay

            replay(self, cast(Any, self._backend), step, times)
        else:
            for _ in range(times):
                step()

    def _append(self, chosen: Selection, added: Array) -> None:
        """Points (g,p): only the small factors change, the rows of L wait for a question that needs them."""
        if self._factors.recording is None:  # a recording finds room made for it
            self._reserve(self._factors.longest(chosen) + added.shape[1])
        self._factors.append(chosen, added)

    def _answers_directly(self, chosen: Selection, queries: Array) -> bool:
        """Whether some rows of L are outstanding, and the queries too few to be worth computing them."""
        owed = (self._settled < self._factors.counts)[chosen.numbers].any()
        return bool(owed) and queries.shape[1] * FEW_QUERIES <= len(self._set)

    def _white(self, chosen: Selection, queries: Array) -> Array:
        """L at candidates (g,m): (g,n,m)."""
        if self._answers_directly(chosen, queries):
            return self._factors.white(chosen, queries)
        self._settle(chosen)
        return self._rows.at(chosen, queries, self._factors.longest(chosen))

    def _settle(self, chosen: Selection) -> None:
        """Compute the rows of L that earlier appends to these designs still owe."""
        owed = (self._factors.counts - self._settled)[chosen.numbers]
        for lag in np.unique(owed[owed > 0]).tolist():
            alike = chosen.numbers[owed == lag]
            size = len(alike) if lag == 1 else self._backend.block_designs or len(alike)
            for first in range(0, len(alike), size):
                some = Selection.of(alike[first : first + size])
                nothing = self._backend.zeros((len(some), 0, self._factors.longest(some)))
                for left in range(lag, 0, -BLOCK_POINTS):
                    self._pass(some, nothing, left, min(BLOCK_POINTS, left))

    def _means(self, chosen: Selection, weights: Array) -> Array:
        """weights (g,c,n) times L, (g,c,|Z|)."""
        owed = (self._factors.counts - self._settled)[chosen.numbers]
        lag = int(owed[0]) if len(owed) else 0
        if lag > BLOCK_POINTS or (owed != lag).any():
            self._settle(chosen)
            lag = 0
        return self._pass(chosen, weights, lag, lag)

    def _pass(self, chosen: Selection, weights: Array, lag: int, p: int) -> Array:
        """weights (g,c,n) times L, and the oldest p of `lag` outstanding rows of L: one pass over it."""
        try:
            return self._pass_with_rows(chosen, weights, lag, p) if p else self._rows.product(weights, chosen)
        except self._backend.out_of_memory as error:
            if self._factors.recording:
                raise
            if len(chosen) == 1:
                raise no_room("the device", (weights.shape[1] + p, len(self._set)), 8) from error
        # Nothing was changed before memory ran out: answer half of the designs at a time.
        left, right = chosen.halves()
        parts = (left, weights[: len(left)]), (right, weights[len(left) :])
        return self._backend.xp.concat([self._pass(some, own, lag, p) for some, own in parts])

    def _pass_with_rows(self, chosen: Selection, weights: Array, lag: int, p: int) -> Array:
        backend, xp, factors = self._backend, self._backend.xp, self._factors
        added, whiten = factors.block(chosen, -lag, p)
        cross = self._transposed(self._rows.at(chosen, added, weights.shape[2]))  # (g,p,n)
        # Outstanding rows of L are still zero, so their own weights have no effect in the product ...
        product = self._rows.product(xp.concat([cross, weights], axis=1), chosen)
        rows = xp.reshape(self._prior(xp.reshape(added, (-1,))), (len(chosen), p, -1)) - product[:, :p, :]
        rows = rows * whiten if p == 1 else whiten @ rows
        means = product[:, p:, :]
        for i in range(p if means.shape[1] else 0):  # ... and are added here, once the rows are known.
            own = self._own_weight(weights, factors.places(chosen, i - lag)[1])
            backend.add_outer(means, own, rows[:, i, :])
        # Last, and first what takes memory: if that runs out, nothing has been changed yet.
        backend.subtract_squares(self._variance, chosen.index, rows)
        self._rows.write(factors.places(chosen, -lag, p), rows[:, 0, :] if p == 1 else rows)
        self._settled[chosen.numbers] += p
        return means

    def _own_weight(self, weights: Array, place: Any) -> Array:
        """Each design's weight on one of its points: (g,c) of weights (g,c,n)."""
        if isinstance(place, int):
            return weights[:, :, place]
        xp, (g, c, _) = self._backend.xp, weights.shape
        index = xp.broadcast_to(self._backend.index(place)[:, None, None], (g, c, 1))
        return xp.take_along_axis(weights, index, axis=2)[:, :, 0]

    def _transposed(self, values: Array) -> Array:
        return self._backend.xp.permute_dims(values, (0, 2, 1))

    def _reserve(self, need: int) -> None:
        """Room for `need` points in every design."""
        if need > self._factors.capacity:
            self._factors.reserve(need)
            self._rows.grow(self._factors.capacity)

    def _columns(self, targets: Array, chosen: Selection) -> tuple[Array, bool]:
        """`targets` checked, as (g,n,c), and whether they were flat."""
        return target_columns(targets, self._backend, len(chosen), self._factors.longest(chosen))

    def _queries(self, at: Any, rows: Any, chosen: Selection) -> Array | None:
        """Candidate indices (g,m) of the points or rows asked about; None for all of them."""
        return query_indices(self._set, self._backend, at, rows, len(chosen))
