"""Systems to explore. A world's step returns no reward: there is nothing here that could hold one."""

from rewardfree.worlds.enumerated import Enumerated
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.gymnasium import GymnasiumWorld, from_gymnasium
from rewardfree.worlds.hard import corridor_world, sharpened_world
from rewardfree.worlds.rkhs import rkhs_world
from rewardfree.worlds.spaces import Box, Discrete, Spaces
from rewardfree.worlds.world import Observation, World

__all__ = [
    "Box",
    "Discrete",
    "Enumerated",
    "FiniteWorld",
    "GymnasiumWorld",
    "Observation",
    "Spaces",
    "World",
    "corridor_world",
    "from_gymnasium",
    "rkhs_world",
    "sharpened_world",
]
