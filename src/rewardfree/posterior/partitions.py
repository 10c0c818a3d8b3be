"""Many adaptive partitions of one finite candidate set at once.

In an order of the candidates in which those of a cell lie side by side, a sample's row of L (see lattice.py)
is zero but for the window of its cell. On NumPy each cell is visited by itself: O(n_cell |cell|) a sample.
On a device one product over all designs and candidates is faster than many small ones: masks cut it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, as_points, count, positive, to_numpy
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.candidates import Candidates
from rewardfree.posterior.cells import Cell, Cells, cell_order, check_alpha, check_drop
from rewardfree.posterior.engine.backend import Backend, Selection, choose_backend
from rewardfree.posterior.selections import (
    Selections,
    one_for_each,
    query_indices,
    some_for_each,
    target_columns,
)
from rewardfree.posterior.variance import Floor, gain_of_pivots
from rewardfree.threads import one_blas_thread


class Partitions:
    """g designs over one candidate set Z, each with a partition of its bounding box; see `Lattice`.

    A posterior is that of k(z,z') 1{z and z' in one cell}, exactly as by a `Partition` for each design. Only
    the cells that a sample touches are computed. With `drop`, targets are still wanted for every point.
    """

    def __init__(
        self,
        kernel: Kernel,
        candidates: Array,
        *,
        ridge: float,
        alpha: float | None,
        drop: bool = False,
        designs: int = 1,
        capacity: int = 64,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.kernel, self.ridge = as_kernel(kernel), positive(ridge, "ridge")
        self.alpha, self.drop = check_alpha(alpha), check_drop(drop)
        candidates = as_points(candidates, "candidates")
        if candidates.shape[0] == 0:
            raise ValueError("candidates must hold at least one point, got none")
        self._backend: Backend = choose_backend(candidates, device, dtype)
        self.kernel.checked(self._backend.array(candidates), "candidates")
        self._build(candidates, count(designs, "designs"), count(capacity, "capacity"))

    def _build(self, candidates: Array, designs: int, capacity: int) -> None:
        backend = self._backend
        self._set = Candidates(candidates, backend)
        self._order = cell_order(to_numpy(candidates))
        self._position = backend.index(self._order.position)
        self._sorted = backend.own(to_numpy(candidates)[self._order.order])  # (m,d)
        self._diagonal = self.kernel._at(self._sorted)
        self._floor = Floor.of(self.kernel, self.ridge, self._diagonal, backend)
        self._rows = backend.zeros((designs, capacity, len(self._set)))  # L, candidates in that order
        self._inverse = backend.zeros((designs, capacity, capacity))  # C^-1; zero between cells
        self._variance = backend.zeros((designs, len(self._set))) + self._diagonal
        self._trees = [Cells(self.alpha, self.drop) for _ in range(designs)]
        self._places = np.zeros((designs, capacity), np.int64)  # the positions of the samples
        self._select = Selections(designs)
        self._by_cell = backend.block_designs == 1

    def __repr__(self) -> str:
        designs, m = self._variance.shape
        return f"Partitions({self.kernel!r}, ridge={self.ridge:g}, {designs} designs on {m} candidates)"

    @property
    def batch(self) -> tuple[int, ...]:
        return (len(self._trees),)

    @property
    def candidates(self) -> Array:
        """The candidate set Z, (m,d)."""
        return self._set.points

    def cells(self, design: int = 0) -> Cells:
        """The partition of one design."""
        return self._trees[count(design, "design", at_least=0)]

    def append(self, designs: Any, indices: Any) -> None:
        """Add candidate `indices[i]` to design `designs[i]`: any designs, each once, or None for all."""
        chosen = self._select(designs)
        added = to_numpy(one_for_each(self._set, indices, chosen))
        if not len(chosen):
            return
        self._reserve(self.length(designs) + 1)
        whole: list[tuple[int, Cell]] = []  # designs whose sample changed no cells, and its cell
        with one_blas_thread():
            for number, candidate in zip(chosen.numbers.tolist(), added.tolist(), strict=True):
                cell, parts = self._placed(number, candidate)
                if parts is None:
                    whole.append((number, cell))
                else:
                    self._forget(number, cell)
                    self._rebuild(number, parts)
            if self._by_cell:
                for number, cell in whole:
                    self._grow([number], [cell], cell.samples[:-1])
            elif whole:
                numbers = [number for number, _ in whole]
                n = max(len(self._trees[number]) for number in numbers) - 1
                self._grow(numbers, [cell for _, cell in whole], slice(0, n))

    def extend(self, points: Array) -> None:
        """Add the same points (p,d), each one a candidate, to every design."""
        indices = self._set.at(points)
        self.extend_each(self._backend.xp.broadcast_to(indices, (*self.batch, indices.shape[0])))

    def extend_each(self, indices: Any) -> None:
        """Add p points to every design, candidate indices (g,p): every cell is computed once, at the end."""
        added = to_numpy(some_for_each(self._set, indices, len(self._trees)))
        if not added.shape[1]:
            return
        self._reserve(self.length() + added.shape[1])
        with one_blas_thread():
            for number, candidates in enumerate(added.tolist()):
                touched = set()
                for candidate in candidates:
                    cell, parts = self._placed(number, candidate)
                    if parts is not None:
                        self._forget(number, cell)
                    touched |= {each.place for each in ([cell] if parts is None else parts)}
                self._rebuild(number, [cell for cell in self._trees[number] if cell.place in touched])

    def mean(self, targets: Array, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """k_c(q)^T (K_c + ridge I)^-1 y_c of q's cell: targets (g,n) give (g,m), (g,n,c) give (g,m,c).

        Designs with fewer than n points ignore the rest of their targets.
        """
        backend, xp, chosen, n = self._backend, self._backend.xp, self._select(designs), self.length(designs)
        columns, flat = target_columns(targets, backend, len(chosen), n)
        queries = query_indices(self._set, backend, at, rows, len(chosen))
        with one_blas_thread():
            inverse = backend.take(self._inverse, chosen.index)[:, :n, :n]
            weights = xp.permute_dims(inverse @ columns, (0, 2, 1))  # (g,c,n)
            if queries is None:
                means = xp.take(self._products(chosen, weights), self._position, axis=2)
            else:
                means = weights @ self._rows_at(chosen, queries, n)
        return means[:, 0, :] if flat else xp.permute_dims(means, (0, 2, 1))

    def std(self, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """sigma of q's own cell, (g,m)."""
        xp, chosen = self._backend.xp, self._select(designs)
        queries = query_indices(self._set, self._backend, at, rows, len(chosen))
        variance = self._backend.take(self._variance, chosen.index)
        if queries is None:
            variance = xp.take(variance, self._position, axis=1)
        else:
            variance = xp.take_along_axis(variance, self._backend.take(self._position, queries), axis=1)
        return xp.sqrt(self._floor.clipped(variance, self.length(designs)))

    def information_gain(self, *, designs: Any = None) -> Array:
        """1/2 logdet(I + K_c/ridge) summed over the cells of each design, (g,)."""
        inverse = self._backend.take(self._inverse, self._select(designs).index)
        return gain_of_pivots(self._backend.xp.linalg.diagonal(inverse), self.ridge)

    def length(self, designs: Any = None) -> int:
        """How many targets `mean` wants per design: the largest number of samples that came."""
        numbers = self._select(designs).numbers.tolist()
        return max((len(self._trees[number]) for number in numbers), default=0)

    def repeat(self, step: Callable[[], None], times: int) -> None:
        """Call `step` that often. Where cells are split is decided on the host: nothing is recorded."""
        for _ in range(count(times, "times", at_least=0)):
            step()

    def _placed(self, number: int, candidate: int) -> tuple[Cell, list[Cell] | None]:
        """One more sample of a design: see `Cells.add`."""
        tree = self._trees[number]
        self._places[number, len(tree)] = self._order.position[candidate]
        return tree.add(self._order.addresses[candidate])

    def _grow(self, numbers: list[int], cells: list[Cell], earlier: Any) -> None:
        """The rows of the newest sample of some designs, from earlier ones: of its cell, or of any."""
        backend, some = self._backend, Selection.of(np.array(numbers))
        newest = np.array([len(self._trees[number]) - 1 for number in numbers])
        places = self._places[some.numbers, newest]
        window = self._order.window(cells[0].place) if self._by_cell else slice(0, len(self._set))
        rows = backend.take(self._rows, (some.index, earlier, window))
        steps = np.arange(earlier.stop) if isinstance(earlier, slice) else np.array(earlier, np.int64)
        at = (some.numbers[:, None], steps[None, :], places[:, None])
        cross = backend.take(self._rows, at)[:, None, :]  # C^-1 k(z_i, z), (g,1,n)
        own = backend.take(self._variance, (some.numbers, places))
        whiten = (self._floor.clipped(own, int(newest.max()) + 1) + self.ridge) ** -0.5
        prior = self.kernel.between(backend.take(self._sorted, places), self._sorted[window, :])
        row = (prior - (cross @ rows)[:, 0, :]) * whiten[:, None]
        if not self._by_cell:
            row = row * self._inside([self._order.window(cell.place) for cell in cells], window)
        inverse = backend.take(self._inverse, (some.numbers[:, None, None], steps[:, None], steps[None, :]))
        backend.put(self._inverse, (some.numbers[:, None], newest[:, None], steps[None, :]),
                    -whiten[:, None] * (cross @ inverse)[:, 0, :])  # fmt: skip
        backend.put(self._inverse, (some.numbers, newest, newest), whiten)
        backend.subtract_squares(self._variance, (some.index, window), row[:, None, :])
        backend.put(self._rows, (*some.places(newest), window), row)

    def _forget(self, number: int, cell: Cell) -> None:
        """A cell is split: its window is as if nothing had been seen."""
        backend, window = self._backend, self._order.window(cell.place)
        samples, design = np.array(cell.samples), slice(number, number + 1)
        backend.put(self._rows, (design, samples, window), 0.0)
        backend.put(self._inverse, (design, samples, slice(None)), 0.0)
        backend.put(self._variance, (design, window), self._diagonal[window])

    def _rebuild(self, number: int, cells: Sequence[Cell]) -> None:
        """The rows of cells of a design from scratch: one by one, or all together by masks."""
        for group in [[cell] for cell in cells] if self._by_cell else [cells][: len(cells)]:
            self._rebuild_together(number, group)

    def _rebuild_together(self, number: int, cells: Sequence[Cell]) -> None:
        backend, xp = self._backend, self._backend.xp
        windows = [self._order.window(cell.place) for cell in cells for _ in cell.samples]
        samples = np.concatenate([cell.samples for cell in cells]).astype(np.int64)
        window = slice(min(each.start for each in windows), max(each.stop for each in windows))
        points = backend.take(self._sorted, self._places[number, samples])
        gram = self.kernel.between(points, points)
        across = self.kernel.between(points, self._sorted[window, :])
        if len(cells) > 1:
            starts = backend.index(np.array([each.start for each in windows]))
            gram = gram * xp.astype(starts[:, None] == starts[None, :], gram.dtype)
            across = across * self._inside(windows, window)
        whiten = self._floor.whitening(gram[None, :, :], len(samples))
        rows = whiten @ across[None, :, :]
        design = slice(number, number + 1)
        backend.put(self._inverse, (np.array([[[number]]]), samples[:, None], samples[None, :]), whiten)
        backend.put(self._rows, (design, samples, window), rows)
        left = self._diagonal[window] - xp.sum(rows * rows, axis=1)
        if len(cells) > 1:  # between these cells there may be others
            inside = xp.max(self._inside(windows, window), axis=0) > 0.0
            left = xp.where(inside, left, backend.take(self._variance, (design, window)))
        backend.put(self._variance, (design, window), left)

    def _inside(self, windows: Sequence[slice], among: slice) -> Array:
        """1 where a position of `among` lies in a window, else 0, (windows, positions)."""
        backend, xp = self._backend, self._backend.xp
        starts = backend.index(np.array([each.start for each in windows]))[:, None]
        stops = backend.index(np.array([each.stop for each in windows]))[:, None]
        device = array_api_compat.device(self._sorted)
        every = xp.arange(among.start, among.stop, dtype=starts.dtype, device=device)[None, :]
        return xp.astype((every >= starts) & (every < stops), self._sorted.dtype)

    def _products(self, chosen: Selection, weights: Array) -> Array:
        """weights (g,c,n) times L, (g,c,m) in the order of the cells."""
        if not self._by_cell:
            return weights @ self._backend.take(self._rows, chosen.index)[:, : weights.shape[2], :]
        found = self._backend.zeros((*weights.shape[:2], len(self._set)))
        for i, number in enumerate(chosen.numbers.tolist()):
            for cell in self._trees[number]:
                window = self._order.window(cell.place)
                rows = self._rows[number, cell.samples, window]
                found[i, :, window] = weights[i][:, cell.samples] @ rows
        return found

    def _rows_at(self, chosen: Selection, queries: Array, n: int) -> Array:
        """L at candidates (g,m): (g,n,m)."""
        places = self._backend.take(self._position, queries)
        index = (chosen.numbers[:, None, None], np.arange(n)[None, :, None], places[:, None, :])
        return self._backend.take(self._rows, index)

    def _reserve(self, need: int) -> None:
        """Room for `need` samples in every design, at least doubled where there is too little."""
        designs, capacity = self._places.shape
        if need <= capacity:
            return
        grown = max(need, 2 * capacity)
        shapes = ((designs, grown, len(self._set)), (designs, grown, grown))
        for name, shape in zip(("_rows", "_inverse"), shapes, strict=True):
            wider, old = self._backend.zeros(shape), getattr(self, name)
            wider[tuple(slice(0, size) for size in old.shape)] = old
            setattr(self, name, wider)
        self._places = np.pad(self._places, ((0, 0), (0, grown - capacity)))
