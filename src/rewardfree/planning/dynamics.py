"""Planning through learnt dynamics: regress the state change, then iterate values on a mesh."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.arrays import as_number, count
from rewardfree.data import Experience
from rewardfree.dynamics import Dynamics, GivenEndings, Mesh, SeenEndings, Transport, trusted_box
from rewardfree.dynamics.extent import met_box
from rewardfree.dynamics.transport import Moves
from rewardfree.model import Model
from rewardfree.planning.imagined import imagined
from rewardfree.planning.meshplan import MeshPlan
from rewardfree.planning.values import Values, backward
from rewardfree.rewards import RewardFunction, ends_of
from rewardfree.streams import stream
from rewardfree.tables import tabled
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.spaces import Box

#: The most nodes for each variable, by the number of variables.
SIDES = {1: 201, 2: 61, 3: 41, 4: 19}
#: All actions at all nodes: of the first mesh, and of one that is laid over what its plan meets.
FIRST_ROWS, ROWS = 110_000, 270_000
#: On more variables the mesh is coarse: it is laid again where it matters, and plans look further ahead.
REFINED_ABOVE = 2
#: A lookahead may ask for so many next states at its last step.
MOST_LEAVES, DEEPEST = 250, 5
#: States met inside the model are widened by so much before a mesh is laid over them.
MARGIN = 0.1
#: Plans are compared from so many first states.
STARTS, FEW_STARTS = 12, 4
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
        for name in ("discounts", "depths"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, (tuple, list)) or not given):
                raise ValueError(f"{name} must be some numbers, such as (1.0, 0.99), or None, got {given!r}")
        if self.noise not in (None, True, False):
            raise ValueError(f"noise must be True, False or None, got {self.noise!r}")
        if self.discounts is not None:
            numbers = tuple(as_number(each, "discount") for each in self.discounts)
            if not all(0.0 < each <= 1.0 for each in numbers):
                raise ValueError(f"discounts must lie in (0, 1], got {self.discounts!r}")
            object.__setattr__(self, "discounts", numbers)
        if self.depths is not None:
            object.__setattr__(self, "depths", tuple(count(each, "depth") for each in self.depths))
        if self.sides is not None:
            object.__setattr__(self, "sides", count(self.sides, "sides", at_least=3))

    def plan(
        self,
        data: Experience,
        rewards: Sequence[RewardFunction],
        model: Model | None,
        horizon: int | None,
        discount: float | None,
        terminated: Any,
        starts: Any,
        moves: Moves | None = None,
    ) -> list[MeshPlan]:
        """For each reward the plan with the best return inside the model, from the first states seen.

        `moves` predicts next states instead of what is learnt from the data: a simulator, for comparison.
        """
        with one_blas_thread():
            stage = _stage(self, data, model, terminated, moves)
            return [self._best(stage, reward, horizon, discount, starts) for reward in rewards]

    def _best(
        self, stage: _Stage, reward: RewardFunction, horizon: int | None, discount: float | None, starts: Any
    ) -> MeshPlan:
        depths = self._depths(len(stage.actions), stage.dynamics.space.size)
        discounts = self._discounts(horizon, discount)
        counted = 1.0 if discount is None else discount
        search = _Search(stage, reward, horizon, counted, _more(stage.dynamics.space, starts))
        middle = depths[min(1, len(depths) - 1)]
        best = search.best(stage.transport, middle, discounts)
        if stage.dynamics.space.size > REFINED_ABOVE:
            for _ in range(self.rounds):
                if search.is_perfect(best):
                    break
                best = _better(
                    best, search.best(stage.over(best.met, search.starts), middle, (best.plan.discount,))
                )
            if depths[-1] > middle and not search.is_perfect(best):
                (deeper,) = search.judged(best.plan.transport, [best.plan.values], depths[-1])
                best = _better(deeper, best)
        return replace(best.plan, expected=float(best.returns.mean()))

    def _discounts(self, horizon: int | None, discount: float | None) -> tuple[float, ...]:
        """Those to try: a user's own, or by the horizon, one of them nearly 1."""
        if discount is not None:
            return (discount,)
        if self.discounts is not None:
            return self.discounts
        assert horizon is not None
        return tuple(sorted({1.0 - IMPATIENCE / max(horizon, 20), 0.99}, reverse=True))

    def _depths(self, actions: int, variables: int) -> tuple[int, ...]:
        """The depths to try, ascending: one on fine meshes, else also as deep as the actions allow."""
        if self.depths is not None:
            return tuple(sorted(set(self.depths)))
        if variables <= REFINED_ABOVE:
            return (1,)
        deepest = max(depth for depth in range(1, DEEPEST + 1) if depth == 1 or actions**depth <= MOST_LEAVES)
        return tuple(sorted({1, min(3, deepest), deepest}))


def _more(space: Box, starts: Any) -> Any:
    """At least `STARTS` first states: those that were seen, and points between them."""
    if len(starts) >= STARTS:
        return starts[:STARTS]
    rng = stream(0, "between starts")
    one, other = (starts[rng.integers(len(starts), size=STARTS - len(starts))] for _ in range(2))
    between = one + rng.random((len(one), 1)) * space.change(one, other)
    return np.concatenate([starts, space.wrapped(between)])


class _Stage:
    """All that a planner needs of data, and of no reward: it is computed once and serves every reward."""

    def __init__(
        self,
        planner: DynamicsPlanner,
        data: Experience,
        model: Model | None,
        terminated: Any,
        moves: Moves | None,
    ) -> None:
        # Not the data themselves: stages are kept as long as the data are.
        self.planner, self.spaces = planner, data.spaces
        self.observation, self.provenance = data.observation, data.provenance
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
            self.ended = GivenEndings(data.spaces.state, *ends_of(terminated, data.spaces))
        self.actions = data.spaces.action.candidates(planner.actions)
        self.moves: Moves = self.dynamics if moves is None else moves
        self.noisy = self.dynamics.noisy if planner.noise is None else planner.noise
        self.noisy = self.noisy and moves is None
        low, high = trusted_box(self.dynamics, np.concatenate([state, following]), self.ended, self.actions)
        self.transport = self._laid(low, high, FIRST_ROWS)

    def over(self, met: Any, starts: Any) -> Transport:
        """A mesh over states (n,d) that were met from some starts."""
        return self._laid(*met_box(self.dynamics, met, starts, self.ended, MARGIN), ROWS)

    def _laid(self, low: Any, high: Any, rows: int) -> Transport:
        space = self.dynamics.space
        side = self.planner.sides
        if side is None:
            fits = int((rows / len(self.actions)) ** (1.0 / space.size))
            side = max(3, min(SIDES[space.size], fits - 1 + fits % 2))  # odd: the middle is a node
        mesh = Mesh(low, high, (side,) * space.size, space.angular)
        return Transport(self.spaces, self.moves, mesh, self.actions, self.ended, self.noisy)


@dataclass(frozen=True, eq=False)
class _Judged:
    """A plan, its returns (k,) inside the model, and the states (n,d) that it meets there."""

    plan: MeshPlan
    returns: Any
    met: Any


def _better(one: _Judged, other: _Judged) -> _Judged:
    """The one with the larger mean return from the starts that both were tried from; the first of equals."""
    both = min(len(one.returns), len(other.returns))
    return other if other.returns[:both].mean() > one.returns[:both].mean() else one


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
        self.stage, self.reward, self.horizon = stage, reward, horizon
        self.counted, self.starts = counted, starts

    def best(self, transport: Transport, depth: int, discounts: tuple[float, ...]) -> _Judged:
        """The best of some discounts on one mesh."""
        r, changing = self._on_mesh(transport), self.reward.uses_step
        values = [backward(transport, r, self.horizon, discount, changing) for discount in discounts]
        return functools.reduce(_better, self.judged(transport, values, depth))

    def judged(self, transport: Transport, values: Sequence[Values], depth: int) -> list[_Judged]:
        """Plans with what they gain inside the model, and the states they meet."""
        plans = [self._plan(transport, each, depth) for each in values]
        starts = self.starts if depth <= 3 else self.starts[:FEW_STARTS]  # a deep look takes its time
        found = imagined(plans, starts, self.counted)
        return [_Judged(plan, *each) for plan, each in zip(plans, found, strict=True)]

    def _plan(self, transport: Transport, values: Values, depth: int) -> MeshPlan:
        return MeshPlan(
            spaces=self.stage.spaces,
            observation=self.stage.observation,
            horizon=self.horizon,
            planner=self.stage.planner,
            provenance=self.stage.provenance,
            reward=self.reward,
            transport=transport,
            values=values,
            depth=1 if transport.noisy else depth,
            expected=0.0,
        )

    def is_perfect(self, best: _Judged) -> bool:
        """Whether every step gains the largest reward that there is: nothing can be better."""
        if self.horizon is None or self.reward.uses_step:
            return False
        if self._largest < 0.0:  # an episode that ends sooner may lose less
            return False
        most = self._largest * float(np.sum(self.counted ** np.arange(self.horizon)))
        return bool(best.returns.mean() >= most - 1e-9 * most)

    @functools.cached_property
    def _largest(self) -> float:
        """The largest reward on the first mesh."""
        return float(self._on_mesh(self.stage.transport)(0).max())

    def _on_mesh(self, transport: Transport) -> Any:
        """r_h at every action and node, averaged over what may follow."""
        outcomes = transport.outcomes if self.reward.uses_next else transport.outcomes[:1]

        def at(h: int) -> Any:
            each = [self.reward(h, *transport.pairs, following) for following in outcomes]
            return sum(each) / len(each)

        return at


#: Stages of data that are still in use, by planner, model and termination.
_STAGES: weakref.WeakKeyDictionary[Experience, dict[Any, _Stage]] = weakref.WeakKeyDictionary()


def _stage(
    planner: DynamicsPlanner, data: Experience, model: Model | None, terminated: Any, moves: Moves | None
) -> _Stage:
    """The stage for these data, from the last time if nothing but the reward has changed."""
    key = planner, model, terminated, moves
    if callable(terminated):  # what it answers may have changed since the last time
        return _Stage(planner, data, model, terminated, moves)
    known = _STAGES.setdefault(data, {})
    if key not in known:
        known.clear()  # one is enough: a mesh and its matrix are large
        known[key] = _Stage(planner, data, model, terminated, moves)
    return known[key]
