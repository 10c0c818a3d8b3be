"""The linear algebra of posteriors through inducing points in torch. Imported only when it is used."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import array_api_compat.torch
import numpy as np
import torch

from rewardfree.arrays import Array, to_numpy
from rewardfree.kernels import Kernel
from rewardfree.posterior.engine.backend_torch import TorchBackend
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra
from rewardfree.posterior.products import weighted


class TorchAlgebra(LinearAlgebra):
    """torch on one device; symmetric matrices are kept whole."""

    xp: Any = array_api_compat.torch
    block = 2**25  # a quarter of a GiB

    def __init__(self, device: Any, dtype: Any = None) -> None:
        self._points = TorchBackend.of(device, torch.float64 if dtype is None else dtype)
        self._matrices = TorchBackend(device, torch.float64)
        self._device = self._matrices.device

    def points(self, values: Array, name: str) -> Array:
        return self._points.array(values)

    def array(self, values: Any) -> Array:
        return self._matrices.array(values)

    def own(self, values: Array) -> Array:
        return values.clone()

    def index(self, rows: Any) -> Any:
        return rows if isinstance(rows, slice) else self._matrices.index(rows)

    def zeros(self, *shape: int) -> Array:
        return self._matrices.zeros(shape)  # which says what to do where there is no room

    def identity(self, size: int, times: float = 1.0) -> Array:
        return times * torch.eye(size, dtype=torch.float64, device=self._device)

    def answer(self, values: Array, asked: Any) -> Array:
        return values if isinstance(asked, torch.Tensor) else to_numpy(values)

    def cholesky(self, matrix: Array) -> Array:
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return factor

    def with_squares(self, matrix: Array, rows: Array) -> Array:
        return matrix.addmm_(rows.T, rows)

    def whitened(self, factor: Array, rows: Array) -> Array:
        return torch.linalg.solve_triangular(factor, rows.T, upper=False).T

    def solved(self, factor: Array, columns: Array, transposed: bool = False) -> Array:
        factor = factor.T if transposed else factor
        return torch.linalg.solve_triangular(factor, columns, upper=transposed)

    def squares(self, rows: Array) -> Array:
        return torch.linalg.vecdot(rows, rows)

    def kernel_rows(self, kernel: Kernel, x: Array, y: Array) -> Array:
        return kernel.between(x, y)

    def each_row(self, kernel: Kernel, points: Array) -> Callable[[int], Array]:
        # One row is dozens of launches and next to no work.
        matrix, size = self.zeros(len(points), len(points)), max(1, self.block // len(points))
        for start in range(0, len(points), size):
            rows = slice(start, start + size)
            matrix[rows] = kernel.between(points[rows], points)
        return lambda i: matrix[i]

    def weighted(self, kernel: Kernel, x: Array, y: Array, weights: Array) -> Array:
        return weighted(kernel, self.array(x), self.array(y), weights, self.block)

    def sparse(self, matrix: Any) -> Any:
        places = [self._matrices.index(part) for part in (matrix.indptr, matrix.indices)]
        values = self.array(matrix.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch calls its sparse matrices a beta
            return torch.sparse_csr_tensor(*places, values, matrix.shape, check_invariants=False)
