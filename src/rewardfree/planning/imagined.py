"""What policies would gain inside the model, and which states they would meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardfree.planning.meshplan import MeshPlan
from rewardfree.streams import stream

#: On so many state variables the mesh is fine enough to interpolate next states on it: much faster.
INTERPOLATED = 2
#: An infinite horizon is followed until so little of a reward would count.
NEGLIGIBLE = 1e-3


def imagined(plans: Sequence[MeshPlan], starts: Any, discount: float = 1.0) -> list[tuple[Any, Any]]:
    """For plans of one reward on one mesh: the returns (k,) inside the model from states (k,d), and all met.

    Where next states are interpolated a step costs as much as its calls, so all plans take it together.
    """
    first = plans[0]
    exact = len(first.transport.mesh.sides) > INTERPOLATED or first.depth > 1 or first.transport.noisy
    groups = [[plan] for plan in plans] if exact else [list(plans)]
    return [found for group in groups for found in _followed(group, starts, discount, exact)]


def _followed(plans: list[MeshPlan], starts: Any, discount: float, exact: bool) -> list[tuple[Any, Any]]:
    steps = plans[0].horizon
    if steps is None:
        steps = min(2000, math.ceil(math.log(NEGLIGIBLE) / math.log(discount)))
    rng = stream(0, "imagined")
    state = np.tile(starts, (len(plans), 1))  # plan by plan
    going = np.arange(len(state))
    returns, met, owners = np.zeros(len(state)), [state.copy()], [going]
    for h in range(steps):
        if not len(going):
            break
        now = state[going]
        if exact:
            following, gained, ended = _exact_step(plans[0], now, h, rng)
        else:
            following, gained, ended = _interpolated_step(plans, going // len(starts), now, h)
        returns[going] += discount**h * gained
        state[going] = following
        met.append(following)
        owners.append(going)
        going = going[~ended]
    every, owner = np.concatenate(met), np.concatenate(owners) // len(starts)
    return [(each, every[owner == i]) for i, each in enumerate(returns.reshape(len(plans), -1))]


def _exact_step(plan: MeshPlan, now: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Next states, rewards and ends, by the model itself."""
    transport = plan.transport
    action = plan.choose(now, h)
    following = transport.moves.next_state(now, action)
    if transport.noisy:
        draws = transport.noise(now)
        drawn = draws[rng.integers(len(draws), size=len(now)), np.arange(len(now))]
        following = transport.moved(following, drawn)
    return following, plan.reward(h, now, action, following), transport.is_end(following)


def _interpolated_step(plans: list[MeshPlan], owner: Any, now: Any, h: int) -> tuple[Any, Any, Any]:
    """The same between the nodes, for states (n,d) of which each follows the plan of its owner (n,)."""
    transport, space = plans[0].transport, plans[0].transport.spaces.state
    n, a, d = len(now), len(transport.actions), now.shape[1]
    change = transport.mesh.at(transport.change, now).swapaxes(0, 1)  # (a,n,d)
    every = space.wrapped((now + change).reshape(a * n, d))
    states, actions = transport.spaces.every_pair(now, transport.actions)
    gained = plans[0].reward(h, states, actions, every).reshape(a, n)
    ended = transport.is_end(every).reshape(a, n)
    q, corners = gained.copy(), transport.mesh.corners(every)
    for i, plan in enumerate(plans):
        mine = slice(*np.searchsorted(owner, (i, i + 1)))
        nodes, weights = (each.reshape(a, n, -1)[:, mine].reshape(-1, each.shape[1]) for each in corners)
        later = plan.later(nodes, weights, h).reshape(a, -1)
        q[:, mine] += plan.discount * np.where(ended[:, mine], 0.0, later)
    best = q.argmax(axis=0), np.arange(n)
    return every.reshape(a, n, d)[best], gained[best], ended[best]
