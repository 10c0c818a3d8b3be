"""How good a policy is in the world itself: play it, and count a reward of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import stdtrit

from rewardfree.arrays import (
    FARTHEST_STATE,
    Flags,
    Floats,
    Integers,
    as_discount,
    as_horizon,
    count,
    counted,
    probability,
)
from rewardfree.budget import LARGEST_BUDGET
from rewardfree.evaluation.expectation import doubt_return
from rewardfree.planning import Plan
from rewardfree.rewards import FiniteReward, RewardFunction, TabledReward, WorldReward
from rewardfree.strategies import WorldFailed
from rewardfree.streams import stream
from rewardfree.worlds import (
    Box,
    Environment,
    FiniteWorld,
    LabelledWorld,
    World,
    as_world,
    check_declared,
    stepped,
)


@runtime_checkable
class Policy(Protocol):
    """A policy of one's own."""

    def act(self, state: Any, h: int) -> Any:
        """The actions at states (n,d), labels (n,)."""


@dataclass(frozen=True, eq=False)
class Score:
    """The returns of some episodes, in the reward's own units."""

    returns: Floats  # (e,)
    lengths: Integers  # (e,) steps
    terminated: Flags  # (e,): the system ended, its time was not over

    @property
    def mean(self) -> float:
        return float(self.returns.mean())

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A confidence interval of the mean return: Student's t, cut to the range of the returns.

        Returns cannot go beyond what the reward can give, but t's interval may. Where it is cut, as with few
        episodes, it holds the mean less often than `confidence`: between two, half the time.
        """
        confidence, n = probability(confidence, "confidence"), len(self.returns)
        if n < 2:
            raise ValueError("one episode has no interval: play at least two")
        half = float(stdtrit(n - 1, 0.5 + 0.5 * confidence)) * float(self.returns.std(ddof=1)) / n**0.5
        low, high = np.clip((self.mean - half, self.mean + half), self.returns.min(), self.returns.max())
        return float(low), float(high)

    def __repr__(self) -> str:
        n, between = len(self.returns), ""
        if n > 1:
            low, high = self.interval()
            between = f" in {low:.4g} .. {high:.4g}"
        return f"Score({self.mean:.4g}{between}, {counted(n, 'episode')})"


def rollouts(
    world: World | FiniteWorld | Environment,
    plan: Plan | Policy,
    reward: FiniteReward | WorldReward,
    episodes: int = 20,
    seed: int = 0,
    *,
    horizon: int | None = None,
    discount: float = 1.0,
) -> Score:
    """Play episodes of a plan and count `reward`, which is never the world's own: it has none.

    Every episode has a stream of its own, so that it does not depend on the others. Episodes are as long as
    the plan's horizon, or `horizon`, or the world's; `discount` counts later rewards less. A Gymnasium
    environment or its id is taken as `from_gymnasium` makes a world of it. Three or more episodes of a plan's
    own reward that return much less than its model says raise `rf.doubts.MissedReturn`.
    """
    episodes, seed = count(episodes, "episodes", at_most=LARGEST_BUDGET), count(seed, "seed", at_least=0)
    if not isinstance(plan, Plan | Policy):
        raise TypeError(f"plan must be a plan, or a policy with act(state, h), got {plan!r:.200}")
    system = as_world(world)
    simulator = LabelledWorld(system) if isinstance(system, FiniteWorld) else system
    check_declared(simulator)
    planned = plan.horizon if isinstance(plan, Plan) else None
    steps = as_horizon(horizon) if horizon is not None else planned or simulator.horizon
    if steps > simulator.horizon:
        raise ValueError(
            f"{steps} steps were asked for, and episodes of this world have {simulator.horizon}: "
            "give a smaller horizon=, or make the world with a longer one"
        )
    discount = as_discount(discount)
    reward_of = _reward_of(system, reward, steps)
    copies = _copies(simulator, episodes)
    returns, lengths, ended = np.zeros(episodes), np.zeros(episodes, np.int64), np.zeros(episodes, bool)
    size, first_states = len(copies), []
    for first in range(0, episodes, size):  # all at once where there can be several worlds, else one by one
        numbers = np.arange(first, min(first + size, episodes))
        with _failing("at the beginning of an episode"):
            states = [copies[i - first].reset(stream(seed, "rollout", int(i))) for i in numbers]
        now = _as_states(states, "at the beginning of an episode")
        first_states += list(now)
        for h in range(steps):
            if not len(numbers):
                break
            actions: Any = plan.act(now.copy(), h)  # a policy of one's own may work in place
            if np.ndim(actions) == 0 or len(actions) != len(numbers):
                states_here = counted(len(numbers), "state")
                raise ValueError(f"act must return an action for each of {states_here}, got {actions!r:.200}")
            with _failing(f"at step {h}"):
                after = [
                    stepped(copies[i - first], action) for i, action in zip(numbers, actions, strict=True)
                ]
            next_states = _as_states([step[0] for step in after], f"at step {h}")
            if isinstance(simulator.action, Box):  # in whatever dtype the world takes them
                actions = np.asarray(actions, np.float64)
            returns[numbers] += discount**h * reward_of(h, now, actions, next_states)
            lengths[numbers] += 1
            ended[numbers] = [step[1] for step in after]
            going = np.array([not (step[1] or step[2]) for step in after], bool)
            numbers, now = numbers[going], next_states[going]
    if isinstance(plan, Plan) and plan.horizon == steps:
        begun = _as_states(first_states, "at the beginning of an episode")
        doubt_return(plan, reward, begun, returns, discount)
    return Score(returns, lengths, ended)


def _as_states(returned: list[Any], where: str) -> Any:
    """What a world returned for some episodes, copied, if these are states."""
    try:
        states = np.array(returned)
    except ValueError as error:
        raise WorldFailed(f"the world returned states of several shapes {where}: {error}") from error
    what = None
    if states.dtype.kind not in "iufb":
        what = f"is no real numbers {where}, got {states.dtype}"
    elif states.dtype.kind == "f" and not np.isfinite(states).all():
        what = f"is not finite {where}"
    elif states.dtype.kind == "f" and (largest := np.abs(states).max(initial=0.0)) >= FARTHEST_STATE:
        what = f"must stay below {FARTHEST_STATE:g} {where}, got {largest:g}"
    if what is not None:
        raise WorldFailed(f"the world returned a state that {what}")
    return states


@contextmanager
def _failing(where: str) -> Iterator[None]:
    """Whatever a world raises there, as the error of a world."""
    try:
        yield
    except Exception as error:
        raise WorldFailed(f"the world failed {where}: {error!r}") from error


def _reward_of(world: Any, reward: Any, horizon: int) -> Any:
    if not isinstance(world, FiniteWorld):
        return RewardFunction(reward, world.spaces)
    tabled = TabledReward(reward, world.grid, horizon)

    def paid(h: int, state: Any, action: Any, next_state: Any) -> Any:
        return tabled.at(h)[(state, action, next_state) if tabled.uses_next else (state, action)]

    return paid


def _copies(world: World, most: int) -> list[World]:
    """As many copies of a world as episodes are played, or it alone if it cannot be copied."""
    first = world.copy()
    if first is None:
        return [world]
    copies = [first]
    for _ in range(most - 1):
        twin = world.copy()
        if twin is None:
            return [world]
        copies.append(twin)
    return copies
