"""The paper's worlds: a reward and a transition law drawn from the kernel's own function space."""

import itertools
import math
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky

from rewardfree.arrays import as_horizon, count, positive
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.model import Model
from rewardfree.presets import PUBLISHED, Preset, preset_named
from rewardfree.streams import stream
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.finite import FiniteWorld, Start
from rewardfree.worlds.instance import Instance

#: Added to the diagonal of a prior covariance that is singular to rounding, times its largest entry. A draw
#: by Cholesky, unlike one by eigenvectors, is then the same on every machine: equal eigenvalues leave
#: their eigenvectors open. Kernels far smoother than the paper's keep fewer digits: P moves by 1e-7 for a
#: squared exponential of lengthscale 1 if the last digits of the factorisation do.
DRAW_JITTER = 1e-10
#: Blocks of kernel values fit into the cache; larger blocks were measured to be four times slower.
BLOCK_BYTES = 2**20
#: A larger array is taken for a mistake and refused before it is allocated.
MOST_BYTES = 8 * 2**30


def rkhs_world(
    kernel: Kernel,
    ridge: float | None = None,
    *,
    seed: int = 0,
    preset: Preset | str = PUBLISHED,
    states: int = 100,
    actions: int = 100,
    horizon: int = 10,
    coarse: int = 10,
    start: Start = None,
) -> Instance:
    """A world and a reward (s,a) in [0,1] as the paper draws them; the learner's kernel is the same one.

    Gaussian-process draws with this kernel on coarse grids of z = (s,a) and (s,a,s') are smoothed by kernel
    ridge regression onto the fine grids, made non-negative (`preset`: by one minimum for all of P, or by one
    for each z) and normalised. `ridge` defaults to the preset's, `start` to its state. 100^3 points take a
    second with `SquaredExponential` and a closed-form `Matern`, up to a minute with other kernels.
    """
    kernel, preset, horizon = as_kernel(kernel), preset_named(preset), as_horizon(horizon)
    ridge = preset.ridge(kernel) if ridge is None else positive(ridge, "ridge")
    states, actions = count(states, "states", at_least=2), count(actions, "actions", at_least=2)
    start = round(preset.start * (states - 1) / 99) if start is None else start
    law = smooth_draw(kernel, ridge, (states, actions, states), coarse, stream(seed, "dynamics"))
    law -= law.min() if preset.normalisation == "global" else law.min(axis=-1, keepdims=True)
    if not law.sum(axis=-1).min() > 0.0:
        raise ValueError(
            f"the draw is flat for some (s,a), so no law can be made of it: {kernel!r} does not reach from "
            f"one of {coarse} coarse points to the next; use a larger lengthscale or more coarse points"
        )
    law /= law.sum(axis=-1, keepdims=True)
    reward = smooth_draw(kernel, ridge, (states, actions), coarse, stream(seed, "reward"))
    reward = (reward - reward.min()) / (reward.max() - reward.min())
    description = f"a draw of the paper's, seed {seed}"
    return Instance("rkhs", description, FiniteWorld(law, horizon, start), reward[None], Model(kernel, ridge))


def check_size(shape: tuple[int, ...]) -> None:
    """Refuse an array that would not fit, before it is made."""
    size = 8 * math.prod(shape)
    if size > MOST_BYTES:
        raise MemoryError(
            f"an array of {' x '.join(map(str, shape))} numbers takes {size / 2**30:.0f} GiB, "
            f"more than {MOST_BYTES / 2**30:.0f}: use fewer states, actions or coarse points"
        )


def smooth_draw(
    kernel: Kernel, ridge: float, shape: tuple[int, ...], coarse: int, rng: np.random.Generator
) -> Any:
    """A function on a regular grid of [0,1]^d of that shape: drawn on coarse^d points, and smoothed."""
    coarse, d = count(coarse, "coarse", at_least=2), len(shape)
    check_size(shape)
    check_size((coarse**d, coarse**d))
    nodes = _grid((coarse,) * d)
    with one_blas_thread():
        prior = kernel(nodes, nodes)
        jitter = DRAW_JITTER * prior.max() * np.eye(len(nodes))
        drawn = cholesky(prior + jitter, lower=True) @ rng.standard_normal(len(nodes))
        factor = cho_factor(prior + ridge * np.eye(len(nodes)), lower=True)
        weights = cho_solve(factor, drawn).reshape((coarse,) * d)
        return _on_fine_grid(kernel, nodes, weights, shape)


def _on_fine_grid(kernel: Kernel, nodes: Any, weights: Any, shape: tuple[int, ...]) -> Any:
    """sum_i weights_i k(x, node_i) at every x of the fine grid, (shape).

    Both grids are symmetric, so where the kernel is as well, the value at a mirrored x is the value at x for
    mirrored weights: kernel values at one corner, an eighth in three dimensions, give all values.
    """
    axes = tuple(range(len(shape)))
    corner = tuple((n + 1) // 2 for n in shape) if kernel.mirrored else shape
    most = len(shape) if kernel.mirrored else 0
    flips = [flip for size in range(most + 1) for flip in itertools.combinations(axes, size)]
    columns = np.stack([np.flip(weights, flip).reshape(-1) for flip in flips], axis=1)  # (i,c)
    points = _grid(shape, corner)
    values = np.empty((len(points), len(flips)))
    rows = max(1, BLOCK_BYTES // (8 * len(nodes)))
    for first in range(0, len(points), rows):
        block = slice(first, first + rows)
        values[block] = kernel.between(points[block], nodes) @ columns
    fine = np.empty(shape)
    for column, flip in enumerate(flips):
        part = tuple(slice(0, n) for n in corner)
        np.flip(fine, flip)[part] = values[:, column].reshape(corner)
    return fine


def _grid(shape: tuple[int, ...], corner: tuple[int, ...] | None = None) -> Any:
    """The points of a regular grid on [0,1]^d, the last coordinate fastest; or those of its first corner."""
    axes = [np.linspace(0.0, 1.0, n)[:m] for n, m in zip(shape, corner or shape, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape))
