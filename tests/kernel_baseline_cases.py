"""Prior systems that several files of tests run."""

from dataclasses import replace

import numpy as np

import rewardfree as rf
from reference_runs import recorded, small_world

KERNEL = rf.Matern(1.5, 0.3)
MODEL = rf.Model(KERNEL, ridge=0.5)
POOLED = replace(MODEL, pooled=True)
AUTO = rf.Model(rf.AutoKernel(), pooled=True)
REWARD = np.random.default_rng(7).random((6, 5))
FEATURES = rf.posterior.PolynomialFeatures(2)
PARTITIONED = [
    rf.baselines.Partitioned(0.2),
    rf.baselines.Partitioned(0.2, alpha=0.8),
    rf.baselines.Partitioned(0.2, drop=True),
    rf.baselines.Partitioned(0.2, alpha=1.0, drop=True, ties="random", empty="prior"),
]
LINEAR = rf.baselines.LinearRewardFree(FEATURES, 0.2)
ANALOGUES = [
    rf.baselines.KernelRFUCRL(0.7),
    rf.baselines.KernelRFExpress(0.7),
    rf.baselines.KernelRFUCRL(0.7, ties="random"),
]


def explored(strategy, model=MODEL, rounds=14, world=None, **options):
    world = world or small_world(irregular=True)
    sizes = {"transitions": 4 * rounds} if model.pooled else {"samples_per_step": rounds}
    return rf.explore(world, model, strategy, seed=3, **sizes, **options)


def same(data, other):
    assert recorded(data) == recorded(other)
