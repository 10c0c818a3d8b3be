"""The estimate of [P_h V] on finite sets of states and actions, for many runs at once.

A run has a regression for each step, or one if its model is pooled: over all z, or of a timed model over all
(h,z). Steps or runs that look at the same points, as those of a generative design do, share a factorisation:
targets of several runs are then columns side by side.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import array_api_compat
import numpy as np

from rewardfree.arrays import CPU, Array, Placement, namespace, to_numpy
from rewardfree.estimates.estimate import Estimate
from rewardfree.model import MODEL_POSTERIORS, Model, ModelPosteriors, midrange
from rewardfree.posterior import Counts, EarlierPosteriors, Lattice, Posteriors
from rewardfree.worlds.grid import Grid


@dataclass
class _Law:
    """The estimated law of one regression: the weights (b,s,z) of every next state, from `points` samples."""

    values: Any = None
    points: int = 0


class FiniteEstimate(Estimate):
    """The regressions of b runs over all z = (s,a), and the next states seen at their points.

    `same_steps`: all steps of a run have the same points; `same_runs`: all runs have. A kernel that is still
    to be fitted is a first guess here. `source` makes the posteriors.
    """

    def __init__(
        self,
        model: Model,
        grid: Grid,
        horizon: int,
        *,
        runs: int = 1,
        capacity: int = 64,
        same_steps: bool = False,
        same_runs: bool = False,
        source: ModelPosteriors = MODEL_POSTERIORS,
        placement: Placement = CPU,
    ) -> None:
        self.model, self.grid, self.horizon, self.runs = model, grid, horizon, runs
        self.steps = model.regressions(horizon)
        points = model.inputs(grid.points, horizon)
        model = model.first_guess(points)
        self._same_steps, self._side_by_side = same_steps, 1 if same_runs else runs
        designs = (1 if same_steps else self.steps) * self._side_by_side
        arrays: dict[str, Any] = {"device": placement.device, "dtype": placement.dtype}
        self.posteriors = source.posteriors(model, points, designs=designs, capacity=capacity, **arrays)
        self._queried: Posteriors | EarlierPosteriors = self.posteriors
        self.xp = namespace(self.posteriors.candidates)
        self.device = array_api_compat.device(self.posteriors.candidates)
        self.run_rows = self.index(np.arange(runs))[:, None]  # (b,1)
        self._points, self._kernel = points, model.fixed
        # Runs that share a design have their targets side by side already; on a device rounds are recorded,
        # and L is read as fast as it is needed.
        distinct_points = self._side_by_side == runs and not self.on_device
        # A pooled lattice is asked for the values of every step, and tabular strategies for those of many
        # rewards. For counts in the place of a delta kernel's lattice a sum over targets is less than a law.
        by_label = (isinstance(self.posteriors, Counts) and not self.posteriors.ridge) or (
            model.pooled and isinstance(self.posteriors, Lattice)
        )
        self._laws = [_Law() for _ in range(self.steps)] if distinct_points and by_label else []
        assert model.ridge is not None  # a fixed model has one, and so has a first guess
        self.ridge = model.ridge
        self._next_states = self.index(np.zeros((self.steps, runs, capacity)))
        self._filled = self.index(np.zeros((self.steps, 1)))

    def index(self, values: Any) -> Array:
        """Whole numbers, where the posteriors are."""
        return self.xp.asarray(np.array(values, np.int64), device=self.device)

    def numbers(self, values: Any) -> Array:
        """Floating numbers, where the posteriors are and of their type."""
        return self.xp.asarray(np.array(values), dtype=self.posteriors.candidates.dtype, device=self.device)

    def exact(self, values: Any) -> Array:
        """Numbers in float64, where the posteriors are: what is drawn must not depend on their type."""
        values = np.asarray(values, np.float64)
        if isinstance(self.posteriors.candidates, np.ndarray):
            return values
        return self.xp.asarray(values.copy(), device=self.device)  # torch warns of memory it must not write

    @property
    def on_device(self) -> bool:
        """Whether the posteriors are not on the CPU."""
        return str(self.device) != "cpu"

    @cached_property
    def prior_sigma(self) -> float:
        """The largest sigma before there are samples."""
        return math.sqrt(self._kernel._at(self._points).max())

    def count(self, h: int) -> int:
        """How many samples the regression of step h has, or a few more inside a recorded round."""
        return self._queried.length(self.designs(h))

    def add(self, h: int, z: Array, next_state: Array) -> None:
        """One more sample for step h of every run: points (b,) and the next states (b,) seen there."""
        self._record(h, next_state)
        self.posteriors.append(self.designs(h), self.rows_of(h, z)[: self._side_by_side])

    def add_all(self, z: Array, next_state: Array) -> None:
        """One more sample for each of the H steps of every run: points and next states (b,h)."""
        if self.steps == 1:
            for h in range(z.shape[1]):
                self.add(h, z[:, h], next_state[:, h])
            return
        # All steps have as many samples: one write serves them.
        self._next_states[:, :, self._filled[0]] = self.xp.permute_dims(next_state, (1, 0))[:, :, None]
        self._filled += 1
        z = z[: self._side_by_side, :1] if self._same_steps else z[: self._side_by_side]
        self.posteriors.append(None, self.xp.reshape(self.xp.permute_dims(z, (1, 0)), (-1,)))

    def load(self, points: Sequence[Sequence[Any]], next_states: Sequence[Sequence[Any]]) -> None:
        """Further samples of every regression [step][run]: lists of z (n,), and of the next states there.

        Of a timed model they are rows of its candidates: see `rows_of`.
        """
        filled = to_numpy(self._filled)[:, 0]
        for step, runs in enumerate(next_states):
            for run, seen in enumerate(runs):
                self._next_states[step, run, filled[step] : filled[step] + len(seen)] = self.index(seen)
            self._filled[step] += max(len(seen) for seen in runs)
        designs = [
            z for runs in points[: 1 if self._same_steps else None] for z in runs[: self._side_by_side]
        ]
        common = min(len(z) for z in designs)
        self.posteriors.extend_each(np.stack([z[:common] for z in designs]).astype(np.int64))
        for number, z in enumerate(designs):
            for point in z[common:]:  # what some have and others lack
                self.posteriors.append([number], [point])

    def mean(self, h: int, values: Array, rows: Array | None = None) -> Array:
        """The estimate of [P_h V] for V (b,s,c), at every z, or at rows (b,m): (b,c,z) or (b,c,m)."""
        if self._has_law:
            centre = midrange(values, axis=1) if self.model.centred else None
            shifted = values if centre is None else values - centre[:, None, :]
            mean = self.xp.permute_dims(shifted, (0, 2, 1)) @ self._law_at(h, rows)
            return mean if centre is None else mean + centre[:, :, None]
        y = values[self.run_rows, self._next_states[self._step(h), :, : self.count(h)]]  # (b,n,c)
        if not self.model.centred:
            return self._step_values(h, self._mean(h, y, rows), rows)
        centre = midrange(values, axis=1)  # (b,c)
        mean = self._step_values(h, self._mean(h, y - centre[:, None, :], rows), rows)
        return mean + centre[:, :, None]

    def std(self, h: int, rows: Array | None = None) -> Array:
        """sigma_h at every z, or at rows (b,m): (b,z) or (b,m); (1,z) where runs share a design."""
        narrowed = {} if rows is None else {"rows": self.rows_of(h, rows)}
        return self._step_values(h, self._queried.std(designs=self.designs(h), **narrowed), rows)

    def law(self, h: int, ends: Any = None) -> Array:
        """The estimated weights of every next state (b,s,z); in `ends` (b,s) bool one stays for sure."""
        s, xp = self.grid.shape[0], self.xp
        states = xp.broadcast_to(self.numbers(np.eye(s)), (self.runs, s, s))
        weights = self.centred(False).mean(h, states)
        if ends is None:
            return weights
        return xp.where(self.at_every_action(ends), self.of_own_state(states), weights)

    def expected(self, law: Array, values: Any) -> Array:
        """The mean of values (z,s) of the next state, or (z,) without one, under a law (b,s,z): (b,z)."""
        exact = self.numbers(values)
        if exact.ndim == 1:
            return self.xp.broadcast_to(exact, (self.runs, len(exact)))
        centre = midrange(exact, axis=1) if self.model.centred else self.xp.zeros_like(exact[:, 0])
        return self.xp.sum((exact - centre[:, None]).T * law, axis=1) + centre

    def of_own_state(self, values: Array) -> Array:
        """Values (b,c,s) at every z of theirs, (b,c,z)."""
        s, a = self.grid.shape
        return values[:, :, self.index(np.repeat(np.arange(s), a))]

    def at_every_action(self, states: Any) -> Array:
        """Flags of states (b,s) at every z of theirs, (b,1,z)."""
        return self.xp.asarray(np.repeat(states, self.grid.shape[1], axis=1)[:, None], device=self.device)

    def visits(self, h: int) -> Array:
        """How often each z was seen by the regression of step h, (b,z); of posteriors that count."""
        return cast(Counts, self.posteriors).visits(self.designs(h))

    def as_of(self, sizes: Sequence[int]) -> FiniteEstimate:
        """These regressions as they were when they had n samples, for several n side by side: one a column.

        To ask, not to add to: `mean` wants a V for each n, (b,s,c), and `std` gives (b,c,z).
        """
        earlier = copy.copy(self)
        earlier._queried = cast(Lattice, self.posteriors).as_of(sizes)
        return earlier

    def centred(self, centred: bool) -> FiniteEstimate:
        """These regressions with or without centring, which needs no other factorisation. To ask."""
        other = copy.copy(self)
        other.model = replace(self.model, centred=centred)
        return other

    def rows_of(self, h: Any, z: Any) -> Any:
        """Where points z (n,) of steps h (n,) are among the candidates."""
        return h * len(self.grid.points) + z if self.model.timed else z

    def designs(self, h: int) -> slice:
        """The posteriors that serve step h, as a slice."""
        first = 0 if self._same_steps else self._step(h) * self._side_by_side
        return slice(first, first + self._side_by_side)

    def _mean(self, h: int, y: Array, rows: Array | None) -> Array:
        b, n, c = y.shape
        if self._side_by_side < b:  # one design for all runs: their targets are its columns
            y = self.xp.reshape(self.xp.permute_dims(y, (1, 0, 2)), (1, n, b * c))
        narrowed = {} if rows is None else {"rows": self.rows_of(h, rows)}
        means = self._queried.mean(y, designs=self.designs(h), **narrowed)
        means = self.xp.permute_dims(means, (0, 2, 1))
        return self.xp.reshape(means, (b, c, -1))

    @property
    def _has_law(self) -> bool:
        """Whether the estimated laws are kept."""
        return bool(self._laws) and self._queried is self.posteriors

    def _law_at(self, h: int, rows: Array | None) -> Array:
        """The weights of every next state (b,s,z) in the estimate at step h, or at rows (b,m): (b,s,m)."""
        step, n = self._step(h), self.count(h)
        law = self._laws[step]
        if law.points < n:
            posteriors, s = cast(Lattice | Counts, self.posteriors), self.grid.shape[0]
            labels, options = (
                self._next_states[step, :, :n],
                {"designs": self.designs(h), "before": law.values},
            )
            law.values = posteriors.of_labels(labels, s, law.points, **options)
            law.points = n
        if law.values is None:
            law.values = self.numbers(np.zeros((self.runs, self.grid.shape[0], len(self._points))))
        if rows is None:
            return self._step_values(h, law.values, None)
        return self.xp.take_along_axis(law.values, self.rows_of(h, rows)[:, None, :], axis=2)

    def _step_values(self, h: int, values: Array, rows: Array | None) -> Array:
        """The values of step h among those at all candidates (...,m); values at rows stay as they are."""
        if rows is not None or not self.model.timed:
            return values
        z = len(self.grid.points)
        return values[..., h * z : (h + 1) * z]

    def _step(self, h: int) -> int:
        return 0 if self.steps == 1 else h

    def _record(self, h: int, next_state: Array) -> None:
        step = self._step(h)
        self._next_states[step][:, self._filled[step]] = next_state[:, None]
        self._filled[step] += 1
