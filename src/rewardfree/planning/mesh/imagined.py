"""What plans gain inside the model: episodes that are only imagined."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardfree.estimates.backups import bellman_q, until_end
from rewardfree.planning.mesh.plan import MeshPlan
from rewardfree.progress import Tell, parts, tell_nobody
from rewardfree.streams import stream

#: Up to this many state variables next states are interpolated on the mesh, which is much faster.
INTERPOLATED = 2
#: An infinite horizon is followed until a reward would count less than this.
NEGLIGIBLE = 1e-3


def imagined_returns(
    plans: Sequence[MeshPlan], starts: Any, discount: float = 1.0, tell: Tell = tell_nobody
) -> list[tuple[Any, Any]]:
    """For each plan of one reward on one mesh: returns (k,) in the model from states (k,d), and states.

    Where next states are interpolated a step costs as much as its calls, so all plans take it together.
    """
    first = plans[0]
    exact = len(first.on_mesh.mesh.sides) > INTERPOLATED or first.depth > 1 or first.on_mesh.noisy
    groups = [[plan] for plan in plans] if exact else [list(plans)]
    return [
        outcome
        for group, part in zip(groups, parts(tell, len(groups)), strict=True)
        for outcome in _followed(group, starts, discount, exact, part)
    ]


def _followed(
    plans: list[MeshPlan], starts: Any, discount: float, exact: bool, tell: Tell
) -> list[tuple[Any, Any]]:
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
            next_state, gained, ended = _exact_step(plans[0], now, h, rng)
        else:
            next_state, gained, ended = _interpolated_step(plans, going // len(starts), now, h)
        returns[going] += discount**h * gained
        state[going] = next_state
        met.append(next_state)
        owners.append(going)
        going = going[~ended]
        tell((h + 1) / steps)
    every, owner = np.concatenate(met), np.concatenate(owners) // len(starts)
    return [(gained, every[owner == i]) for i, gained in enumerate(returns.reshape(len(plans), -1))]


def _exact_step(plan: MeshPlan, now: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Next states, rewards and ends, by the model itself."""
    on_mesh = plan.on_mesh
    action = plan.choose(now, h)
    next_state = on_mesh.predictor.next_state(now, action)
    if on_mesh.noisy:
        draws = on_mesh.noise(now)
        drawn = draws[rng.integers(len(draws), size=len(now)), np.arange(len(now))]
        next_state = on_mesh.moved(next_state, drawn)
    return next_state, plan.reward(h, now, action, next_state), on_mesh.is_end(next_state)


def _interpolated_step(plans: list[MeshPlan], owner: Any, now: Any, h: int) -> tuple[Any, Any, Any]:
    """The same between the nodes, for states (n,d) of which each follows the plan of its owner (n,)."""
    on_mesh, space = plans[0].on_mesh, plans[0].on_mesh.spaces.state
    n, a, d = len(now), len(on_mesh.actions), now.shape[1]
    change = on_mesh.mesh.at(on_mesh.change, now).swapaxes(0, 1)  # (a,n,d)
    every = space.wrapped((now + change).reshape(a * n, d))
    states, actions = on_mesh.spaces.every_pair(now, on_mesh.actions)
    gained = plans[0].reward(h, states, actions, every).reshape(a, n)
    ended = on_mesh.is_end(every).reshape(a, n)
    q, corners = np.empty_like(gained), on_mesh.mesh.corners(every)
    for i, plan in enumerate(plans):
        mine = slice(*np.searchsorted(owner, (i, i + 1)))
        nodes, weights = (part.reshape(a, n, -1)[:, mine].reshape(-1, part.shape[1]) for part in corners)
        later = plan.later(nodes, weights, h).reshape(a, -1)
        q[:, mine] = bellman_q(gained[:, mine], until_end(later, ended[:, mine]), plan.discount)
    best = q.argmax(axis=0), np.arange(n)
    return every.reshape(a, n, d)[best], gained[best], ended[best]
