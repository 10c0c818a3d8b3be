"""Explorers that several files of tests run, and the comparison with the textbook."""

import itertools

import numpy as np

import reference_runs
import rewardfree as rf
from reference_runs import recorded

RULES = list(itertools.product(("lowest", "random"), ("zero", "prior")))
ALL = [
    *(rf.Generative(ties=ties) for ties in ("lowest", "random")),
    *(rf.Online(0.1, fresh, ties, empty) for fresh in (False, True) for ties, empty in RULES),
    *(rf.Qiu(0.1, ties, empty) for ties, empty in RULES),
    *(rf.GreedyMaxVariance(ties, empty) for ties, empty in RULES),
    rf.Uniform(),
]
SPREAD = np.array([0.0, 0.5, 0.0, 0.25, 0.25, 0.0])
ROUNDS = 15


def budget(world, model, rounds=ROUNDS):
    """So many whole rounds, in the unit of the model."""
    return {"transitions": rounds * world.horizon} if model.pooled else {"samples_per_step": rounds}


def assert_textbook(world, model, strategy, seed=3, rounds=ROUNDS, **options):
    data = rf.explore(world, model, strategy, seed=seed, **budget(world, model, rounds), **options)
    expected = reference_runs.explore(world, model, strategy, rounds, seed)
    assert recorded(data) == recorded(expected)
    assert not data.terminated.any()
