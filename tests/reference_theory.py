"""Formulas of the theory by hand, and the points that its tests share. src never imports this."""

from __future__ import annotations

import math

import numpy as np


def grid(side, dim):
    """side^dim even points of [0,1]^dim."""
    axes = [np.linspace(0.0, 1.0, side)] * dim
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)


def scattered(n, dim=2, seed=0):
    """n uniform points of [0,1]^dim."""
    return np.random.default_rng(seed).uniform(size=(n, dim))


def gain_of(kernel, points, ridge):
    """1/2 logdet(I + K/ridge) by eigenvalues; the library takes a determinant."""
    return 0.5 * np.log1p(np.maximum(np.linalg.eigvalsh(kernel(points)), 0.0) / ridge).sum()


def theorem_1_by_hand(spectrum, B1, B2, ridge, n, delta):
    """(printed, corrected, tight) for every M, from the proof, one M at a time."""
    psi, root = max(spectrum.largest_value), math.sqrt(ridge)
    for M in range(1, len(spectrum.eigenvalues) + 1):
        head = math.fsum(spectrum.eigenvalues[:M])
        rest = 2.0 * B2 * psi / root * math.sqrt(n * max(spectrum.trace - head, 0.0))
        printed = head * B2 * psi / root * math.sqrt(2.0 * math.log(M / delta))
        noise = math.sqrt(head) * B2 * psi / root * math.sqrt(2.0 * math.log(2.0 * M / delta))
        yield B1 + printed + rest, B1 + noise + rest, math.hypot(B1, noise, rest)


def gap_2(n, b, gain, H, ridge):
    """2b/N times H sums of sigma by Cauchy-Schwarz, and the net's slack twice: planning up and dspectrum."""
    sigmas = math.sqrt(n * 2.0 * gain / math.log((1.0 + ridge) / ridge))
    return 2.0 * b / n * H * sigmas + 2.0 * H * (2.0 * b / math.sqrt(n) + 2.0 / n)
