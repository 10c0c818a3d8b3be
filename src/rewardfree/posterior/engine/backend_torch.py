"""The lattice's arrays in torch, on the CPU or a CUDA device. Imported only when it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat.torch
import numpy as np
import torch

from rewardfree.arrays import Array
from rewardfree.posterior.engine.backend import Backend, Places, Rows, Selection, no_room, padded

#: The host reads the outcome of checks on a CUDA device after this many checks.
CHECKS_AT_ONCE = 256


def free_bytes(device: str) -> int:
    """The free memory of a CUDA device, with what torch has reserved there and does not use."""
    TorchBackend(device, torch.float64)  # raises an error if there is no such device
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free + unused)


class TorchBackend(Backend):
    """torch on one device."""

    xp: Any = array_api_compat.torch
    out_of_memory: tuple[type[BaseException], ...] = (torch.OutOfMemoryError, MemoryError)
    not_positive_definite: tuple[type[BaseException], ...] = (torch.linalg.LinAlgError,)
    block_designs: int | None = None

    def __init__(self, device: Any, dtype: Any) -> None:
        self.device = torch.device(device)
        self.dtype = dtype
        self.replays = self.deferred = self.device.type == "cuda"
        self._checks: dict[str, tuple[Array, Callable[[float], Exception]]] = {}
        self._unread_checks = 0
        # Indices that were moved to the device. A recording cannot move any, and uses these again.
        self.index_cache: dict[Any, Array] | None = None
        if dtype not in (torch.float64, torch.float32):
            raise ValueError(f"dtype must be float64 or float32, got {dtype}")
        devices = torch.cuda.device_count() if self.device.type == "cuda" else 1
        if devices <= (self.device.index or 0):
            raise ValueError(
                f'device "{device}" was asked for, but torch sees {devices or "no"} CUDA device: '
                'use device="cpu", or install a CUDA build of torch and its driver'
            )

    @classmethod
    def on(cls, candidates: Array, device: str | None, dtype: Any) -> TorchBackend:
        """On the device and of the dtype of the candidates, unless others are named."""
        return cls.of(device or candidates.device, candidates.dtype if dtype is None else dtype)

    @classmethod
    def of(cls, device: Any, dtype: Any) -> TorchBackend:
        """A backend of a dtype as NumPy or torch names it."""
        if not isinstance(dtype, torch.dtype):
            dtype = getattr(torch, str(getattr(dtype, "__name__", dtype)), dtype)
        return cls(device, dtype)

    def array(self, values: Any) -> Array:
        if isinstance(values, torch.Tensor):
            values = values.detach()
        elif isinstance(values, np.ndarray) and not values.flags.writeable:
            values = values.copy()  # torch warns of read-only memory
        return torch.as_tensor(values, dtype=self.dtype, device=self.device)

    def own(self, values: Any) -> Array:
        return self.array(values).clone()

    def index(self, values: Any) -> Array:
        if self.index_cache is None or not isinstance(values, np.ndarray):
            return torch.as_tensor(values, dtype=torch.int64, device=self.device)
        key = (values.shape, values.tobytes())
        if key not in self.index_cache:
            self.index_cache[key] = torch.as_tensor(values, dtype=torch.int64, device=self.device)
        return self.index_cache[key]

    def zeros(self, shape: tuple[int, ...], index: bool = False) -> Array:
        dtype = torch.int64 if index else self.dtype
        try:
            return torch.zeros(shape, dtype=dtype, device=self.device)
        except RuntimeError as error:  # the memory is the only cause; OutOfMemoryError on CUDA
            raise no_room(str(self.device), shape, dtype.itemsize) from error

    def rows(self, designs: int, candidates: int, capacity: int) -> TorchRows:
        return TorchRows(self, designs, candidates, capacity)

    def require(self, name: str, value: Array, error: Callable[[float], Exception]) -> None:
        """Keep the worst value of each check on the device, and read it now and then.

        Reading makes the host wait for the device, and is impossible while a round is recorded.
        """
        worst, _ = self._checks.get(name, (None, None))
        if worst is None:
            worst = torch.zeros((), dtype=torch.float64, device=self.device)
        torch.minimum(worst, value.to(torch.float64), out=worst)  # NaN stays NaN
        self._checks[name] = (worst, error)
        self._unread_checks += 1
        recording = self.replays and torch.cuda.is_current_stream_capturing()
        if not recording and (not self.deferred or self._unread_checks >= CHECKS_AT_ONCE):
            self.settle_checks()

    def settle_checks(self) -> None:
        self._unread_checks = 0
        if not self._checks:
            return
        values = torch.stack([worst for worst, _ in self._checks.values()]).tolist()
        for value, (worst, error) in zip(values, self._checks.values(), strict=True):
            if not value >= 0.0:
                # A deferred error comes too late: the lattice is invalid, and raises it every time.
                if not self.deferred:
                    worst.zero_()
                raise error(value)

    def take(self, buffer: Array, index: Any) -> Array:
        return buffer[self._on_device(index)]

    def put(self, buffer: Array, index: Any, values: Array) -> None:
        buffer[self._on_device(index)] = values

    def add(self, buffer: Array, index: Any, number: int) -> None:
        buffer[self._on_device(index)] += number

    def subtract_squares(self, buffer: Array, index: Any, values: Array) -> None:
        if isinstance(index, slice) and values.shape[1] == 1:
            buffer[index].addcmul_(values[:, 0], values[:, 0], value=-1.0)  # in place and in one pass
        else:
            buffer[self._on_device(index)] -= (values * values).sum(1)

    def _on_device(self, index: Any) -> Any:
        if isinstance(index, tuple):
            return tuple(self._on_device(part) for part in index)
        return index if isinstance(index, (slice, int)) else self.index(index)

    def windows(self, table: Array, shape: tuple[int, ...]) -> Array:
        for axis, size in enumerate(shape):
            table = table.unfold(axis, size, 1)
        return table

    def finite(self, values: Array) -> Array:
        return (values * 0.0).sum()

    def at_least_zero(self, values: Array) -> Array:
        return values.clamp_min(0.0)

    def add_outer(self, target: Array, left: Array, right: Array) -> None:
        target.addcmul_(left[:, :, None], right[:, None, :])


class TorchRows(Rows):
    """L as (design, row, candidate); a batched product reads it at the speed of the memory."""

    def __init__(self, backend: TorchBackend, designs: int, candidates: int, capacity: int) -> None:
        self._backend = backend
        self._values = backend.zeros((designs, capacity, candidates))

    def grow(self, capacity: int) -> None:
        designs, _, candidates = self._values.shape
        self._values = padded(self._backend, self._values, (designs, capacity, candidates))

    def product(self, columns: Array, designs: Selection, first: int = 0) -> Array:
        rows = slice(first, first + columns.shape[2])
        return torch.bmm(columns, self._backend.take(self._values, designs.index)[:, rows])

    def at(self, designs: Selection, indices: Array, n: int) -> Array:
        if isinstance(designs.index, slice):
            return torch.gather(self._values[designs.index, :n], 2, indices[:, None, :].expand(-1, n, -1))
        numbers = self._backend.index(designs.numbers)[:, None, None]  # to pick designs first would copy them
        rows = torch.arange(n, device=self._backend.device)[None, :, None]
        return self._values[numbers, rows, indices[:, None, :]]

    def squares(self, designs: Selection, first: int, last: int) -> Array:
        rows = self._backend.take(self._values, designs.index)[:, first:last]
        return torch.linalg.vector_norm(rows, dim=1).square()

    def write(self, places: Places, row: Array) -> None:
        self._backend.put(self._values, places, row)
