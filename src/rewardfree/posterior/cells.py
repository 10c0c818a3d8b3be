"""Partitions of a box into cells that are halved on every axis where samples gather (Vakili et al. 2024).

A cell of side rho (the box has side 1) with N samples is split into 2^d while rho^-alpha < N + 1. Cells are
half-open, the last ones along an axis closed, so a point of the box lies in exactly one cell.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import Floats, Integers, positive

#: The most halvings of a cell: coordinates have no digits beyond.
LEVELS = 50

#: A cell, named by its level and its lower corner in units of its side 2^-level.
CellKey: TypeAlias = tuple[int, tuple[int, ...]]


def addresses(points: Floats, low: float | Floats, high: float | Floats) -> Integers:
    """The corners of the finest cells that hold points (n,d): (n,d). Outside the box it is the nearest cell.

    On an axis along which the box has no extent all points are at its lower end.
    """
    span = np.asarray(high, np.float64) - np.asarray(low, np.float64)
    unit = (np.asarray(points, np.float64) - low) / np.where(span > 0.0, span, 1.0)
    corners = np.minimum(np.clip(unit, 0.0, 1.0) * 2.0**LEVELS, 2.0**LEVELS - 1.0)
    return np.asarray(corners, np.int64)


def check_alpha(alpha: Any) -> float | None:
    """`alpha` as the exponent of the split rule, or None for cells that are never split."""
    return None if alpha is None else positive(alpha, "alpha")


def check_drop(drop: Any) -> bool:
    """`drop` as True or False."""
    if not isinstance(drop, bool):
        raise ValueError(f"drop must be True or False, got {drop!r}")
    return drop


@dataclass
class Cell:
    """A cell with samples."""

    key: CellKey
    samples: list[int] = field(default_factory=list)  # the numbers of the samples that it predicts from


class CellTree:
    """One partition, at first the whole box. With `drop` a cell that is split loses its samples."""

    def __init__(self, alpha: float | None, drop: bool = False) -> None:
        self.alpha, self.drop = check_alpha(alpha), check_drop(drop)
        self._split: set[CellKey] = set()
        self._cells: dict[CellKey, Cell] = {}
        self._addresses: list[tuple[int, ...]] = []  # of all samples

    def __len__(self) -> int:
        """The number of samples, dropped ones included."""
        return len(self._addresses)

    def __iter__(self) -> Iterator[Cell]:
        """The cells that have samples."""
        return iter(self._cells.values())

    def add(self, address: Any) -> tuple[Cell, list[Cell] | None]:
        """Add a sample. Returns its cell, and if that is split the cells with samples that replace it."""
        corner = tuple(map(int, address))
        key = (0, (0,) * len(corner))
        while key in self._split:
            key = _cell_of(corner, key[0] + 1)
        cell = self._cells.setdefault(key, Cell(key))
        cell.samples.append(len(self._addresses))
        self._addresses.append(corner)
        return cell, self._divided(cell) if self.must_split(cell) else None

    def must_split(self, cell: Cell) -> bool:
        """rho^-alpha < N + 1, in logarithms."""
        if self.alpha is None:
            return False
        level, _ = cell.key
        return level < LEVELS and level * self.alpha < math.log2(len(cell.samples) + 1)

    def cells_at(self, addresses: Integers) -> Iterator[tuple[Cell, Integers]]:
        """The cells with samples that hold some of the addresses (m,d), and the numbers of these in each."""
        m, d = addresses.shape
        pending: list[tuple[CellKey, Integers]] = [((0, (0,) * d), np.arange(m))]
        while pending:
            key, members = pending.pop()
            if key in self._split:
                level = key[0] + 1
                finer = addresses[members] >> (LEVELS - level)
                corners, part = np.unique(finer, axis=0, return_inverse=True)
                for i, corner in enumerate(corners):
                    pending.append(((level, tuple(map(int, corner))), members[part.reshape(-1) == i]))
            elif key in self._cells:
                yield self._cells[key], members

    def _divided(self, cell: Cell) -> list[Cell]:
        """Split a cell, and its parts while the rule demands it. Returns the new cells with samples."""
        self._split.add(cell.key)
        self._cells.pop(cell.key, None)
        parts: dict[CellKey, Cell] = {}
        for sample in [] if self.drop else cell.samples:
            key = _cell_of(self._addresses[sample], cell.key[0] + 1)
            parts.setdefault(key, Cell(key)).samples.append(sample)
        cells: list[Cell] = []
        for part in parts.values():
            if self.must_split(part):
                cells += self._divided(part)
            else:
                self._cells[part.key] = part
                cells.append(part)
        return cells


def _cell_of(address: tuple[int, ...], level: int) -> CellKey:
    """The cell of a level that holds an address."""
    return level, tuple(coordinate >> (LEVELS - level) for coordinate in address)


class MortonOrder:
    """Morton's order of candidates, in which those of any cell lie side by side."""

    def __init__(self, addresses: Integers) -> None:
        self.addresses = addresses  # (m,d)
        words, d = [], addresses.shape[1]
        bits = [(level, axis) for level in range(1, LEVELS + 1) for axis in range(d)]
        for first in range(0, len(bits), 62):  # the bits that an int64 holds
            word = np.zeros(len(addresses), np.int64)
            for level, axis in bits[first : first + 62]:
                word = (word << 1) | ((addresses[:, axis] >> (LEVELS - level)) & 1)
            words.append(word)
        self.order = np.lexsort(words[::-1])  # (m,) the candidate at each position
        self.position = np.empty_like(self.order)  # (m,) the position of each candidate
        self.position[self.order] = np.arange(len(self.order))
        self._windows: dict[int, dict[tuple[int, ...], slice]] = {}

    def window(self, key: CellKey) -> slice:
        """The positions of the candidates in a cell that has candidates."""
        level, corner = key
        if level not in self._windows:
            corners = self.addresses[self.order] >> (LEVELS - level)
            edges = 1 + np.flatnonzero((np.diff(corners, axis=0) != 0).any(axis=1))
            starts, ends = [0, *edges.tolist()], [*edges.tolist(), len(corners)]
            self._windows[level] = {
                tuple(corners[start].tolist()): slice(start, end)
                for start, end in zip(starts, ends, strict=True)
            }
        return self._windows[level][corner]


def morton_order(candidates: Floats) -> MortonOrder:
    """The order of candidates (m,d) in their bounding box."""
    points = np.asarray(candidates, np.float64)
    return MortonOrder(addresses(points, points.min(axis=0), points.max(axis=0)))
