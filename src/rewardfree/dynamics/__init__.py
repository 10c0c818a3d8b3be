"""Learnt dynamics: the next state as a regression, a mesh of states, and where actions lead on it."""

from rewardfree.dynamics.curiosity import Curiosity
from rewardfree.dynamics.endings import GivenEndings, SeenEndings
from rewardfree.dynamics.extent import trusted_box
from rewardfree.dynamics.learnt import Dynamics
from rewardfree.dynamics.mesh import Mesh
from rewardfree.dynamics.transport import Transport

__all__ = ["Curiosity", "Dynamics", "GivenEndings", "Mesh", "SeenEndings", "Transport", "trusted_box"]
