"""Kernel ridge regression. A posterior holds the points that were seen, and no targets."""

from rewardfree.posterior.cells import check_alpha, check_drop
from rewardfree.posterior.counts import Counts
from rewardfree.posterior.design import Design
from rewardfree.posterior.earlier import EarlierPosteriors
from rewardfree.posterior.engine.backend import room_for
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra, linear_algebra
from rewardfree.posterior.feature_maps import (
    FourierFeatures,
    PolynomialFeatures,
    check_features,
    check_table,
    features_at,
)
from rewardfree.posterior.features import FeatureDesign, FeatureLattice
from rewardfree.posterior.inducing import as_inducing
from rewardfree.posterior.lattice import Lattice
from rewardfree.posterior.partition import Partition
from rewardfree.posterior.partition_lattice import PartitionLattice
from rewardfree.posterior.posterior_list import PosteriorList
from rewardfree.posterior.protocol import BasisPosterior, PointPosterior, Posterior, Posteriors
from rewardfree.posterior.sparse import Sparse

__all__ = [
    "BasisPosterior",
    "Counts",
    "Design",
    "EarlierPosteriors",
    "FeatureDesign",
    "FeatureLattice",
    "FourierFeatures",
    "Lattice",
    "LinearAlgebra",
    "Partition",
    "PartitionLattice",
    "PointPosterior",
    "PolynomialFeatures",
    "Posterior",
    "PosteriorList",
    "Posteriors",
    "Sparse",
    "as_inducing",
    "check_alpha",
    "check_drop",
    "check_features",
    "check_table",
    "features_at",
    "linear_algebra",
    "room_for",
]
