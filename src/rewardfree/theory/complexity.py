"""Sample complexities: the smallest N for which a theorem promises epsilon, and the paper's Table 1."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from rewardfree.arrays import count, non_negative, positive, probability
from rewardfree.theory.gain import Law

#: The search ends here: above this N there is no answer.
MOST = 10**40
#: The printed Theorem 3 is tried N by N, at most this many: more are needed only if epsilon is far above H.
MOST_TRIED = 10**6


def uncertainty_rate(n: float, gain: float, ridge: float) -> float:
    """sqrt(2 Gamma/(N log(1 + 1/ridge))), a bound on the mean of sigma at N queries if k(z,z) <= 1."""
    return math.sqrt(2.0 * gain / (n * math.log1p(1.0 / ridge)))


def theorem_2_gap(n: float, b: float, gain: float, horizon: int, ridge: float) -> float:
    """2 H b sqrt(2 Gamma/(N log(1+1/ridge))) + 4 b H/sqrt(N) + 4 H/N: the gap with a generative model."""
    H = horizon
    return 2.0 * H * b * uncertainty_rate(n, gain, ridge) + 4.0 * b * H / math.sqrt(n) + 4.0 * H / n


def theorem_3_printed_gap(n: float, b: float, gain: float, horizon: int, ridge: float, delta: float) -> float:
    """3H(H+1) b rate + 8bH(H+1)/sqrt(N) + 4H(H+1)(log N + 1)/N + 2H sqrt(N (H+1) log(2/delta))."""
    H = horizon
    last = 2.0 * H * math.sqrt(n * (H + 1) * math.log(2.0 / delta))
    return _online_terms(n, b, gain, H, ridge) + last


def theorem_3_corrected_gap(
    n: float, b: float, gain: float, horizon: int, ridge: float, delta: float
) -> float:
    """The printed gap with last term 4H sqrt(H(H+1) log(2/delta)/N) and planning slack 4bH/sqrt(N) + 4H/N.

    The last term bounds two martingales of N H(H+1)/2 differences within H, times the 2/N of the mean over
    rounds.
    """
    H = horizon
    last = 4.0 * H * math.sqrt(H * (H + 1) * math.log(2.0 / delta) / n)
    return _online_terms(n, b, gain, H, ridge) + last + 4.0 * b * H / math.sqrt(n) + 4.0 * H / n


def theorem_3_repaired_gap(
    n: float, b: float, gain: float, horizon: int, ridge: float, delta: float
) -> float:
    """b (3^(H-1) - 1) [sqrt(2 Gamma/(N log(1+1/ridge))) + sqrt(log(H/delta)/(2N))], from a fixed start.

    It uses only the points that Alg 3 keeps: the uncertainty that any policy reaches at step h is at most
    what the episode for h reached, plus twice what is reachable at every step before it.
    """
    if b == 0.0:
        return 0.0
    growth = 3.0 ** (horizon - 1) - 1.0 if horizon < 600 else math.inf
    noise = math.sqrt(math.log(horizon / delta) / (2.0 * n))
    return b * growth * (uncertainty_rate(n, gain, ridge) + noise)


def _online_terms(n: float, b: float, gain: float, H: int, ridge: float) -> float:
    pairs = H * (H + 1)
    return (
        3.0 * pairs * b * uncertainty_rate(n, gain, ridge)
        + 8.0 * b * pairs / math.sqrt(n)
        + 4.0 * pairs * (math.log(n) + 1.0) / n
    )


def smallest_n(gap: Callable[[float], float], epsilon: float) -> int | None:
    """The smallest N with gap(N) <= epsilon, for a gap that falls with N; None if it is above MOST."""
    positive(epsilon, "epsilon")
    high = 1
    while not gap(high) <= epsilon:
        high *= 2
        if high > MOST:
            return None
    low = high // 2  # fails, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gap(middle) <= epsilon else (middle, high)
    return high


def theorem_2_samples(b: float, gain: Law, horizon: int, ridge: float, epsilon: float) -> int | None:
    """N0 of Theorem 2: samples per step with a generative model."""
    b, horizon, ridge = _checked(b, horizon, ridge)
    return smallest_n(lambda n: theorem_2_gap(n, b, gain(n), horizon, ridge), epsilon)


def theorem_3_samples(
    reading: str, b: float, gain: Law, horizon: int, ridge: float, epsilon: float, delta: float
) -> int | None:
    """N0 of Theorem 3 as `printed` (which no N satisfies for epsilon <= H), `corrected` or `repaired`."""
    b, horizon, ridge = _checked(b, horizon, ridge)
    delta, epsilon = probability(delta, "delta"), positive(epsilon, "epsilon")
    gaps = {
        "printed": theorem_3_printed_gap,
        "corrected": theorem_3_corrected_gap,
        "repaired": theorem_3_repaired_gap,
    }
    if reading not in gaps:
        raise ValueError(f"reading must be one of {', '.join(gaps)}, got {reading!r}")

    def gap(n: float) -> float:
        return gaps[reading](n, b, gain(n), horizon, ridge, delta)

    if reading != "printed":
        return smallest_n(gap, epsilon)
    # The last term of the printed gap grows with N and excludes every larger N; its other terms fall, so all
    # smaller N must be tried.
    root = min(epsilon / (2.0 * horizon), math.sqrt(MOST_TRIED * (horizon + 1) * math.log(2.0 / delta)))
    largest = int(root**2 / ((horizon + 1) * math.log(2.0 / delta)))
    return next((n for n in range(1, largest + 1) if gap(n) <= epsilon), None)


def _checked(b: float, horizon: int, ridge: float) -> tuple[float, int, float]:
    return non_negative(b, "b"), count(horizon, "horizon"), positive(ridge, "ridge")


#: Setting: (source, rate as printed, up to constants and logarithms).
PRINTED = {
    "tabular": ("Jin et al. 2020", "S^2 A H^5 / eps^2"),
    "linear": ("Wang et al. 2020", "d^3 H^6 / eps^2"),
    "kernel, exponential eigendecay": ("Qiu et al. 2021", "H^6 polylog(1/eps) / eps^2"),
    "kernel, polynomial eigendecay": ("Vakili et al. 2024", "(H^3 / eps)^(2 + 2/(p-1))"),
    "kernel, exponential eigendecay, online": ("this paper", "H^7 polylog(1/eps) / eps^2"),
    "kernel, polynomial eigendecay, online": ("this paper", "H (H^3 / eps)^(2 + 2/(p-1))"),
}


def eps_exponent(nu: float, dim: int) -> float:
    """2 + 2/(p-1) for a Matern kernel, p = 1 + 2 nu/d: 2 + d/nu."""
    return 2.0 + count(dim, "dim") / positive(nu, "nu")


@dataclass(frozen=True)
class Rates:
    """Table 1 for one problem; rows that do not apply to its kernel are None."""

    horizon: int
    epsilon: float
    states: int
    actions: int
    features: int  # d of the linear row
    dim: int  # of z; polylog(1/eps) = log(1/eps)^(dim+1), as in Gamma of the squared exponential
    p: float | None  # eigenvalues fall as m^-p; infinite for exponential decay, None for neither

    def table(self) -> dict[str, float | None]:
        """The number of each setting, or None."""
        H, eps, p = float(self.horizon), self.epsilon, self.p
        squared = _power(1.0 / eps, 2.0)
        logs = max(1.0, -math.log(eps)) ** (self.dim + 1)
        smooth, polynomial = p is not None and math.isinf(p), None
        if p is not None and not smooth:
            polynomial = _power(_power(H, 3.0) / eps, 2.0 + 2.0 / (p - 1.0) if p > 1.0 else math.inf)
        return {
            "tabular": float(self.states) ** 2 * self.actions * _power(H, 5.0) * squared,
            "linear": float(self.features) ** 3 * _power(H, 6.0) * squared,
            "kernel, exponential eigendecay": _power(H, 6.0) * logs * squared if smooth else None,
            "kernel, polynomial eigendecay": polynomial,
            "kernel, exponential eigendecay, online": _power(H, 7.0) * logs * squared if smooth else None,
            "kernel, polynomial eigendecay, online": None if polynomial is None else H * polynomial,
        }


def _power(base: float, exponent: float) -> float:
    """base^exponent, infinite if no float holds it."""
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf
