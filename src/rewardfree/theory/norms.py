"""Norms of functions in a kernel's space, measured on finite sets: lower bounds, sharper with less jitter."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from rewardfree.arrays import as_array, as_points, check_finite
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.theory.spectrum import MOST_ROWS
from rewardfree.threads import one_blas_thread

#: Numbers on the diagonal of the kernel matrix, relative to its largest entry.
JITTERS = tuple(10.0**-e for e in range(2, 13, 2))


@dataclass(frozen=True, eq=False)
class NormCurve:
    """||f||^2 >= f^T (K + jitter I)^-1 f for c functions: the smaller the jitter, the sharper."""

    jitters: Any  # (j,)
    norms: Any  # (j,c)

    @property
    def grows(self) -> Any:
        """(c,) the last norm over the one before it; well above 1, these points show no finite norm."""
        last = self.norms[-2] if len(self.norms) > 1 else self.norms[-1]
        return np.divide(self.norms[-1], last, out=np.ones_like(last), where=last > 0)


def norm_curve(kernel: Kernel, points: Any, values: Any, jitters: Any = JITTERS) -> NormCurve:
    """Norms of functions with values (m,c) at points (m,d).

    Interpolation of many close points is ill-conditioned: below a jitter of about 1e-12 rounding decides.
    If a norm still grows from jitter to jitter, these points show no finite limit.
    """
    points, values, jitters = _checked(points, values, "values", jitters)
    with one_blas_thread():
        weights, vectors = _inverses(kernel, points, jitters)
        norms = np.sqrt(weights @ (vectors.T @ values) ** 2)
    return NormCurve(jitters, norms)


@dataclass(frozen=True, eq=False)
class LawNorms:
    """Norms that B1 must bound for V in [0,1]^S, at each jitter (j,)."""

    jitters: Any
    largest: Any  # max over s' of ||P(s'|.)||: Assumption 1 asks for at most 1
    total: Any  # sum over s' of ||P(s'|.)|| >= ||[PV]||
    root: Any  # sqrt(sum |G|) >= ||[PV]||, G = P^T (K + jitter I)^-1 P
    one: Any  # ||1|| = ||[P1]||, which every bound must reach

    @property
    def bound(self) -> Any:
        """The smaller upper bound on ||[PV]|| over V in [0,1]^S, at each jitter."""
        return np.minimum(self.total, self.root)


def law_norms(kernel: Kernel, points: Any, law: Any, jitters: Any = JITTERS) -> LawNorms:
    """Norms of a transition law (m,s') given at m points: sup over V of ||[PV]||^2 = V^T G V."""
    points, law, jitters = _checked(points, law, "law", jitters)
    with one_blas_thread():
        weights, vectors = _inverses(kernel, points, jitters)
        rotated = vectors.T @ law
        norms = np.sqrt(weights @ rotated**2)  # (j,s')
        roots = [np.sqrt(np.abs(rotated.T @ (row[:, None] * rotated)).sum()) for row in weights]
        one = np.sqrt(weights @ vectors.sum(axis=0) ** 2)
    return LawNorms(jitters, norms.max(axis=1), norms.sum(axis=1), np.array(roots), one)


def _checked(points: Any, values: Any, name: str, jitters: Any) -> tuple[Any, Any, Any]:
    """Points (m,d), values (m,c) and jitters in falling order, once their shapes agree."""
    points, values = as_points(points, "points"), as_array(values, name)
    values = values[:, None] if values.ndim == 1 else values
    check_finite(values, name)
    if values.ndim != 2 or len(values) != len(points):
        raise ValueError(f"{name} must have one row for each of {len(points)} points, got {values.shape}")
    if len(points) > MOST_ROWS:
        raise ValueError(f"norms need at most {MOST_ROWS} points, got {len(points)}: take a subset")
    jitters = np.sort(as_array(jitters, "jitters"))[::-1]
    check_finite(jitters, "jitters")
    if not len(jitters) or not jitters[-1] > 0.0:
        raise ValueError(f"jitters must be positive numbers, got {jitters}")
    return points, values, jitters


def _inverses(kernel: Kernel, points: Any, jitters: Any) -> tuple[Any, Any]:
    """(K + jitter I)^-1 as eigenvalues (j,m) for every jitter, and their common eigenvectors (m,m)."""
    matrix = as_kernel(kernel)(points)
    eigenvalues, vectors = eigh(matrix)
    return 1.0 / (np.maximum(eigenvalues, 0.0) + matrix.diagonal().max() * jitters[:, None]), vectors
