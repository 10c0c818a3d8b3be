"""Reward-free, kernel-based reinforcement learning: explore once, plan for any reward later."""

from rewardfree.data import Transitions
from rewardfree.evaluation import (
    Description,
    Gap,
    describe,
    gap,
    myopic_gap,
    optimal_value,
    policy_value,
    random_gap,
)
from rewardfree.experiments import Curve, learning_curves
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
from rewardfree.planning import Mean, Optimistic, Pessimistic, Plan, plan, plan_many, plan_runs
from rewardfree.posterior import Design, Lattice, Posterior
from rewardfree.presets import Preset
from rewardfree.strategies import (
    Generative,
    GreedyMaxVariance,
    Online,
    Qiu,
    Uniform,
    explore,
    explore_many,
    query_plan,
    uncertainty_path,
)
from rewardfree.threads import one_blas_thread
from rewardfree.worlds import FiniteWorld, corridor_world, rkhs_world, sharpened_world

__all__ = [
    "Curve",
    "Delta",
    "Description",
    "Design",
    "FiniteWorld",
    "Gap",
    "Generative",
    "GreedyMaxVariance",
    "Kernel",
    "Lattice",
    "Linear",
    "Matern",
    "Mean",
    "Model",
    "NeuralTangent",
    "Online",
    "Optimistic",
    "Pessimistic",
    "Plan",
    "Posterior",
    "Preset",
    "Product",
    "Qiu",
    "Scaled",
    "SquaredExponential",
    "Sum",
    "Transitions",
    "Uniform",
    "corridor_world",
    "describe",
    "explore",
    "explore_many",
    "gap",
    "learning_curves",
    "myopic_gap",
    "one_blas_thread",
    "optimal_value",
    "plan",
    "plan_many",
    "plan_runs",
    "policy_value",
    "query_plan",
    "random_gap",
    "rkhs_world",
    "sharpened_world",
    "uncertainty_path",
]
__version__ = "0.1.0"
