"""A kernel and a ridge for a finite world, fitted to next states."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from rewardfree.arrays import Floats, Integers
from rewardfree.kernels.algebra import Kernel
from rewardfree.kernels.fitting.autokernel import AutoKernel, evenly
from rewardfree.kernels.fitting.likelihood import Fit
from rewardfree.kernels.stationary import Matern, SquaredExponential

#: Next states are described by products of cosines: the highest total frequency, and the most products.
FREQUENCY, MOST_FEATURES = 6, 60
#: Without data: the lengthscale as a share of the range of each coordinate, and the ridge.
FIRST_LENGTH, FIRST_RIDGE = 0.2, 0.1
#: A function of the next state with a smaller range counts as constant.
ROUNDING = 1e-9
#: The least ridge that is fitted for single precision, a thousand times its rounding.
LEAST_SINGLE = 1e-4


def first_guess(points: Floats) -> Kernel:
    """A kernel for candidates (m,f) without data."""
    return Matern(1.5, tuple(FIRST_LENGTH * _spread(points, np.ptp)))


def fit_next_states(
    automatic: AutoKernel,
    points: Floats,
    z: Integers,
    states: Floats,
    next_state: Integers,
    ridge: float | None = None,
    single: bool = False,
) -> Fit | None:
    """A fit to n transitions from points[z] to states[next_state], for points (m,f) and states (s,d).

    Values are functions of the next state and may be far less smooth than its mean: the kernel is fitted to
    many functions of it, `next_state_features`. None if the data are too few. With `single` the ridge is
    large enough for single precision.
    """
    targets = next_state_features(states)[next_state]
    rows = evenly(len(z), automatic.most)  # the kernel is fitted to these: a target may vary in others only
    varying = np.ptp(targets[rows], axis=0) > ROUNDING if len(rows) > 1 else np.zeros(targets.shape[1], bool)
    if not varying.any():
        return None
    targets = targets[:, varying] - targets[:, varying].mean(axis=0)
    targets /= targets.std(axis=0)
    centre, scale = points.mean(axis=0), _spread(points, np.std)
    fit = automatic.fit((points[z] - centre) / scale, targets, ridge=ridge, linear=False)
    assert isinstance(fit.kernel, (Matern, SquaredExponential))
    lengths = tuple(float(length) for length in np.asarray(fit.kernel.lengthscale) * scale)
    least = LEAST_SINGLE if single and ridge is None else 0.0
    return replace(fit, kernel=replace(fit.kernel, lengthscale=lengths), ridge=max(fit.ridge, least))


def next_state_features(states: Floats) -> Floats:
    """Smooth functions that differ between states (s,d): cosines along each axis, and their products."""
    low, span = states.min(axis=0), _spread(states, np.ptp)
    angles = np.pi * (states - low) / span
    waves: list[tuple[int, ...]] = []
    for total in range(1, FREQUENCY + 1):
        if len(waves) < MOST_FEATURES:
            waves += _waves(states.shape[1], total)[: MOST_FEATURES - len(waves)]
    return np.stack([np.cos(angles * np.array(wave)).prod(axis=1) for wave in waves], axis=1)


def _waves(d: int, total: int) -> list[tuple[int, ...]]:
    """All frequencies along d axes whose sum is `total`."""
    multisets = combinations_with_replacement(range(d), total)
    return sorted(tuple(axes.count(i) for i in range(d)) for axes in multisets)


def _spread(points: Floats, measure: Callable[..., Floats]) -> Floats:
    """The spread of each coordinate by a measure such as np.std; 1 for a constant coordinate."""
    spread = measure(points, axis=0)
    return np.where(spread > 0.0, spread, 1.0)
