"""How to choose where to look next. `Strategy` is the contract, `explore` the door."""

from rewardfree.strategies.episodic import EpisodicStrategy, ValueStrategy
from rewardfree.strategies.explore import default_model, explore, explore_many
from rewardfree.strategies.generative import Generative, UncertaintyPath, query_plan, uncertainty_path
from rewardfree.strategies.greedy import GreedyMaxVariance
from rewardfree.strategies.online import Online
from rewardfree.strategies.qiu import OptimisticStrategy, Qiu
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.scout import Scout
from rewardfree.strategies.strategy import Round, Strategy
from rewardfree.strategies.uniform import Uniform
from rewardfree.strategies.world_run import ExplorationFailed, WorldFailed, WorldRun

__all__ = [
    "EpisodicStrategy",
    "ExplorationFailed",
    "Generative",
    "GreedyMaxVariance",
    "Online",
    "OptimisticStrategy",
    "Qiu",
    "Round",
    "RunBatch",
    "Scout",
    "Strategy",
    "UncertaintyPath",
    "Uniform",
    "ValueStrategy",
    "WorldFailed",
    "WorldRun",
    "default_model",
    "explore",
    "explore_many",
    "query_plan",
    "uncertainty_path",
]
