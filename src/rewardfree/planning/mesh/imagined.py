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
    exact = _is_exact(plans[0])
    groups = [[plan] for plan in plans] if exact else [list(plans)]
    return [
        outcome
        for group, part in zip(groups, parts(tell, len(groups)), strict=True)
        for outcome in _followed(group, starts, discount, exact, part)
    ]


def random_returns(plan: MeshPlan, starts: Any, discount: float = 1.0) -> Any:
    """Returns (k,) that random actions have in a plan's model, from states (k,d): see `imagined_returns`."""
    rng, on_mesh, space = stream(0, "random actions"), plan.on_mesh, plan.on_mesh.spaces.state
    interpolated, steps = not _is_exact(plan), _steps(plan, discount)
    drawn = rng.integers(len(on_mesh.actions), size=(steps, len(starts)))
    state, going, walked = starts.copy(), np.arange(len(starts)), []
    for h in range(steps):
        if not len(going):
            break
        now, chosen = state[going], drawn[h, going]
        action = on_mesh.actions[chosen]
        if interpolated:
            nodes, weights = on_mesh.mesh.corners(now)
            change = np.einsum("nk,nkd->nd", weights, on_mesh.change[nodes, chosen[:, None]])
            next_state = space.wrapped(now + change)
        else:
            next_state = _following(plan, now, action, rng)
        walked.append((np.full(len(now), h), going, now, action, next_state))
        state[going] = next_state
        going = going[~on_mesh.is_end(next_state)]
    step, owner, *pairs = (np.concatenate(part) for part in zip(*walked, strict=True))
    if plan.reward.uses_step:
        gained = np.concatenate([plan.reward(h, *each) for h, (_, _, *each) in enumerate(walked)])
    else:  # all at once, for a call costs more than what it computes
        gained = plan.reward(0, *pairs)
    return np.bincount(owner, discount**step * gained, len(starts))


def _is_exact(plan: MeshPlan) -> bool:
    """Whether its next states are the model's own, and not interpolated on the mesh."""
    return len(plan.on_mesh.mesh.sides) > INTERPOLATED or plan.depth > 1 or plan.on_mesh.noisy


def _steps(plan: MeshPlan, discount: float) -> int:
    """How many steps of an episode are imagined."""
    if plan.horizon is not None:
        return plan.horizon
    return min(2000, math.ceil(math.log(NEGLIGIBLE) / math.log(discount)))


def _followed(
    plans: list[MeshPlan], starts: Any, discount: float, exact: bool, tell: Tell
) -> list[tuple[Any, Any]]:
    steps = _steps(plans[0], discount)
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
    action = plan.choose(now, h)
    next_state = _following(plan, now, action, rng)
    return next_state, plan.reward(h, now, action, next_state), plan.on_mesh.is_end(next_state)


def _following(plan: MeshPlan, now: Any, action: Any, rng: np.random.Generator) -> Any:
    """Next states (n,d) by the model itself, drawn where they are random."""
    on_mesh = plan.on_mesh
    next_state = on_mesh.predictor.next_state(now, action)
    if not on_mesh.noisy:
        return next_state
    draws = on_mesh.noise(now)
    drawn = draws[rng.integers(len(draws), size=len(now)), np.arange(len(now))]
    return on_mesh.moved(next_state, drawn)


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
