"""The estimate of [P_h V], on finite sets and on real states, and the Bellman lines that use it."""

from rewardfree.estimates.backups import Backup
from rewardfree.estimates.estimate import Estimate
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.estimates.model_posteriors import MODEL_POSTERIORS, ModelPosteriors, SeparatePosteriors
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
