"""How good a policy is, and how much a world asks of it."""

from rewardfree.evaluation.description import Description, describe
from rewardfree.evaluation.exact import Gap, gap, optimal_value, policy_value

__all__ = ["Description", "Gap", "describe", "gap", "optimal_value", "policy_value"]
