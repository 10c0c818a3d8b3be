"""Mercer spectra: eigenvalues and eigenfunctions of a kernel on a box, and how fast they fall."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.linalg import eigh, eigvalsh

from rewardfree.arrays import as_array, check_finite, count, positive
from rewardfree.kernels import Kernel, Matern, Scaled, SquaredExponential, as_kernel
from rewardfree.threads import one_blas_thread

#: The largest matrix that is diagonalised: 4,000 rows take half a minute on one core.
MOST_ROWS = 4000
#: Eigenvalues below this fraction of the largest are rounding.
ROUNDING = 1e-13
#: Along more axes than this there are more parities than it pays to treat one by one.
MOST_FOLDS = 4
#: By default a rule has about so many nodes in all.
NODES = 1600


#: The ends (low, high) of each side.
Box: TypeAlias = Sequence[tuple[float, float]]


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


def gauss_legendre(dim: int, nodes: int | None = None, box: Box | None = None) -> Rule:
    """The uniform measure on a box, [0,1]^dim by default, exact up to degree 2 nodes - 1 along each axis."""
    with one_blas_thread():  # it diagonalises a matrix
        x, w = np.polynomial.legendre.leggauss(_per_axis(dim, nodes))
    sides = _sides(dim, box)
    return Rule(tuple(low + 0.5 * (x + 1.0) * (high - low) for low, high in sides), (0.5 * w,) * dim)


def even_grid(dim: int, nodes: int, box: Box | None = None) -> Rule:
    """`nodes` evenly spaced points along each side of a box, all of the same weight: a finite domain."""
    n = count(nodes, "nodes")
    return Rule(
        tuple(np.linspace(low, high, n) for low, high in _sides(dim, box)), (np.full(n, 1.0 / n),) * dim
    )


def gauss_hermite(dim: int, scale: float, nodes: int | None = None) -> Rule:
    """The normal measure N(0, scale^2 I)."""
    x, w = np.polynomial.hermite_e.hermegauss(_per_axis(dim, nodes))
    return Rule((positive(scale, "scale") * x,) * dim, (w / w.sum(),) * dim)


def _sides(dim: int, box: Box | None) -> list[tuple[float, float]]:
    """The ends of each side of a box."""
    sides = [(0.0, 1.0)] * dim if box is None else [(float(low), float(high)) for low, high in box]
    if len(sides) != dim or not all(low < high for low, high in sides):
        raise ValueError(f"box must give {dim} pairs (low, high) with low < high, got {box!r}")
    return sides


def _per_axis(dim: int, nodes: int | None) -> int:
    dim = count(dim, "dim")
    return max(2, int(NODES ** (1.0 / dim))) if nodes is None else count(nodes, "nodes")


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues in falling order, and sup |psi_m| of the first m eigenfunctions (on the nodes)."""

    eigenvalues: Any  # (m,)
    largest_value: (
        Any  # (m,) max over nodes and over the first i eigenfunctions of |psi|; NaN if not asked for
    )
    trace: float  # the integral of k(x,x): the sum of all eigenvalues, also of those that are not here

    def head(self, m: int) -> float:
        """The sum of the first m eigenvalues."""
        return float(self.eigenvalues[:m].sum())

    def tail(self, m: int) -> float:
        """The sum of all eigenvalues after the first m."""
        return max(self.trace - self.head(m), 0.0)

    def psi_max(self, m: int) -> float:
        """An estimate of the largest |psi| among the first m eigenfunctions; from below, on the nodes."""
        return float(self.largest_value[min(m, len(self.largest_value)) - 1])


def mercer_spectrum(kernel: Kernel, rule: Rule, functions: bool = True) -> Spectrum:
    """Nystrom's method: eigenpairs of sqrt(w_i) k(x_i, x_j) sqrt(w_j) are those of the integral operator.

    A kernel that does not see the sign of x - y, on nodes that are their own mirror images, has even and odd
    eigenfunctions along each axis: 2^d smaller problems instead of one. Without `functions` it is faster.
    """
    kernel = as_kernel(kernel)
    folded = kernel.mirrored and rule.symmetric and rule.dim <= MOST_FOLDS
    signs = list(itertools.product((1, -1), repeat=rule.dim)) if folded else [(1,) * rule.dim]
    rows = math.prod((len(axis) + 1) // 2 if folded else len(axis) for axis in rule.nodes)
    if rows > MOST_ROWS:
        raise ValueError(
            f"{rule.size} nodes need a matrix of {rows} rows, more than {MOST_ROWS}: use fewer nodes"
        )
    values, tops = [], []
    with one_blas_thread():
        for sign in signs:
            matrix, root = _sector(kernel, rule, sign, folded)
            if functions:
                own, vectors = eigh(matrix, overwrite_a=True, check_finite=False)
                tops.append(np.abs(vectors / root[:, None]).max(axis=0, initial=0.0))
            else:
                own = eigvalsh(matrix, overwrite_a=True, check_finite=False)
                tops.append(np.full(len(own), np.nan))
            values.append(own)
    eigenvalues, largest = np.concatenate(values), np.concatenate(tops)
    order = np.argsort(-eigenvalues, kind="stable")
    eigenvalues, largest = eigenvalues[order], largest[order]
    kept = eigenvalues > ROUNDING * eigenvalues[0]
    points = _product(rule.nodes)
    trace = float(kernel.diag(points) @ _weights(rule.weights))
    return Spectrum(eigenvalues[kept], np.maximum.accumulate(largest[kept]), trace)


def _sector(kernel: Kernel, rule: Rule, sign: tuple[int, ...], folded: bool) -> tuple[Any, Any]:
    """The symmetric matrix for functions with these parities, on one corner, and the roots of its weights."""
    axes, images, weights = [], [], []
    for x, w, s in zip(rule.nodes, rule.weights, sign, strict=True):
        n = len(x)
        # The middle node is its own image: it counts once, and an odd function is zero there.
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


def trusted_spectrum(kernel: Kernel, dim: int, box: Box | None = None) -> Spectrum:
    """The eigenvalues on a box that two rules agree on, and |psi| of these eigenfunctions alone.

    What a rule cannot resolve has its largest values at the outermost nodes, and larger ones the more nodes
    there are.
    """
    nodes = _per_axis(dim, None)
    fine = mercer_spectrum(kernel, gauss_legendre(dim, nodes, box))
    coarse = mercer_spectrum(kernel, gauss_legendre(dim, max(2, nodes * 3 // 4), box), functions=False)
    m = max(1, agreement(fine, coarse))
    return Spectrum(fine.eigenvalues[:m], fine.largest_value[:m], fine.trace)


def agreement(fine: Spectrum, coarse: Spectrum, tolerance: float = 0.02) -> int:
    """How many leading eigenvalues two rules agree on, relative to the finer one: those to be trusted."""
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


def gaussian_spectrum(lengthscale: float, scale: float, dim: int, size: int) -> Any:
    """The largest `size` eigenvalues of the squared exponential under N(0, scale^2 I), in closed form.

    One axis: lambda_n = sqrt(2a/A) (b/A)^n, a = 1/(4 scale^2), b = 1/(2 l^2), c = sqrt(a^2 + 2ab), A = a+b+c.
    """
    dim, size = count(dim, "dim"), count(size, "size")
    a, b = 0.25 / positive(scale, "scale") ** 2, 0.5 / positive(lengthscale, "lengthscale") ** 2
    A = a + b + math.sqrt(a * a + 2.0 * a * b)
    # In d dimensions the product is (2a/A)^(d/2) (b/A)^(n1 + ... + nd): as often as there are such sums.
    values: list[float] = []
    total = 0
    while len(values) < size:
        value = (2.0 * a / A) ** (0.5 * dim) * (b / A) ** total
        values += [value] * min(math.comb(total + dim - 1, dim - 1), size - len(values))
        total += 1
    return np.array(values)


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

    kind: Literal["polynomial", "exponential"]
    rate: float
    constant: float  # c
    r_squared: float  # of log lambda
    first: int  # the eigenvalues that were fitted, counted from 1
    last: int


def fit_decay(eigenvalues: Any, dim: int, kind: str | None = None) -> Decay:
    """The better of the two laws by least squares on log lambda_m, or the one of that kind.

    The first tenth is left out, where no law holds yet, and what is within a thousand times of rounding.
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
    fits = [_line(name, x, logs, first, usable) for name, x in laws.items() if kind in (None, name)]
    return max(fits, key=lambda fit: fit.r_squared)


def _line(kind: Any, x: Any, y: Any, first: int, last: int) -> Decay:
    slope, constant, share = fitted_line(x, y)
    return Decay(kind, -slope, constant, share, first, last)


def fitted_line(x: Any, y: Any) -> tuple[float, float, float]:
    """Slope, constant and R^2 of the least squares line through (x, y)."""
    slope, constant = np.polyfit(x, y, 1)
    spread, left = float(((y - y.mean()) ** 2).sum()), float(((y - slope * x - constant) ** 2).sum())
    return float(slope), float(constant), 1.0 - left / spread if spread > 0.0 else 1.0
