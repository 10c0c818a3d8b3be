"""From reward-free data and a reward to a policy. `Planner` is the contract, `plan` the door."""

from rewardfree.planning.alg1 import Mean, Optimistic, Pessimistic, ValuePlanner
from rewardfree.planning.counted import CountingPlanner, LabelPlan
from rewardfree.planning.finite import FinitePlan
from rewardfree.planning.mesh import DynamicsPlanner, MeshPlan
from rewardfree.planning.plan import DefaultPlanner, plan, plan_many, plan_runs
from rewardfree.planning.plan_files import load_plan
from rewardfree.planning.planner import Plan, Planner, PlanRequest, WorldPlan
from rewardfree.planning.sampled import SampledPlan

__all__ = [
    "CountingPlanner",
    "DefaultPlanner",
    "DynamicsPlanner",
    "FinitePlan",
    "LabelPlan",
    "Mean",
    "MeshPlan",
    "Optimistic",
    "Pessimistic",
    "Plan",
    "PlanRequest",
    "Planner",
    "SampledPlan",
    "ValuePlanner",
    "WorldPlan",
    "load_plan",
    "plan",
    "plan_many",
    "plan_runs",
]
