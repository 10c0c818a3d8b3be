"""All of Figure 1 on this machine's cores, and one run of each algorithm against plain scikit-learn.

python benchmarks/figure1.py           (eleven minutes; --quick: a minute, whose ratios mean little)

scikit-learn runs the paper's pseudo-code with a fresh fit for every step (plain.py), on one core, with the
checkpoints and planners of Figure 1; ours is what a worker does: eight runs side by side on one core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import plain
import rewardfree as rf
from rewardfree.presets import PUBLISHED
from rewardfree.studies.paper.specification import KERNELS, QUICK_RUNS, RUNS, paper_strategies
from setting import BETA, CHECKPOINTS, KERNEL, RIDGE
from table import Row, show

PLANNERS = {"optimistic": rf.Optimistic(BETA), "mean": rf.Mean()}
BATCH = 8


class Memory(threading.Thread):
    """The largest sum of a process's and its descendants' memory, in GB, looked at every half second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self.peak = pid, 0.0

    def run(self) -> None:
        while Path(f"/proc/{self._pid}").exists():
            self.peak = max(self.peak, sum(map(_memory, _family(self._pid))))
            time.sleep(0.5)


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(each for child in children for each in _family(int(child)))]


def _memory(pid: int) -> float:
    """What it shares with others counts in part (Pss)."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 2**20


def whole_figure(quick: bool, out: Path) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak GB of `rewardfree reproduce figure1`."""
    if (out / "figure1").exists():
        raise SystemExit(f"{out} has results already: timing what is stored would say nothing")
    command = Path(sys.executable).parent / "rewardfree"
    before, started = os.times(), time.perf_counter()
    call = [command, "reproduce", "figure1", "--out", out, *(["--quick"] if quick else [])]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL)
    memory = Memory(process.pid)
    memory.start()
    if process.wait():
        raise SystemExit("the reproduction failed")
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, memory.peak


def ours(world, reward, strategy, checkpoints) -> float:
    """Seconds for one run, as one of several side by side; the second time, when memory is there."""
    for _ in range(2):
        started = time.perf_counter()
        rf.experiments.learning_curves(
            world, rf.Model(KERNEL, RIDGE), strategy, reward, PLANNERS,
            samples_per_step=checkpoints, seeds=range(BATCH), batch=BATCH, progress=False,
        )  # fmt: skip
    return (time.perf_counter() - started) / BATCH


def by_scikit_learn(world, reward, name, checkpoints) -> float:
    """Seconds for one run, planned and evaluated at the same checkpoints by both planners."""
    kernel = plain.sklearn_kernel(KERNEL)
    task = plain.Task(world.P, kernel, RIDGE, int(world.start.argmax()), world.horizon, BETA)
    uniforms = np.random.default_rng(0).random((checkpoints[-1], world.horizon * (world.horizon + 1) // 2))
    with rf.threads.one_blas_thread():
        started = time.perf_counter()
        chosen, seen = plain.EXPLORERS[name](task, checkpoints[-1], uniforms)
        for n in checkpoints:
            for beta in (BETA, 0.0):
                plain.gap(task, chosen[:, :n], seen[:, :n], reward, beta)
        return time.perf_counter() - started


def rows(quick: bool, out: Path) -> list[Row]:
    side, checkpoints = (20, (4, 8, 16)) if quick else (100, CHECKPOINTS)
    instance = rf.rkhs_world(KERNEL, RIDGE, states=side, actions=side)
    world, reward = instance.world, instance.reward
    table, slow_total = [], 0.0
    for name, strategy in paper_strategies(PUBLISHED, BETA).items():
        fast, slow = (
            ours(world, reward, strategy, checkpoints), by_scikit_learn(world, reward, name, checkpoints),
        )  # fmt: skip
        slow_total += slow
        what = f"one {name} run, N = {checkpoints[-1]}, {side} x {side}, {len(checkpoints)} checkpoints"
        table.append(Row(what, f"{fast:.3f} s", f"scikit-learn {slow:.1f} s", f"{slow / fast:.0f}x faster"))
    wall, cpu, peak = whole_figure(quick, out)
    expected = len(KERNELS) * (QUICK_RUNS if quick else RUNS["figure1"]) * slow_total
    table.append(
        Row(
            f"all of Figure 1, with figures and references, on {os.cpu_count()} cores",
            f"{wall:.0f} s, CPU {cpu / 60:.1f} min, {peak:.2f} GB",
            f"scikit-learn {expected / 3600:.1f} CPU-hours by those runs, without references",
            f"{expected / cpu:.0f}x less CPU",
        )
    )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, help="keep the results there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        show(rows(given.quick, given.out or Path(folder)))
