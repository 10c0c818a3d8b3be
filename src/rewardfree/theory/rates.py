"""The paper's Table 1: samples that the guarantees of reward-free methods need, with constants set to 1."""

import math
from dataclasses import dataclass

from rewardfree.arrays import count, positive

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
