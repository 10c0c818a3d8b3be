"""How to choose where to look next."""

from rewardfree.strategies.generative import UncertaintyPath, query_plan, uncertainty_path

__all__ = ["UncertaintyPath", "query_plan", "uncertainty_path"]
