"""Which states a mesh should cover: what was seen, what can be believed beyond it, and no ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.dynamics.learnt import Dynamics
from rewardfree.streams import stream
from rewardfree.worlds.spaces import Box

#: What was seen is widened by so much, and may grow up to so much where sigma does not rise.
MARGIN, FARTHEST = 1.1, 3.0
#: sigma beyond the seen range may be so many times that within it.
RISE = 2.0
PROBES, DENSE = 300, 20_000


def trusted_box(
    dynamics: Dynamics, states: Any, ended: Callable[[Any], Any], actions: Any
) -> tuple[Any, Any]:
    """Low and high ends (d,) of the states to plan on, for states (n,d) that were seen.

    The seen range and a margin, cut to the world's bounds and to states that do not end an episode; grown,
    variable by variable, as long as sigma stays what it is inside: where the dynamics do not depend on a
    variable, they are known far beyond where it was seen.
    """
    space: Box = dynamics.space
    states = space.wrapped(states)
    low, high = states.min(axis=0), states.max(axis=0)
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-12)
    rng = stream(0, "extent")
    farthest = _cut(space, middle - FARTHEST * half, middle + FARTHEST * half, ended, rng)
    low, high = _cut(space, middle - MARGIN * half, middle + MARGIN * half, ended, rng)
    inside = states[((states >= low) & (states <= high)).all(axis=1)]
    probes = inside[rng.integers(len(inside), size=PROBES)] if len(inside) else 0.5 * (low + high)[None]
    tried = actions[rng.integers(len(actions), size=len(probes))]
    usual = np.quantile(dynamics.std(probes, tried), 0.95)
    for i in np.flatnonzero(~space.angular):
        for end, limit in ((low, farthest[0][i]), (high, farthest[1][i])):
            for share in (1.0, 0.75, 0.5, 0.25):
                there = probes.copy()
                there[:, i] = end[i] + share * (limit - end[i])
                if np.quantile(dynamics.std(there, tried), 0.95) <= RISE * usual:
                    end[i] += share * (limit - end[i])
                    break
    return whole_turns(space, low, high)


def whole_turns(space: Box, low: Any, high: Any) -> tuple[Any, Any]:
    """The box with angles all the way round."""
    return np.where(space.angular, -np.pi, low), np.where(space.angular, np.pi, high)


def _cut(
    space: Box, low: Any, high: Any, ended: Callable[[Any], Any], rng: np.random.Generator
) -> tuple[Any, Any]:
    """The box within the bounds, and no wider than the states in it that do not end an episode."""
    low, high = np.maximum(low, space.low), np.minimum(high, space.high)
    tried = rng.uniform(low, high, (DENSE, space.size))
    going = tried[~ended(tried)]
    if not len(going):
        return low, high
    return np.maximum(low, going.min(axis=0)), np.minimum(high, going.max(axis=0))
