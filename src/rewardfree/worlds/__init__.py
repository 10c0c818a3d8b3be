"""Systems to explore. A world's step returns no reward: there is nothing here that could hold one."""

from rewardfree.presets import Preset
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.gymnasium import GymnasiumWorld, from_gymnasium
from rewardfree.worlds.hard import (
    bumps,
    corridor_world,
    portal_world,
    rooms_world,
    sharpened_world,
    tide_world,
)
from rewardfree.worlds.instances import Instance, hard_suite
from rewardfree.worlds.labelled import LabelledWorld
from rewardfree.worlds.rkhs import rkhs_world
from rewardfree.worlds.spaces import Box, Discrete, Spaces
from rewardfree.worlds.tabular import garnet_world, riverswim_world
from rewardfree.worlds.world import Observation, World

__all__ = [
    "Box",
    "Discrete",
    "FiniteWorld",
    "GymnasiumWorld",
    "Instance",
    "LabelledWorld",
    "Observation",
    "Preset",
    "Spaces",
    "World",
    "bumps",
    "corridor_world",
    "from_gymnasium",
    "garnet_world",
    "hard_suite",
    "portal_world",
    "riverswim_world",
    "rkhs_world",
    "rooms_world",
    "sharpened_world",
    "tide_world",
]
