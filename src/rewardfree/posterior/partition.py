"""A posterior that predicts from the samples in the cell of a query only, for any points of a box."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rewardfree.arrays import (
    Array,
    DType,
    Floats,
    Integers,
    as_array,
    as_targets,
    cast,
    check_finite,
    float_dtype,
    positive,
    to_numpy,
)
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.cells import Cell, CellKey, CellTree, addresses
from rewardfree.posterior.design import Design
from rewardfree.posterior.protocol import BasisPosterior


class Partition(BasisPosterior):
    """A `Design` in every cell of a partition of the box [low, high], see `CellTree`; no targets.

    It is the posterior of the kernel k(z,z') 1{z and z' in one cell}. Points are not scaled to the box for
    the kernel. Points beyond the box belong to the nearest cell. With `drop`, targets are still wanted for
    every point.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        ridge: float,
        alpha: float | None,
        drop: bool = False,
        low: float | Floats = 0.0,
        high: float | Floats = 1.0,
        dtype: DType = np.float64,
    ) -> None:
        self.kernel, self.ridge, self.dtype = as_kernel(kernel), positive(ridge, "ridge"), float_dtype(dtype)
        self.cells = CellTree(alpha, drop)
        self._box = _checked_box(low, high)
        self._points: Any = None  # (n,d)
        self._designs: dict[CellKey, Design] = {}

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        cells = len(self._designs)
        return f"Partition({self.kernel!r}, ridge={self.ridge:g}, {len(self)} points in {cells} cells)"

    @property
    def points(self) -> Array:
        """A copy of the points, (n,d), in the order in which they came."""
        return np.empty((0, 0), self.dtype) if self._points is None else self._points.copy()

    def extend(self, points: Array) -> None:
        """Condition on more points (p,d). Only the cells that they fall in are extended or split."""
        points = self._checked(points, "points")
        if not len(points):
            return
        self._points = points if self._points is None else np.concatenate([self._points, points])
        touched: set[CellKey] = set()
        for address in addresses(points, *self._box):
            cell, parts = self.cells.add(address)
            if parts is not None:
                self._designs.pop(cell.key, None)
            touched |= {part.key for part in ([cell] if parts is None else parts)}
        for cell in self.cells:
            if cell.key in touched:
                empty = Design(self.kernel, ridge=self.ridge, dtype=self.dtype)
                design = self._designs.setdefault(cell.key, empty)
                design.extend(self._points[cell.samples[len(design) :]])

    def mean(self, targets: Array, at: Array) -> Array:
        """k_c(q)^T (K_c + ridge I)^-1 y_c for the cell c of q: (n,) give (m,), (n,c) give (m,c)."""
        targets, at = as_targets(targets, len(self), self.dtype), self._checked(at, "at")
        means = np.zeros((len(at), *targets.shape[1:]), self.dtype)
        for cell, queries in self._cells_at(at):
            means[queries] = self._designs[cell.key].mean(targets[cell.samples], at[queries])
        return means

    def std(self, at: Array) -> Array:
        """sigma in the cell of q, (m,); sqrt(k(q,q)) in a cell without samples."""
        at = self._checked(at, "at")
        std = np.sqrt(np.array(self.kernel._at(at), self.dtype))
        for cell, queries in self._cells_at(at):
            std[queries] = self._designs[cell.key].std(at[queries])
        return std

    def information_gain(self) -> float:
        """1/2 logdet(I + K_c/ridge), summed over the cells."""
        return sum(design.information_gain() for design in self._designs.values())

    def basis(self, at: Array) -> Array:
        """k(q, z_i) where both are in one cell, else 0, (m,n)."""
        at = self._checked(at, "at")
        basis = np.zeros((len(at), len(self)), self.dtype)
        for cell, queries in self._cells_at(at):
            values = self.kernel.between(at[queries], self._points[cell.samples])
            basis[queries[:, None], cell.samples] = values
        return basis

    def weights(self, targets: Array) -> Array:
        """(K_c + ridge I)^-1 y_c cell by cell for targets (n,c)."""
        targets = cast(targets, self.dtype)
        weights = np.zeros_like(targets)
        for cell in self.cells:
            weights[cell.samples] = self._designs[cell.key].weights(targets[cell.samples])
        return weights

    def _cells_at(self, at: Any) -> Iterator[tuple[Cell, Integers]]:
        return self.cells.cells_at(addresses(at, *self._box))

    def _checked(self, points: Array, name: str) -> Any:
        points = as_array(points, name)
        if not isinstance(points, np.ndarray):
            raise ValueError(f"a Partition takes NumPy arrays, {name} is {type(points)}")
        points = self.kernel.checked(cast(points, self.dtype), name, self._points)
        for end in self._box:
            if end.ndim and end.size != points.shape[1]:
                raise ValueError(
                    f"{name} must have {end.size} coordinates, as the box has, got {points.shape[1]}"
                )
        return points


def _checked_box(low: Array, high: Array) -> tuple[Floats, Floats]:
    """The ends of a box: one number for all axes, or a number for each axis (d,)."""
    low, high = (to_numpy(as_array(end, name)) for end, name in ((low, "low"), (high, "high")))
    if low.ndim > 1 or high.ndim > 1 or 0 in low.shape + high.shape:
        raise ValueError(f"low and high must be numbers or have shape (d,), got {low.shape}, {high.shape}")
    if low.ndim and high.ndim and low.shape != high.shape:
        raise ValueError(f"low and high must have as many coordinates, got {low.size} and {high.size}")
    check_finite(low, "low")
    check_finite(high, "high")
    if (low > high).any():
        raise ValueError(f"low must be at most high along every axis, got {low} and {high}")
    return low.astype(np.float64), high.astype(np.float64)
