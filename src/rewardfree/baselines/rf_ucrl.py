"""Tabular exploration that knows when it is done: RF-UCRL and RF-Express.

Both bound the error of every policy for every reward by a recursion over the estimated P, act greedily in
the bound, and stop when it is small at the start. Neither rule depends on epsilon before it stops.
"""

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Array, count
from rewardfree.baselines.counting import CountingStrategy
from rewardfree.estimates import FiniteEstimate
from rewardfree.registry import registered
from rewardfree.strategies import EpisodicStrategy, RunBatch
from rewardfree.ties import Ties

#: The largest float.
MOST_VISITS = sys.float_info.max


@dataclass(frozen=True)
class Sizes:
    """How many states, actions and steps a world has."""

    S: int
    A: int
    H: int


def ucrl_width(n: Array, sizes: Sizes, delta: float) -> Array:
    """b(n) = log(2SAH/delta) + (S-1) log(e (1 + n/(S-1))): n KL(P^, P) <= b(n) for all (s,a,h) and n."""
    S, A, H = sizes.S, sizes.A, sizes.H
    others = max(S - 1, 1)  # with one state the term is 0
    return math.log(2 * S * A * H / delta) + (S - 1) * (1.0 + np.log1p(n / others))


def ucrl_error(h: int, n: Array, b: Array, later: Array, H: int) -> Array:
    """E_h = min(c, c sqrt(2 b/n) + P^ max_a E_{h+1}), c = H-1-h for h from 0: what remains after step h.

    `later` is P^ max_a E_{h+1}. Without a visit it is c.
    """
    c = float(H - 1 - h)
    return np.where(n > 0, np.minimum(c, c * np.sqrt(2.0 * b / np.maximum(n, 1.0)) + later), c)


def express_width(n: Array, sizes: Sizes, delta: float) -> Array:
    """b(n) = log(3SAH/delta) + S log(8e (n+1))."""
    S, A, H = sizes.S, sizes.A, sizes.H
    return math.log(3 * S * A * H / delta) + S * (math.log(8.0) + 1.0 + np.log1p(n))


def express_error(n: Array, b: Array, later: Array, H: int) -> Array:
    """W_h = min(H, 15 H^2 b/n + (1 + 1/H) P^ max_a W_{h+1}); H without a visit."""
    inner = 15.0 * H**2 * b / np.maximum(n, 1.0) + (1.0 + 1.0 / H) * later
    return np.where(n > 0, np.minimum(float(H), inner), float(H))


class ErrorBoundStrategy(CountingStrategy, EpisodicStrategy, ABC):
    """Greedy in a bound on the error that is still possible; done when it is at most epsilon/2 at the start.

    Then plans in the estimated world are epsilon-optimal for all rewards in [0,1], with probability 1 - delta
    if `bonus_scale` is 1. Of a random start the bound is the mean over its law.
    """

    epsilon: float
    delta: float
    bonus_scale: float

    @abstractmethod
    def bound(self, h: int, n: Array, later: Array, sizes: Sizes) -> Array:
        """The bound at (s,a) after n visits at step h, if `later` is expected of it at the next one."""

    @abstractmethod
    def accuracy(self, first: Array) -> Array:
        """What the bound at the first step says of |V^ - V| there, for every policy and reward."""

    def bounds(self, estimate: FiniteEstimate) -> list[Array]:
        """The recursion over all steps with what is known, (b,z) for each."""
        sizes = Sizes(*estimate.grid.shape, estimate.horizon)
        bounds: list[Array] = []
        later: Array = 0.0
        for h in reversed(range(sizes.H)):
            if bounds:
                later = estimate.mean(h, _best(bounds[-1], sizes)[:, :, None])[:, 0]
            bounds.append(self.bound(h, estimate.visits(h), later, sizes))
        return bounds[::-1]

    def at_start(self, first: Array, start: Array) -> Array:
        """`accuracy` of the bound (b,z) at the first step, for the law of the start (s,): (b,)."""
        return self.accuracy(_best(first, Sizes(len(start), first.shape[1] // len(start), 1)) @ start)

    def visits_needed(self, states: int, actions: int, horizon: int) -> int:
        """The least n such that n visits of every (s,a) at every step end the exploration.

        There are that many episodes for each action at the first step, and far more where states are hard to
        reach. With the theory's constants, bonus_scale = 1, 100 states and actions ask for 2e7 to 2e12.
        """
        sizes = Sizes(count(states, "states"), count(actions, "actions"), count(horizon, "horizon"))
        if self._suffice(0, sizes):
            return 0
        low, high = 0, 1
        while not self._suffice(high, sizes):
            low, high = high, 2 * high
            if high > MOST_VISITS:
                raise ValueError(
                    f"epsilon must be larger: {self.epsilon:g} asks for more than {MOST_VISITS:g} visits, "
                    "the largest number there is"
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._suffice(middle, sizes) else (middle, high)
        return high

    def _suffice(self, n: int, sizes: Sizes) -> bool:
        bound: Any = np.zeros(())
        for h in reversed(range(sizes.H)):
            bound = self.bound(h, np.asarray(float(n)), bound, sizes)
        return bool(self.accuracy(bound) <= self.epsilon / 2.0)

    def prepare(self, batch: RunBatch) -> dict[int, Array]:
        bounds = self.bounds(batch.estimate)
        batch.stop(self.at_start(bounds[0], batch.world.start) <= self.epsilon / 2.0)
        return {h: bound[:, None, :] for h, bound in enumerate(bounds)}

    def action(self, batch: RunBatch, h: int, state: Array, q: dict[int, Array]) -> Array:
        return batch.best(h, batch.at_states(q[h], state))


def _best(bound: Array, sizes: Sizes) -> Array:
    """max_a of (b,z): (b,s)."""
    return bound.reshape(len(bound), sizes.S, sizes.A).max(axis=2)


@registered("strategy")
@dataclass(frozen=True)
class RFUCRL(ErrorBoundStrategy):
    """Kaufmann et al. 2021: E_h = min(H-h, (H-h) sqrt(2 b(n)/n) + P^ max_a E_{h+1}), greedy in E.

    Stops when max_a E_1(s_1,a) <= epsilon/2. `bonus_scale` multiplies b(n): 1 is the theory's. Ties are
    broken at random: as long as the bound is clipped everywhere, exploration is uniformly random.
    """

    epsilon: float
    delta: float
    bonus_scale: float = 1.0
    ties: Ties = "random"

    def bound(self, h: int, n: Array, later: Array, sizes: Sizes) -> Array:
        return ucrl_error(h, n, self.bonus_scale * ucrl_width(n, sizes, self.delta), later, sizes.H)

    def accuracy(self, first: Array) -> Array:
        return first


@registered("strategy")
@dataclass(frozen=True)
class RFExpress(ErrorBoundStrategy):
    """Menard et al. 2021: W_h = min(H, 15 H^2 b(n)/n + (1+1/H) P^ max_a W_{h+1}), greedy in W.

    Stops when 3e sqrt(W) + W <= epsilon/2 for W = max_a W_1(s_1,a). `bonus_scale` multiplies b(n): 1 is the
    theory's. Ties are broken at random.
    """

    epsilon: float
    delta: float
    bonus_scale: float = 1.0
    ties: Ties = "random"

    def bound(self, h: int, n: Array, later: Array, sizes: Sizes) -> Array:
        return express_error(n, self.bonus_scale * express_width(n, sizes, self.delta), later, sizes.H)

    def accuracy(self, first: Array) -> Array:
        return 3.0 * math.e * np.sqrt(first) + first
