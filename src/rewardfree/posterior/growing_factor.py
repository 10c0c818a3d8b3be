"""The matrix B = ridge I + sum of phi phi^T under a stream of rows phi, and questions about its inverse."""

from __future__ import annotations

import math
from typing import Any

from rewardfree.arrays import Array
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra

#: The most rows that wait beside the factor of B before it is computed again: O(m^2) a row, not O(m^3).
MOST_WAITING = 64


class GrowingFactor:
    """B (m,m) and its Cholesky factor D, for rows that come many at a time or one by one.

    Rows that wait are V = [D^-1 phi] (m,w): B = D (I + V V^T) D^T, whose inverse needs a factor of
    I + V^T V, (w,w).
    """

    def __init__(self, algebra: LinearAlgebra, size: int, ridge: float) -> None:
        self._algebra, self._xp, self._ridge = algebra, algebra.xp, ridge
        self._gram = algebra.identity(size, ridge)  # its lower triangle
        self._stale = True  # whether D is older than it
        self._factor: Any = None
        self._waiting: list[Array] = []  # rows (w,m)
        self._white: Any = None  # V^T (w,m) of those, and the factor of I + V^T V; None until it is asked for

    def add(self, rows: Array) -> None:
        """B += sum of phi phi^T for rows phi (b,m)."""
        self._white = None
        self._waiting.append(rows)
        if self._stale or sum(map(len, self._waiting)) > MOST_WAITING:
            self._settle()

    def white(self, rows: Array) -> Array:
        """Rows x (b,m) with x x'^T = phi B^-1 phi'^T. `rows` may be overwritten."""
        self._settle()
        return self._algebra.whitened(self._lower, rows)

    def quadratic(self, rows: Array) -> Array:
        """phi^T B^-1 phi for rows phi (b,m): (b,). `rows` may be overwritten."""
        white = self._algebra.whitened(self._lower, rows)
        values = self._algebra.squares(white)
        if self._waiting:
            waiting, inner = self._whitened_waiting
            across = self._algebra.whitened(inner, white @ waiting.T)
            values -= self._algebra.squares(across)
        return values

    def solve(self, columns: Array) -> Array:
        """B^-1 x for columns x (m,c)."""
        solved = self._algebra.solved
        white = solved(self._lower, columns)
        if self._waiting:
            waiting, inner = self._whitened_waiting
            across = solved(inner, waiting @ white)
            white -= waiting.T @ solved(inner, across, transposed=True)
        return solved(self._lower, white, transposed=True)

    def half_logdet(self) -> float:
        """1/2 logdet(B/ridge)."""
        self._settle()
        pivots = self._xp.linalg.diagonal(self._lower)
        return float(self._xp.sum(self._xp.log(pivots / math.sqrt(self._ridge))))

    def without(self, rows: Array, columns: Array) -> Array:
        """(I - F B^-1 F^T)^-1 x for rows F (p,m) that are part of B, and columns x (p,c)."""
        xp, (p, m) = self._xp, rows.shape
        if p <= m:
            white = self.white(self._algebra.own(rows))
            return xp.linalg.solve(self._algebra.identity(p) - white @ white.T, columns)
        self._settle()
        rest = xp.tril(self._gram) + xp.tril(self._gram, k=-1).T - rows.T @ rows
        return columns + rows @ xp.linalg.solve(rest, rows.T @ columns)

    def _settle(self) -> None:
        """Bring B up to date with the rows that wait."""
        for rows in self._waiting:
            self._gram = self._algebra.with_squares(self._gram, rows)
            self._stale = True
        self._waiting, self._white = [], None

    @property
    def _lower(self) -> Any:
        """D."""
        if self._stale:
            self._factor, self._stale = self._algebra.cholesky(self._gram), False
        return self._factor

    @property
    def _whitened_waiting(self) -> Any:
        if self._white is None:
            rows = self._algebra.whitened(self._lower, self._xp.concat(self._waiting))
            inner = self._algebra.cholesky(rows @ rows.T + self._algebra.identity(len(rows)))
            self._white = rows, inner
        return self._white
