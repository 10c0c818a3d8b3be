"""The estimate of [P_h V], on finite sets and on real states, and the Bellman lines that use it."""

from rewardfree.estimates.backups import Backup
from rewardfree.estimates.estimate import MODEL_POSTERIORS, Estimate, ModelPosteriors, SeparatePosteriors
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.estimates.sampled import SampledEstimate, SampledRecursion

__all__ = [
    "MODEL_POSTERIORS",
    "Backup",
    "Estimate",
    "FiniteEstimate",
    "ModelPosteriors",
    "SampledEstimate",
    "SampledRecursion",
    "SeparatePosteriors",
]
