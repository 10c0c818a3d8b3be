"""Experiments: many runs, planned and evaluated as their data grow."""

from rewardfree.experiments.curves import Curve, learning_curves
from rewardfree.experiments.paper import paper_planner, paper_strategies

__all__ = ["Curve", "learning_curves", "paper_planner", "paper_strategies"]
