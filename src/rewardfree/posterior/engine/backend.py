"""What a `Lattice` needs of an array library beyond the array API standard, and the choice of the library."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import array_api_compat
import numpy as np

from rewardfree.arrays import Array, Integers, to_numpy

#: One entry in each of several designs, as an index: (designs, positions).
Places: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True)
class Selection:
    """Some of the designs of a lattice."""

    numbers: Integers  # (g,), each at most once
    index: Any  # a slice (a view, no copy) where the numbers are evenly spaced, else the numbers

    @classmethod
    def named(cls, designs: Any, total: int) -> Selection:
        """Designs as a caller names them: whole numbers below `total`, each once."""
        numbers = (to_numpy(designs) if hasattr(designs, "shape") else np.asarray(designs)).reshape(-1)
        if len(numbers) and numbers.dtype.kind not in "iu":
            raise ValueError(f"designs must be whole numbers, got {numbers.dtype}")
        numbers = numbers.astype(np.int64)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= total):
            raise ValueError(f"designs must lie in 0..{total - 1}, got {numbers.min()}..{numbers.max()}")
        if len(np.unique(numbers)) != len(numbers):
            raise ValueError("designs must be named once each, got a repeated one")
        return cls.of(numbers)

    @classmethod
    def of(cls, numbers: Integers) -> Selection:
        """The designs of these numbers, which are valid."""
        if len(numbers) == 1:
            return cls(numbers, slice(int(numbers[0]), int(numbers[0]) + 1))
        steps = np.diff(numbers)
        if len(steps) and steps[0] > 0 and (steps == steps[0]).all():
            return cls(numbers, slice(int(numbers[0]), int(numbers[-1]) + 1, int(steps[0])))
        return cls(numbers, numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def places(self, position: Any) -> Places:
        """The index of entry `position[i]` (g,) of each design; plain numbers where all are the same."""
        first = int(position[0])
        if isinstance(self.index, slice) and (position == first).all():
            return self.index, first
        return self.numbers, position

    def halves(self) -> tuple[Selection, Selection]:
        """The first and the second half of the designs."""
        middle = len(self) // 2
        return Selection.of(self.numbers[:middle]), Selection.of(self.numbers[middle:])


class DesignSelector:
    """Selections of `total` designs by what callers name. Slices are cached: loops ask for them again."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._slices: dict[tuple[int, int, int], Selection] = {}

    def __call__(self, designs: Any) -> Selection:
        if designs is not None and not isinstance(designs, slice):
            return Selection.named(designs, self.total)
        key = (designs or slice(None)).indices(self.total)
        if key not in self._slices:
            self._slices[key] = Selection.of(np.arange(*key))
        return self._slices[key]


@dataclass(frozen=True)
class Recording:
    """The counts of a recorded round, which is replayed at larger counts than it was recorded at."""

    length: int  # the recording serves designs of up to this many points
    counts: Array  # (g,) points of each design, on the device and counted up there
    numbers: Array  # (g,) the numbers of all designs, on the device


class Rows(Protocol):
    """The matrices L = k(Z, Z_n) C^-T of all designs, n rows of length |Z| each; unwritten rows are zero."""

    def grow(self, capacity: int) -> None:
        """Room for `capacity` rows in every design."""

    def product(self, columns: Array, designs: Selection, first: int = 0) -> Array:
        """columns (g,c,n) times n rows of each design from `first` on: (g,c,|Z|). The one pass over L."""

    def at(self, designs: Selection, indices: Array, n: int) -> Array:
        """L[:n, z] for candidates (g,m): (g,n,m)."""

    def squares(self, designs: Selection, first: int, last: int) -> Array:
        """The sum of the squares of rows first..last-1 of each design: (g,|Z|)."""

    def write(self, places: Places, row: Array) -> None:
        """Set one row of each of some designs to `row` (g,|Z|), or p of them to (g,p,|Z|)."""


class Backend(Protocol):
    """One array library on one device: making arrays there, and operations in place."""

    xp: Any
    out_of_memory: tuple[type[BaseException], ...]
    not_positive_definite: tuple[type[BaseException], ...]  # what its Cholesky factorisation raises
    block_designs: int | None  # how many designs to extend at a time by several points; None: all
    deferred: bool  # whether `require` may raise later
    replays: bool  # whether `Lattice.repeat` can record a round and replay it

    def array(self, values: Any) -> Array:
        """`values` on this device, in this backend's floating type."""

    def own(self, values: Any) -> Array:
        """A copy of `values` on this device that the caller cannot change."""

    def index(self, values: Any) -> Array:
        """`values` as int64 on this device."""

    def zeros(self, shape: tuple[int, ...], index: bool = False) -> Array:
        """Zeros of the floating type, or of int64 for an index."""

    def rows(self, designs: int, candidates: int, capacity: int) -> Rows:
        """The matrices L of empty designs."""

    def require(self, name: str, value: Array, error: Callable[[float], Exception]) -> None:
        """Raise `error(value)` unless the scalar `value` is at least 0; on a device maybe in a later call."""

    def settle_checks(self) -> None:
        """Raise the errors that `require` has deferred."""

    def take(self, buffer: Array, index: Any) -> Array:
        """buffer[index], where the index may hold integer arrays; a view for slices."""

    def put(self, buffer: Array, index: Any, values: Array) -> None:
        """buffer[index] = values."""

    def add(self, buffer: Array, index: Any, number: int) -> None:
        """buffer[index] += number."""

    def subtract_squares(self, buffer: Array, index: Any, values: Array) -> None:
        """buffer[index] (g,m) -= the sum of values^2 (g,p,m) over p."""

    def windows(self, table: Array, shape: tuple[int, ...]) -> Array:
        """A view of all windows of this shape: (position of the window on each axis, position in it)."""

    def finite(self, values: Array) -> Array:
        """The scalar 0 if all values are finite, else NaN."""

    def at_least_zero(self, values: Array) -> Array:
        """max(values, 0)."""

    def add_outer(self, target: Array, left: Array, right: Array) -> None:
        """target (g,c,m) += left (g,c) times right (g,m)."""


def padded(backend: Backend, values: Array, shape: tuple[int, ...], index: bool = False) -> Array:
    """`values` extended to `shape` by zeros."""
    wider = backend.zeros(shape, index)
    wider[tuple(slice(0, size) for size in values.shape)] = values
    return wider


def no_room(device: str, shape: tuple[int, ...], itemsize: int) -> MemoryError:
    """The error of an array that does not fit."""
    return MemoryError(
        f"{device} has no room for {math.prod(shape) * itemsize / 2**30:.1f} GiB (shape {shape}): "
        "use fewer designs at a time, a smaller capacity, or float32"
    )


def choose_backend(candidates: Array, device: str | None, dtype: Any) -> Backend:
    """NumPy for NumPy candidates and device "cpu"; torch for tensors, or when a device is named for it."""
    if array_api_compat.is_torch_array(candidates) or not _on_cpu(device):
        backend: Backend = _with_torch(device).TorchBackend.on(candidates, device, dtype)
        return backend
    from rewardfree.posterior.engine.backend_numpy import NumpyBackend

    if not isinstance(candidates, np.ndarray):
        raise ValueError(f"candidates must be a NumPy array or a torch tensor, got {type(candidates)}")
    return NumpyBackend(candidates.dtype if dtype is None else dtype)


def room_for(device: str) -> int:
    """How many bytes of posteriors to hold at a time: 256 MiB on the CPU, half of the free memory on CUDA."""
    return 2**28 if _on_cpu(device) else int(_with_torch(device).free_bytes(device)) // 2


def _on_cpu(device: str | None) -> bool:
    if device is not None and device.split(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got "{device}"')
    return device in (None, "cpu")


def _with_torch(device: str | None) -> Any:
    """The module backend_torch, which needs torch."""
    try:
        from rewardfree.posterior.engine import backend_torch
    except ImportError as error:
        raise ValueError(
            f'device "{device}" needs torch, which is not installed: '
            'use device="cpu", or install rewardfree[gpu]'
        ) from error
    return backend_torch
