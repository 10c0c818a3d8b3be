"""Many adaptive partitions of one finite candidate set at once.

In an order of the candidates in which those of a cell lie side by side, a sample's row of L (see lattice.py)
is zero outside the window of its cell. NumPy visits each cell by itself: O(n_cell |cell|) a sample. On a
device one product over all designs and candidates is faster than many small ones; masks restrict it to cells.
"""

from collections.abc import Sequence
from typing import Any

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, DType, count, to_numpy
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.cells import Cell, CellTree, morton_order
from rewardfree.posterior.engine.backend import Selection, padded
from rewardfree.posterior.finite_posteriors import FinitePosteriors
from rewardfree.posterior.variance import VarianceFloor


class PartitionLattice(FinitePosteriors):
    """g designs over one candidate set Z, each with a partition of the bounding box of Z; see `Lattice`.

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
        dtype: DType | None = None,
    ) -> None:
        self.kernel, self.alpha, self.drop = as_kernel(kernel), alpha, drop
        super().__init__(
            candidates, ridge=ridge, designs=designs, capacity=capacity, device=device, dtype=dtype
        )

    def _build(self, candidates: Array, designs: int, capacity: int) -> None:
        super()._build(candidates, designs, capacity)
        backend, points = self._backend, to_numpy(candidates)
        self.kernel.checked(self.candidates, "candidates")
        self._trees = [CellTree(self.alpha, self.drop) for _ in range(designs)]
        self._order = morton_order(points)
        self._position = backend.index(self._order.position)
        self._sorted = backend.own(points[self._order.order])  # (m,d)
        self._diagonal = self.kernel._at(self._sorted)
        self._floor = VarianceFloor.of(self.kernel, self.ridge, self._diagonal, backend)
        self._rows = backend.zeros((designs, capacity, len(self._set)))  # L, its candidates in that order
        self._inverse = backend.zeros((designs, capacity, capacity))  # C^-1; zero between cells
        self._variance = backend.zeros((designs, len(self._set))) + self._diagonal
        self._places = np.zeros((designs, capacity), np.int64)  # the positions of the samples
        self._by_cell = backend.block_designs == 1

    def __repr__(self) -> str:
        designs, m = self._variance.shape
        return f"PartitionLattice({self.kernel!r}, ridge={self.ridge:g}, {designs} designs on {m} candidates)"

    def cells(self, design: int = 0) -> CellTree:
        """The partition of one design."""
        return self._trees[count(design, "design", at_least=0)]

    def _append(self, chosen: Selection, added: Array) -> None:
        self._reserve(self._longest(chosen) + 1)
        unsplit: list[tuple[int, Cell]] = []  # designs whose sample split no cell, with the cell
        for number, candidate in zip(chosen.numbers.tolist(), to_numpy(added)[:, 0].tolist(), strict=True):
            cell, parts = self._placed(number, candidate)
            if parts is None:
                unsplit.append((number, cell))
            else:
                self._forget(number, cell)
                self._rebuild(number, parts)
        if self._by_cell:
            for number, cell in unsplit:
                self._grow([number], [cell], cell.samples[:-1])
        elif unsplit:
            numbers = [number for number, _ in unsplit]
            n = max(len(self._trees[number]) for number in numbers) - 1
            self._grow(numbers, [cell for _, cell in unsplit], slice(0, n))

    def _extend_each(self, added: Array) -> None:
        """Every cell is computed once, at the end."""
        self._reserve(self.length() + added.shape[1])
        for number, candidates in enumerate(to_numpy(added).tolist()):
            touched = set()
            for candidate in candidates:
                cell, parts = self._placed(number, candidate)
                if parts is not None:
                    self._forget(number, cell)
                touched |= {part.key for part in ([cell] if parts is None else parts)}
            self._rebuild(number, [cell for cell in self._trees[number] if cell.key in touched])

    def _means(self, chosen: Selection, columns: Array, queries: Array | None) -> Array:
        """k_c(q)^T (K_c + ridge I)^-1 y_c for the cell c of q."""
        xp, n = self._backend.xp, columns.shape[1]
        inverse = self._backend.take(self._inverse, chosen.index)[:, :n, :n]
        weights = xp.permute_dims(inverse @ columns, (0, 2, 1))  # (g,c,n)
        if queries is None:
            return xp.take(self._products(chosen, weights), self._position, axis=2)
        return weights @ self._rows_at(chosen, queries, n)

    def _stds(self, chosen: Selection, queries: Array | None) -> Array:
        xp, variance = self._backend.xp, self._backend.take(self._variance, chosen.index)
        if queries is None:
            variance = xp.take(variance, self._position, axis=1)
        else:
            variance = xp.take_along_axis(variance, self._backend.take(self._position, queries), axis=1)
        return xp.sqrt(self._floor.clipped(variance, self._longest(chosen)))

    def _pivots(self, chosen: Selection) -> Array:
        return self._backend.xp.linalg.diagonal(self._backend.take(self._inverse, chosen.index))

    def _longest(self, chosen: Selection) -> int:
        return max((len(self._trees[number]) for number in chosen.numbers.tolist()), default=0)

    def _placed(self, number: int, candidate: int) -> tuple[Cell, list[Cell] | None]:
        """Add a sample to the cells of a design, see `CellTree.add`."""
        tree = self._trees[number]
        self._places[number, len(tree)] = self._order.position[candidate]
        return tree.add(self._order.addresses[candidate])

    def _grow(self, numbers: list[int], cells: list[Cell], earlier: Any) -> None:
        """The row of the newest sample of some designs, from `earlier` samples: of its cell, or of all."""
        backend, chosen = self._backend, Selection.of(np.array(numbers))
        newest = np.array([len(self._trees[number]) - 1 for number in numbers])
        places = self._places[chosen.numbers, newest]
        window = self._order.window(cells[0].key) if self._by_cell else slice(0, len(self._set))
        rows = backend.take(self._rows, (chosen.index, earlier, window))
        steps = np.arange(earlier.stop) if isinstance(earlier, slice) else np.array(earlier, np.int64)
        at = (chosen.numbers[:, None], steps[None, :], places[:, None])
        cross = backend.take(self._rows, at)[:, None, :]  # C^-1 k(z_i, z), (g,1,n)
        variance = backend.take(self._variance, (chosen.numbers, places))
        whiten = (self._floor.clipped(variance, int(newest.max()) + 1) + self.ridge) ** -0.5
        prior = self.kernel.between(backend.take(self._sorted, places), self._sorted[window, :])
        row = (prior - (cross @ rows)[:, 0, :]) * whiten[:, None]
        if not self._by_cell:
            row = row * self._inside([self._order.window(cell.key) for cell in cells], window)
        inverse = backend.take(self._inverse, (chosen.numbers[:, None, None], steps[:, None], steps[None, :]))
        backend.put(self._inverse, (chosen.numbers[:, None], newest[:, None], steps[None, :]),
                    -whiten[:, None] * (cross @ inverse)[:, 0, :])  # fmt: skip
        backend.put(self._inverse, (chosen.numbers, newest, newest), whiten)
        backend.subtract_squares(self._variance, (chosen.index, window), row[:, None, :])
        backend.put(self._rows, (*chosen.places(newest), window), row)

    def _forget(self, number: int, cell: Cell) -> None:
        """Reset the window of a cell that is split to the prior."""
        backend, window = self._backend, self._order.window(cell.key)
        samples, design = np.array(cell.samples), slice(number, number + 1)
        backend.put(self._rows, (design, samples, window), 0.0)
        backend.put(self._inverse, (design, samples, slice(None)), 0.0)
        backend.put(self._variance, (design, window), self._diagonal[window])

    def _rebuild(self, number: int, cells: Sequence[Cell]) -> None:
        """Compute the rows of cells of a design from scratch: cell by cell, or all together by masks."""
        for group in [[cell] for cell in cells] if self._by_cell else [cells][: len(cells)]:
            self._rebuild_together(number, group)

    def _rebuild_together(self, number: int, cells: Sequence[Cell]) -> None:
        backend, xp = self._backend, self._backend.xp
        windows = [self._order.window(cell.key) for cell in cells for _ in cell.samples]
        samples = np.concatenate([cell.samples for cell in cells]).astype(np.int64)
        window = slice(min(w.start for w in windows), max(w.stop for w in windows))
        points = backend.take(self._sorted, self._places[number, samples])
        gram = self.kernel.between(points, points)
        across = self.kernel.between(points, self._sorted[window, :])
        if len(cells) > 1:
            starts = backend.index(np.array([w.start for w in windows]))
            gram = gram * xp.astype(starts[:, None] == starts[None, :], gram.dtype)
            across = across * self._inside(windows, window)
        whiten = self._floor.whitening(gram[None, :, :], len(samples))
        rows = whiten @ across[None, :, :]
        design = slice(number, number + 1)
        backend.put(self._inverse, (np.array([[[number]]]), samples[:, None], samples[None, :]), whiten)
        backend.put(self._rows, (design, samples, window), rows)
        variance = self._diagonal[window] - xp.sum(rows * rows, axis=1)
        if len(cells) > 1:  # there may be other cells between these
            inside = xp.max(self._inside(windows, window), axis=0) > 0.0
            variance = xp.where(inside, variance, backend.take(self._variance, (design, window)))
        backend.put(self._variance, (design, window), variance)

    def _inside(self, windows: Sequence[slice], among: slice) -> Array:
        """1 where a position of `among` lies in a window, else 0, (windows, positions)."""
        backend, xp = self._backend, self._backend.xp
        starts = backend.index(np.array([w.start for w in windows]))[:, None]
        stops = backend.index(np.array([w.stop for w in windows]))[:, None]
        device = array_api_compat.device(self._sorted)
        positions = xp.arange(among.start, among.stop, dtype=starts.dtype, device=device)[None, :]
        return xp.astype((positions >= starts) & (positions < stops), self._sorted.dtype)

    def _products(self, chosen: Selection, weights: Array) -> Array:
        """weights (g,c,n) times L, (g,c,m) in the order of the cells."""
        if not self._by_cell:
            return weights @ self._backend.take(self._rows, chosen.index)[:, : weights.shape[2], :]
        products = self._backend.zeros((*weights.shape[:2], len(self._set)))
        for i, number in enumerate(chosen.numbers.tolist()):
            for cell in self._trees[number]:
                window = self._order.window(cell.key)
                rows = self._rows[number, cell.samples, window]
                products[i, :, window] = weights[i][:, cell.samples] @ rows
        return products

    def _rows_at(self, chosen: Selection, queries: Array, n: int) -> Array:
        """L at candidates (g,m): (g,n,m)."""
        places = self._backend.take(self._position, queries)
        index = (chosen.numbers[:, None, None], np.arange(n)[None, :, None], places[:, None, :])
        return self._backend.take(self._rows, index)

    def _reserve(self, need: int) -> None:
        """Make room for `need` samples in every design; if there is too little, at least double it."""
        designs, capacity = self._places.shape
        if need <= capacity:
            return
        grown = max(need, 2 * capacity)
        self._rows = padded(self._backend, self._rows, (designs, grown, len(self._set)))
        self._inverse = padded(self._backend, self._inverse, (designs, grown, grown))
        self._places = np.pad(self._places, ((0, 0), (0, grown - capacity)))
