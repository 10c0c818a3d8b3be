"""The exact posterior on a finite candidate set, for many designs at once: the fast path.

With C C^T = K_n + ridge I, a lattice keeps L = k(Z, Z_n) C^-T and C^-1. A new point z adds to L the row
(k(z, Z) - L[:, z]^T L)/sqrt(var(z) + ridge), and the mean for y is (C^-1 y)^T L: O(n |Z|), the reading of L
from memory. So `append` leaves its row outstanding, and the next question computes it in the same pass over L
as its answer. A question about a few points is answered from C^-1 alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, DType, Integers, count, to_numpy
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.earlier import EarlierPosteriors
from rewardfree.posterior.engine.backend import Selection, no_room
from rewardfree.posterior.engine.factors import Factors
from rewardfree.posterior.engine.prior import prior_rows
from rewardfree.posterior.finite_posteriors import FinitePosteriors
from rewardfree.posterior.protocol import Designs
from rewardfree.threads import one_blas_thread

#: One pass computes at most this many rows of L. More would not stay in the cache near the row that is read,
#: and fewer would not keep the processor busy.
BLOCK_POINTS = 16
#: A question about less than 1/FEW_QUERIES of Z is answered without computing outstanding rows of L.
FEW_QUERIES = 4


class Lattice(FinitePosteriors):
    """The exact posteriors k_n(q)^T (K_n + ridge I)^-1 y of g independent designs over one candidate set Z.

    Questions name all of Z, points `at` of it (m,d), or candidate indices `rows`, see `FinitePosteriors`.
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
        dtype: DType | None = None,
    ) -> None:
        self.kernel = as_kernel(kernel)
        super().__init__(
            candidates, ridge=ridge, designs=designs, capacity=capacity, device=device, dtype=dtype
        )

    def _build(self, candidates: Array, designs: int, capacity: int) -> None:
        super()._build(candidates, designs, capacity)
        backend = self._backend
        self.kernel.checked(self.candidates, "candidates")
        self._prior = prior_rows(self.kernel, self.candidates, backend, designs * capacity)
        self._rows = backend.rows(designs, len(self._set), capacity)  # first the largest: it may not fit
        self._variance = backend.zeros((designs, len(self._set)))
        self._variance += self._prior.diagonal
        self._factors = Factors(self.kernel, self.ridge, self._prior, backend, designs, capacity)
        self._settled = np.zeros(
            designs, np.int64
        )  # how many rows of L are computed; the rest are outstanding

    def __repr__(self) -> str:
        designs, m = self._variance.shape
        return f"Lattice({self.kernel!r}, ridge={self.ridge:g}, {designs} designs on {m} candidates)"

    @property
    def counts(self) -> Integers:
        """How many points each design has, (g,)."""
        return self._factors.counts.copy()

    def indices(self, design: int = 0) -> Integers:
        """The points of one design as candidate indices, in the order in which they came."""
        self._backend.settle_checks()
        chosen = self._select([count(design, "design", at_least=0)])
        return np.array(to_numpy(self._factors.points(chosen)[0, :]), np.int64)

    def of_labels(
        self,
        labels: Array,
        size: int,
        since: int = 0,
        *,
        designs: Designs = None,
        before: Array | None = None,
    ) -> Array:
        """M (g,size,|Z|) with mean = V M for the targets y_i = V[label_i], from labels (g,n).

        Points from `since` on are added to `before`, the M of the points before them. For targets of few
        values M is cheaper than `mean` from the second question on: a new point adds one row of L times its
        weights. Labels may be (r,n) for r runs of one design.
        """
        backend, xp = self._backend, self._backend.xp
        chosen = self._select(designs)
        labels = backend.index(labels)
        r, n = labels.shape
        values = xp.arange(size, dtype=labels.dtype, device=array_api_compat.device(labels))
        indicators = xp.astype(labels[:, :, None] == values, self._variance.dtype)
        with one_blas_thread():
            self._settle(chosen)
            weights = self._factors.weights(chosen, indicators, since)  # (r,size,n-since)
            added = self._rows.product(xp.reshape(weights, (len(chosen), -1, n - since)), chosen, since)
        added = xp.reshape(added, (r, size, len(self._set)))
        return added if before is None else before + added

    def as_of(self, sizes: Sequence[int]) -> EarlierPosteriors:
        """The posteriors of the first n points of each design (of all, if there are fewer), for each n."""
        return EarlierPosteriors(self, [count(n, "sizes", at_least=0) for n in sizes])

    def repeat(self, step: Callable[[], None], times: int) -> None:
        """Call `step` that often; on CUDA record it now and then, and replay the recording.

        There, thousands of small launches cost more than the work itself. `step` must do the same each time
        on the same arrays: append to the same designs, take the number of targets from `length` (targets
        beyond a design's points may be any finite numbers), index by arrays what changes from round to round,
        and read nothing back.
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
        """Only the small factors change: the rows of L wait for a question that needs them."""
        if self._factors.recording is None:  # before a recording, room was made for all its points
            self._reserve(self._longest(chosen) + added.shape[1])
        self._factors.append(chosen, added)

    def _extend_each(self, added: Array) -> None:
        """In blocks where all designs have the same length. On an error nothing changes."""
        all_designs, counts, p = self._select(None), self._factors.counts, added.shape[1]
        step = BLOCK_POINTS if (counts == counts[0]).all() and self._factors.recording is None else 1
        before = counts.copy()
        try:
            for first in range(0, p, step):
                self._append(all_designs, added[:, first : min(first + step, p)])
        except np.linalg.LinAlgError:
            self._factors.cut_back(before)
            raise

    def _means(self, chosen: Selection, columns: Array, queries: Array | None) -> Array:
        weights = self._factors.weights(chosen, columns)
        return self._all_means(chosen, weights) if queries is None else weights @ self._white(chosen, queries)

    def _stds(self, chosen: Selection, queries: Array | None) -> Array:
        xp, take = self._backend.xp, self._backend.take
        if queries is not None and self._answers_directly(chosen, queries):
            white = self._factors.white(chosen, queries)
            variance = take(self._prior.diagonal, queries) - xp.sum(white * white, axis=1)
        else:
            self._settle(chosen)
            variance = take(self._variance, chosen.index)
            if queries is not None:
                variance = xp.take_along_axis(variance, queries, axis=1)
        return xp.sqrt(self._factors.floor.clipped(variance, self._longest(chosen)))

    def _pivots(self, chosen: Selection) -> Array:
        return self._factors.pivots(chosen)

    def _longest(self, chosen: Selection) -> int:
        """The largest number of points among some designs, or more inside a recorded round."""
        return self._factors.longest(chosen)

    def _answers_directly(self, chosen: Selection, queries: Array) -> bool:
        """Whether rows of L are outstanding, and the queries too few to compute them."""
        any_outstanding = (self._settled < self._factors.counts)[chosen.numbers].any()
        return bool(any_outstanding) and queries.shape[1] * FEW_QUERIES <= len(self._set)

    def _white(self, chosen: Selection, queries: Array) -> Array:
        """L at candidates (g,m): (g,n,m)."""
        if self._answers_directly(chosen, queries):
            return self._factors.white(chosen, queries)
        self._settle(chosen)
        return self._rows.at(chosen, queries, self._longest(chosen))

    def _settle(self, chosen: Selection) -> None:
        """Compute the outstanding rows of L of these designs."""
        outstanding = (self._factors.counts - self._settled)[chosen.numbers]
        for lag in np.unique(outstanding[outstanding > 0]).tolist():
            numbers = chosen.numbers[outstanding == lag]
            size = len(numbers) if lag == 1 else self._backend.block_designs or len(numbers)
            for first in range(0, len(numbers), size):
                block = Selection.of(numbers[first : first + size])
                no_weights = self._backend.zeros((len(block), 0, self._longest(block)))
                for left in range(lag, 0, -BLOCK_POINTS):
                    self._pass(block, no_weights, left, min(BLOCK_POINTS, left))

    def _all_means(self, chosen: Selection, weights: Array) -> Array:
        """weights (g,c,n) times L, (g,c,|Z|)."""
        outstanding = (self._factors.counts - self._settled)[chosen.numbers]
        lag = int(outstanding[0]) if len(outstanding) else 0
        if lag > BLOCK_POINTS or (outstanding != lag).any():
            self._settle(chosen)
            lag = 0
        return self._pass(chosen, weights, lag, lag)

    def _pass(self, chosen: Selection, weights: Array, lag: int, p: int) -> Array:
        """weights (g,c,n) times L, and the oldest p of `lag` outstanding rows of L, in one pass over L."""
        try:
            return self._pass_with_rows(chosen, weights, lag, p) if p else self._rows.product(weights, chosen)
        except self._backend.out_of_memory as error:
            if self._factors.recording:
                raise
            if len(chosen) == 1:
                raise no_room("the device", (weights.shape[1] + p, len(self._set)), 8) from error
        # Memory ran out before anything was changed: answer half of the designs at a time.
        left, right = chosen.halves()
        halves = (left, weights[: len(left)]), (right, weights[len(left) :])
        return self._backend.xp.concat([self._pass(half, rows, lag, p) for half, rows in halves])

    def _pass_with_rows(self, chosen: Selection, weights: Array, lag: int, p: int) -> Array:
        backend, xp, factors = self._backend, self._backend.xp, self._factors
        added, whiten = factors.block(chosen, -lag, p)
        cross = self._transposed(self._rows.at(chosen, added, weights.shape[2]))  # (g,p,n)
        # Outstanding rows of L are still zero, so their weights have no effect in the product ...
        product = self._rows.product(xp.concat([cross, weights], axis=1), chosen)
        rows = xp.reshape(self._prior(xp.reshape(added, (-1,))), (len(chosen), p, -1)) - product[:, :p, :]
        rows = rows * whiten if p == 1 else whiten @ rows
        means = product[:, p:, :]
        for i in range(p if means.shape[1] else 0):  # ... and are added here, where the rows are there.
            weight = self._weight_at(weights, factors.places(chosen, i - lag)[1])
            backend.add_outer(means, weight, rows[:, i, :])
        # Changes come last, and the one that takes memory first: if it runs out, nothing has been changed.
        backend.subtract_squares(self._variance, chosen.index, rows)
        self._rows.write(factors.places(chosen, -lag, p), rows[:, 0, :] if p == 1 else rows)
        self._settled[chosen.numbers] += p
        return means

    def _weight_at(self, weights: Array, place: Any) -> Array:
        """The weight of one point of each design: (g,c) of weights (g,c,n)."""
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
