"""Whole runs of the paper's experiment, explored, planned at five checkpoints and evaluated."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import plain
import rewardfree as rf
from setting import BETA, CHECKPOINTS, KERNEL, RIDGE
from table import Row, seconds, show

MODEL = rf.Model(KERNEL, RIDGE)
PLANNER = {"optimistic": rf.Optimistic(BETA)}


def curves(world, reward, strategy, checkpoints, seeds, **options) -> rf.experiments.LearningCurve:
    options = {"samples_per_step": checkpoints, "seeds": seeds, **options}
    return rf.experiments.learning_curves(world, MODEL, strategy, reward, PLANNER, **options)["optimistic"]


def by_scikit_learn(world, reward, checkpoints) -> float:
    """Seconds for one Online run, planned and evaluated at the same checkpoints."""
    task = plain.Task(
        world.P, plain.sklearn_kernel(KERNEL), RIDGE, int(world.start.argmax()), world.horizon, BETA
    )
    uniforms = np.random.default_rng(0).random((checkpoints[-1], world.horizon * (world.horizon + 1) // 2))
    with rf.threads.one_blas_thread():
        started = time.perf_counter()
        chosen, seen = plain.online(task, checkpoints[-1], uniforms)
        for n in checkpoints:
            plain.gap(task, chosen[:, :n], seen[:, :n], reward, BETA)
        return time.perf_counter() - started


def alone(*job) -> tuple[float, float]:
    """Seconds and peak GB of a job in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, job)], check=True, capture_output=True, text=True
    )
    took, peak = done.stdout.split()
    return float(took), float(peak)


def peak_memory() -> float:
    """GB at the most. On Linux from /proc: what getrusage says a child inherits from its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def work(job, side, *numbers) -> None:
    """What `alone` starts; prints its seconds and its peak memory."""
    started = time.perf_counter()
    instance = rf.rkhs_world(KERNEL, RIDGE, states=side, actions=side)
    world, reward = instance.world, instance.reward
    if job == "runs":
        started = time.perf_counter()
        curves(world, reward, rf.Online(BETA), numbers[1:], range(numbers[0]))
    took = time.perf_counter() - started
    print(took, peak_memory())


def rows(quick: bool = False) -> list[Row]:
    side, runs, rewards = (20, 4, 10) if quick else (100, 80, 100)
    checkpoints = (3, 6) if quick else CHECKPOINTS
    few = checkpoints[:3]
    instance = rf.rkhs_world(KERNEL, RIDGE, states=side, actions=side)
    world, reward = instance.world, instance.reward
    one = seconds(lambda: curves(world, reward, rf.Online(BETA), checkpoints, [0]))
    short = seconds(lambda: curves(world, reward, rf.Online(BETA), few, [0]))
    generative = seconds(lambda: curves(world, reward, rf.Generative(), checkpoints, range(runs)), repeats=1)
    many, memory = alone("runs", side, runs, *checkpoints)
    drawing, drawn = alone("draw", side)
    data = rf.explore(world, MODEL, rf.Online(BETA), samples_per_step=checkpoints[-1])
    several = list(np.random.default_rng(0).random((rewards, side, side)))
    single = seconds(lambda: rf.plan(data, reward, rf.Optimistic(BETA)))
    together = seconds(lambda: rf.plan_many(data, several, rf.Optimistic(BETA)))
    slow = by_scikit_learn(world, reward, few)
    return [
        Row(
            f"one Online run, N = {checkpoints[-1]}, {side} x {side}, planned and evaluated",
            f"{one:.2f} s",
            "authors' scripts 252 s (recorded earlier)" if not quick else "",
            "",
        ),
        Row(
            f"  the same up to N = {few[-1]}",
            f"{short:.2f} s",
            f"scikit-learn {slow:.1f} s",
            f"{slow / short:.0f}x faster",
        ),
        Row(
            f"  {runs} such runs on one core, peak memory {memory:.2f} GB",
            f"{many:.1f} s",
            "",
            "",
        ),
        Row(f"{runs} Generative runs, planned and evaluated", f"{generative:.2f} s", "", ""),
        Row(
            f"{rewards} rewards by plan_many at N = {checkpoints[-1]}",
            f"{together:.2f} s",
            f"one plan {single:.2f} s",
            f"{together / single:.1f}x one plan",
        ),
        Row(f"rkhs_world on {side}^3 points", f"{drawing:.2f} s, {drawn:.2f} GB", "", ""),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1], *map(int, sys.argv[2:]))
    else:
        show(rows())
