"""How good a policy really is: exact dynamic programming on a world whose law is known.

A second road, on purpose: what judges plans shares no Bellman line with what makes them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rewardfree.arrays import Array, Floats, Values, namespace, to_numpy
from rewardfree.planning import Plan
from rewardfree.rewards import FiniteReward, TabledReward
from rewardfree.worlds.finite import FiniteWorld, check_world


@dataclass(frozen=True)
class Gap:
    """V* - V^pi at the first step, in the reward's own units; arrays (...) for many policies at once."""

    start: Values  # expected over the world's start
    mean: Values  # over all states
    max: Values  # over all states: what epsilon-optimality is about


def expected_reward(world: FiniteWorld, reward: FiniteReward) -> Any:
    """r_h(s,a), or its mean over the world's next states, (h,s,a); h has length 1 if none changes with it."""
    return TabledReward(reward, world.grid, world.horizon).expected(world.law, world.stationary)


def optimal_value(world: FiniteWorld, reward: FiniteReward) -> Floats:
    """V*_h(s) = max_a [r_h + P_h V*_{h+1}], (h,s)."""
    check_world(world)
    return _backwards(world, expected_reward(world, reward), lambda h, q: q.max(axis=-1))


def policy_value(world: FiniteWorld, plan: Plan | npt.ArrayLike, reward: FiniteReward) -> Floats:
    """V^pi_h(s) = r_h(s,pi) + [P_h V^pi_{h+1}](s,pi), (h,s), exact.

    `plan` is a plan, or actions (...,h,s) as whole numbers, or a random policy's probabilities (h,s,a).
    """
    check_world(world)
    r = expected_reward(world, reward)
    s, a = world.grid.shape
    if isinstance(plan, Plan):
        plan = np.stack([plan.act(np.arange(s), h) for h in range(world.horizon)])
    policy = np.asarray(plan)
    if policy.dtype.kind == "f" and policy.shape[-3:] == (world.horizon, s, a):
        return _value_of_probabilities(world, r, policy)
    if policy.dtype.kind not in "iu" or policy.shape[-2:] != (world.horizon, s):
        raise ValueError(
            f"a policy must be a plan, actions of shape ({world.horizon}, {s}), or probabilities of shape "
            f"({world.horizon}, {s}, {a}), got {policy.dtype} of shape {policy.shape}"
        )
    if policy.size and (policy.min() < 0 or policy.max() >= a):
        raise ValueError(f"actions must lie in 0..{a - 1}, got {policy.min()}..{policy.max()}")
    return np.asarray(values_of_actions(world.P, r, policy))


def values_of_actions(P: Array, reward: Array, actions: Array) -> Array:
    """V^pi_h(s) for P (s,a,s') or (h,s,a,s'), rewards (h,s,a), actions (...,h,s), all on one device."""
    xp = namespace(P, reward, actions)
    horizon, s = actions.shape[-2:]
    states = xp.arange(s, device=getattr(P, "device", None))
    values: list[Any] = [None] * horizon
    value = None
    for h in reversed(range(horizon)):
        chosen = actions[..., h, :]
        values[h] = reward[_step(reward, h)][states, chosen]
        if value is not None:
            law = (P if P.ndim == 3 else P[h])[states, chosen]  # (...,s,s')
            values[h] = values[h] + (law @ value[..., None])[..., 0]
        value = values[h]
    return xp.stack(values, axis=-2)


def gap(world: FiniteWorld, plan: Plan | npt.ArrayLike, reward: FiniteReward) -> Gap:
    """How much worse than optimal a policy is: see `policy_value` for what `plan` may be."""
    return gap_of_values(world, optimal_value(world, reward)[0], policy_value(world, plan, reward)[..., 0, :])


def myopic_gap(world: FiniteWorld, reward: FiniteReward) -> Gap:
    """The gap of the policy argmax_a r_h(s,a), the lowest action among equals: a bandit's."""
    check_world(world)
    r = expected_reward(world, reward)
    actions = np.broadcast_to(r.argmax(axis=-1), (world.horizon, len(world.states)))
    return gap(world, actions, reward)


def random_gap(world: FiniteWorld, reward: FiniteReward) -> Gap:
    """The gap of uniformly random actions."""
    check_world(world)
    s, a = world.grid.shape
    return gap(world, np.full((world.horizon, s, a), 1.0 / a), reward)


def gap_of_values(world: FiniteWorld, optimal: Any, achieved: Any) -> Gap:
    """The gap between first-step values (s,) and (...,s)."""
    loss = optimal - to_numpy(achieved)
    measures = (loss @ world.start, loss.mean(axis=-1), loss.max(axis=-1))
    return Gap(*(float(m) if m.ndim == 0 else m for m in measures))


def _value_of_probabilities(world: FiniteWorld, r: Any, policy: Any) -> Floats:
    if policy.ndim != 3 or not (policy.min() >= 0.0 and np.abs(policy.sum(axis=-1) - 1.0).max() <= 1e-9):
        raise ValueError("a random policy must have one distribution over actions for each step and state")
    return _backwards(world, r, lambda h, q: (policy[h] * q).sum(axis=-1))


def _backwards(world: FiniteWorld, r: Any, of_step: Callable[[int, Any], Any]) -> Floats:
    """V_h(s), (h,s), which `of_step` makes of h and r_h + P_h V_{h+1}, (s,a)."""
    values, value = np.zeros((world.horizon, len(world.states))), np.zeros(len(world.states))
    for h in reversed(range(world.horizon)):
        value = values[h] = of_step(h, r[_step(r, h)] + world.law(h) @ value)
    return values


def _step(reward: Any, h: int) -> int:
    """Where r_h is in a table (h,s,a) whose first axis may have length 1."""
    return h if reward.shape[0] > 1 else 0
