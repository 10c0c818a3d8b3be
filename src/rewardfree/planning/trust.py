"""What a user is told before trusting a plan: warnings about its data, its reward and its planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.special import stdtrit

from rewardfree.arrays import counted
from rewardfree.data import Experience, Samples
from rewardfree.doubts import (
    ConstantReward,
    FallbackPlanner,
    FitOnBounds,
    LargeError,
    NoBetterThanRandom,
    UnknownStates,
    doubt,
)
from rewardfree.dynamics import MOST_VARIABLES, Dynamics, has_mesh
from rewardfree.kernels import Sum
from rewardfree.kernels.fitting import evenly, whole_parts
from rewardfree.model import Model
from rewardfree.planning.finite import states_that_end
from rewardfree.planning.planner import PlanRequest
from rewardfree.rewards import RewardFunction, TabledReward
from rewardfree.streams import stream
from rewardfree.worlds.spaces import Box, Space

#: An error of what is left out, as a share of a constant change's, that is large. A bound is only blamed for
#: one: with a strong linear part and random changes the ridge sits there, and predicts what can be.
LARGE = 0.7
#: How sure it must be where next states are random that random actions return more.
LEVEL = 0.95
#: Returns that differ by less than this share of their size are equal, as where a reward is constant.
ALIKE = 1e-9
#: How many of the states that a plan meets are checked, and which share of them may be far from those seen.
MOST_MET, FAR_SHARE = 500, 0.1
#: Blocks of the transitions that are left out, and how long one may be.
BLOCKS, BLOCK = 5, 20
#: Up to so many transitions, or with a larger error of the blocks, all episodes are left out as well, else
#: some with this number of transitions: it takes O(n^2) for each.
CHEAP, LOOK, ROWS = 500, 0.1, 200
#: Differences of a reward below this share of its size are rounding.
ROUNDING = 1e-12
#: A reward differs too little on what was seen if elsewhere it is better by more than its differences there,
#: divided by this. So many points of the declared bounds are looked at, and at most so many steps.
TAIL, ELSEWHERE, MOST_STEPS = 1e-3, 400, 8
#: What was seen of a variable is widened by this many times its range, to both sides, within its bounds:
#: where these are guessed far too wide, even a linear reward would have its body elsewhere.
AROUND = 10.0


def named(what: str, number: int, count: int) -> str:
    """One of `count`, as messages call it: "the plan" alone, or "plan 2 of 3"."""
    return f"the {what}" if count == 1 else f"{what} {number + 1} of {count}"


def doubt_rewards(request: PlanRequest) -> None:
    """Warn of each reward that is the same in all that was seen, or hardly differs there beside elsewhere.

    Where nothing is paid after an end, which is so unless the world is finite, a constant other than 0 tells
    plans apart once an episode was seen to end.
    """
    if not len(request.data):
        return
    for i, reward in enumerate(request.rewards):
        value, tail = None, None
        with suppress(ValueError):  # a planner of one's own may take rewards of another kind
            value = _only_value(request, reward)
            tail = _tail(request, reward) if value is None else None
        if tail is not None:
            doubt(ConstantReward, f"{named('reward', i, len(request.rewards))} is {tail}")
        if value is None:
            continue
        ended = bool(request.data_with_ends.terminated.any())  # then a constant tells plans apart
        if ended and value != 0.0 and isinstance(request.data, Experience):
            continue
        seen = f"on all {counted(len(request.data), 'step')} that were seen"
        doubt(
            ConstantReward,
            f"{named('reward', i, len(request.rewards))} is {value:.4g} {seen}"
            f"{'' if ended else ', and no episode ended'}: where it differs is a guess; "
            "explore more, until it differs on what was seen, or check the reward",
        )


def _tail(request: PlanRequest, given: Any) -> str | None:
    """What is to be said of a reward that on what was seen differs as a tail does, whose body lies elsewhere.

    A quadratic cost within wide bounds is none: the least cost was seen, and only what is worse was not.
    """
    data = request.data
    if not isinstance(data, Experience) or not data.is_box:
        return None
    reward = RewardFunction(given, data.spaces)
    steps = evenly(_steps(request), MOST_STEPS) if reward.uses_step else (0,)
    seen = [reward(h, data.state, data.action, data.next_state) for h in steps]
    low, high = (float(end(seen)) for end in (np.min, np.max))
    there, tried = _anywhere(data)
    best = -np.inf
    with suppress(Exception), np.errstate(all="ignore"):  # a user's function may be made for what was seen
        best = max(float(reward(h, there, tried, there).max()) for h in steps)
    if high - low >= TAIL * (best - high):
        return None
    return (
        f"{low:.4g} to {high:.4g} on all {counted(len(data), 'step')} that were seen, and up to {best:.4g} "
        "elsewhere within the bounds: what pays was not seen; explore more, until it was, or check the reward"
    )


def _anywhere(data: Experience) -> tuple[Any, Any]:
    """States (n,d) and actions round what was seen, within their bounds."""
    rng = stream(0, "anywhere")

    def points(space: Space, seen: Any) -> Any:
        if not isinstance(space, Box):
            return rng.integers(space.n, size=ELSEWHERE)
        low, high = space.wrapped(seen).min(axis=0), space.wrapped(seen).max(axis=0)
        more = AROUND * (high - low)
        low, high = np.maximum(space.low, low - more), np.minimum(space.high, high + more)
        return rng.uniform(low, high, (ELSEWHERE, space.size))

    return points(data.spaces.state, data.state), points(data.spaces.action, data.action)


def doubt_fit(data: Experience, dynamics: Dynamics, model: Model) -> None:
    """Warn of a kernel that predicts little of what is left out, once for these data and this model."""
    error = left_out_error(dynamics)
    if error <= LARGE:  # steps beside a block tell much of it, and of a whole episode nothing may
        cheap = len(dynamics.points) <= CHEAP or error > LOOK
        error = left_out_error(dynamics, _episodes_left_out(data.at(np.flatnonzero(data.kept)), cheap))
    if error <= LARGE:
        return
    bounds = dynamics.scaled.on_bounds if model.automatic else ()
    missed = (
        f"parts of the data that are left out have {error:.0%} of a constant change's error: explore more"
    )
    noise = "if changes are random, a plan can only follow their mean"
    if bounds:
        sits = "sits" if len(bounds) == 1 else "sit"
        at = f"the fitted {' and '.join(bounds)} of the kernel {sits} on a bound"
        text = f"{at}, and {missed}; or give a kernel of your own (rf.Model); {noise}"
        doubt(FitOnBounds, text, data, repr(model))
    else:
        doubt(LargeError, f"{missed}; {noise}", data, repr(model))


def doubt_states(dynamics: Dynamics, met: Any, plan: str) -> None:
    """Warn of a plan that goes far from all that was seen, by the states (n,d) that it meets in the model."""
    far = float((lengthscales_away(dynamics, met[evenly(len(met), MOST_MET)]) > 1.0).mean())
    if far > FAR_SHARE:
        doubt(
            UnknownStates,
            f"{far:.0%} of the states that {plan} meets inside its model are more than a lengthscale from "
            "every state that was seen: what it expects is a guess; explore more, so that these are reached",
        )


def doubt_gain(returns: Any, of_random: Any, noisy: bool, plan: str) -> None:
    """Warn of a plan whose returns (k,) in the model are no better than random actions', (k,) from there.

    Where next states are random it must be worse beyond chance: paired, Student's t at `LEVEL`. Returns that
    are all equal say nothing: a constant reward has its own warning.
    """
    lost = of_random - returns
    size = max(float(np.abs(returns).max()), float(np.abs(of_random).max()))
    chance = float(stdtrit(len(lost) - 1, LEVEL) * lost.std(ddof=1)) / len(lost) ** 0.5 if noisy else 0.0
    if np.abs(lost).max() <= ALIKE * size or lost.mean() < chance:
        return
    doubt(
        NoBetterThanRandom,
        f"inside its model {plan} returns {returns.mean():.4g} and random actions {of_random.mean():.4g}: it "
        "controls nothing; explore where it should stay, or describe a world with narrower bounds",
    )


def lengthscales_away(dynamics: Dynamics, states: Any) -> Any:
    """How far states (n,d) are from the nearest one that a transition began in, in lengthscales, (n,)."""
    from scipy.spatial import cKDTree  # here, as in MeshDynamics: importing it takes its time

    kernel = dynamics.model.fixed
    lengths = getattr(kernel.left if isinstance(kernel, Sum) else kernel, "lengthscale", np.inf)
    inputs = dynamics.state_inputs(states)
    size = inputs.shape[1]
    lengths = np.broadcast_to(lengths, dynamics.points.shape[1])[:size]
    distances, _ = cKDTree(dynamics.points[:, :size] / lengths).query(inputs / lengths)
    return distances


def left_out_error(dynamics: Dynamics, parts: Sequence[Any] | None = None) -> float:
    """Root mean square error over that of a constant change, the mean of all variables that change.

    Of parts of the transitions, each predicted from all others; by default `BLOCKS` blocks, evenly spread.
    """
    n = len(dynamics.points)
    if parts is None:
        size = max(1, min(BLOCK, n // BLOCKS))
        parts = [
            first + np.arange(size) for first in np.linspace(0, n - size, min(BLOCKS, n)).astype(np.int64)
        ]
    missed = dynamics.design.missed(dynamics.targets, parts)
    spread = dynamics.targets.std(axis=0)
    changing = spread > 0.0
    errors = np.sqrt((missed**2).mean(axis=0))[changing] / spread[changing]
    return float(errors.mean()) if changing.any() else 0.0


def _episodes_left_out(samples: Samples, all_of_them: bool) -> list[Any]:
    """What the verdict on data leaves out: each whole episode, or fifths; else some, of `ROWS` at most."""
    parts = whole_parts(samples.episode)
    if all_of_them:
        return parts
    return [parts[i] for i in evenly(len(parts), max(1, ROWS // max(map(len, parts))))]


def doubt_fallback(data: Experience) -> None:
    """Warn where the default planner regresses values of real states, for want of a mesh."""
    if not data.is_box:
        return
    if not has_mesh(data.spaces):
        why = (
            f"{data.spaces.state.size} state variables are too many for DynamicsPlanner(), "
            f"at most {MOST_VARIABLES}: describe the system with fewer"
        )
    else:
        why = "DynamicsPlanner() needs a pooled model: give one (rf.Model has pooled=True)"
    doubt(
        FallbackPlanner,
        f"values are regressed, which often gains no more than doing nothing: {why}, or name the planner "
        "yourself (rf.Mean is the same)",
        data,
        why,
    )


def _steps(request: PlanRequest) -> int:
    """How many steps a reward may be different at."""
    given = request.horizon
    return request.data.horizon if given is None or request.endless else int(given)


def _only_value(request: PlanRequest, reward: Any) -> float | None:
    """The reward of all that was seen, at every step of a plan; None if it differs."""
    data, horizon = request.data, _steps(request)
    seen = (
        _seen_world(data, reward, horizon)
        if isinstance(data, Experience)
        else _seen_finite(data, reward, horizon)
    )
    first: float | None = None
    for rewards in seen:
        first = float(rewards[0]) if first is None else first
        if np.abs(rewards - first).max() > ROUNDING * abs(first):
            return None
    return first


def _seen_world(data: Experience, reward: Any, horizon: int) -> Iterator[Any]:
    """The rewards (n,) of what was seen, at every step if they change with it."""
    function = RewardFunction(reward, data.spaces)
    for h in range(horizon if function.uses_step else 1):
        yield function(h, data.state, data.action, data.next_state)


def _seen_finite(data: Any, reward: Any, horizon: int) -> Iterator[Any]:
    """The same on a finite world, and what is paid where an episode ended, which is known to stay there."""
    table, ends = TabledReward(reward, data.grid, horizon), np.flatnonzero(states_that_end(data))
    for h in range(table.steps):
        paid = table.at(h)
        stays = paid[ends, :, ends] if table.uses_next else paid[ends]
        seen = paid[(data.state, data.action, data.next_state)[: 2 + table.uses_next]]
        yield np.concatenate([seen, stays.reshape(-1)])
