"""Rows k(z, Z) of the prior covariance of a finite set, in the cheapest of three ways."""

from typing import Any, Protocol

import numpy as np

from rewardfree.arrays import Array, to_numpy
from rewardfree.kernels import Kernel
from rewardfree.posterior.engine.backend import Backend

#: The largest table of k(Z, Z) that is kept.
TABLE_BYTES = 2**30
#: Coordinates this close to even spacing, relative to their range, are evenly spaced.
EVEN = 1e-12


class PriorRows(Protocol):
    """k(z, Z) for some of the candidates."""

    diagonal: Array  # k(z,z), (|Z|,)
    on_device: bool  # whether rows are made without the CPU

    def __call__(self, indices: Array) -> Array:
        """k(z, Z) for candidates (g,): (g,|Z|)."""

    def between(self, left: Array, right: Array) -> Array:
        """k between candidates (g,n) and (g,m), design by design: (g,n,m)."""


def prior_rows(kernel: Kernel, candidates: Array, backend: Backend, expected: int) -> PriorRows:
    """The cheapest way for a kernel on these candidates, if `expected` rows will be asked for."""
    size = candidates.shape[0]
    axes = _even_axes(to_numpy(candidates)) if kernel.mirrored else None
    if axes is not None:
        return GridRows(kernel, axes, backend)
    wants_table = expected >= 2 * size or (kernel.cpu_only and backend.replays)
    if wants_table and size**2 * backend.xp.finfo(candidates.dtype).bits // 8 <= TABLE_BYTES:
        return TableRows(kernel, candidates, backend)
    return EvaluatedRows(kernel, candidates, backend)


class EvaluatedRows:
    """Each row is computed when it is asked for."""

    def __init__(self, kernel: Kernel, candidates: Array, backend: Backend) -> None:
        self._kernel, self._candidates, self._backend = kernel, candidates, backend
        self.diagonal = kernel._at(candidates)
        self.on_device = not kernel.cpu_only

    def __call__(self, indices: Array) -> Array:
        return self._kernel.between(self._backend.take(self._candidates, indices), self._candidates)

    def between(self, left: Array, right: Array) -> Array:
        xp, (g, n), m = self._backend.xp, left.shape, right.shape[1]
        if 0 in (g, n, m):
            return self._backend.zeros((g, n, m))
        if g <= m or g <= n:  # few designs: one after the other
            x, y = (self._backend.take(self._candidates, indices) for indices in (left, right))
            return xp.stack([self._kernel.between(x[i, :, :], y[i, :, :]) for i in range(g)], axis=0)
        if m > n:
            return xp.permute_dims(self.between(right, left), (0, 2, 1))
        columns = [xp.take_along_axis(self(right[:, i]), left, axis=1) for i in range(m)]
        return xp.stack(columns, axis=2)


class TableRows:
    """The rows are stored in a table k(Z, Z): for many rows, or for a device that cannot compute them."""

    on_device = True

    def __init__(self, kernel: Kernel, candidates: Array, backend: Backend) -> None:
        size = candidates.shape[0]
        self._backend, self._table = backend, backend.zeros((size, size))
        self.diagonal = kernel._at(candidates)
        for start in range(0, size, 256):
            block = slice(start, min(start + 256, size))
            self._table[block, :] = kernel.between(candidates[block, :], candidates)

    def __call__(self, indices: Array) -> Array:
        return self._backend.take(self._table, indices)

    def between(self, left: Array, right: Array) -> Array:
        return self._backend.take(self._table, (left[:, :, None], right[:, None, :]))


class GridRows:
    """The rows on an even grid, where k(z, z') depends on the number of grid steps along each axis only.

    One table over these distances, |Z| values and their mirror images, holds all rows: k(z, Z) is the window
    of the table with z in its middle.
    """

    on_device = True

    def __init__(self, kernel: Kernel, axes: list[Any], backend: Backend) -> None:
        self._backend = backend
        shape = tuple(len(axis) for axis in axes)
        offsets = np.meshgrid(*(axis - axis[0] for axis in axes), indexing="ij")
        points = backend.array(np.stack(offsets, axis=-1).reshape(-1, len(shape)))
        quarter = backend.xp.reshape(kernel.between(points, points[:1, :]), shape)
        table = quarter
        for axis, n in enumerate(shape):
            table = backend.xp.take(table, backend.index(np.abs(np.arange(1 - n, n))), axis=axis)
        self._windows = backend.windows(table, shape)  # (first places, window)
        self._size = points.shape[0]
        places = np.unravel_index(np.arange(self._size), shape)
        first = [n - 1 - place for n, place in zip(shape, places, strict=True)]
        self._first = [backend.index(place) for place in first]
        # The index of k(z, z') in the flat table is a sum: one part is z's, the other that of z'.
        self._flat = backend.xp.reshape(table, (-1,))
        wide = [2 * n - 1 for n in shape]
        self._left = backend.index(np.ravel_multi_index(first, wide))
        self._right = backend.index(np.ravel_multi_index(places, wide))
        self.diagonal = kernel._at(points)

    def __call__(self, indices: Array) -> Array:
        first = tuple(self._backend.take(place, indices) for place in self._first)
        return self._backend.xp.reshape(self._backend.take(self._windows, first), (-1, self._size))

    def between(self, left: Array, right: Array) -> Array:
        take = self._backend.take
        return take(self._flat, take(self._left, left)[:, :, None] + take(self._right, right)[:, None, :])


def _even_axes(points: Any) -> list[Any] | None:
    """The axes of the points, if these are an evenly spaced grid, the last axis fastest; else None."""
    axes = [np.unique(column) for column in points.T]
    if np.prod([float(len(axis)) for axis in axes]) != len(points):
        return None
    for axis in axes:
        even = np.linspace(axis[0], axis[-1], len(axis))
        if np.abs(axis - even).max() > EVEN * (axis[-1] - axis[0]):
            return None
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(points.shape)
    return axes if np.array_equal(grid, points) else None
