"""Scout on a world of 100 x 100, 120 episodes, one regression for all steps; 20 runs on a GPU."""

from __future__ import annotations

import time

import rewardfree as rf
from table import Row

RUNS = 20


def rows(quick: bool = False) -> list[Row]:
    size, episodes = (30, 20) if quick else (100, 120)
    world = rf.worlds.sharpened_world(states=size, actions=size).world
    fixed = rf.Model(rf.Matern(1.5, 0.1), 0.5, pooled=True, centred=True)
    found = [
        _one(world, model, episodes, name)
        for name, model in (("a fixed kernel", fixed), ("a kernel from the data", rf.default_model(world)))
    ]
    return [*found, _together(world, fixed, episodes)]


def _one(world, model, episodes, name) -> Row:
    started = time.process_time()
    rf.explore(world, model, rf.Scout(), episodes=episodes, progress=False)
    took = time.process_time() - started
    return Row(f"Scout, {episodes} episodes, {name}, one core", f"{took:.1f} s", "", "")


def _together(world, model, episodes) -> Row:
    what = f"Scout, {RUNS} runs together on a GPU, float64"
    try:
        import torch
    except ImportError:
        return Row(what, "not run: torch is not installed", "", "")
    if not torch.cuda.is_available():
        return Row(what, "not run: torch sees no CUDA device", "", "")
    times = []
    for _ in range(3):
        torch.cuda.synchronize()
        started = time.perf_counter()
        rf.explore_many(
            world, model, rf.Scout(), episodes=episodes, seeds=range(RUNS), device="cuda", progress=False
        )
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    said = f"{min(times[1:]):.2f} s (first {times[0]:.2f} s) on {torch.cuda.get_device_name()}"
    return Row(what, said, "", "")
