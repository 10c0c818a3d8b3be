"""k(x, y) @ weights without the matrix: blocks that stay in the cache, for very many points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rewardfree.kernels import Kernel, Linear, Matern, Scaled, SquaredExponential, Sum
from rewardfree.kernels.matern import closed_form_in_place

#: A block of k(x, y) has at most this many numbers: with its copies it fits a core's own cache.
BLOCK = 2**16


def weighted(kernel: Kernel, x: Any, y: Any, weights: Any) -> Any:
    """k(x, y) @ weights for points (m,d), (n,d) and weights (n,c): (m,c).

    Distances come from |x|^2 + |y|^2 - 2 x.y, which costs half of their digits for nearly equal points: good
    enough for means, where k is flat, and several times faster.
    """
    match kernel:
        case Sum(left=left, right=right):
            return weighted(left, x, y, weights) + weighted(right, x, y, weights)
        case Scaled(kernel=inner, variance=variance):
            return variance * weighted(inner, x, y, weights)
        case Linear(lengthscale=lengthscale, bias=bias):
            scale = np.asarray(lengthscale)
            return (x / scale) @ ((y / scale).T @ weights) + bias * weights.sum(axis=0)
        case SquaredExponential(lengthscale=lengthscale):
            return _stationary(math.inf, np.asarray(lengthscale), x, y, weights)
        case Matern(nu=nu, lengthscale=lengthscale) if nu in (1.5, 2.5, math.inf):
            return _stationary(nu, np.asarray(lengthscale), x, y, weights)
    found = np.empty((len(x), weights.shape[1]))
    for rows in _blocks(len(x), len(y)):
        found[rows] = kernel.between(x[rows], y) @ weights
    return found


def _stationary(nu: float, lengthscale: Any, x: Any, y: Any, weights: Any) -> Any:
    factor = 0.5 if nu == math.inf else 2.0 * nu  # what r^2 is multiplied with
    u, v = x / lengthscale, y / lengthscale
    centre = v.mean(axis=0)  # smaller numbers lose fewer digits
    u, v = u - centre, v - centre
    ones = np.ones((len(v), 1))
    right = factor * np.concatenate([-2.0 * v, ones, (v * v).sum(axis=1)[:, None]], axis=1).T
    left = np.concatenate([u, (u * u).sum(axis=1)[:, None], np.ones((len(u), 1))], axis=1)
    found = np.empty((len(x), weights.shape[1]))
    for rows in _blocks(len(x), len(y)):
        t = left[rows] @ right
        np.maximum(t, 0.0, out=t)
        found[rows] = closed_form_in_place(nu, t) @ weights
    return found


def _blocks(m: int, n: int) -> list[slice]:
    size = max(1, BLOCK // max(1, n))
    return [slice(start, start + size) for start in range(0, m, size)]
