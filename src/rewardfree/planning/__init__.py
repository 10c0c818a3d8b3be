"""From reward-free data and a reward to a policy."""

from rewardfree.planning.finite import (
    Mean,
    Optimistic,
    Pessimistic,
    Plan,
    Planner,
    backward,
    plan,
    plan_many,
    plan_runs,
    reward_tables,
)

__all__ = [
    "Mean",
    "Optimistic",
    "Pessimistic",
    "Plan",
    "Planner",
    "backward",
    "plan",
    "plan_many",
    "plan_runs",
    "reward_tables",
]
