"""The estimate of [P_h V], on finite sets and on real states, and the Bellman lines that use it."""

from rewardfree.estimates.backups import (
    OBJECTIVES,
    Backup,
    Empty,
    alg1_q,
    alg3_q,
    bellman_q,
    best_of_clipped,
    qiu_q,
    scout_q,
    settled,
    sigma_gain,
    state_value,
    variance_gain,
)
from rewardfree.estimates.estimate import Estimate
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.estimates.sampled import SampledEstimate, SampledRecursion

__all__ = [
    "OBJECTIVES",
    "Backup",
    "Empty",
    "Estimate",
    "FiniteEstimate",
    "SampledEstimate",
    "SampledRecursion",
    "alg1_q",
    "alg3_q",
    "bellman_q",
    "best_of_clipped",
    "qiu_q",
    "scout_q",
    "settled",
    "sigma_gain",
    "state_value",
    "variance_gain",
]
