"""What a policy would gain inside the model, and which states it would meet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rewardfree.dynamics import Transport
from rewardfree.planning.meshplan import MeshPlan
from rewardfree.streams import stream
from rewardfree.worlds.spaces import Box

#: On so many state variables the mesh is fine enough to interpolate next states on it: much faster.
INTERPOLATED = 2
#: An infinite horizon is followed until so little of a reward would count.
NEGLIGIBLE = 1e-3


def imagined(plan: MeshPlan, starts: Any, discount: float = 1.0) -> tuple[Any, Any]:
    """The returns (k,) of a plan inside the model from states (k,d), and all states met, (n,d)."""
    transport = plan.transport
    steps = plan.horizon
    if steps is None:
        steps = min(2000, math.ceil(math.log(NEGLIGIBLE) / math.log(discount)))
    rng = stream(0, "imagined")
    state, going = starts.copy(), np.arange(len(starts))
    returns, met = np.zeros(len(starts)), [starts]
    for h in range(steps):
        if not len(going):
            break
        now = state[going]
        action, following = _next(plan, transport, now, h)
        if transport.noisy:
            draws = transport.noise(now)
            drawn = draws[rng.integers(len(draws), size=len(now)), np.arange(len(now))]
            following = transport.moved(following, drawn)
        returns[going] += discount**h * plan.reward(h, now, action, following)
        state[going] = following
        met.append(following)
        going = going[~transport.is_end(following)]
    return returns, np.concatenate(met)


def _next(plan: MeshPlan, transport: Transport, state: Any, h: int) -> tuple[Any, Any]:
    """The plan's actions and the mean next states."""
    space = transport.spaces.state
    assert isinstance(space, Box)
    if len(transport.mesh.sides) > INTERPOLATED or plan.depth > 1 or transport.noisy:
        action = plan.choose(state, h)
        return action, transport.moves.next_state(state, action)
    change = transport.mesh.at(transport.change, state)  # (n,a,d)
    following = space.wrapped(state[:, None, :] + change)
    n, a, d = following.shape
    every = following.swapaxes(0, 1).reshape(a * n, d)
    states, actions = transport.spaces.every_pair(state, transport.actions)
    best = plan.gain(states, actions, every, h, 1).reshape(a, n).argmax(axis=0)
    return transport.actions[best], following[np.arange(n), best]
