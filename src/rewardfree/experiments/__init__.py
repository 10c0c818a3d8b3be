"""Experiments: many runs, planned and evaluated as their data grow.

Sweeps (sweep.py, store.py, running.py) are imported where they are used: they need databases and processes,
which `import rewardfree` does not.
"""

from rewardfree.experiments.curves import LearningCurve, learning_curves

__all__ = ["LearningCurve", "learning_curves"]
