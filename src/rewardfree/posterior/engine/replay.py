"""Rounds of a loop on a CUDA lattice, recorded as CUDA graphs and replayed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rewardfree.posterior.engine.backend import Recording

if TYPE_CHECKING:
    from rewardfree.posterior.engine.backend_torch import TorchBackend
    from rewardfree.posterior.lattice import Lattice

#: What a recording costs the host, and how fast the device reads L in the meantime.
RECORDING_SECONDS, BYTES_PER_SECOND = 0.02, 3e12


def replay(lattice: Lattice, backend: TorchBackend, step: Callable[[], None], times: int) -> None:
    """Call `step` `times` times, see `Lattice.repeat`."""
    outside, inside = torch.cuda.current_stream(backend.device), _recording_stream(str(backend.device))
    inside.wait_stream(outside)
    backend.index_cache = {}
    try:
        with torch.cuda.stream(inside):
            growth, done = _plain_rounds(lattice, step, times)
            done += _recorded_rounds(lattice, step, times - done, growth)
            for _ in range(times - done):  # there was no room for a recording
                step()
    finally:
        backend.index_cache = None
        outside.wait_stream(inside)


@lru_cache(maxsize=8)
def _recording_stream(device: str) -> Any:
    """One stream for all recordings on a device: cuBLAS keeps a workspace for every stream it has seen."""
    return torch.cuda.Stream(device)


def _plain_rounds(lattice: Lattice, step: Callable[[], None], times: int) -> tuple[Any, int]:
    """Play two rounds without recording, the second on real rows: they set up what a recording needs."""
    growth, done = _state(lattice), min(times, 2)
    for _ in range(done):
        before = _state(lattice)
        step()
        growth = _state(lattice) - before
    return growth, done


def _state(lattice: Lattice) -> Any:
    """The number of points of each design, and of its rows of L: (2,g)."""
    return np.stack([lattice._factors.counts, lattice._settled])


def _set_state(lattice: Lattice, state: Any) -> None:
    lattice._factors.counts[:], lattice._settled[:] = state


def _recorded_rounds(lattice: Lattice, step: Callable[[], None], times: int, growth: Any) -> int:
    """Play up to `times` rounds from recordings. Returns how many there was memory for."""
    lattice._reserve(int((lattice.counts + growth[0] * times).max()))
    counts = lattice._backend.index(lattice.counts)
    numbers = lattice._backend.index(np.arange(len(lattice.counts)))
    pool = torch.cuda.graph_pool_handle()
    stride = _rows_per_recording(lattice)
    recordings: list[Any] = []  # kept to the end: their common pool is freed with the last of them
    done = 0
    try:
        while done < times:
            # With room for the points of one more round: it may ask again after adding them.
            rows, fastest = int(lattice.counts.max()), int(growth[0].max())
            length = -(-max(rows + fastest, 1) // stride) * stride
            rounds = min(times - done, (length - rows) // fastest) if fastest else times - done
            recording = Recording(min(length, lattice._factors.capacity), counts, numbers)
            recordings.append(_recorded(lattice, step, recording, growth, pool))
            for _ in range(rounds):
                recordings[-1].replay()
            _set_state(lattice, _state(lattice) + growth * rounds)
            done += rounds
    except torch.OutOfMemoryError:
        return done
    finally:
        torch.cuda.synchronize()  # recordings must not be freed while they play
        recordings.clear()
        # Torch keeps their pool and cannot free it during a recording. To allocate it again takes time, so
        # it is freed only when it is large.
        device = lattice._variance.device
        if torch.cuda.memory_reserved(device) > torch.cuda.get_device_properties(device).total_memory // 2:
            torch.cuda.empty_cache()
    return done


def _rows_per_recording(lattice: Lattice) -> int:
    """How many rounds r a recording serves. It reads r/2 rows too many in each, which are zero.

    With this r reading them takes as long as making the recording.
    """
    row = lattice._variance.element_size() * lattice._variance.numel()  # in bytes, of all designs
    return min(128, max(16, int((2.0 * RECORDING_SECONDS * BYTES_PER_SECOND / row) ** 0.5)))


def _recorded(
    lattice: Lattice, step: Callable[[], None], recording: Recording, growth: Any, pool: Any
) -> Any:
    """One round as a CUDA graph. Nothing is computed, and the lattice does not change."""
    before = _state(lattice)
    graph = torch.cuda.CUDAGraph()
    lattice._factors.recording = recording
    try:
        graph.capture_begin(pool=pool)
        try:
            step()
        except BaseException:
            with suppress(RuntimeError), warnings.catch_warnings(action="ignore"):
                graph.capture_end()  # it fails too, and its cause is being raised already
            raise
        graph.capture_end()
        same = np.array_equal(_state(lattice) - before, growth)
    finally:
        lattice._factors.recording = None
        _set_state(lattice, before)
    if not same:
        raise ValueError("step must append to the same designs every time, got others in a later round")
    return graph
