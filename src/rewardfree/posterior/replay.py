"""Rounds of a loop on a CUDA lattice, recorded as CUDA graphs and played again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rewardfree.posterior.backend import Recording

if TYPE_CHECKING:
    from rewardfree.posterior.backend_torch import TorchBackend
    from rewardfree.posterior.lattice import Lattice

#: A recording reads fewer than this many rows too many. Rows not yet written are zero and change nothing,
#: but cost traffic, as a new recording costs time.
ROWS_PER_RECORDING = 16


def replay(lattice: Lattice, backend: TorchBackend, step: Callable[[], None], times: int) -> None:
    """Call `step` `times` times, see `Lattice.repeat`."""
    backend.remembered = {}
    try:
        growth, done = _plain_rounds(lattice, step, times)
        _recorded_rounds(lattice, step, times - done, growth)
    finally:
        backend.remembered = None


def _plain_rounds(lattice: Lattice, step: Callable[[], None], times: int) -> tuple[Any, int]:
    """Two rounds, the second on real rows: they set up whatever a recording must find in place."""
    growth, done = np.zeros_like(lattice.counts), min(times, 2)
    for _ in range(done):
        before = lattice.counts
        step()
        growth = lattice.counts - before
    return growth, done


def _recorded_rounds(lattice: Lattice, step: Callable[[], None], times: int, growth: Any) -> None:
    lattice._reserve(int((lattice.counts + growth * times).max()))
    counts = lattice._backend.index(lattice.counts)
    numbers = lattice._backend.index(np.arange(len(lattice.counts)))
    pool = torch.cuda.graph_pool_handle()
    recordings = []  # all kept to the end: the memory pool that they share goes with the last of them
    while times > 0:
        rows, fastest = int(lattice.counts.max()), int(growth.max())
        length = -(-max(rows, 1) // ROWS_PER_RECORDING) * ROWS_PER_RECORDING
        rounds = min(times, (length - rows) // fastest + 1) if fastest else times
        recording = Recording(min(length, lattice._indices.shape[1]), counts, numbers)
        recordings.append(_recorded(lattice, step, recording, growth, pool))
        for _ in range(rounds):
            recordings[-1].replay()
        lattice._counts += growth * rounds
        times -= rounds
    torch.cuda.synchronize()  # the recordings must not go while they play


def _recorded(
    lattice: Lattice, step: Callable[[], None], recording: Recording, growth: Any, pool: Any
) -> Any:
    """One round as a CUDA graph; nothing is computed yet."""
    counts, outstanding = lattice.counts, lattice._outstanding.copy()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    lattice._recording = recording
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=pool)
            try:
                step()
            finally:
                graph.capture_end()
        same = np.array_equal(lattice.counts - counts, growth)
    finally:
        lattice._recording = None
        lattice._counts[:] = counts
    torch.cuda.current_stream().wait_stream(stream)
    if not (same and np.array_equal(lattice._outstanding, outstanding)):
        raise ValueError("step must append to the same designs every time, got others in a later round")
    return graph
