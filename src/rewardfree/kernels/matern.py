"""The Matern correlation M(r) of any smoothness nu, by Bessel functions or their expansion."""

from functools import lru_cache

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import gamma, kv

from rewardfree.arrays import Floats

#: From this order on the expansion for large orders is exact to rounding (checked against mpmath).
LARGE_ORDER = 40.0


def matern_correlation(nu: float, r: Floats) -> Floats:
    """M(r) = 2^(1-nu)/Gamma(nu) t^nu K_nu(t) with t = sqrt(2 nu) r: 1 at r = 0, falling to 0."""
    return _by_expansion(nu, r) if nu >= LARGE_ORDER else _by_recurrence(nu, r)


def _by_recurrence(nu: float, r: Floats) -> Floats:
    """M_{v+1}(t) = M_v(t) + t^2/(4 v (v-1)) M_{v-1}(t), up from the fractional part of nu.

    This is K_{v+1} = K_{v-1} + (2v/t) K_v, rewritten for M: every term is positive, so nothing cancels, and
    no power of t overflows.
    """
    t = np.sqrt(2.0 * nu) * r
    steps = int(np.ceil(nu)) - 1
    order = nu - steps  # in (0, 1]
    lower = _bessel_form(order, t)
    if steps == 0:
        return lower
    value = _bessel_form(order + 1.0, t)
    quarter = 0.25 * t * t
    for step in range(1, steps):
        v = order + step
        lower, value = value, value + quarter / (v * (v - 1.0)) * lower
    return value


def _bessel_form(order: float, t: Floats) -> Floats:
    """2^(1-v)/Gamma(v) t^v K_v(t) for 0 < v <= 2, where only t = 0 and huge t need care."""
    # K_v overflows for smaller t; there the value is 1.
    safe = np.maximum(t, 1e-300 if order <= 1.0 else 1e-150)
    with np.errstate(under="ignore"):  # K_v(t) underflows to 0 for large t, which is right
        value = 2.0 ** (1.0 - order) / gamma(order) * safe**order * kv(order, safe)
    return np.where(t == 0.0, 1.0, value)


def _by_expansion(nu: float, r: Floats) -> Floats:
    """Debye's expansion of K_nu(nu z), z = sqrt(2/nu) r, combined with Stirling's for Gamma(nu).

    With w = sqrt(1 + z^2): log M = nu (1 - w + log((1 + w)/2)) - log(w)/2 + log(S(1/w)/S(1)),
    S(p) = sum_k (-1)^k u_k(p)/nu^k. The large terms of both expansions are cancelled on paper, not in
    floating point. As nu grows log M tends to -r^2/2, the squared exponential.
    """
    square = 2.0 / nu * r * r
    w = np.sqrt(1.0 + square)
    excess = square / (1.0 + w)  # w - 1
    series = _debye_series(nu)
    log_m = nu * (np.log1p(0.5 * excess) - excess) - 0.5 * np.log(w)
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(log_m) * series(1.0 / w) / series(1.0))


@lru_cache(maxsize=32)
def _debye_series(nu: float) -> Polynomial:
    """S(p), from u_0 = 1 and u_{k+1} = p^2 (1 - p^2) u_k'/2 + (1/8) int_0^p (1 - 5 t^2) u_k dt."""
    term = series = Polynomial([1.0])
    for k in range(1, 9):
        term = (
            Polynomial([0.0, 0.0, 0.5, 0.0, -0.5]) * term.deriv()
            + (Polynomial([0.125, 0.0, -0.625]) * term).integ()
        )
        series = series + term * (-1.0 / nu) ** k
    return series
