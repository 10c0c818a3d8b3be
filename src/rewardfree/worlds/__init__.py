"""Systems to explore. A world's step returns no reward: there is nothing here that could hold one."""

from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.hard import corridor_world, sharpened_world
from rewardfree.worlds.rkhs import rkhs_world

__all__ = ["FiniteWorld", "corridor_world", "rkhs_world", "sharpened_world"]
