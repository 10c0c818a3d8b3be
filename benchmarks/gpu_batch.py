"""Many runs at once on a CUDA device, their parity with the CPU, and all of Figure 1: its
computing alone, and from the command to the page."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

import numpy as np

import rewardfree as rf
from rewardfree.presets import PUBLISHED
from rewardfree.studies.paper.specification import paper_strategies
from setting import BETA, CHECKPOINTS, KERNEL, RIDGE, Setting
from table import Row, show

MAIN = "from rewardfree.cli import main; main()"
FIGURE_1 = [(rf.SquaredExponential(0.1), 0.01), (rf.Matern(2.5, 0.1), 0.5), (rf.Matern(1.5, 0.1), 0.5)]


def rows(quick: bool = False) -> list[Row]:
    what = "240 runs of Alg 3 at once on a GPU, float64"
    try:
        import torch
    except ImportError:
        return [Row(what, "not run: torch is not installed", "", "")]
    if not torch.cuda.is_available():
        return [Row(what, "not run: torch sees no CUDA device", "", "")]
    return [_exploration(torch, quick), _parity(), *_figure_1(torch, quick), _end_to_end(quick)]


def timed(torch, call) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def _exploration(torch, quick) -> Row:
    setting, runs = (Setting(rounds=20), 8) if quick else (Setting(), 240)
    world = setting.world
    torch.cuda.reset_peak_memory_stats()
    times = [timed(torch, lambda: setting.explore(world, range(runs), device="cuda")) for _ in range(4)]
    peak = torch.cuda.max_memory_allocated() / 2**30
    return Row(
        f"{runs} x {setting.horizon} designs of Alg 3, {setting.sizes}",
        f"{min(times[1:]):.2f} s, {peak:.0f} GiB (first {times[0]:.2f} s) on {torch.cuda.get_device_name()}",
        "",
        "",
    )


def _parity() -> Row:
    """The four algorithms, explored, planned and evaluated on both."""
    instance = rf.rkhs_world(KERNEL, RIDGE, states=40, actions=40)
    world, reward = instance.world, instance.reward
    options = {"samples_per_step": [10, 40], "seeds": range(3)}
    planners, same, apart = {"": rf.Optimistic(BETA)}, True, 0.0
    for strategy in paper_strategies(PUBLISHED, BETA).values():
        model = rf.Model(KERNEL, RIDGE)
        here, there = (
            rf.explore_many(world, model, strategy, samples_per_step=40, seeds=range(3), device=device)
            for device in ("cpu", "cuda")
        )
        same &= all(
            np.array_equal(getattr(a, name), getattr(b, name))
            for a, b in zip(here, there, strict=True)
            for name in ("state", "action", "next_state")
        )
        gaps = [
            rf.experiments.learning_curves(
                world, model, strategy, reward, planners, device=device, **options
            )[""].max
            for device in ("cpu", "cuda")
        ]
        apart = max(apart, float(np.abs(gaps[0] - gaps[1]).max()))
    return Row(
        "  parity with the CPU (four algorithms, 3 runs, N = 40)",
        f"gaps {apart:.1e} apart",
        f"same trajectories: {'yes' if same else 'NO'}",
        "",
    )


def _figure_1(torch, quick) -> list[Row]:
    side, runs, checkpoints = (30, 4, (5, 10)) if quick else (100, 80, CHECKPOINTS)
    worlds = [(k, ridge, rf.rkhs_world(k, ridge, states=side, actions=side)) for k, ridge in FIGURE_1]
    planners, times = {"": rf.Optimistic(BETA)}, {}
    for _ in range(3):
        for name, strategy in paper_strategies(PUBLISHED, BETA).items():

            def all_kernels(strategy=strategy):
                for kernel, ridge, instance in worlds:
                    options = {"samples_per_step": checkpoints, "seeds": range(runs), "device": "cuda"}
                    rf.experiments.learning_curves(
                        instance.world,
                        rf.Model(kernel, ridge),
                        strategy,
                        instance.reward,
                        planners,
                        **options,
                    )

            times.setdefault(name, []).append(timed(torch, all_kernels))
    best = {name: min(each) for name, each in times.items()}
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in best.items())
    return [
        Row(
            f"all {3 * 4 * runs} runs of Figure 1, planned and evaluated {len(checkpoints)} times",
            f"{sum(best.values()):.2f} s ({parts})",
            f"first time {sum(each[0] for each in times.values()):.2f} s",
            "",
        )
    ]


def _end_to_end(quick) -> Row:
    """`rewardfree reproduce figure1 --device cuda` as a command of its own."""
    command = ["reproduce", "figure1", "--device", "cuda", "--quiet", *(["--quick"] if quick else [])]
    times = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as out:
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", MAIN, *command, "--out", out], check=True)
            times.append(time.perf_counter() - started)
    return Row(
        "  the same with six explorers and two planners, from the command to its page",
        f"{min(times):.1f} to {max(times):.1f} s",
        "",
        "",
    )


if __name__ == "__main__":
    show(rows())
