"""Who explores a world of real states where a user names no strategy."""

from __future__ import annotations

from rewardfree.dynamics.exploration import check_variables
from rewardfree.strategies.generative import Generative
from rewardfree.strategies.scout import Scout
from rewardfree.strategies.strategy import Strategy
from rewardfree.strategies.uniform import Uniform
from rewardfree.worlds.world import World


def default_strategy(world: World) -> Strategy:
    """The best that the world allows: queries, else Scout; at random where no mesh fits its states."""
    try:
        check_variables(world.spaces)
    except ValueError:
        return Uniform()
    return Generative() if world.generative else Scout()
