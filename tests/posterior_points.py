"""Points that several files of tests ask posteriors about."""

import numpy as np


def points(n, seed=0, dim=2):
    return np.random.default_rng(seed).random((n, dim))
