"""Kernels that several files of tests ask the same questions."""

import math

import numpy as np
from sklearn.gaussian_process import kernels as sk

import rewardfree as rf
from rewardfree.kernels import as_kernel


def named(value):
    """A kernel's repr as test id; pytest numbers what has no readable one."""
    return str(value) if isinstance(value, rf.kernels.Kernel | sk.Kernel) else None


OURS = [
    rf.SquaredExponential(0.7),
    rf.SquaredExponential((0.5, 1.0, 3.0)),
    rf.Matern(0.5),
    rf.Matern(1.5, 0.4),
    rf.Matern(2.5, (0.5, 1.0, 3.0)),
    rf.Matern(0.3),
    rf.Matern(3.7, 0.6),
    rf.Matern(50.0),
    rf.Matern(math.inf),
    rf.NeuralTangent(1),
    rf.NeuralTangent(3, bias=0.3),
    rf.Linear(),
    rf.Linear((0.5, 1.0, 3.0), bias=0.2),
    rf.kernels.Delta(),
    2.5 * rf.Matern(1.5) + rf.Linear(bias=0.1) * rf.SquaredExponential(),
]
FOREIGN = [
    as_kernel(sk.RBF(0.7)),
    as_kernel(sk.Matern(0.9, nu=0.7)),
    rf.Matern(1.5) + sk.RBF(0.7),
    3.0 * (rf.NeuralTangent(2) * sk.DotProduct()),
]
EVERY = OURS + FOREIGN


def points(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def assert_close(got, expected, atol, rtol=0.0):
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
