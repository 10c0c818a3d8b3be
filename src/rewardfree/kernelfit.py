"""A kernel and a ridge for a finite world, from where its transitions led: no reward enters."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from rewardfree.autokernel import AutoKernel, evenly
from rewardfree.kernels import Matern, SquaredExponential
from rewardfree.model import Model
from rewardfree.worlds.grid import Grid

#: Next states are described by products of cosines, up to this frequency and at most so many.
FREQUENCY, MOST_FEATURES = 6, 60
#: Before there are data: a kernel of this lengthscale, as a share of each coordinate's range, and a ridge.
FIRST_LENGTH, FIRST_RIDGE = 0.2, 0.1
#: A function of the next state that differs by less is the same everywhere.
ROUNDING = 1e-9
#: The least ridge that is found for single precision, a thousand times its rounding.
LEAST_SINGLE = 1e-4


def first_guess(model: Model, points: Any) -> Model:
    """The model to begin with: itself, or where it is automatic a kernel for candidates (m,f) unseen."""
    if not model.automatic:
        return model
    lengths = tuple(FIRST_LENGTH * _spread(points, np.ptp))
    return replace(model, kernel=Matern(1.5, lengths), ridge=model.ridge or FIRST_RIDGE)


def fitted_model(
    model: Model,
    points: Any,
    z: Any,
    states: Any,
    next_state: Any,
    most: int | None = None,
    dtype: Any = None,
) -> Model:
    """The model with a kernel for candidates (m,f) of which z (n,) were tried and led to states (s,d).

    Values to come are functions of the next state, and may be far less smooth than its mean: the kernel is
    fitted to many functions of it, `next_state_features`. Too few data leave the first guess. A ridge that is
    found is large enough for numbers of that `dtype`.
    """
    if not isinstance(model.kernel, AutoKernel):
        return model
    kernel = model.kernel if most is None else replace(model.kernel, most=min(most, model.kernel.most))
    centre, scale = points.mean(axis=0), _spread(points, np.std)
    targets = next_state_features(states)[next_state]
    used = evenly(len(z), kernel.most)  # those that a kernel is fitted to: elsewhere they may well differ
    moving = np.ptp(targets[used], axis=0) > ROUNDING if len(used) > 1 else np.zeros(targets.shape[1], bool)
    if not moving.any():
        return first_guess(model, points)
    targets = targets[:, moving] - targets[:, moving].mean(axis=0)
    targets /= targets.std(axis=0)
    found = kernel.fit((points[z] - centre) / scale, targets, ridge=model.ridge, linear=False)
    assert isinstance(found.kernel, (Matern, SquaredExponential))
    lengths = tuple(float(each) for each in np.asarray(found.kernel.lengthscale) * scale)
    least = LEAST_SINGLE if model.ridge is None and "float32" in str(dtype) else 0.0
    kernel_found = replace(found.kernel, lengthscale=lengths)
    return replace(model, kernel=kernel_found, ridge=max(found.ridge, least))


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


def candidates(model: Model, grid: Grid, horizon: int) -> Any:
    """What a model's kernel sees: every z (z,f), or of a timed model every (h,z), step by step (h*z,1+f)."""
    if not model.timed:
        return grid.points
    steps = np.linspace(0.0, 1.0, horizon) if horizon > 1 else np.zeros(1)
    z = len(grid.points)
    return np.concatenate([np.repeat(steps, z)[:, None], np.tile(grid.points, (horizon, 1))], axis=1)


def _spread(points: Any, of: Any) -> Any:
    """A measure of each coordinate's spread, 1 where it does not vary."""
    found = of(points, axis=0)
    return np.where(found > 0.0, found, 1.0)
