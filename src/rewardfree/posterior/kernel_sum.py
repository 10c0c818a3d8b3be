"""A fitted mean as a function of its own: a kernel, the points of its basis and their weights."""

from typing import Any

import numpy as np

from rewardfree.arrays import Floats, Placement, to_numpy
from rewardfree.kernels import Kernel
from rewardfree.posterior.engine.linear_algebra import check_kernel, linear_algebra
from rewardfree.threads import one_blas_thread


class KernelSum:
    """q -> sum_i k(q, z_i) w_i for a basis z (p,f) and weights w (p,c), on one device; NumPy in and out."""

    def __init__(self, kernel: Kernel, basis: Floats, weights: Floats, placement: Placement) -> None:
        check_kernel(kernel, placement)
        self._algebra = linear_algebra(placement)
        self._kernel = kernel
        self._basis: Any = self._algebra.array(basis)  # as it was, for weights are large and cancel
        self._weights: Any = self._algebra.array(weights)

    def __call__(self, at: Floats) -> Floats:
        """At points (q,f), (q,c)."""
        with one_blas_thread():
            points = self._algebra.array(at)
            values = self._algebra.weighted(self._kernel, points, self._basis, self._weights)
        return np.asarray(to_numpy(values))
