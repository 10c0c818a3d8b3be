"""A kernel and a ridge for finitely many states, from where transitions led: no reward enters."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from rewardfree.kernels.algebra import Kernel
from rewardfree.kernels.fitting.autokernel import AutoKernel, evenly
from rewardfree.kernels.stationary import Matern, SquaredExponential

#: Next states are described by products of cosines, up to this frequency and at most so many.
FREQUENCY, MOST_FEATURES = 6, 60
#: Before there are data: a kernel of this lengthscale, as a share of each coordinate's range, and a ridge.
FIRST_LENGTH, FIRST_RIDGE = 0.2, 0.1
#: A function of the next state that differs by less is the same everywhere.
ROUNDING = 1e-9
#: The least ridge that is fitted for single precision, a thousand times its rounding.
LEAST_SINGLE = 1e-4


def first_guess(points: Any) -> Kernel:
    """A kernel for candidates (m,f) of which nothing was seen."""
    return Matern(1.5, tuple(FIRST_LENGTH * _spread(points, np.ptp)))


def fit_next_states(
    automatic: AutoKernel,
    points: Any,
    z: Any,
    states: Any,
    next_state: Any,
    ridge: float | None = None,
    single: bool = False,
) -> tuple[Kernel, float] | None:
    """Kernel and ridge for candidates (m,f) of which z (n,) were tried and led to states (s,d).

    Values to come are functions of the next state, and may be far less smooth than its mean: the kernel is
    fitted to many functions of it, `next_state_features`. None if too few data were seen. The ridge is large
    enough for `single` precision.
    """
    targets = next_state_features(states)[next_state]
    used = evenly(len(z), automatic.most)  # which the kernel is fitted to: elsewhere they may well differ
    moving = np.ptp(targets[used], axis=0) > ROUNDING if len(used) > 1 else np.zeros(targets.shape[1], bool)
    if not moving.any():
        return None
    targets = targets[:, moving] - targets[:, moving].mean(axis=0)
    targets /= targets.std(axis=0)
    centre, scale = points.mean(axis=0), _spread(points, np.std)
    fit = automatic.fit((points[z] - centre) / scale, targets, ridge=ridge, linear=False)
    assert isinstance(fit.kernel, (Matern, SquaredExponential))
    lengths = tuple(float(length) for length in np.asarray(fit.kernel.lengthscale) * scale)
    least = LEAST_SINGLE if single and ridge is None else 0.0
    return replace(fit.kernel, lengthscale=lengths), max(fit.ridge, least)


def next_state_features(states: Any) -> Any:
    """Smooth functions of a state that tell states (s,d) apart: cosines along each axis, and products."""
    low, span = states.min(axis=0), _spread(states, np.ptp)
    angles = np.pi * (states - low) / span
    waves: list[tuple[int, ...]] = []
    for total in range(1, FREQUENCY + 1):
        if len(waves) < MOST_FEATURES:
            waves += _waves(states.shape[1], total)[: MOST_FEATURES - len(waves)]
    return np.stack([np.cos(angles * np.array(wave)).prod(axis=1) for wave in waves], axis=1)


def _waves(d: int, total: int) -> list[tuple[int, ...]]:
    """All frequencies along d axes that sum up to `total`."""
    spread = combinations_with_replacement(range(d), total)
    return sorted(tuple(axes.count(i) for i in range(d)) for axes in spread)


def _spread(points: Any, measure: Any) -> Any:
    """A measure of each coordinate's spread, 1 where it does not vary."""
    spread = measure(points, axis=0)
    return np.where(spread > 0.0, spread, 1.0)
