"""How the cost of appends with predictions grows with their number."""

from __future__ import annotations

import time

import numpy as np

import rewardfree as rf
from setting import Setting
from table import Row, show


def append_and_predict(n: int, candidates) -> float:
    """Seconds for n appends, each followed by a mean and a standard deviation over all candidates."""
    indices = np.random.default_rng(0).integers(0, len(candidates), n)
    targets = np.random.default_rng(1).standard_normal((1, n))
    lattice = rf.posterior.Lattice(rf.Matern(nu=1.5, lengthscale=0.1), candidates, ridge=0.5, capacity=n)
    lattice.mean(targets[:, :0])
    started = time.perf_counter()
    with rf.threads.one_blas_thread():
        for i in range(n):
            lattice.append([0], indices[i : i + 1])
            lattice.mean(targets[:, : i + 1])
            lattice.std()
    return time.perf_counter() - started


def rows(quick: bool = False) -> list[Row]:
    candidates = Setting(states=30, actions=30).world.grid.points if quick else Setting().world.grid.points
    sizes = (40, 80, 160) if quick else (320, 640, 1280)
    append_and_predict(sizes[0], candidates)
    times = [append_and_predict(n, candidates) for n in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    moved = [n * (n - 1) / 2 * len(candidates) * 8 / 1e9 for n in sizes]
    return [
        Row(
            f"growth: {', '.join(map(str, sizes))} appends with predictions",
            ", ".join(f"{t:.2f}" for t in times) + " s",
            "bytes of L read: " + ", ".join(f"{m:.1f}" for m in moved) + " GB",
            f"exponent {exponent:.2f}",
        )
    ]


if __name__ == "__main__":
    show(rows())
