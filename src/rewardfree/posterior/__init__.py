"""Exact kernel ridge regression that remembers where it looked and nothing else."""

from rewardfree.posterior.backend import room_for
from rewardfree.posterior.bundle import Bundle
from rewardfree.posterior.counts import Counts
from rewardfree.posterior.design import Design
from rewardfree.posterior.lattice import Lattice
from rewardfree.posterior.prefix import Prefixes
from rewardfree.posterior.protocol import Posterior, Posteriors

__all__ = ["Bundle", "Counts", "Design", "Lattice", "Posterior", "Posteriors", "Prefixes", "room_for"]
