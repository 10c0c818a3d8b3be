"""The tables of docs/finite.md: which data Alg 3 uses, and what the tie rule decides (six minutes)."""

from __future__ import annotations

import argparse

import rewardfree as rf
from rewardfree.presets import PUBLISHED
from setting import BETA, CHECKPOINTS

KERNELS = {"Matern 1.5": rf.Matern(1.5, 0.1), "SE": rf.SquaredExponential(0.1)}
READINGS = {
    "round data": rf.Online(BETA),
    "fresh data": rf.Online(BETA, fresh=True),
    "ties lowest": rf.Generative(),
    "ties random": rf.Generative(ties="random"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=100, help="states and actions")
    parser.add_argument("--checkpoints", type=int, nargs="+", default=list(CHECKPOINTS))
    options = parser.parse_args()
    print("mean gap at the start (standard deviation across runs), mean planning; N =", options.checkpoints)
    for name, kernel in KERNELS.items():
        ridge = PUBLISHED.ridge(kernel)
        instance = rf.rkhs_world(kernel, ridge, states=options.side, actions=options.side)
        world, reward = instance.world, instance.reward
        for reading, strategy in READINGS.items():
            gaps = rf.experiments.learning_curves(
                world,
                rf.Model(kernel, ridge),
                strategy,
                reward,
                {"mean": rf.Mean()},
                samples_per_step=options.checkpoints,
                seeds=range(16 if isinstance(strategy, rf.Online) else 20),
            )["mean"].start
            cells = zip(gaps.mean(axis=0), gaps.std(axis=0, ddof=1), strict=True)
            print(
                f"{name:11s} {reading:12s}", "  ".join(f"{m:.3f} ({sd:.3f})" for m, sd in cells), flush=True
            )


if __name__ == "__main__":
    main()
