"""The lattice's arrays in NumPy, laid out for the memory system of one core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat.numpy
import numpy as np

from rewardfree.arrays import Array, cast, float_dtype
from rewardfree.posterior.engine.backend import Places, Selection, no_room

#: Bytes of one row of a tile: 40 candidates in float64, 80 in float32. The rows of a tile lie end to end, and
#: products tile by tile were measured to be faster than products of full rows (benchmarks/tiles.py).
TILE_BYTES = 320


class NumpyBackend:
    """NumPy on the CPU."""

    xp: Any = array_api_compat.numpy
    out_of_memory: tuple[type[BaseException], ...] = (MemoryError,)
    not_positive_definite: tuple[type[BaseException], ...] = (np.linalg.LinAlgError,)
    block_designs: int | None = 1  # whose rows stay in the cache
    deferred = False
    replays = False

    def __init__(self, dtype: Any) -> None:
        self.dtype = float_dtype(dtype)

    def array(self, values: Any) -> Array:
        return cast(values, self.dtype)

    def own(self, values: Any) -> Array:
        copy = self.array(values).copy()
        copy.flags.writeable = False
        return copy

    def index(self, values: Any) -> Array:
        return np.asarray(values, np.int64)

    def zeros(self, shape: tuple[int, ...], index: bool = False) -> Array:
        return _zeros(shape, np.dtype(np.int64) if index else self.dtype)

    def require(self, name: str, value: Array, error: Callable[[float], Exception]) -> None:
        if not value >= 0.0:
            raise error(float(value))

    def rows(self, designs: int, candidates: int, capacity: int) -> NumpyRows:
        return NumpyRows(designs, candidates, capacity, self.dtype)

    def settle_checks(self) -> None:
        """There are none: `require` raises at once."""

    def take(self, buffer: Array, index: Any) -> Array:
        # Twice as fast as buffer[index] on one axis.
        return buffer.take(index) if isinstance(index, np.ndarray) and buffer.ndim == 1 else buffer[index]

    def put(self, buffer: Array, index: Any, values: Array) -> None:
        buffer[index] = values

    def add(self, buffer: Array, index: Any, number: int) -> None:
        buffer[index] += number

    def subtract_squares(self, buffer: Array, index: Any, values: Array) -> None:
        buffer[index] -= np.einsum("gpm,gpm->gm", values, values)

    def windows(self, table: Array, shape: tuple[int, ...]) -> Array:
        return np.lib.stride_tricks.sliding_window_view(table, shape)

    def finite(self, values: Array) -> Array:
        return np.asarray(0.0 if np.isfinite(values).all() else np.nan)

    def at_least_zero(self, values: Array) -> Array:
        return np.maximum(values, 0.0)

    def add_outer(self, target: Array, left: Array, right: Array) -> None:
        target += left[:, :, None] * right[:, None, :]


class NumpyRows:
    """L in tiles: (design, tile, row, place in the tile); the last tile is padded with zeros."""

    def __init__(self, designs: int, candidates: int, capacity: int, dtype: Any) -> None:
        self._candidates = candidates
        self._tile = TILE_BYTES // dtype.itemsize
        self._tiles = -(-candidates // self._tile)
        # Zeroed lazily by the system: a row that was never written takes no memory.
        self._values = _zeros((designs, self._tiles, capacity, self._tile), dtype)

    def grow(self, capacity: int) -> None:
        designs, tiles, old, _ = self._values.shape
        grown = _zeros((designs, tiles, capacity, self._tile), self._values.dtype)
        grown[:, :, :old] = self._values
        self._values = grown

    def product(self, columns: Array, designs: Selection, first: int = 0) -> Array:
        g, c, n = columns.shape
        rows = slice(first, first + n)
        result = np.empty((g, c, self._tiles * self._tile), self._values.dtype)
        tiled = result.reshape(g, c, self._tiles, self._tile).transpose(0, 2, 1, 3)
        if isinstance(designs.index, slice):
            np.matmul(columns[:, None], self._values[designs.index, :, rows], out=tiled)
        else:  # design by design: picking several at once would copy them
            for i, design in enumerate(designs.numbers):
                np.matmul(columns[i], self._values[design, :, rows], out=tiled[i])
        return result[:, :, : self._candidates]

    def at(self, designs: Selection, indices: Array, n: int) -> Array:
        tile, place = np.divmod(indices, self._tile)
        design = designs.numbers[:, None, None]
        return self._values[design, tile[:, None, :], np.arange(n)[:, None], place[:, None, :]]

    def squares(self, designs: Selection, first: int, last: int) -> Array:
        rows = [self._values[design, :, first:last] for design in designs.numbers]
        sums = [np.einsum("tnp,tnp->tp", tiles, tiles).reshape(-1)[: self._candidates] for tiles in rows]
        return np.stack(sums)

    def write(self, places: Places, row: Array) -> None:
        designs, positions = places
        if row.ndim == 3:
            for i in range(row.shape[1]):
                position = positions.start + i if isinstance(positions, slice) else positions[:, i]
                self.write((designs if isinstance(designs, slice) else designs[:, 0], position), row[:, i])
            return
        full, rest = divmod(self._candidates, self._tile)
        split = full * self._tile
        self._values[designs, :full, positions] = row[:, :split].reshape(len(row), full, self._tile)
        if rest:
            self._values[designs, full, positions, :rest] = row[:, split:]


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than an address can hold
        raise no_room("this machine", shape, dtype.itemsize) from error
