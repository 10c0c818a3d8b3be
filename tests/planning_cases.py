"""Data and planners that several files of tests use."""

import functools

import numpy as np

import rewardfree as rf
from reference_runs import small_world

KERNEL = rf.Matern(nu=1.5, lengthscale=0.3)
EXPLORERS = [
    rf.Generative(),
    rf.Online(beta=0.1),
    rf.Online(beta=0.1, fresh=True),
    rf.Qiu(beta=0.1),
    rf.GreedyMaxVariance(),
    rf.Uniform(),
]
PLANNERS = [rf.Optimistic(0.3), rf.Mean(), rf.Pessimistic(0.3)]
RNG = np.random.default_rng(7)
REWARD = RNG.random((6, 5))
BY_STEP = RNG.random((4, 6, 5))


def model(kernel=KERNEL, ridge=0.5, **options):
    return rf.Model(kernel, ridge=ridge, **options)


@functools.cache
def explored(strategy=EXPLORERS[1], pooled=False, centred=False, seed=3, each_step=False):
    sizes = {"transitions": 40} if pooled else {"samples_per_step": 10}
    world = small_world(each_step=each_step, start=None)
    return rf.explore(world, model(pooled=pooled, centred=centred), strategy, seed=seed, **sizes)
