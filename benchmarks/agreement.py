"""Do our gaps agree with a plain scikit-learn implementation of the same pseudo-code? (ten minutes)

Two fixed worlds on 30 x 30, start 20; 40 runs of each algorithm by each of the two, on random numbers of
their own; planned with the mean, Qiu with the bonus. Prints the two means of every cell, and their difference
in standard errors.
"""

from __future__ import annotations

import argparse

import numpy as np

import plain
import rewardfree as rf
from rewardfree.presets import PUBLISHED
from rewardfree.studies.paper.specification import paper_strategies
from setting import BETA

WORLDS = {
    "Matern 1.5, ridge 0.5": (rf.Matern(1.5, 0.1), 0.5),
    "SE, ridge 0.01": (rf.SquaredExponential(0.1), 0.01),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--side", type=int, default=30)
    parser.add_argument("--checkpoints", type=int, nargs="+", default=[10, 20, 40])
    options = parser.parse_args()
    worst = 0.0
    print(f"{'world':22s} {'algorithm':11s} {'N':>4s} {'ours':>8s} {'scikit-learn':>13s} {'in s.e.':>8s}")
    for name, (kernel, ridge) in WORLDS.items():
        instance = rf.rkhs_world(kernel, ridge, states=options.side, actions=options.side, start=20)
        world, reward = instance.world, instance.reward
        for algorithm, strategy in paper_strategies(PUBLISHED, BETA).items():
            beta = BETA if algorithm == "qiu" else 0.0
            ours = _ours(world, reward, rf.Model(kernel, ridge), strategy, beta, options)
            theirs = _theirs(world, reward, kernel, ridge, algorithm, beta, options)
            for i, n in enumerate(options.checkpoints):
                a, b = ours[:, i], theirs[:, i]
                error = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
                apart = abs(a.mean() - b.mean())
                off = apart / error if error else (np.inf if apart else 0.0)
                worst = max(worst, off)
                print(
                    f"{name:22s} {algorithm:11s} {n:4d} {a.mean():8.4f} {b.mean():13.4f} {off:8.2f}",
                    flush=True,
                )
    print(f"largest difference: {worst:.2f} standard errors")


def _ours(world, reward, model, strategy, beta, options):
    planners = {"": rf.Optimistic(beta)}
    seeds, checkpoints = range(options.runs), options.checkpoints
    curves = rf.experiments.learning_curves(
        world, model, strategy, reward, planners, samples_per_step=checkpoints, seeds=seeds
    )
    return curves[""].start


def _theirs(world, reward, kernel, ridge, algorithm, beta, options):
    gaps = np.zeros((options.runs, len(options.checkpoints)))
    rounds = max(options.checkpoints)
    for run in range(options.runs):
        task = plain.Task(world.P, plain.sklearn_kernel(kernel), ridge, 20, world.horizon, BETA)
        steps = world.horizon * (world.horizon + 1) // 2
        uniforms = np.random.default_rng([run, 1]).random((rounds, steps))
        with rf.threads.one_blas_thread():
            chosen, seen = plain.EXPLORERS[algorithm](task, rounds, uniforms)
            for i, n in enumerate(options.checkpoints):
                gaps[run, i] = plain.gap(task, chosen[:, :n], seen[:, :n], reward, beta)
    return gaps


if __name__ == "__main__":
    main()
