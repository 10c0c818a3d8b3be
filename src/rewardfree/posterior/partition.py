"""A posterior that predicts from the samples of a query's own cell only: any points of a box."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardfree.arrays import Array, as_array, cast, check_finite, float_dtype, positive, to_numpy
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.posterior.cells import Cells, Place, addresses
from rewardfree.posterior.design import Design


class Partition:
    """A `Design` in every cell of a partition of the box [low, high], see `Cells`; no targets.

    It is the posterior of the kernel k(z,z') 1{z and z' in one cell}. The kernel sees points as they are;
    points beyond the box belong to the nearest cell. With `drop`, targets are still wanted for every point.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        ridge: float,
        alpha: float | None,
        drop: bool = False,
        low: Any = 0.0,
        high: Any = 1.0,
        dtype: Any = np.float64,
    ) -> None:
        self.kernel, self.ridge, self.dtype = as_kernel(kernel), positive(ridge, "ridge"), float_dtype(dtype)
        self.cells = Cells(alpha, drop)
        self._box = _checked_box(low, high)
        self._points: Any = None  # (n,d)
        self._designs: dict[Place, Design] = {}

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        cells = len(list(self.cells))
        return f"Partition({self.kernel!r}, ridge={self.ridge:g}, {len(self)} points in {cells} cells)"

    @property
    def batch(self) -> tuple[int, ...]:
        return ()

    @property
    def points(self) -> Array:
        """A copy of the points, (n,d), in the order in which they came."""
        return np.empty((0, 0), self.dtype) if self._points is None else self._points.copy()

    def extend(self, points: Array) -> None:
        """Condition on more points (p,d): the cells that they fall in are extended or split, others stay."""
        points = self._checked(points, "points")
        if not len(points):
            return
        known = points if self._points is None else np.concatenate([self._points, points])
        self._points = known
        touched: set[Place] = set()
        for address in addresses(points, *self._box):
            cell, parts = self.cells.add(address)
            if parts is not None:
                self._designs.pop(cell.place, None)
            touched |= {each.place for each in ([cell] if parts is None else parts)}
        for cell in self.cells:
            if cell.place in touched:
                design = self._designs.setdefault(cell.place, self._design())
                design.extend(known[cell.samples[len(design) :]])

    def mean(self, targets: Array, at: Array) -> Array:
        """k_c(q)^T (K_c + ridge I)^-1 y_c with the samples of q's cell: (n,) give (m,), (n,c) give (m,c)."""
        targets, at = self._targets(targets), self._checked(at, "at")
        found = np.zeros((len(at), *targets.shape[1:]), self.dtype)
        for cell, own in self._leaves(at):
            if cell is not None:
                found[own] = self._designs[cell.place].mean(targets[cell.samples], at[own])
        return found

    def std(self, at: Array) -> Array:
        """sigma of q's own cell, (m,); sqrt(k(q,q)) in a cell without samples."""
        at = self._checked(at, "at")
        found = np.sqrt(np.array(self.kernel._at(at), self.dtype))
        for cell, own in self._leaves(at):
            if cell is not None:
                found[own] = self._designs[cell.place].std(at[own])
        return found

    def information_gain(self) -> float:
        """1/2 logdet(I + K_c/ridge), summed over the cells."""
        return sum(design.information_gain() for design in self._designs.values())

    def basis(self, at: Array) -> Array:
        """What `weights` are weights of: k(q, z_i) where both are in one cell, else 0, (m,n)."""
        at = self._checked(at, "at")
        found = np.zeros((len(at), len(self)), self.dtype)
        for cell, own in self._leaves(at):
            if cell is not None:
                found[np.ix_(own, cell.samples)] = self.kernel.between(at[own], self._points[cell.samples])
        return found

    def weights(self, targets: Array) -> Array:
        """(K_c + ridge I)^-1 y_c cell by cell for targets (n,c): means are `basis` times it."""
        targets = cast(targets, self.dtype)
        found = np.zeros_like(targets)
        for cell in self.cells:
            found[cell.samples] = self._designs[cell.place].weights(targets[cell.samples])
        return found

    def _design(self) -> Design:
        return Design(self.kernel, ridge=self.ridge, dtype=self.dtype)

    def _leaves(self, at: Any) -> Any:
        return self.cells.leaves(addresses(at, *self._box))

    def _targets(self, targets: Any) -> Any:
        targets = as_array(targets, "targets")
        if targets.ndim not in (1, 2) or targets.shape[0] != len(self):
            raise ValueError(
                f"targets must have shape ({len(self)},) or ({len(self)}, c), one per point in the order of "
                f"extend, got {tuple(targets.shape)}"
            )
        targets = cast(targets, self.dtype)
        check_finite(targets, "targets")
        return targets

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


def _checked_box(low: Any, high: Any) -> tuple[Any, Any]:
    """The ends of a box: a number for all axes or one for each, (d,)."""
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
