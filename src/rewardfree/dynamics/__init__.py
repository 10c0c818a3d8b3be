"""Learnt dynamics: the next state as a regression, and where actions lead on a mesh of states."""

from rewardfree.dynamics.carried import carry_over
from rewardfree.dynamics.exploration import ExplorationValue
from rewardfree.dynamics.extent import met_box, trusted_box
from rewardfree.dynamics.learnt import Dynamics
from rewardfree.dynamics.mesh import DRAWS, MOST_VARIABLES, Mesh, MeshDynamics, NextStateModel, has_mesh
from rewardfree.dynamics.reach import reached
from rewardfree.dynamics.termination import GivenTermination, ObservedTermination

__all__ = [
    "DRAWS",
    "MOST_VARIABLES",
    "Dynamics",
    "ExplorationValue",
    "GivenTermination",
    "Mesh",
    "MeshDynamics",
    "NextStateModel",
    "ObservedTermination",
    "carry_over",
    "has_mesh",
    "met_box",
    "reached",
    "trusted_box",
]
