"""Policies that need no data: what every explorer has to be compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardfree.evaluation.exact import Gap, gap
from rewardfree.rewards import reward_table
from rewardfree.worlds.finite import FiniteWorld, check_world


def myopic_gap(world: FiniteWorld, reward: Any) -> Gap:
    """Of argmax_a r_h(s,a), the lowest action among equals: what a bandit would do."""
    check_world(world)
    r = reward_table(reward, world.grid, world.horizon)
    actions = np.broadcast_to(r.argmax(axis=-1), (world.horizon, len(world.states)))
    return gap(world, actions, reward)


def random_gap(world: FiniteWorld, reward: Any) -> Gap:
    """Of uniformly random actions."""
    check_world(world)
    s, a = world.grid.shape
    return gap(world, np.full((world.horizon, s, a), 1.0 / a), reward)
