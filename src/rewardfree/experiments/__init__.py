"""Experiments: many runs, planned and evaluated as their data grow.

Sweeps (sweep.py, store.py, local.py) are imported where they are used: they need databases and processes,
which `import rewardfree` does not.
"""

from rewardfree.experiments.curves import Curve, learning_curves
from rewardfree.experiments.paper import paper_planner, paper_strategies

__all__ = ["Curve", "learning_curves", "paper_planner", "paper_strategies"]
