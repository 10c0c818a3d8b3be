"""A lattice backend on array-api-strict, which refuses whatever the array API standard does not promise.

The in-place operations, which the standard leaves out, go through NumPy here; the rest of lattice.py is
then shown to be standard.
"""

from __future__ import annotations

import array_api_strict as xp
import numpy as np


class StrictBackend:
    xp = xp
    out_of_memory = (MemoryError,)
    not_positive_definite = (np.linalg.LinAlgError,)
    block_designs = None
    deferred = replays = False

    def array(self, values):
        return xp.asarray(np.asarray(values, np.float64))

    def own(self, values):
        return self.array(values)

    def index(self, values):
        return xp.asarray(np.asarray(values, np.int64))

    def zeros(self, shape, index=False):
        return xp.zeros(shape, dtype=xp.int64 if index else xp.float64)

    def rows(self, designs, candidates, capacity):
        return StrictRows(designs, candidates, capacity)

    def require(self, name, value, error):
        if not bool(value >= 0):
            raise error(float(value))

    def settle_checks(self):
        pass

    def take(self, buffer, index):
        return xp.asarray(np.asarray(buffer)[_plain(index)])

    def put(self, buffer, index, values):
        whole = np.asarray(buffer).copy()
        whole[_plain(index)] = np.asarray(values)
        buffer[...] = xp.asarray(whole)

    def add(self, buffer, index, number):
        self.put(buffer, index, np.asarray(buffer)[_plain(index)] + number)

    def subtract_squares(self, buffer, index, values):
        self.put(buffer, index, np.asarray(buffer)[_plain(index)] - (np.asarray(values) ** 2).sum(axis=1))

    def windows(self, table, shape):
        return np.lib.stride_tricks.sliding_window_view(np.asarray(table), shape)

    def finite(self, values):
        return xp.asarray(0.0 if bool(xp.all(xp.isfinite(values))) else np.nan)

    def at_least_zero(self, values):
        return xp.maximum(values, xp.zeros_like(values))

    def add_outer(self, target, left, right):
        target += left[:, :, None] * right[:, None, :]


class StrictRows:
    def __init__(self, designs, candidates, capacity):
        self.values = np.zeros((designs, capacity, candidates))

    def grow(self, capacity):
        grown = np.zeros((self.values.shape[0], capacity, self.values.shape[2]))
        grown[:, : self.values.shape[1]] = self.values
        self.values = grown

    def product(self, columns, designs):
        return xp.matmul(columns, xp.asarray(self.values[designs.index, : columns.shape[2]]))

    def at(self, designs, indices, n):
        chosen = self.values[designs.numbers][:, :n]
        return xp.asarray(np.take_along_axis(chosen, np.asarray(indices)[:, None, :], axis=2))

    def squares(self, designs, first, last):
        return xp.asarray((self.values[designs.index, first:last] ** 2).sum(axis=1))

    def write(self, places, row):
        self.values[_plain(places)] = np.asarray(row)


def _plain(index):
    if isinstance(index, tuple):
        return tuple(_plain(part) for part in index)
    return index if isinstance(index, (slice, int)) else np.asarray(index)
