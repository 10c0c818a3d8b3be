"""How good a policy is, and how much a world asks of it."""

from rewardfree.evaluation.description import Description, describe
from rewardfree.evaluation.exact import Gap, gap, myopic_gap, optimal_value, policy_value, random_gap
from rewardfree.evaluation.rollouts import Score, rollouts

__all__ = [
    "Description",
    "Gap",
    "Score",
    "describe",
    "gap",
    "myopic_gap",
    "optimal_value",
    "policy_value",
    "random_gap",
    "rollouts",
]
