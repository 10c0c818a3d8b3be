"""How to choose where to look next."""

from rewardfree.strategies.analogues import KernelRFExpress, KernelRFUCRL, MeanEmbedding
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.episodic import GreedyMaxVariance, Qiu, Uniform
from rewardfree.strategies.explore import default_model, explore, explore_many
from rewardfree.strategies.generative import Generative, UncertaintyPath, query_plan, uncertainty_path
from rewardfree.strategies.jin import Jin
from rewardfree.strategies.journey import WorldFailed
from rewardfree.strategies.linear import LinearRewardFree, linear_beta
from rewardfree.strategies.online import Online
from rewardfree.strategies.partitioned import Partitioned
from rewardfree.strategies.round import Strategy
from rewardfree.strategies.scout import Scout
from rewardfree.strategies.tabular import RFUCRL, RFExpress

__all__ = [
    "RFUCRL",
    "Arena",
    "Generative",
    "GreedyMaxVariance",
    "Jin",
    "KernelRFExpress",
    "KernelRFUCRL",
    "LinearRewardFree",
    "MeanEmbedding",
    "Online",
    "Partitioned",
    "Qiu",
    "RFExpress",
    "Scout",
    "Strategy",
    "UncertaintyPath",
    "Uniform",
    "WorldFailed",
    "default_model",
    "explore",
    "explore_many",
    "linear_beta",
    "query_plan",
    "uncertainty_path",
]
