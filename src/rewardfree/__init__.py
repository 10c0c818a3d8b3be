"""Reward-free, kernel-based reinforcement learning: explore once, plan for any reward later."""

from rewardfree.kernels import (
    Delta,
    Kernel,
    Linear,
    Matern,
    NeuralTangent,
    Product,
    Scaled,
    SquaredExponential,
    Sum,
)
from rewardfree.model import Model
from rewardfree.posterior import Design, Lattice, Posterior
from rewardfree.strategies import query_plan, uncertainty_path
from rewardfree.threads import one_blas_thread

__all__ = [
    "Delta",
    "Design",
    "Kernel",
    "Lattice",
    "Linear",
    "Matern",
    "Model",
    "NeuralTangent",
    "Posterior",
    "Product",
    "Scaled",
    "SquaredExponential",
    "Sum",
    "one_blas_thread",
    "query_plan",
    "uncertainty_path",
]
__version__ = "0.1.0"
