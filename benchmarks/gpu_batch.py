"""Claim 5: many runs of Alg 3 at once on a CUDA device, and its parity with the CPU."""

from __future__ import annotations

import time

import numpy as np

from online_loop import Setting, on_lattice
from table import Row, show


def rows(quick: bool = False) -> list[Row]:
    claim = "5 240 runs of Alg 3 at once on a GPU, float64"
    try:
        import torch
    except ImportError:
        return [Row(claim, "not run: torch is not installed", "", "")]
    if not torch.cuda.is_available():
        return [Row(claim, "not run: torch sees no CUDA device", "", "")]
    small = Setting(rounds=40, runs=3, states=40, actions=40)
    setting = Setting(rounds=20, runs=8) if quick else Setting(runs=240)
    here, there = on_lattice(small), on_lattice(small, device="cuda")
    same = np.array_equal(here.chosen, there.chosen.cpu()) and np.array_equal(here.seen, there.seen.cpu())
    variance = float(np.abs(there.lattice.std().cpu().numpy() ** 2 - here.lattice.std() ** 2).max())
    y = np.random.default_rng(0).standard_normal((small.runs * small.horizon, small.rounds))
    mean = float(np.abs(there.lattice.mean(y).cpu().numpy() - here.lattice.mean(y)).max())
    times = []
    for _ in range(4):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        outcome = on_lattice(setting, device="cuda")
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
        del outcome
    device = torch.cuda.get_device_name()
    peak = torch.cuda.max_memory_allocated() / 2**30
    return [
        Row(
            f"5 {setting.runs} x {setting.horizon} designs of Alg 3, N = {setting.rounds}, |Z| = 10,000",
            f"{min(times[1:]):.2f} s, {peak:.0f} GiB (first {times[0]:.2f} s) on {device}",
            "a first probe 1.9 s, 35 GiB",
            f"{1.9 / min(times[1:]):.2f}x faster",
            "must beat it, goal 1 s",
        ),
        Row(
            "  parity with the CPU (3 runs, N = 40)",
            f"variance {variance:.1e}, mean {mean:.1e}",
            f"same trajectories: {'yes' if same else 'NO'}",
            "",
            "must 1e-9",
        ),
    ]


if __name__ == "__main__":
    show(rows())
