"""Spectra by a second road: other rules, the one large matrix, closed forms. src never imports this."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import brentq

from rewardfree.theory.spectrum import Rule, Spectrum


def even_grid(dim, nodes):
    """`nodes` evenly spaced points along each side of [0,1]^dim, all of the same weight: a finite domain."""
    return Rule((np.linspace(0.0, 1.0, nodes),) * dim, (np.full(nodes, 1.0 / nodes),) * dim)


def gauss_hermite(dim, scale, nodes):
    """The normal measure N(0, scale^2 I)."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return Rule((scale * x,) * dim, (w / w.sum(),) * dim)


def gaussian_spectrum(lengthscale, scale, dim, size):
    """The largest `size` eigenvalues of the squared exponential under N(0, scale^2 I), in closed form.

    One axis: lambda_n = sqrt(2a/A) (b/A)^n, a = 1/(4 scale^2), b = 1/(2 l^2), c = sqrt(a^2 + 2ab), A = a+b+c.
    """
    a, b = 0.25 / scale**2, 0.5 / lengthscale**2
    A = a + b + math.sqrt(a * a + 2.0 * a * b)
    # In d dimensions the product is (2a/A)^(d/2) (b/A)^(n1 + ... + nd), once for each way to write the sum.
    values, total = [], 0
    while len(values) < size:
        value = (2.0 * a / A) ** (0.5 * dim) * (b / A) ** total
        values += [value] * min(math.comb(total + dim - 1, dim - 1), size - len(values))
        total += 1
    return np.array(values)


def dense(kernel, rule):
    """Eigenvalues in falling order, and max |psi| of each eigenfunction, of the one large matrix."""
    points = np.array(list(itertools.product(*rule.nodes)))
    weights = np.array([math.prod(axes) for axes in itertools.product(*rule.weights)])
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * kernel(points, points) * root)
    return values[::-1], np.abs(vectors / root[:, None]).max(axis=0)[::-1]


def exponential_eigenpairs(lengthscale, size):
    """exp(-c|x-y|) on [0,1] has psi'' = -w^2 psi, lambda = 2c/(w^2 + c^2), and around the middle either
    cosines with w tan(w/2) = c or sines with w cot(w/2) = -c, one root in every (i pi, (i+1) pi). The mean
    of cos^2 or sin^2 is (1 +- sin(w)/w)/2, and both reach 1."""
    c, roots = 1.0 / lengthscale, []
    for i in range(size):

        def boundary(w, even=i % 2 == 0):
            s, k = math.sin(0.5 * w), math.cos(0.5 * w)
            return c * k - w * s if even else w * k + c * s

        roots.append(brentq(boundary, i * math.pi + 1e-12, (i + 1) * math.pi, xtol=1e-13))
    w, sign = np.array(roots), (-1.0) ** np.arange(size)
    return 2.0 * c / (w * w + c * c), np.sqrt(2.0 / (1.0 + sign * np.sin(w) / w))


def spectrum_of(values, missing=0.0, psi=1.5):
    """A spectrum of these eigenvalues, `missing` less than its trace, with |psi| <= psi."""
    values = np.sort(np.asarray(values, float))[::-1]
    return Spectrum(values, np.full(len(values), psi), float(values.sum()) + missing)
