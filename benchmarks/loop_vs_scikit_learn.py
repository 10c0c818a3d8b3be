"""Exploration by Alg 3 against scikit-learn refits, and against the memory's own limit."""

from __future__ import annotations

import time

import numpy as np

import plain
import rewardfree as rf
from setting import BETA, KERNEL, RIDGE, Setting, kept
from table import Row, seconds, show


def copy_bandwidth() -> float:
    """Bytes copied per second between two large arrays; the memory moves each of them twice."""
    source = np.ones(16 * 2**20)
    target = np.empty_like(source)
    return source.nbytes / seconds(lambda: np.copyto(target, source), repeats=7)


def bytes_of_one_pass_per_step_and_round(setting: Setting) -> int:
    """L has n rows in round n+1, and every step reads its own once."""
    rows = setting.rounds * (setting.rounds - 1) // 2
    return setting.horizon * rows * setting.states * setting.actions * 8


def rows(quick: bool = False) -> list[Row]:
    setting = Setting(rounds=6, states=30, actions=30) if quick else Setting()
    world = setting.world
    (ours,) = setting.explore(world)
    fast = seconds(lambda: setting.explore(world))
    single = seconds(lambda: setting.explore(world, dtype="float32"))
    side_by_side = seconds(lambda: setting.explore(world, range(8)), repeats=1) / 8
    bandwidth = copy_bandwidth()
    task = plain.Task(world.P, plain.sklearn_kernel(KERNEL), RIDGE, setting.start, setting.horizon, BETA)
    with rf.threads.one_blas_thread():
        started = time.perf_counter()
        chosen, seen = plain.online(task, setting.rounds, setting.uniforms())
        slow = time.perf_counter() - started
    if not (np.array_equal(kept(ours)[0], chosen) and np.array_equal(kept(ours)[1], seen)):
        raise AssertionError("the two must take the same trajectory")
    work = f"{task.predictions:,} predictions"
    moved = bytes_of_one_pass_per_step_and_round(setting)
    once, twice = moved / bandwidth, moved / (2 * bandwidth)
    return [
        Row(
            f"exploration by Alg 3, {setting.sizes}, float64",
            f"{fast:.2f} s",
            f"scikit-learn {slow:.1f} s, {work}, same trajectory",
            f"{slow / fast:.0f}x faster",
        ),
        Row(
            "  8 runs on that core, each",
            f"{side_by_side:.2f} s",
            f"scikit-learn {slow:.1f} s",
            f"{slow / side_by_side:.0f}x faster",
        ),
        Row(
            "  the same in float32",
            f"{single:.2f} s",
            f"scikit-learn {slow:.1f} s (float64)",
            f"{slow / single:.0f}x faster",
        ),
        Row(
            f"3 share of the hardware limit, {moved / 1e9:.1f} GB to read",
            f"{fast:.2f} s",
            f"{once:.2f} s at {bandwidth / 1e9:.1f} GB/s copied",
            f"{fast / once:.1f}x the floor",
        ),
        Row(
            "  counting a copied byte as read and written",
            f"{fast:.2f} s",
            f"{twice:.2f} s at {2 * bandwidth / 1e9:.1f} GB/s moved",
            f"{fast / twice:.1f}x the floor",
        ),
    ]


if __name__ == "__main__":
    show(rows())
