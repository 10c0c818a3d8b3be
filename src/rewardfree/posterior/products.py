"""k(x, y), and k(x, y) @ weights without the matrix k(x, y), in blocks that stay in the cache."""

import math

import numpy as np
from array_api_compat import device

from rewardfree.arrays import Array, Floats, namespace
from rewardfree.kernels import Kernel, Linear, Matern, Scaled, SquaredExponential, Sum
from rewardfree.kernels.stationary import closed_form_in_place

#: The most numbers in a block of k(x, y): with its copies it fits into the cache of a core.
BLOCK = 2**16


def kernel_rows(kernel: Kernel, x: Floats, y: Floats) -> Floats:
    """k(x, y), (m,n), in pieces that stay in the cache: a kernel passes over its values many times."""
    if len(x) * len(y) <= BLOCK:
        return np.asarray(kernel.between(x, y))
    rows = np.empty((len(x), len(y)), np.result_type(x, y))
    for piece in _blocks(len(x), len(y)):
        rows[piece] = kernel.between(x[piece], y)
    return rows


def weighted(kernel: Kernel, x: Array, y: Array, weights: Array, block: int = BLOCK) -> Array:
    """k(x, y) @ weights for points (m,d), (n,d) and weights (n,c): (m,c), in the dtype of the weights.

    In NumPy distances come from |x|^2 + |y|^2 - 2 x.y: several times faster, but nearly equal points lose
    half of their digits. Means allow this, because k is flat there. A linear part may be large, and much of
    it cancels: weights are summed up first.
    """
    fast = isinstance(x, np.ndarray)
    match kernel:
        case Sum(left=left, right=right):
            return weighted(left, x, y, weights, block) + weighted(right, x, y, weights, block)
        case Scaled(kernel=inner, variance=variance):
            return variance * weighted(inner, x, y, weights, block)
        case Linear(lengthscale=lengthscale, bias=bias):
            xp, where = namespace(weights), {"dtype": weights.dtype, "device": device(weights)}
            scale = xp.asarray(lengthscale, **where)
            u, v = (xp.asarray(points, **where) / scale for points in (x, y))
            return u @ (v.T @ weights) + bias * xp.sum(weights, axis=0)
        case SquaredExponential(lengthscale=lengthscale) if fast:
            return _stationary(math.inf, np.asarray(lengthscale), x, y, weights)
        case Matern(nu=nu, lengthscale=lengthscale) if fast and nu in (1.5, 2.5, math.inf):
            return _stationary(nu, np.asarray(lengthscale), x, y, weights)
    xp = namespace(weights)
    products = xp.zeros((len(x), weights.shape[1]), dtype=weights.dtype, device=device(weights))
    for rows in _blocks(len(x), len(y), block):
        products[rows] = xp.astype(kernel.between(x[rows], y), weights.dtype) @ weights
    return products


def _stationary(nu: float, lengthscale: Floats, x: Floats, y: Floats, weights: Floats) -> Floats:
    factor = 0.5 if nu == math.inf else 2.0 * nu  # of r^2, for closed_form_in_place
    u, v = x / lengthscale, y / lengthscale
    centre = v.mean(axis=0)  # smaller coordinates lose fewer digits
    u, v = u - centre, v - centre
    ones = np.ones((len(v), 1))
    right = factor * np.concatenate([-2.0 * v, ones, (v * v).sum(axis=1)[:, None]], axis=1).T
    left = np.concatenate([u, (u * u).sum(axis=1)[:, None], np.ones((len(u), 1))], axis=1)
    products = np.empty((len(x), weights.shape[1]))
    for rows in _blocks(len(x), len(y)):
        t = left[rows] @ right
        np.maximum(t, 0.0, out=t)
        products[rows] = closed_form_in_place(nu, t) @ weights
    return products


def _blocks(m: int, n: int, block: int = BLOCK) -> list[slice]:
    size = max(1, block // max(1, n))
    return [slice(start, start + size) for start in range(0, m, size)]
