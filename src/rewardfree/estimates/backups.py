"""Every Bellman line of the paper, once: what Q_h is, given [P_h V_{h+1}] and sigma_h.

`mean` is the estimate of [P_h V_{h+1}] and may be overwritten; None says that V_{h+1} = 0. `sigma` is
sigma_h; both broadcast. Clipping is monotone, so Q is left as it is and V = max_a Q is clipped, by
`state_value`. The paper's h = 1..H is 0..H-1 here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rewardfree.arrays import Array, clip, namespace
from rewardfree.ties import argmax_clipped

#: What Q is at a step without data: 0, or what the prior gives.
Empty: TypeAlias = Literal["zero", "prior"]
#: What sigma is worth to an explorer, by its name.
Objective: TypeAlias = Literal["sigma", "variance", "information"]
#: Scout's E has settled if it changes by no more than this, relative to the largest.
SETTLED_E = 1e-3


@dataclass(frozen=True)
class Backup:
    """One Bellman line with its options fixed: what a recursion over the steps needs to know."""

    q: Callable[[Any, Any, Any, int], Array]  # Q_h of r_h, mean, sigma (or None) and the steps to go
    limits: Callable[[int], tuple[float, float]]  # the range of V with k steps to go
    empty: Empty = "prior"
    around: Callable[[int], float] | None = None  # V with k steps to go is regressed around this; None: 0
    uses_sigma: bool = True


def bellman_q(reward: Array | None, mean: Array | None, discount: float = 1.0) -> Array:
    """Q_h = r_h + discount [P_h V_{h+1}], the line that all others add something to; None is 0."""
    if mean is None:
        return reward
    if discount != 1.0:
        mean *= discount
    if reward is not None:
        mean += reward
    return mean


def alg1_q(
    reward: Array | None,
    mean: Array,
    sigma: Array | None,
    weight: float,
    span: Any,
    discount: float = 1.0,
) -> Array:
    """Alg 1, line 3: Q_h = mean_h[V_{h+1}] + r_h + weight sigma_h, the bonus cut to -span..span.

    `weight` is beta for optimism, 0 for the mean, -beta for pessimism; `span` is H in the paper.
    """
    if weight and sigma is not None:
        mean, discount = bellman_q(clip(weight * sigma, -span, span), mean, discount), 1.0
    return bellman_q(reward, mean, discount)


def alg3_q(mean: Array | None, sigma: Array, beta: float) -> Array:
    """Alg 3, line 6: Q_h = mean_h[V_{h+1}] + beta sigma_h."""
    return bellman_q(beta * sigma, mean)


def qiu_q(mean: Array | None, sigma: Array, beta: float, horizon: int) -> Array:
    """Qiu et al. 2021, their exploration phase: Q_h = mean_h[V_{h+1}] + u/H + u, u = min(beta sigma_h, H).

    u/H stands in the place of the reward, and u is the bonus.
    """
    bonus = clip(beta * sigma, 0.0, float(horizon)) * (1.0 + 1.0 / horizon)
    return bellman_q(bonus, mean)


def greedy_q(sigma: Array) -> Array:
    """Greedy Max Variance, the heuristic of section 5: Q_h = sigma_h, which does not look ahead."""
    return sigma


def scout_q(gain: Array, mean: Array | None, discount: float = 1.0) -> Array:
    """Scout: E_h = gain(sigma_h) + discount mean_h[max_a E_{h+1}], optimism about what is learnt."""
    return bellman_q(gain, mean, discount)


def zero_without_data(values: Array, empty: Empty, samples: int) -> Array:
    """Mean, sigma or Q_h (...): 0 if step h has no samples, where that is what `empty` says."""
    return namespace(values).zeros_like(values) if empty == "zero" and samples == 0 else values


def until_end(later: Array, ended: Array) -> Array:
    """V(s') of next states (...), of which those that ended an episode count as 0: nothing follows."""
    return np.where(ended, 0.0, later)


def settled(update: Callable[[Array], Array], value: Array, sweeps: int) -> Array:
    """E = update(E), from one E to the next until it hardly changes, or for that many sweeps."""
    for _ in range(sweeps):
        before, value = value, update(value)
        if np.abs(value - before).max() <= SETTLED_E * value.max():
            break
    return value


def state_value(q: Array, low: Any, high: Any) -> Array:
    """V_h(s) = max_a clip(Q_h(s,a), low, high), for Q (...,a): (...)."""
    return clip(namespace(q).max(q, axis=-1), low, high)


def best_of_clipped(q: Array, low: Any, high: Any, uniform: Array | None = None) -> tuple[Array, Array]:
    """V_h(s) and argmax_a clip(Q_h(s,a), low, high), both (...); ties as `argmax_tied` decides them.

    `low` and `high` are numbers, or arrays that broadcast against V.
    """
    value = state_value(q, low, high)
    return value, argmax_clipped(q, value, low, uniform)


def remaining_range(low: Any, high: Any, discount: float = 1.0, may_end: bool = False) -> tuple[Any, Any]:
    """What the steps from h on can pay at least and at most, (...,h) each, for r_h in low..high (...,h).

    sum_k discount^k low_{h+k}, and the same for high; an episode that may end before can always pay 0.
    """
    ends = np.array([low, high], np.float64)
    for h in reversed(range(ends.shape[-1] - 1)):
        ends[..., h] = bellman_q(ends[..., h], ends[..., h + 1].copy(), discount)
    return (np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0)) if may_end else (ends[0], ends[1])


def sigma_gain(sigma: Array, ridge: float) -> Array:
    """sigma: RF-UCRL's form."""
    return sigma


def variance_gain(sigma: Array, ridge: float) -> Array:
    """sigma^2: RF-Express's form."""
    return sigma * sigma


def information_gain(sigma: Array, ridge: float) -> Array:
    """1/2 log(1 + sigma^2/ridge): the information that a sample adds."""
    return 0.5 * namespace(sigma).log1p(sigma * sigma / ridge)


OBJECTIVES: dict[str, Callable[[Array, float], Array]] = {
    "sigma": sigma_gain,
    "variance": variance_gain,
    "information": information_gain,
}


def objective_named(name: Any) -> Callable[[Array, float], Array]:
    """A function of sigma and the ridge."""
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {name!r}")
    return OBJECTIVES[name]
