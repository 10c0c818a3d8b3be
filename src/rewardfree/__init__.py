"""Reward-free, kernel-based reinforcement learning: explore once, plan for any reward later."""

from rewardfree import baselines as baselines
from rewardfree import doubts as doubts
from rewardfree import evaluation as evaluation
from rewardfree import kernels as kernels
from rewardfree import planning as planning
from rewardfree import posterior as posterior
from rewardfree import strategies as strategies
from rewardfree import worlds as worlds
from rewardfree.data import Experience, Transitions, load
from rewardfree.evaluation import describe, gap, optimal_value, policy_value, rollouts
from rewardfree.kernels import AutoKernel, Linear, Matern, NeuralTangent, SquaredExponential
from rewardfree.model import Model
from rewardfree.planning import (
    CountingPlanner,
    DefaultPlanner,
    DynamicsPlanner,
    Mean,
    Optimistic,
    Pessimistic,
    load_plan,
    plan,
    plan_many,
)
from rewardfree.posterior import Sparse
from rewardfree.strategies import (
    ExplorationFailed,
    Generative,
    GreedyMaxVariance,
    Online,
    Qiu,
    Scout,
    Uniform,
    WorldFailed,
    default_model,
    explore,
    explore_many,
    query_plan,
)
from rewardfree.worlds import (
    Box,
    Discrete,
    FiniteWorld,
    Instance,
    World,
    from_gymnasium,
    hard_suite,
    rkhs_world,
)

__all__ = [
    "AutoKernel",
    "Box",
    "CountingPlanner",
    "DefaultPlanner",
    "Discrete",
    "DynamicsPlanner",
    "Experience",
    "ExplorationFailed",
    "FiniteWorld",
    "Generative",
    "GreedyMaxVariance",
    "Instance",
    "Linear",
    "Matern",
    "Mean",
    "Model",
    "NeuralTangent",
    "Online",
    "Optimistic",
    "Pessimistic",
    "Qiu",
    "Scout",
    "Sparse",
    "SquaredExponential",
    "Transitions",
    "Uniform",
    "World",
    "WorldFailed",
    "default_model",
    "describe",
    "explore",
    "explore_many",
    "from_gymnasium",
    "gap",
    "hard_suite",
    "load",
    "load_plan",
    "optimal_value",
    "plan",
    "plan_many",
    "policy_value",
    "query_plan",
    "rkhs_world",
    "rollouts",
]
__version__ = "0.1.0"


def __dir__() -> list[str]:
    """The public names and rooms; an import leaves submodules here that are no names of this page."""
    rooms = ["baselines", "doubts", "evaluation", "experiments", "kernels", "planning", "posterior"]
    rooms += ["strategies", "theory", "worlds"]
    return sorted([*__all__, *rooms, "__version__"])


def __getattr__(name: str) -> object:
    """`rf.theory` and `rf.experiments` on first use: most programs need neither."""
    if name in ("theory", "experiments"):
        import importlib

        return importlib.import_module(f"rewardfree.{name}")
    raise AttributeError(f"module 'rewardfree' has no attribute {name!r}")
