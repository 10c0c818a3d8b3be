"""Which states a mesh should cover: what was seen, what can be believed beyond it, and no ends."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.dynamics.learnt import Dynamics
from rewardfree.streams import stream
from rewardfree.worlds.spaces import Box

#: The seen range is widened by the first factor, and by up to the second where an end of episodes lies there.
MARGIN, FARTHEST = 1.1, 10.0
#: Beyond the seen range a prediction is trusted if its spread is at most the first number times that within
#: it, or the second as a share of the state change's own.
RISE, SMALL = 2.0, 0.02
PROBES, DENSE = 300, 20_000
#: The least half of a box, as a share of its middle: of a variable that never changes all nodes would be one.
LEAST_HALF = 1e-9


def trusted_box(
    dynamics: Dynamics, states: Any, ended: Callable[[Any], Any], actions: Any
) -> tuple[Any, Any]:
    """Low and high ends (d,) of the states to plan on, for states (n,d) that were seen.

    The seen range and a margin, cut to the world's bounds and to states that do not end an episode; grown up
    to such an end as far as predictions stay sharp: where the dynamics do not depend on a variable, they are
    known far beyond where it was seen, and a plan must know that an episode will end there.
    """
    space: Box = dynamics.space
    states = space.wrapped(states)
    low, high = states.min(axis=0), states.max(axis=0)
    middle, half = 0.5 * (low + high), least_half(0.5 * (high - low), 0.5 * (low + high), 1e-12)
    rng, bounds = stream(0, "extent"), dynamics.ends
    far = np.maximum(middle - FARTHEST * half, bounds[0]), np.minimum(middle + FARTHEST * half, bounds[1])
    ends = _cut(bounds, *far, ended, rng)
    low, high = _cut(bounds, middle - MARGIN * half, middle + MARGIN * half, ended, rng)
    inside = states[((states >= low) & (states <= high)).all(axis=1)]
    probes = inside[rng.integers(len(inside), size=PROBES)] if len(inside) else 0.5 * (low + high)[None]
    tried = actions[rng.integers(len(actions), size=len(probes))]
    believed = max(RISE * np.quantile(dynamics.spread(probes, tried), 0.95), SMALL)
    for i in np.flatnonzero(~space.angular):
        for end, limit, beyond in zip((low, high), ends, far, strict=True):
            if abs(limit[i] - beyond[i]) <= 0.02 * (far[1][i] - far[0][i]):
                continue  # nothing ends there
            for share in (1.0, 0.75, 0.5, 0.25):
                there = probes.copy()
                there[:, i] = end[i] + share * (limit[i] - end[i])
                if np.quantile(dynamics.spread(there, tried), 0.95) <= believed:
                    end[i] += share * (limit[i] - end[i])
                    break
    return whole_turns(space, low, high)


def whole_turns(space: Box, low: Any, high: Any) -> tuple[Any, Any]:
    """The box with angles all the way round."""
    return np.where(space.angular, -np.pi, low), np.where(space.angular, np.pi, high)


def least_half(half: Any, middle: Any, least: float) -> Any:
    """Halves of a box round its middle, (d,) each, wide enough that nodes between its ends differ."""
    return np.maximum(half, np.maximum(least, LEAST_HALF * np.abs(middle)))


def met_box(
    dynamics: Dynamics, met: Any, starts: Any, ended: Callable[[Any], Any], margin: float
) -> tuple[Any, Any]:
    """Low and high ends (d,) round states (n,d) that a plan meets, without ends of episodes.

    As far to both sides of the mean first state, so that it is a node of a mesh with odd sides.
    """
    middle = starts.mean(axis=0)
    half = least_half((1.0 + margin) * np.abs(met - middle).max(axis=0), middle, 1e-12)
    low, high = _cut(dynamics.ends, middle - half, middle + half, ended, stream(0, "extent"))
    return whole_turns(dynamics.space, low, high)


def _cut(
    bounds: tuple[Any, Any], low: Any, high: Any, ended: Callable[[Any], Any], rng: np.random.Generator
) -> tuple[Any, Any]:
    """The box within the bounds, and no wider than the states in it that do not end an episode."""
    low, high = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
    tried = rng.uniform(low, high, (DENSE, len(low)))
    going = tried[~ended(tried)]
    if not len(going):
        return low, high
    return np.maximum(low, going.min(axis=0)), np.minimum(high, going.max(axis=0))
