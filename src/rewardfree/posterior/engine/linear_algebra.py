"""Matrices on one device, for posteriors through inducing points and for plans: in NumPy, and the choice.

Points may be float32. Kernel values, features and all that is solved are float64: weights of inducing points
are 1e5 to 1e8 times what they add up to. Torch is in linear_algebra_torch.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat.numpy
import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk, dtrsm, dtrsv

from rewardfree.arrays import Array, Placement, cast, float_dtype
from rewardfree.kernels import Kernel
from rewardfree.posterior.engine.backend import on_cpu, with_torch
from rewardfree.posterior.products import kernel_rows, weighted


class LinearAlgebra:
    """Operations on one device. Factors and symmetric matrices must come from the same object.

    Here NumPy on the CPU, matrices in the column order of LAPACK: what can be done in place is. Torch
    overrides all of it, see linear_algebra_torch.py.
    """

    xp: Any = array_api_compat.numpy
    block = 2**20  # points are passed over in blocks of at most this many features

    def __init__(self, dtype: Any = None) -> None:
        self._dtype = float_dtype(np.float64 if dtype is None else dtype)

    def points(self, values: Array, name: str) -> Array:
        """Points in the dtype that was asked for."""
        if not isinstance(values, np.ndarray):
            raise ValueError(f'{name} must be a NumPy array on device="cpu", got {type(values)}')
        return cast(values, self._dtype)

    def array(self, values: Any) -> Array:
        """`values` as float64."""
        return cast(values, np.float64)

    def own(self, values: Array) -> Array:
        """A copy."""
        return values.copy(order="K")

    def index(self, rows: Any) -> Any:
        """Row numbers, or a slice."""
        return rows

    def zeros(self, *shape: int) -> Array:
        """float64."""
        return np.zeros(shape)

    def identity(self, size: int, times: float = 1.0) -> Array:
        """That many times the identity, (m,m)."""
        return np.asfortranarray(np.diag(np.full(size, times)))

    def answer(self, values: Array, asked: Any) -> Array:
        """Values as an array of the kind that was asked with: NumPy's, unless that was a tensor."""
        return values

    def cholesky(self, matrix: Array) -> Array:
        """The lower factor of a symmetric matrix (m,m); `np.linalg.LinAlgError` if there is none."""
        return np.asfortranarray(scipy.linalg.cholesky(matrix, lower=True, check_finite=False))

    def with_squares(self, matrix: Array, rows: Array) -> Array:
        """matrix + sum of x x^T for rows x (b,m). `matrix` is overwritten; its lower triangle counts."""
        return dsyrk(1.0, rows.T, beta=1.0, c=matrix, lower=1, overwrite_c=1)

    def whitened(self, factor: Array, rows: Array) -> Array:
        """D^-1 x for each row x of (b,m). `rows` may be overwritten."""
        if len(rows) == 1:  # which reads the factor once
            return dtrsv(factor, rows[0], lower=1)[None, :]
        # rows.T is in the column order of LAPACK, so it is solved in place.
        return dtrsm(1.0, factor, np.ascontiguousarray(rows).T, lower=1, overwrite_b=1).T

    def solved(self, factor: Array, columns: Array, transposed: bool = False) -> Array:
        """D^-1 x, or D^-T x, for columns x (m,c)."""
        return dtrsm(1.0, factor, columns, lower=1, trans_a=int(transposed))

    def squares(self, rows: Array) -> Array:
        """|x|^2 of each row x of (b,m): (b,)."""
        return np.einsum("bm,bm->b", rows, rows)

    def kernel_rows(self, kernel: Kernel, x: Array, y: Array) -> Array:
        """k(x, y), (m,n)."""
        return kernel_rows(kernel, x, y)

    def each_row(self, kernel: Kernel, points: Array) -> Callable[[int], Array]:
        """i -> k(z_i, Z) for points Z, (n,): computed when it is asked for, or all of them beforehand."""
        return lambda i: kernel.between(points[i : i + 1], points)[0]

    def weighted(self, kernel: Kernel, x: Array, y: Array, weights: Array) -> Array:
        """k(x, y) @ weights, (m,c), without the matrix k(x, y)."""
        return weighted(kernel, self.array(x), self.array(y), weights)

    def sparse(self, matrix: Any) -> Any:
        """A SciPy matrix of rows, for products with vectors."""
        return matrix


def linear_algebra(placement: Placement) -> LinearAlgebra:
    """NumPy on the CPU, torch elsewhere. `dtype` is that of points, by default float64."""
    if on_cpu(placement.device):
        return LinearAlgebra(placement.dtype)
    with_torch(placement.device)
    from rewardfree.posterior.engine.linear_algebra_torch import TorchAlgebra

    return TorchAlgebra(placement.device, placement.dtype)


def check_kernel(kernel: Kernel, placement: Placement) -> None:
    """Refuse a kernel whose values would all have to travel to the device."""
    if kernel.cpu_only and not on_cpu(placement.device):
        raise ValueError(
            f'{kernel!r} is computed by NumPy alone: use device="cpu", or a kernel such as rf.Matern(2.5)'
        )
