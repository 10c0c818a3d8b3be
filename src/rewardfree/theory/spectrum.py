"""Mercer spectra on [0,1]^d: eigenvalues and eigenfunctions of a kernel, and how fast they fall."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh, eigvalsh

from rewardfree.arrays import as_array, check_finite, count, positive
from rewardfree.kernels import Kernel, Matern, Scaled, SquaredExponential, as_kernel
from rewardfree.threads import one_blas_thread

#: The largest matrix that is diagonalised: 4,000 rows take half a minute on one core.
MOST_ROWS = 4000
#: Eigenvalues below this fraction of the largest are rounding.
ROUNDING = 1e-13
#: Even and odd functions are treated separately along at most this many axes.
MOST_FOLDS = 4
#: By default a rule has about this many nodes over all axes.
NODES = 1600


@dataclass(frozen=True, eq=False)
class Rule:
    """A product rule for a probability measure: nodes and weights along each axis."""

    nodes: tuple[Any, ...]  # d arrays (n,)
    weights: tuple[Any, ...]

    @property
    def dim(self) -> int:
        return len(self.nodes)

    @property
    def size(self) -> int:
        return math.prod(len(axis) for axis in self.nodes)

    @property
    def symmetric(self) -> bool:
        """Whether every axis is its own mirror image about its middle."""
        return all(
            np.allclose(x + x[::-1], x[0] + x[-1], rtol=0, atol=1e-12 * (abs(x[0]) + abs(x[-1]) + 1e-300))
            and np.allclose(w, w[::-1], rtol=1e-9, atol=0)
            for x, w in zip(self.nodes, self.weights, strict=True)
        )


def gauss_legendre(dim: int, nodes: int | None = None) -> Rule:
    """The uniform measure on [0,1]^dim, exact up to degree 2 nodes - 1 along each axis."""
    with one_blas_thread():  # it diagonalises a matrix
        x, w = np.polynomial.legendre.leggauss(_per_axis(dim, nodes))
    return Rule((0.5 * (x + 1.0),) * dim, (0.5 * w,) * dim)


def _per_axis(dim: int, nodes: int | None) -> int:
    dim = count(dim, "dim")
    return max(2, int(NODES ** (1.0 / dim))) if nodes is None else count(nodes, "nodes")


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues in falling order, and sup |psi_m| of the first m eigenfunctions (on the nodes)."""

    eigenvalues: Any  # (m,)
    largest_value: Any  # (m,) max of |psi| over nodes and the first i eigenfunctions; NaN without functions
    trace: float  # the integral of k(x,x): the sum of all eigenvalues, including those left out here

    def head(self, m: int) -> float:
        """The sum of the first m eigenvalues."""
        return float(self.eigenvalues[:m].sum())

    def tail(self, m: int) -> float:
        """The sum of all eigenvalues after the first m."""
        return max(self.trace - self.head(m), 0.0)

    def psi_max(self, m: int) -> float:
        """The largest |psi| of the first m eigenfunctions on the nodes: an estimate from below."""
        return float(self.largest_value[min(m, len(self.largest_value)) - 1])


def mercer_spectrum(kernel: Kernel, rule: Rule, functions: bool = True) -> Spectrum:
    """Nystrom's method: eigenpairs of sqrt(w_i) k(x_i, x_j) sqrt(w_j) are those of the integral operator.

    If the kernel ignores the sign of x - y and the nodes are symmetric, every eigenfunction is even or odd
    along each axis: 2^d smaller problems replace the large one. Without `functions` it is faster.
    """
    kernel = as_kernel(kernel)
    folded = kernel.mirrored and rule.symmetric and rule.dim <= MOST_FOLDS
    signs = list(itertools.product((1, -1), repeat=rule.dim)) if folded else [(1,) * rule.dim]
    rows = math.prod((len(axis) + 1) // 2 if folded else len(axis) for axis in rule.nodes)
    if rows > MOST_ROWS:
        raise ValueError(
            f"{rule.size} nodes need a matrix of {rows} rows, more than {MOST_ROWS}: use fewer nodes"
        )
    values, maxima = [], []
    with one_blas_thread():
        for sign in signs:
            matrix, root = _sector(kernel, rule, sign, folded)
            if functions:
                of_sector, vectors = eigh(matrix, overwrite_a=True, check_finite=False)
                maxima.append(np.abs(vectors / root[:, None]).max(axis=0, initial=0.0))
            else:
                of_sector = eigvalsh(matrix, overwrite_a=True, check_finite=False)
                maxima.append(np.full(len(of_sector), np.nan))
            values.append(of_sector)
    eigenvalues, largest = np.concatenate(values), np.concatenate(maxima)
    order = np.argsort(-eigenvalues, kind="stable")
    eigenvalues, largest = eigenvalues[order], largest[order]
    kept = eigenvalues > ROUNDING * eigenvalues[0]
    trace = float(kernel.diag(_product(rule.nodes)) @ _weights(rule.weights))
    return Spectrum(eigenvalues[kept], np.maximum.accumulate(largest[kept]), trace)


def _sector(kernel: Kernel, rule: Rule, sign: tuple[int, ...], folded: bool) -> tuple[Any, Any]:
    """The matrix for functions of these parities on one corner of the box, and the roots of the weights."""
    axes, images, weights = [], [], []
    for x, w, s in zip(rule.nodes, rule.weights, sign, strict=True):
        n = len(x)
        # The middle node is its own mirror image: it counts once, and an odd function is zero there.
        half = n if not folded else (n + 1) // 2 if s == 1 else n // 2
        axes.append(x[:half])
        images.append(x[::-1][:half])
        twice = np.where(np.arange(half) == n - 1 - np.arange(half), 1.0, 2.0)
        weights.append(w[:half] * twice if folded else w)
    points, root = _product(axes), np.sqrt(_weights(weights))
    matrix = np.zeros((len(points), len(points)))
    flips = list(itertools.product((False, True), repeat=rule.dim)) if folded else [(False,) * rule.dim]
    for flip in flips:
        turned = [image if f else axis for axis, image, f in zip(axes, images, flip, strict=True)]
        parity = math.prod(s for s, f in zip(sign, flip, strict=True) if f)
        matrix += parity / len(flips) * kernel.between(points, _product(turned))
    return root[:, None] * matrix * root[None, :], root


def trusted_spectrum(kernel: Kernel, dim: int) -> Spectrum:
    """The eigenvalues on [0,1]^dim that two rules agree on, and |psi| of these eigenfunctions alone.

    An eigenfunction that a rule cannot resolve is largest at the outermost nodes, and larger with more nodes.
    """
    nodes = _per_axis(dim, None)
    fine = mercer_spectrum(kernel, gauss_legendre(dim, nodes))
    coarse = mercer_spectrum(kernel, gauss_legendre(dim, max(2, nodes * 3 // 4)), functions=False)
    m = max(1, agreement(fine, coarse))
    return Spectrum(fine.eigenvalues[:m], fine.largest_value[:m], fine.trace)


def agreement(fine: Spectrum, coarse: Spectrum, tolerance: float = 0.02) -> int:
    """The number of leading eigenvalues that two rules agree on, relative to the finer rule."""
    m = min(len(fine.eigenvalues), len(coarse.eigenvalues))
    apart = np.abs(coarse.eigenvalues[:m] / fine.eigenvalues[:m] - 1.0) > positive(tolerance, "tolerance")
    return int(np.argmax(apart)) if apart.any() else m


def _product(axes: Any) -> Any:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _weights(axes: Any) -> Any:
    total = np.ones(1)
    for axis in axes:
        total = (total[:, None] * axis[None, :]).reshape(-1)
    return total


def known_exponent(kernel: Kernel, dim: int) -> float | None:
    """p of lambda_m ~ m^-p where it is known: 1 + 2 nu/d for Matern, infinite for the squared exponential."""
    if isinstance(kernel, Scaled):
        return known_exponent(kernel.kernel, dim)
    if isinstance(kernel, Matern):
        return 1.0 + 2.0 * kernel.nu / count(dim, "dim")
    return math.inf if isinstance(kernel, SquaredExponential) else None


@dataclass(frozen=True)
class Decay:
    """A law fitted to eigenvalues: polynomial, lambda = e^c m^-rate, or exponential, e^(c - rate m^(1/d))."""

    kind: str  # polynomial or exponential
    rate: float
    constant: float  # c
    r_squared: float  # of log lambda
    first: int  # the fitted eigenvalues are first to last, counted from 1
    last: int


def fit_decay(eigenvalues: Any, dim: int, kind: str | None = None) -> Decay:
    """The better of the two laws by least squares on log lambda_m, or the law of that kind.

    The first tenth is left out, where no law holds yet, and values within a thousand times of rounding.
    """
    values = as_array(eigenvalues, "eigenvalues")
    check_finite(values, "eigenvalues")
    dim = count(dim, "dim")
    usable = int(np.count_nonzero(values > 1e3 * ROUNDING * values[:1]))
    first = max(1, usable // 10)
    if values.ndim != 1 or usable - first < 3:
        raise ValueError(f"a law needs four eigenvalues and more above rounding, got {usable}")
    m = np.arange(first, usable + 1)
    logs = np.log(values[first - 1 : usable])
    laws = {"polynomial": np.log(m), "exponential": m ** (1.0 / dim)}
    if kind is not None and kind not in laws:
        raise ValueError(f"kind must be one of {', '.join(laws)}, got {kind!r}")
    lines = {name: fitted_line(x, logs) for name, x in laws.items() if kind in (None, name)}
    best = max(lines, key=lambda name: lines[name][2])
    slope, constant, r_squared = lines[best]
    return Decay(best, -slope, constant, r_squared, first, usable)


def fitted_line(x: Any, y: Any) -> tuple[float, float, float]:
    """Slope, constant and R^2 of the least squares line through (x, y)."""
    slope, constant = np.polyfit(x, y, 1)
    spread, rest = float(((y - y.mean()) ** 2).sum()), float(((y - slope * x - constant) ** 2).sum())
    return float(slope), float(constant), 1.0 - rest / spread if spread > 0.0 else 1.0
