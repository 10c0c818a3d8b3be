"""Exact kernel ridge regression that remembers where it looked and nothing else."""

from rewardfree.posterior.bundle import Bundle
from rewardfree.posterior.counts import Counts
from rewardfree.posterior.design import Design
from rewardfree.posterior.engine.backend import room_for
from rewardfree.posterior.features import FeatureDesign, FeatureLattice
from rewardfree.posterior.lattice import Lattice
from rewardfree.posterior.maps import FourierFeatures, PolynomialFeatures
from rewardfree.posterior.partition import Partition
from rewardfree.posterior.partitions import Partitions
from rewardfree.posterior.prefix import Prefixes
from rewardfree.posterior.protocol import BasisPosterior, Posterior, Posteriors

__all__ = [
    "BasisPosterior",
    "Bundle",
    "Counts",
    "Design",
    "FeatureDesign",
    "FeatureLattice",
    "FourierFeatures",
    "Lattice",
    "Partition",
    "Partitions",
    "PolynomialFeatures",
    "Posterior",
    "Posteriors",
    "Prefixes",
    "room_for",
]
