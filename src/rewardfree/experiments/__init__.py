"""Experiments: many runs, planned and evaluated as their data grow."""

from rewardfree.experiments.curves import Curve, learning_curves
from rewardfree.experiments.export import write_csv
from rewardfree.experiments.local import run_units
from rewardfree.experiments.paper import paper_planner, paper_strategies
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import Record, Unit

__all__ = [
    "Curve",
    "Record",
    "Store",
    "Sweep",
    "Unit",
    "learning_curves",
    "paper_planner",
    "paper_strategies",
    "run_units",
    "write_csv",
]
