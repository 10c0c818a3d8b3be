"""Posteriors of kernel ridge regression: where you looked, and what that leaves uncertain."""

from rewardfree.posterior.design import Design
from rewardfree.posterior.lattice import Lattice
from rewardfree.posterior.protocol import Posterior

__all__ = ["Design", "Lattice", "Posterior"]
