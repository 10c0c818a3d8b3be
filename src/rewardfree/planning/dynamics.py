"""Planning through learnt dynamics: regress the state change, then iterate values on a mesh."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.arrays import as_number, count
from rewardfree.data import Experience
from rewardfree.dynamics import Dynamics, GivenEndings, Mesh, SeenEndings, Transport, trusted_box
from rewardfree.dynamics.extent import whole_turns
from rewardfree.model import Model
from rewardfree.planning.imagined import imagined
from rewardfree.planning.meshplan import MeshPlan
from rewardfree.planning.values import Values, backward
from rewardfree.rewards import RewardFunction, ends_of
from rewardfree.streams import stream
from rewardfree.tables import tabled
from rewardfree.threads import one_blas_thread

#: Nodes for each variable by their number: of a first look, and of the mesh that is used.
SIDES = {1: (201, 201), 2: (61, 61), 3: (25, 25), 4: (17, 17)}
#: A lookahead may ask for so many next states at its last step.
MOST_LEAVES, DEEPEST = 250, 5
#: States met inside the model are widened by so much before a mesh is laid over them.
MARGIN = 0.15
#: Plans are compared from so many first states.
STARTS = 16
#: With a horizon H the larger discount is 1 - this/H. At exactly 1 waiting costs nothing, and a plan may
#: leave everything to the last moment, where a small error of the model is the end of it.
IMPATIENCE = 0.2


@tabled
@dataclass(frozen=True)
class DynamicsPlanner:
    """KRR of the state change, then value iteration with convex interpolation on a mesh; up to 4 variables.

    `actions` is how many candidates a Box of actions gets, `discounts` and `depths` (of lookahead) what is
    tried: the ones with the best return inside the model are used. `noise`: next states are random, None to
    let the data say. `sides` nodes for each variable. On more than two variables the mesh is laid again over
    what the first plan meets, `rounds` times.
    """

    actions: int = 11
    discounts: tuple[float, ...] | None = None
    depths: tuple[int, ...] | None = None
    sides: int | None = None
    rounds: int = 2
    noise: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", count(self.actions, "actions", at_least=2))
        object.__setattr__(self, "rounds", count(self.rounds, "rounds", at_least=0))
        if self.discounts is not None:
            numbers = tuple(as_number(each, "discount") for each in self.discounts)
            if not numbers or not all(0.0 < each <= 1.0 for each in numbers):
                raise ValueError(f"discounts must lie in (0, 1], got {self.discounts!r}")
            object.__setattr__(self, "discounts", numbers)
        if self.depths is not None:
            object.__setattr__(self, "depths", tuple(count(each, "depth") for each in self.depths))
        if self.sides is not None:
            object.__setattr__(self, "sides", count(self.sides, "sides", at_least=3))

    def plan(
        self,
        data: Experience,
        reward: RewardFunction,
        model: Model | None,
        horizon: int | None,
        discount: float | None,
        terminated: Any,
        starts: Any,
    ) -> MeshPlan:
        """The plan with the best return inside the model, from the first states seen."""
        with one_blas_thread():
            stage = _stage(self, data, model, terminated)
            tried = self._tried(len(stage.actions), stage.dynamics.space.size)
            discounts = self._discounts(horizon, discount)
            counted = 1.0 if discount is None else discount
            search = _Search(stage, reward, horizon, counted, _more(starts))
            best = search.best(stage.transport, tried, discounts)
            if stage.dynamics.space.size <= 2:
                return best
            for _ in range(self.rounds):
                again = search.best(stage.over(search.met), tried, (best.discount,))
                if again.expected <= best.expected:
                    break
                best = again
            return best

    def _discounts(self, horizon: int | None, discount: float | None) -> tuple[float, ...]:
        """Those to try: a user's own, or by the horizon, one of them nearly 1."""
        if discount is not None:
            return (discount,)
        if self.discounts is not None:
            return self.discounts
        assert horizon is not None
        return tuple(sorted({1.0 - IMPATIENCE / max(horizon, 20), 0.99}, reverse=True))

    def _tried(self, actions: int, variables: int) -> tuple[int, ...]:
        """The depths to try: one on fine meshes, else also as deep as the number of actions allows."""
        if self.depths is not None:
            return self.depths
        if variables <= 2:
            return (1,)
        deepest = max(depth for depth in range(1, DEEPEST + 1) if depth == 1 or actions**depth <= MOST_LEAVES)
        return tuple(sorted({1, min(3, deepest), deepest}))


def _more(starts: Any) -> Any:
    """At least `STARTS` first states: those that were seen, and points between them."""
    if len(starts) >= STARTS:
        return starts[:STARTS]
    rng = stream(0, "between starts")
    one, other = (starts[rng.integers(len(starts), size=STARTS - len(starts))] for _ in range(2))
    return np.concatenate([starts, one + rng.random((len(one), 1)) * (other - one)])


class _Stage:
    """All that a planner needs of data, and of no reward: it is computed once and serves every reward."""

    def __init__(self, planner: DynamicsPlanner, data: Experience, model: Model | None, terminated: Any) -> None:
        self.planner, self.data, self.spaces = planner, data, data.spaces
        rows = np.flatnonzero(data.kept)
        if len(rows) < 2:
            raise ValueError(f"at least two transitions are needed to learn dynamics, got {len(rows)}")
        state, action, following = data.state[rows], data.action[rows], data.next_state[rows]
        own = data.model if model is None else model
        fitted = data.fitted if model is None else None
        self.dynamics = Dynamics.learn(data.spaces, own, state, action, following, fitted)
        if self.dynamics.space.size not in SIDES:
            raise ValueError(
                f"DynamicsPlanner takes up to {max(SIDES)} state variables, got {self.dynamics.space.size}: "
                "use rf.Mean(), which regresses values instead"
            )
        if terminated is None:
            self.ended: Any = SeenEndings(data.spaces.state, following, data.terminated[rows])
        else:
            self.ended = GivenEndings(data.spaces.state, ends_of(terminated, data.spaces)[0])
        self.actions = data.spaces.action.candidates(planner.actions)
        self.noisy = self.dynamics.noisy if planner.noise is None else planner.noise
        first, self._side = SIDES[self.dynamics.space.size] if planner.sides is None else (planner.sides,) * 2
        low, high = trusted_box(self.dynamics, np.concatenate([state, following]), self.ended, self.actions)
        self.transport = self._laid(low, high, first)

    def over(self, met: Any) -> Transport:
        """A mesh over states (n,d) that were met."""
        space = self.dynamics.space
        low, high = met.min(axis=0), met.max(axis=0)
        margin = MARGIN * (high - low)
        ends = np.maximum(low - margin, space.low), np.minimum(high + margin, space.high)
        return self._laid(*whole_turns(space, *ends), self._side)

    def _laid(self, low: Any, high: Any, side: int) -> Transport:
        space = self.dynamics.space
        mesh = Mesh(low, high, (side,) * space.size, space.angular)
        return Transport(self.spaces, self.dynamics, mesh, self.actions, self.ended, self.noisy)


class _Search:
    """Plans for one reward, compared by their returns inside the model."""

    def __init__(
        self,
        stage: _Stage,
        reward: RewardFunction,
        horizon: int | None,
        counted: float,
        starts: Any,
    ) -> None:
        self.stage, self.reward, self.horizon, self.counted, self.starts = stage, reward, horizon, counted, starts
        self.met: Any = None  # states that the best plan met

    def best(self, transport: Transport, depths: tuple[int, ...], discounts: tuple[float, ...]) -> MeshPlan:
        """The best of some discounts and depths on one mesh."""
        r = self._on_mesh(transport)
        plans = []
        for discount in discounts:
            values = backward(transport, r, self.horizon, discount, self.reward.uses_step)
            plans.append(self._judged(transport, values, depths[0]))
        best = max(plans, key=lambda each: each[0].expected)  # the first of equals
        if not transport.noisy:
            deeper = [self._judged(transport, best[0].values, depth) for depth in depths[1:]]
            best = max([best, *deeper], key=lambda each: each[0].expected)
        plan, self.met = best
        return plan

    def _judged(self, transport: Transport, values: Values, depth: int) -> tuple[MeshPlan, Any]:
        """A plan with what it gains inside the model, and the states it meets."""
        data = self.stage.data
        about = (data.spaces, data.observation, self.horizon, self.stage.planner, self.reward, transport, values)
        plan = MeshPlan(*about, depth, 0.0)
        gained, met = imagined(plan, self.starts, self.counted)
        return replace(plan, expected=gained), met

    def _on_mesh(self, transport: Transport) -> Any:
        """r_h at every action and node, averaged over what may follow."""
        outcomes = transport.outcomes if self.reward.uses_next else transport.outcomes[:1]

        def at(h: int) -> Any:
            each = [self.reward(h, transport.state, transport.action, following) for following in outcomes]
            return sum(each) / len(each)

        return at


#: Stages of data that are still in use, by planner, model and termination.
_STAGES: weakref.WeakKeyDictionary[Experience, dict[Any, _Stage]] = weakref.WeakKeyDictionary()


def _stage(planner: DynamicsPlanner, data: Experience, model: Model | None, terminated: Any) -> _Stage:
    """The stage for these data, from the last time if nothing but the reward has changed."""
    known = _STAGES.setdefault(data, {})
    key = planner, model, terminated
    if key not in known:
        known.clear()  # one is enough: a mesh and its matrix are large
        known[key] = _Stage(planner, data, model, terminated)
    return known[key]
