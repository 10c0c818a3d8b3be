"""The matrix B = ridge I + sum of phi phi^T under rows phi that come many at a time, and its inverse."""

from __future__ import annotations

import math
from typing import Any

from rewardfree.arrays import Array
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra


class GrowingFactor:
    """B (m,m) and its Cholesky factor D, which is computed when it is asked for: O(m^3)."""

    def __init__(self, algebra: LinearAlgebra, size: int, ridge: float) -> None:
        self._algebra, self.ridge = algebra, ridge
        self._gram = algebra.identity(size, ridge)  # its lower triangle
        self._factor: Any = None  # D; None where B is newer

    def copy(self) -> GrowingFactor:
        """Another one, to which rows can be added."""
        other = GrowingFactor(self._algebra, 0, self.ridge)
        other._gram, other._factor = self._algebra.own(self._gram), self._factor
        return other

    def add(self, rows: Array) -> None:
        """B += sum of phi phi^T for rows phi (b,m)."""
        self._gram, self._factor = self._algebra.with_squares(self._gram, rows), None

    def white(self, rows: Array) -> Array:
        """Rows x (b,m) with x x'^T = phi B^-1 phi'^T. `rows` may be overwritten."""
        return self._algebra.whitened(self._lower, rows)

    def quadratic(self, rows: Array) -> Array:
        """phi^T B^-1 phi for rows phi (b,m): (b,). `rows` may be overwritten."""
        return self._algebra.squares(self.white(rows))

    def solve(self, columns: Array) -> Array:
        """B^-1 x for columns x (m,c)."""
        return self.unwhitened(self._algebra.solved(self._lower, columns))

    def unwhitened(self, columns: Array) -> Array:
        """D^-T x for columns x (m,c): B^-1 phi^T is that of `white(phi)`^T."""
        return self._algebra.solved(self._lower, columns, transposed=True)

    def half_logdet(self) -> float:
        """1/2 logdet(B/ridge)."""
        xp = self._algebra.xp
        pivots = xp.linalg.diagonal(self._lower)
        return float(xp.sum(xp.log(pivots / math.sqrt(self.ridge))))

    def without(self, rows: Array, columns: Array) -> Array:
        """(I - F B^-1 F^T)^-1 x for rows F (p,m) that are part of B, and columns x (p,c)."""
        xp, (p, m) = self._algebra.xp, rows.shape
        if p <= m:
            white = self.white(self._algebra.own(rows))
            return xp.linalg.solve(self._algebra.identity(p) - white @ white.T, columns)
        rest = xp.tril(self._gram) + xp.tril(self._gram, k=-1).T - rows.T @ rows
        return columns + rows @ xp.linalg.solve(rest, rows.T @ columns)

    @property
    def _lower(self) -> Any:
        """D."""
        if self._factor is None:
            self._factor = self._algebra.cholesky(self._gram)
        return self._factor
