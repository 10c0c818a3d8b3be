"""What a `Lattice` needs of an array library beyond the array API standard: in NumPy, and the choice of one.

NumPy's arrays are laid out for the memory system of one core. Torch is in backend_torch.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import array_api_compat
import array_api_compat.numpy
import numpy as np

from rewardfree.arrays import Array, Integers, cast, float_dtype, to_numpy

#: One entry in each of several designs, as an index: (designs, positions).
Places: TypeAlias = tuple[Any, Any]
#: Bytes of one row of a tile: 40 candidates in float64, 80 in float32. The rows of a tile lie end to end, and
#: products tile by tile were measured to be faster than products of full rows (benchmarks/tiles.py).
TILE_BYTES = 320


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


class Backend:
    """One array library on one device: making arrays there, and operations in place. Here NumPy on the CPU.

    Another library overrides all of it, see backend_torch.py.
    """

    xp: Any = array_api_compat.numpy
    out_of_memory: tuple[type[BaseException], ...] = (MemoryError,)
    #: What its Cholesky factorisation raises.
    not_positive_definite: tuple[type[BaseException], ...] = (np.linalg.LinAlgError,)
    #: How many designs to extend at a time by several points: one, whose rows stay in the cache; None: all.
    block_designs: int | None = 1
    deferred = False  # whether `require` may raise later
    replays = False  # whether `Lattice.repeat` can record a round and replay it

    def __init__(self, dtype: Any) -> None:
        self.dtype = float_dtype(dtype)

    def array(self, values: Any) -> Array:
        """`values` on this device, in this backend's floating type."""
        return cast(values, self.dtype)

    def own(self, values: Any) -> Array:
        """A copy of `values` on this device that the caller cannot change."""
        copy = self.array(values).copy()
        copy.flags.writeable = False
        return copy

    def index(self, values: Any) -> Array:
        """`values` as int64 on this device."""
        return np.asarray(values, np.int64)

    def zeros(self, shape: tuple[int, ...], index: bool = False) -> Array:
        """Zeros of the floating type, or of int64 for an index."""
        return _zeros(shape, np.dtype(np.int64) if index else self.dtype)

    def require(self, name: str, value: Array, error: Callable[[float], Exception]) -> None:
        """Raise `error(value)` unless the scalar `value` is at least 0; on a device maybe in a later call."""
        if not value >= 0.0:
            raise error(float(value))

    def rows(self, designs: int, candidates: int, capacity: int) -> Rows:
        """The matrices L of empty designs."""
        return Rows(designs, candidates, capacity, self.dtype)

    def settle_checks(self) -> None:
        """Raise the errors that `require` has deferred."""

    def take(self, buffer: Array, index: Any) -> Array:
        """buffer[index], where the index may hold integer arrays; a view for slices."""
        # Twice as fast as buffer[index] on one axis.
        return buffer.take(index) if isinstance(index, np.ndarray) and buffer.ndim == 1 else buffer[index]

    def put(self, buffer: Array, index: Any, values: Array) -> None:
        """buffer[index] = values."""
        buffer[index] = values

    def add(self, buffer: Array, index: Any, number: int) -> None:
        """buffer[index] += number."""
        buffer[index] += number

    def subtract_squares(self, buffer: Array, index: Any, values: Array) -> None:
        """buffer[index] (g,m) -= the sum of values^2 (g,p,m) over p."""
        buffer[index] -= np.einsum("gpm,gpm->gm", values, values)

    def windows(self, table: Array, shape: tuple[int, ...]) -> Array:
        """A view of all windows of this shape: (position of the window on each axis, position in it)."""
        return np.lib.stride_tricks.sliding_window_view(table, shape)

    def finite(self, values: Array) -> Array:
        """The scalar 0 if all values are finite, else NaN."""
        return np.asarray(0.0 if np.isfinite(values).all() else np.nan)

    def at_least_zero(self, values: Array) -> Array:
        """max(values, 0)."""
        return np.maximum(values, 0.0)

    def add_outer(self, target: Array, left: Array, right: Array) -> None:
        """target (g,c,m) += left (g,c) times right (g,m)."""
        target += left[:, :, None] * right[:, None, :]


class Rows:
    """The matrices L = k(Z, Z_n) C^-T of all designs, n rows of length |Z| each; unwritten rows are zero.

    Here in tiles: (design, tile, row, place in the tile); the last tile is padded with zeros.
    """

    def __init__(self, designs: int, candidates: int, capacity: int, dtype: Any) -> None:
        self._candidates = candidates
        self._tile = TILE_BYTES // dtype.itemsize
        self._tiles = -(-candidates // self._tile)
        # Zeroed lazily by the system: a row that was never written takes no memory.
        self._values = _zeros((designs, self._tiles, capacity, self._tile), dtype)

    def grow(self, capacity: int) -> None:
        """Room for `capacity` rows in every design."""
        designs, tiles, old, _ = self._values.shape
        grown = _zeros((designs, tiles, capacity, self._tile), self._values.dtype)
        grown[:, :, :old] = self._values
        self._values = grown

    def product(self, columns: Array, designs: Selection, first: int = 0) -> Array:
        """columns (g,c,n) times n rows of each design from `first` on: (g,c,|Z|). The one pass over L."""
        g, c, n = columns.shape
        rows = slice(first, first + n)
        result = np.empty((g, c, self._tiles * self._tile), self._values.dtype)
        tiled = result.reshape(g, c, self._tiles, self._tile).transpose(0, 2, 1, 3)
        if isinstance(designs.index, slice):
            np.matmul(columns[:, None], self._values[designs.index, :, rows], out=tiled)
        else:  # design by design: picking several at once would copy them
            for i, design in enumerate(designs.numbers):
                np.matmul(columns[i], self._values[design, :, rows], out=tiled[i])
        return result[:, :, : self._candidates]

    def at(self, designs: Selection, indices: Array, n: int) -> Array:
        """L[:n, z] for candidates (g,m): (g,n,m)."""
        tile, place = np.divmod(indices, self._tile)
        design = designs.numbers[:, None, None]
        return self._values[design, tile[:, None, :], np.arange(n)[:, None], place[:, None, :]]

    def squares(self, designs: Selection, first: int, last: int) -> Array:
        """The sum of the squares of rows first..last-1 of each design: (g,|Z|)."""
        rows = [self._values[design, :, first:last] for design in designs.numbers]
        sums = [np.einsum("tnp,tnp->tp", tiles, tiles).reshape(-1)[: self._candidates] for tiles in rows]
        return np.stack(sums)

    def write(self, places: Places, row: Array) -> None:
        """Set one row of each of some designs to `row` (g,|Z|), or p of them to (g,p,|Z|)."""
        designs, positions = places
        if row.ndim == 3:
            for i in range(row.shape[1]):
                position = positions.start + i if isinstance(positions, slice) else positions[:, i]
                self.write((designs if isinstance(designs, slice) else designs[:, 0], position), row[:, i])
            return
        full, rest = divmod(self._candidates, self._tile)
        split = full * self._tile
        self._values[designs, :full, positions] = row[:, :split].reshape(len(row), full, self._tile)
        if rest:
            self._values[designs, full, positions, :rest] = row[:, split:]


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than an address can hold
        raise no_room("this machine", shape, dtype.itemsize) from error


def choose_backend(candidates: Array, device: str | None, dtype: Any) -> Backend:
    """NumPy for NumPy candidates and device "cpu"; torch for tensors, or when a device is named for it."""
    if array_api_compat.is_torch_array(candidates) or not on_cpu(device):
        backend: Backend = with_torch(device).TorchBackend.on(candidates, device, dtype)
        return backend
    if not isinstance(candidates, np.ndarray):
        raise ValueError(f"candidates must be a NumPy array or a torch tensor, got {type(candidates)}")
    return Backend(candidates.dtype if dtype is None else dtype)


def room_for(device: str) -> int:
    """How many bytes of posteriors to hold at a time: 256 MiB on the CPU, half of the free memory on CUDA."""
    return 2**28 if on_cpu(device) else int(with_torch(device).free_bytes(device)) // 2


def on_cpu(device: str | None) -> bool:
    """Whether NumPy is meant; what is no device is refused."""
    if device is not None and device.split(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got "{device}"')
    return device in (None, "cpu")


def with_torch(device: str | None) -> Any:
    """The module backend_torch, which needs torch."""
    try:
        from rewardfree.posterior.engine import backend_torch
    except ImportError as error:
        raise ValueError(
            f'device "{device}" needs torch, which is not installed: '
            "use device=\"cpu\", or pip install '.[gpu]' from the checkout"
        ) from error
    return backend_torch
