"""From reward-free data and a reward to a policy."""

from rewardfree.planning.dynamics import DynamicsPlanner
from rewardfree.planning.finite import (
    Mean,
    Optimistic,
    Pessimistic,
    Plan,
    Planner,
    backward,
    plan_runs,
    reward_tables,
)
from rewardfree.planning.fitted import FittedPlan
from rewardfree.planning.front import default_planner, plan, plan_many
from rewardfree.planning.meshplan import MeshPlan
from rewardfree.planning.stored import load_plan

__all__ = [
    "DynamicsPlanner",
    "FittedPlan",
    "Mean",
    "MeshPlan",
    "Optimistic",
    "Pessimistic",
    "Plan",
    "Planner",
    "backward",
    "default_planner",
    "load_plan",
    "plan",
    "plan_many",
    "plan_runs",
    "reward_tables",
]
