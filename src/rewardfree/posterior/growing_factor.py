"""The matrix B = ridge I + sum of phi phi^T under a stream of rows phi, and questions about its inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.blas import dsyrk, dtrsm

from rewardfree.arrays import Floats

#: The most rows that wait beside the factor of B before it is computed again: O(m^2) a row, not O(m^3).
MOST_WAITING = 64


class GrowingFactor:
    """B (m,m) and its Cholesky factor D, for rows that come many at a time or one by one.

    Rows that wait are V = [D^-1 phi] (m,w): B = D (I + V V^T) D^T, whose inverse needs a factor of
    I + V^T V, (w,w).
    """

    def __init__(self, size: int, ridge: float) -> None:
        self._ridge = ridge
        self._gram = np.asfortranarray(np.diag(np.full(size, ridge)))  # its lower triangle
        self._stale = True  # whether D is older than it
        self._factor: Any = None
        self._waiting: list[Floats] = []  # rows (w,m)
        self._white: Any = None  # V^T (w,m) of those, and the factor of I + V^T V; None until it is asked for

    def add(self, rows: Floats) -> None:
        """B += sum of phi phi^T for rows phi (b,m)."""
        self._white = None
        self._waiting.append(rows)
        if self._stale or sum(map(len, self._waiting)) > MOST_WAITING:
            self._settle()

    def white(self, rows: Floats) -> Floats:
        """Rows x (b,m) with x x'^T = phi B^-1 phi'^T. `rows` is overwritten."""
        self._settle()
        return whitened(self._lower, rows)

    def quadratic(self, rows: Floats) -> Floats:
        """phi^T B^-1 phi for rows phi (b,m): (b,). `rows` is overwritten."""
        white = whitened(self._lower, rows)
        values = np.einsum("bm,bm->b", white, white)
        if self._waiting:
            waiting, inner = self._whitened_waiting
            across = whitened(inner, white @ waiting.T)
            values -= np.einsum("bw,bw->b", across, across)
        return np.asarray(values)

    def solve(self, columns: Floats) -> Floats:
        """B^-1 x for columns x (m,c)."""
        white = dtrsm(1.0, self._lower, columns, lower=1)
        if self._waiting:
            waiting, inner = self._whitened_waiting
            across = dtrsm(1.0, inner, waiting @ white, lower=1)
            white -= waiting.T @ dtrsm(1.0, inner, across, lower=1, trans_a=1)
        return np.asarray(dtrsm(1.0, self._lower, white, lower=1, trans_a=1))

    def half_logdet(self) -> float:
        """1/2 logdet(B/ridge)."""
        self._settle()
        return float(np.log(np.diagonal(self._lower) / math.sqrt(self._ridge)).sum())

    def without(self, rows: Floats, columns: Floats) -> Floats:
        """(I - F B^-1 F^T)^-1 x for rows F (p,m) that are part of B, and columns x (p,c)."""
        p, m = rows.shape
        if p <= m:
            white = self.white(rows.copy())
            return np.asarray(np.linalg.solve(np.eye(p) - white @ white.T, columns))
        self._settle()
        rest = np.tril(self._gram) + np.tril(self._gram, -1).T - rows.T @ rows
        return np.asarray(columns + rows @ np.linalg.solve(rest, rows.T @ columns))

    def _settle(self) -> None:
        """Bring B up to date with the rows that wait."""
        for rows in self._waiting:
            self._gram = dsyrk(1.0, rows.T, beta=1.0, c=self._gram, lower=1, overwrite_c=1)
            self._stale = True
        self._waiting, self._white = [], None

    @property
    def _lower(self) -> Any:
        """D, in column order."""
        if self._stale:
            self._factor = cholesky(self._gram, lower=True, check_finite=False)
            self._factor, self._stale = np.asfortranarray(self._factor), False
        return self._factor

    @property
    def _whitened_waiting(self) -> Any:
        if self._white is None:
            rows = whitened(self._lower, np.concatenate(self._waiting))
            inner = cholesky(rows @ rows.T + np.eye(len(rows)), lower=True, check_finite=False)
            self._white = rows, np.asfortranarray(inner)
        return self._white


def whitened(factor: Any, rows: Floats) -> Floats:
    """D^-1 x for each row x of (b,m), for a lower factor D in column order. `rows` is overwritten."""
    # rows.T is in the column order of LAPACK, so it is solved in place.
    return np.asarray(dtrsm(1.0, factor, np.ascontiguousarray(rows).T, lower=1, overwrite_b=1).T)
