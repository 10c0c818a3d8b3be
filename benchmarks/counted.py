"""What visit counts gain: a delta kernel's regression against a lattice, labels against a kernel."""

from __future__ import annotations

import numpy as np

import rewardfree as rf
from table import Row, seconds


def rows(quick: bool = False) -> list[Row]:
    world, strategy = rf.worlds.garnet_world(), rf.baselines.MeanEmbedding(0.1)
    episodes = 20 if quick else 640
    # A multiple is not taken for a delta kernel: the same numbers, by a lattice that grows with the samples.
    kernels = {"counts": rf.kernels.Delta(), "lattice": 1.0 * rf.kernels.Delta()}
    runs, took = {}, {}
    for name, kernel in kernels.items():
        model = rf.Model(kernel, ridge=1.0, pooled=True)

        def explore(name=name, model=model):
            runs[name] = rf.explore(world, model, strategy, episodes=episodes, progress=False)

        took[name] = seconds(explore, repeats=1)
    assert np.array_equal(runs["counts"].action, runs["lattice"].action)
    seen = f"{len(runs['counts']):,} transitions of {len(world.grid.points)} pairs"
    what = f"mean embedding, delta kernel, {seen}"
    ratio = f"{took['lattice'] / took['counts']:.0f}x faster"
    one = Row(what, f"{took['counts']:.2f} s", f"lattice {took['lattice']:.2f} s, the same run", ratio)
    return [one, _lake(300 if quick else 2000)]


def _lake(steps: int) -> Row:
    """Default exploration of labels, and of the same law by a kernel on coordinates."""
    lake = rf.from_gymnasium("FrozenLake-v1")
    worlds = {"labels": lake, "kernel": rf.FiniteWorld(lake.P, lake.horizon, lake.start)}
    took = {
        name: seconds(lambda world=world: rf.explore(world, steps=steps, progress=False), repeats=1)
        for name, world in worlds.items()
    }
    ratio = f"{took['kernel'] / took['labels']:.0f}x faster"
    what = f"default exploration of FrozenLake, {steps:,} steps"
    return Row(what, f"{took['labels']:.2f} s", f"kernel {took['kernel']:.2f} s", ratio)
