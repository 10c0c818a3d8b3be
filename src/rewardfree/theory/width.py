"""Widths b with |f - f^| <= b sigma: Theorem 1 as printed and as proved, and widths for other data.

B1 bounds ||[PV]|| in the kernel's space, B2 bounds ||V|| in that of a second kernel on the states, and V lies
in [0, R]. zeta(z) = (K_n + ridge I)^-1 k_n(z) are the weights of the samples in f^(z), and
sigma^2 = sup_{||f|| <= 1} (f(z) - zeta.f_n)^2 + ridge |zeta|^2 has two parts: the first bounds the bias,
with B1, the second the noise.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import count, non_negative, positive, probability
from rewardfree.kernels import Kernel, Matern, Scaled, SquaredExponential
from rewardfree.theory.spectrum import Spectrum


@dataclass(frozen=True)
class Width:
    """A width, and the number M of eigenfunctions that makes it smallest, if the formula has one."""

    b: float
    eigenfunctions: int | None = None


def theorem_1_printed(spectrum: Spectrum, B1: float, B2: float, ridge: float, n: int, delta: float) -> Width:
    """B1 + C (B2 psi/tau) sqrt(2 log(M/delta)) + (2 B2 psi/tau) sqrt(n tail), C = sum of the first M."""
    head, tail, psi, M = _split(spectrum)
    scale = _scale(B2, ridge) * psi
    n, delta = count(n, "n", at_least=0), probability(delta, "delta")
    noise = head * np.sqrt(2.0 * np.log(M / delta)) + 2.0 * np.sqrt(n * tail)
    return _best(non_negative(B1, "B1") + scale * noise)


def theorem_1_corrected(
    spectrum: Spectrum, B1: float, B2: float, ridge: float, n: int, delta: float
) -> Width:
    """B1 + (B2 psi/tau) sqrt(head) sqrt(2 log(2M/delta)) + (2 B2 psi/tau) sqrt(n tail).

    The Cauchy-Schwarz step of the proof gives the root of the sum; both signs of M deviations need 2M.
    """
    head, tail, psi, M = _split(spectrum)
    scale = _scale(B2, ridge) * psi
    n, delta = count(n, "n", at_least=0), probability(delta, "delta")
    noise = np.sqrt(head * 2.0 * np.log(2.0 * M / delta)) + 2.0 * np.sqrt(n * tail)
    return _best(non_negative(B1, "B1") + scale * noise)


def theorem_1_tight(spectrum: Spectrum, B1: float, B2: float, ridge: float, n: int, delta: float) -> Width:
    """b^2 = B1^2 + (B2 psi)^2/ridge (2 log(2M/delta) head + 4 n tail): bias and noise share one sigma."""
    head, tail, psi, M = _split(spectrum)
    n, delta = count(n, "n", at_least=0), probability(delta, "delta")
    noise = _scale(B2, ridge) * psi * np.sqrt(2.0 * np.log(2.0 * M / delta) * head + 4.0 * n * tail)
    return _best(np.hypot(non_negative(B1, "B1"), noise))


def spectrum_free(B1: float, B2: float, prior: float, ridge: float, delta: float) -> Width:
    """b^2 = B1^2 + (B2^2 kappa^2/ridge)(1 + sqrt(2 log(1/delta)))^2, kappa^2 = max k_psi(s,s), for all V.

    The noise is <V, sum zeta_i (phi(s'_i) - E phi)>; the norm of the sum is at most kappa |zeta| in the mean,
    and McDiarmid adds kappa |zeta| sqrt(2 log(1/delta)). There are no eigenfunctions, so no psi_max.
    """
    noise = _scale(B2, ridge) * math.sqrt(positive(prior, "prior"))
    factor = 1.0 + math.sqrt(-2.0 * math.log(probability(delta, "delta")))
    return Width(math.hypot(non_negative(B1, "B1"), noise * factor))


def generative_width(
    B1: float, R: float, ridge: float, points: int, steps: int, delta: float, joined: bool = True
) -> Width:
    """b^2 = B1^2 + R^2/(2 ridge) log(2 |Z| steps/delta): data of Alg 2 and a reward fixed before them.

    Hoeffding at every z and step, without a second kernel or closure. `steps` is H-1, since V_{H+1} = 0.
    `joined=False` adds B1 and the noise instead of their squares, as the paper's proofs do.
    """
    union = math.log(2.0) + _log_count(points, steps) - math.log(probability(delta, "delta"))
    B1, noise = non_negative(B1, "B1"), _hoeffding(R, ridge, union)
    return Width(math.hypot(B1, noise) if joined else B1 + noise)


def every_reward_width(
    B1: float, R: float, ridge: float, points: int, states: int, designs: int, delta: float
) -> Width:
    """b^2 = B1^2 + R^2/(2 ridge) log(m |Z| (2^S - 2)/delta): for every V at once, m datasets.

    The supremum over V in [0,R]^S is at one of its corners; the two constant corners have no noise. Pooled
    data have m = 1. The width also holds for the samples that Alg 3 keeps.
    """
    states = count(states, "states", at_least=2)
    union = _log_count(points, designs) + _log_corners(states) - math.log(probability(delta, "delta"))
    return Width(math.hypot(non_negative(B1, "B1"), _hoeffding(R, ridge, union)))


def _hoeffding(R: float, ridge: float, union: float) -> float:
    """R sqrt(union/(2 ridge)), `union` being the log of the number of events over delta."""
    return non_negative(R, "R") * math.sqrt(union / (2.0 * positive(ridge, "ridge")))


def adaptive_width(
    B1: float, R: float, ridge: float, gain: float, states: int, designs: int, delta: float
) -> Width:
    """B1 + (R/(2 tau)) sqrt(2 I_n + 2 log(m (2^(S-1) - 1)/delta)): data that depend on earlier data.

    Self-normalised, for all z, n and V. The corners V and R - V have the same noise up to sign.
    """
    states = count(states, "states", at_least=2)
    union = math.log(count(designs, "designs")) + _log_corners(states) - math.log(2.0)
    square = 2.0 * non_negative(gain, "gain") + 2.0 * (union - math.log(probability(delta, "delta")))
    return _self_normalised(B1, R, ridge, square)


def self_normalised_width(B1: float, R: float, ridge: float, gain: float, delta: float) -> Width:
    """B1 + (R/(2 tau)) sqrt(2 Gamma + 2 log(1/delta)): one V, adaptive data, as Qiu et al. need."""
    square = 2.0 * non_negative(gain, "gain") - 2.0 * math.log(probability(delta, "delta"))
    return _self_normalised(B1, R, ridge, square)


def _self_normalised(B1: float, R: float, ridge: float, square: float) -> Width:
    """B1 + (R/(2 tau)) sqrt(square)."""
    noise = 0.5 * non_negative(R, "R") * math.sqrt(square / positive(ridge, "ridge"))
    return Width(non_negative(B1, "B1") + noise)


def estimate_norm(R: float, ridge: float, n: int) -> float:
    """||f^|| <= R sqrt(n)/(2 tau) for |V| <= R: y^T (K+rI)^-1 K (K+rI)^-1 y, and w/(w+r)^2 <= 1/(4r)."""
    return 0.5 * non_negative(R, "R") * math.sqrt(count(n, "n", at_least=0) / positive(ridge, "ridge"))


@dataclass(frozen=True)
class ContinuousWidth:
    """|f - f^| <= b (sigma + change) + slack for all z of a box: Corollary 1 with an explicit net."""

    b: float  # for every z of the net, each at delta over the size of the net
    change: float  # L: how far a unit function moves between z and the net
    slack: float  # (B1 + ||f^||) L

    @property
    def added(self) -> float:
        """b L + slack, the part that does not depend on sigma."""
        return self.b * self.change + self.slack


def continuous_width(b: float, B1: float, R: float, ridge: float, n: int, change: float) -> ContinuousWidth:
    """A width b that holds on a net, extended to all z of the box.

    Between z and its net point, f, f^ and sigma change by at most their norm times L = `change`, the
    supremum of sqrt(2 - 2k(z,z')) within the net's radius: see `kernel_change`.
    """
    change = non_negative(change, "change")
    return ContinuousWidth(non_negative(b, "b"), change, (B1 + estimate_norm(R, ridge, n)) * change)


def kernel_change(kernel: Kernel, radius: float) -> float:
    """A bound on sqrt(2 - 2 k(z,z')) for |z - z'| <= r: r/l for SE, sqrt(nu/(nu-1)) r/l for Matern.

    For nu <= 1 a Matern kernel has no bound that is linear in r, which Corollary 1 assumes.
    """
    radius = positive(radius, "radius")
    if isinstance(kernel, Scaled):
        return math.sqrt(kernel.variance) * kernel_change(kernel.kernel, radius)
    lengthscale = np.min(np.asarray(getattr(kernel, "lengthscale", math.nan), float))
    if isinstance(kernel, SquaredExponential):
        return min(radius / float(lengthscale), math.sqrt(2.0))
    if isinstance(kernel, Matern) and kernel.nu > 1.0:
        factor = 1.0 if math.isinf(kernel.nu) else math.sqrt(kernel.nu / (kernel.nu - 1.0))
        return min(factor * radius / float(lengthscale), math.sqrt(2.0))
    raise ValueError(
        f"Corollary 1 needs a kernel that is smooth at 0, SE or Matern with nu > 1, got {kernel!r}"
    )


def net_log_size(radius: float, dim: int) -> float:
    """log ceil(sqrt(d)/(2 r))^d: that many points have one within r of every z in [0,1]^d."""
    dim = count(dim, "dim")
    return dim * math.log(max(1, math.ceil(math.sqrt(dim) / (2.0 * positive(radius, "radius")))))


def _log_count(points: int, steps: int) -> float:
    return math.log(count(points, "points")) + math.log(count(steps, "steps"))


def _log_corners(states: int) -> float:
    """log(2^S - 2)."""
    return states * math.log(2.0) + math.log1p(-(2.0 ** (1 - states))) if states > 1 else -math.inf


def _scale(B2: float, ridge: float) -> float:
    return non_negative(B2, "B2") / math.sqrt(positive(ridge, "ridge"))


def _split(spectrum: Spectrum) -> tuple[Any, Any, Any, Any]:
    """Sums of the first M eigenvalues and of the rest, psi_max and M, for every M there is."""
    M = np.arange(1, len(spectrum.eigenvalues) + 1, dtype=float)
    head = np.cumsum(spectrum.eigenvalues)
    tail = np.maximum(spectrum.trace - head, 0.0)
    return head, tail, spectrum.psi_max(len(M)), M


def _best(widths: Any) -> Width:
    best = int(np.argmin(widths))
    return Width(float(widths[best]), best + 1)
