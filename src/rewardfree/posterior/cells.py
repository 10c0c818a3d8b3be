"""A partition of a box into cells that are halved along every axis where samples gather (Vakili et al. 2024).

A cell of side rho (the box has side 1) with N samples is split into 2^d while rho^-alpha < N + 1. Cells are
half-open, the last ones along an axis closed, so they tile the box and a point lies in exactly one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import positive

#: A cell is halved at most so often: coordinates have no digits left that could tell further halves apart.
LEVELS = 50

#: A level and a corner in units of the side 2^-level: which of the level's cells it is.
Place: TypeAlias = tuple[int, tuple[int, ...]]


def addresses(points: Any, low: Any, high: Any) -> Any:
    """The corners of the finest cells that points (n,d) of a box lie in, (n,d); those beyond it, the nearest.

    An axis along which the box has no extent counts as its lower end.
    """
    span = np.asarray(high, np.float64) - np.asarray(low, np.float64)
    unit = (np.asarray(points, np.float64) - low) / np.where(span > 0.0, span, 1.0)
    return np.minimum(np.clip(unit, 0.0, 1.0) * 2.0**LEVELS, 2.0**LEVELS - 1.0).astype(np.int64)


def check_alpha(alpha: Any) -> float | None:
    """The exponent of the split rule, or None: never split."""
    return None if alpha is None else positive(alpha, "alpha")


def check_drop(drop: Any) -> bool:
    """Whether samples are forgotten at a split."""
    if not isinstance(drop, bool):
        raise ValueError(f"drop must be True or False, got {drop!r}")
    return drop


@dataclass
class Cell:
    """A cell that has samples, and which of the partition's samples it predicts from."""

    place: Place
    samples: list[int] = field(default_factory=list)


class Cells:
    """One partition, from the whole box on. `drop`: what a cell has seen is forgotten when it is split."""

    def __init__(self, alpha: float | None, drop: bool = False) -> None:
        self.alpha, self.drop = check_alpha(alpha), check_drop(drop)
        self._split: set[Place] = set()
        self._cells: dict[Place, Cell] = {}
        self._addresses: list[tuple[int, ...]] = []  # of every sample that came

    def __len__(self) -> int:
        """How many samples came."""
        return len(self._addresses)

    def __iter__(self) -> Iterator[Cell]:
        """The cells that have samples."""
        return iter(self._cells.values())

    def add(self, address: Any) -> tuple[Cell, list[Cell] | None]:
        """One more sample: its cell and, if that had to be split, the cells that have samples there now."""
        own = tuple(int(each) for each in address)
        place = (0, (0,) * len(own))
        while place in self._split:
            place = _around(own, place[0] + 1)
        cell = self._cells.setdefault(place, Cell(place))
        cell.samples.append(len(self._addresses))
        self._addresses.append(own)
        return cell, self._divided(cell) if self.must_split(cell) else None

    def must_split(self, cell: Cell) -> bool:
        """rho^-alpha < N + 1, in logarithms."""
        if self.alpha is None:
            return False
        level, _ = cell.place
        return level < LEVELS and level * self.alpha < math.log2(len(cell.samples) + 1)

    def leaves(self, addresses: Any) -> Iterator[tuple[Cell | None, Any]]:
        """The cells of addresses (m,d) with the numbers of those in each; None: a cell without samples."""
        waiting: list[tuple[Place, Any]] = [((0, (0,) * addresses.shape[1]), np.arange(len(addresses)))]
        while waiting:
            place, own = waiting.pop()
            if place not in self._split:
                yield self._cells.get(place), own
                continue
            level = place[0] + 1
            corners, which = np.unique(addresses[own] >> (LEVELS - level), axis=0, return_inverse=True)
            parts = (own[which.reshape(-1) == i] for i in range(len(corners)))
            waiting += [
                ((level, tuple(map(int, corner))), part) for corner, part in zip(corners, parts, strict=True)
            ]

    def tiles(self, dim: int) -> list[Place]:
        """Every cell of the partition, with samples or without."""
        found: list[Place] = [] if self._split else [(0, (0,) * dim)]
        for level, corner in self._split:
            halves = product(*((2 * each, 2 * each + 1) for each in corner))
            found += [(level + 1, child) for child in halves if (level + 1, child) not in self._split]
        return found

    def _divided(self, cell: Cell) -> list[Cell]:
        """The cells with samples in the place of one that must be split; its parts are looked at again."""
        self._split.add(cell.place)
        self._cells.pop(cell.place, None)
        parts: dict[Place, Cell] = {}
        for sample in [] if self.drop else cell.samples:
            place = _around(self._addresses[sample], cell.place[0] + 1)
            parts.setdefault(place, Cell(place)).samples.append(sample)
        found: list[Cell] = []
        for part in parts.values():
            if self.must_split(part):
                found += self._divided(part)
            else:
                self._cells[part.place] = part
                found.append(part)
        return found


def _around(address: tuple[int, ...], level: int) -> Place:
    """The cell of a level around an address."""
    shift = LEVELS - level
    return level, tuple(each >> shift for each in address)


class CellOrder:
    """An order of candidates in which those of any cell lie side by side (Morton's)."""

    def __init__(self, addresses: Any) -> None:
        self.addresses = addresses  # (m,d)
        words, d = [], addresses.shape[1]
        bits = [(level, axis) for level in range(1, LEVELS + 1) for axis in range(d)]
        for first in range(0, len(bits), 62):  # as many as a whole number holds
            word = np.zeros(len(addresses), np.int64)
            for level, axis in bits[first : first + 62]:
                word = (word << 1) | ((addresses[:, axis] >> (LEVELS - level)) & 1)
            words.append(word)
        self.order = np.lexsort(words[::-1])  # (m,) the candidate at each position; of equal ones the first
        self.position = np.empty_like(self.order)  # (m,) and the position of each candidate
        self.position[self.order] = np.arange(len(self.order))
        self._windows: dict[int, dict[tuple[int, ...], slice]] = {}

    def window(self, place: Place) -> slice:
        """The positions of the candidates in a cell that has some."""
        level, corner = place
        if level not in self._windows:
            corners = self.addresses[self.order] >> (LEVELS - level)
            edges = 1 + np.flatnonzero((np.diff(corners, axis=0) != 0).any(axis=1))
            starts, ends = [0, *edges.tolist()], [*edges.tolist(), len(corners)]
            self._windows[level] = {
                tuple(corners[start].tolist()): slice(start, end)
                for start, end in zip(starts, ends, strict=True)
            }
        return self._windows[level][corner]


def cell_order(candidates: Any) -> CellOrder:
    """Of candidates (m,d), whose bounding box is the box. Many lattices are made on one set: it is kept."""
    points = np.ascontiguousarray(candidates, np.float64)
    return _known_order(points.shape, points.tobytes())


@lru_cache(maxsize=8)
def _known_order(shape: tuple[int, ...], content: bytes) -> CellOrder:
    points = np.frombuffer(content).reshape(shape)
    return CellOrder(addresses(points, points.min(axis=0), points.max(axis=0)))
