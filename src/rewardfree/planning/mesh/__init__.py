"""Planning on a mesh of states through learnt dynamics."""

from rewardfree.planning.mesh.plan import MeshPlan
from rewardfree.planning.mesh.planner import DynamicsPlanner

__all__ = ["DynamicsPlanner", "MeshPlan"]
