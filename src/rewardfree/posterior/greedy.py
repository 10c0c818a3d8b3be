"""The rule of Alg 2 on a finite set: one after another, the candidate where sigma is largest."""

import math
from collections.abc import Callable

import numpy as np

from rewardfree.arrays import Array, Floats, Integers, namespace
from rewardfree.ties import argmax_tied


def largest_sigma_first(
    variance: Array,
    covariance: Callable[[int], Array],
    rows: Array,
    queries: int,
    ridge: float,
    clipped: Callable[[Array, int], Array],
) -> tuple[Integers, Floats]:
    """The next q candidates of m, each where sigma is then largest: indices and sigma, (q,).

    This is a pivoted Cholesky factorisation of the posterior covariance. `variance` (m,) is its diagonal, and
    its row i is covariance(i) (m,) less the products of the columns of `rows` (n+q,m), of which n are given
    and q are written here. `clipped` checks a variance, given the number of rows that made it.
    """
    first, sqrt = len(rows) - queries, namespace(variance).sqrt
    chosen, sigma = np.empty(queries, np.int64), np.empty(queries)
    for i in range(queries):
        n = first + i
        variance = clipped(variance, n + 1)
        best = int(argmax_tied(sqrt(variance)))
        chosen[i], sigma[i] = best, math.sqrt(variance[best])
        row = (covariance(best) - rows[:n, best] @ rows[:n]) / math.sqrt(variance[best] + ridge)
        rows[n], variance = row, variance - row * row
    return chosen, sigma
