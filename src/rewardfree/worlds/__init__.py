"""Systems to explore. A world's step returns no reward: there is nothing here that could hold one."""

from collections.abc import Callable

from rewardfree.presets import Preset
from rewardfree.registry import registered
from rewardfree.worlds.finite import FiniteWorld, check_world
from rewardfree.worlds.grid import Grid
from rewardfree.worlds.gymnasium import Environment, GymnasiumWorld, as_world, from_gymnasium
from rewardfree.worlds.hard import (
    as_instance,
    bump_world,
    bumps,
    corridor_world,
    garnet_world,
    portal_world,
    riverswim_world,
    rooms_world,
    sharpened_world,
    tide_world,
)
from rewardfree.worlds.hard_suite import hard_suite, hard_world
from rewardfree.worlds.instance import Instance
from rewardfree.worlds.rkhs import rkhs_world
from rewardfree.worlds.scaling import ScaledModel, Scaling, feature_bounds
from rewardfree.worlds.spaces import Box, Discrete, Space, Spaces
from rewardfree.worlds.state_change import StateChange
from rewardfree.worlds.world import LabelledWorld, Observation, World, check_declared, sampled, stepped

#: What a sweep may name; all of them take keywords. Those that return a world alone get the reward of
#: `bump_world`.
FACTORIES: dict[str, Callable[..., Instance | FiniteWorld]] = {
    factory.__name__: registered("world")(factory)
    for factory in (
        rkhs_world,
        sharpened_world,
        corridor_world,
        portal_world,
        rooms_world,
        tide_world,
        garnet_world,
        riverswim_world,
        bump_world,
        hard_world,
    )
}

__all__ = [
    "FACTORIES",
    "Box",
    "Discrete",
    "Environment",
    "FiniteWorld",
    "Grid",
    "GymnasiumWorld",
    "Instance",
    "LabelledWorld",
    "Observation",
    "Preset",
    "ScaledModel",
    "Scaling",
    "Space",
    "Spaces",
    "StateChange",
    "World",
    "as_instance",
    "as_world",
    "bump_world",
    "bumps",
    "check_declared",
    "check_world",
    "corridor_world",
    "feature_bounds",
    "from_gymnasium",
    "garnet_world",
    "hard_suite",
    "hard_world",
    "portal_world",
    "riverswim_world",
    "rkhs_world",
    "rooms_world",
    "sampled",
    "sharpened_world",
    "stepped",
    "tide_world",
]
