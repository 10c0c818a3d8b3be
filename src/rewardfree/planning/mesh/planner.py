"""Planning through learnt dynamics: regress the state change, then iterate values on a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, ClassVar

import numpy as np

from rewardfree.arrays import as_discount, check_fields, count
from rewardfree.data import Experience
from rewardfree.dynamics import (
    DRAWS,
    MOST_VARIABLES,
    Dynamics,
    GivenTermination,
    Mesh,
    MeshDynamics,
    NextStateModel,
    ObservedTermination,
    carry_over,
    has_mesh,
    met_box,
    trusted_box,
)
from rewardfree.planning.mesh.imagined import imagined_returns, random_returns
from rewardfree.planning.mesh.plan import MeshPlan, as_depth
from rewardfree.planning.mesh.values import MeshValues, value_iteration
from rewardfree.planning.planner import Planner, PlanRequest, check_work
from rewardfree.planning.trust import doubt_fit, doubt_gain, doubt_states, named
from rewardfree.posterior import linear_algebra
from rewardfree.progress import Tell, parts
from rewardfree.registry import registered
from rewardfree.rewards import RewardFunction
from rewardfree.streams import stream
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.spaces import Box, Spaces

#: The most nodes for each variable, by the number of variables.
SIDES = {1: 201, 2: 61, 3: 41, 4: 19}
#: All actions at all nodes: of the first mesh, and of one that is laid over what its plan meets.
FIRST_ROWS, ROWS = 110_000, 270_000
#: On more variables the mesh is coarse: it is laid again where it matters, and plans look further ahead.
REFINED_ABOVE, AGAIN = 2, 2
#: Where actions have several variables it is laid again once over three variables, with fewer draws and, if
#: next states are random, on no more nodes: another reward must not take long.
AGAIN_FOR_MANY, FEW_DRAWS = 1, 8
#: States met inside the model are widened by this share before a mesh is laid over them.
MARGIN = 0.1


class Preparation:
    """Learnt dynamics, where episodes end, and the first mesh: computed once, it serves every reward."""

    def __init__(
        self, planner: DynamicsPlanner, request: PlanRequest, predictor: NextStateModel | None
    ) -> None:
        data, model = request.data, request.used_model
        assert isinstance(data, Experience)
        # Not the data themselves, which hold this for the next reward.
        self.planner, self.spaces, self.placement = planner, data.spaces, request.placement
        linear_algebra(self.placement)  # which refuses what is not there, before a long fit
        samples = data.at(np.flatnonzero(data.kept))
        if len(samples) < 2:
            raise ValueError(f"at least two transitions are needed to learn dynamics, got {len(samples)}")
        scaled = data.fitted if request.model is None else None
        self.dynamics = Dynamics.learn(data.spaces, model, samples, scaled, self.placement)
        if not has_mesh(data.spaces):
            raise ValueError(
                f"DynamicsPlanner takes up to {MOST_VARIABLES} state variables, "
                f"got {self.dynamics.space.size}: "
                'use rf.Mean(clip="range"), which regresses values instead'
            )
        self.is_end: Any
        if request.terminated is None:
            self.is_end = ObservedTermination(data.spaces.state, samples.next_state, samples.terminated)
        else:
            self.is_end = GivenTermination.of(request.terminated, data.spaces)
        self.actions = data.spaces.action.candidates(planner.actions)
        self.predictor: NextStateModel = self.dynamics if predictor is None else predictor
        self.noisy = self.dynamics.noisy if planner.noise is None else planner.noise
        self.noisy = self.noisy and predictor is None
        if predictor is None:
            doubt_fit(data, self.dynamics, model)
        self.rounds = planner.rounds_for(self.dynamics.space.size, data.spaces.action.size)
        seen = np.concatenate([samples.state, samples.next_state])
        box = trusted_box(self.dynamics, seen, self.is_end, self.actions)
        self.on_mesh = self._laid(*box, planner.first_rows(data.spaces))

    @property
    def many_actions(self) -> bool:
        """Whether actions have several variables: then there are few candidates for each, and many in all."""
        return self.spaces.action.size > 1

    @classmethod
    def of(
        cls, planner: DynamicsPlanner, request: PlanRequest, predictor: NextStateModel | None
    ) -> Preparation:
        """For these data, from the last time if nothing but the reward has changed."""
        if callable(request.terminated):  # what it answers may have changed since the last time
            return cls(planner, request, predictor)
        prepared: dict[Any, Preparation] = request.data.prepared
        key = planner, request.model, request.terminated, predictor, request.placement
        if key not in prepared:
            prepared.clear()  # one is enough: a mesh and its matrix are large
            prepared[key] = cls(planner, request, predictor)
        return prepared[key]

    def over(self, met: Any, starts: Any) -> MeshDynamics:
        """The dynamics on a mesh over states (n,d) that were met from some starts."""
        low, high = met_box(self.dynamics, met, starts, self.is_end, MARGIN)
        if not self.many_actions:
            return self._laid(low, high, ROWS)
        first = self.on_mesh.mesh
        within = np.maximum(low, first.low), np.minimum(high, first.high)
        if (within[0] < within[1]).all():  # unless a user's first states lie elsewhere
            low, high = within
        enough = self.noisy and len(first.sides) < max(SIDES)  # four variables never have nodes enough
        finer = self._laid(low, high, FIRST_ROWS if enough else ROWS, FEW_DRAWS)
        carry_over(self.on_mesh, finer)
        return finer

    def _laid(self, low: Any, high: Any, rows: int, draws: int = DRAWS) -> MeshDynamics:
        space = self.dynamics.space
        side = self.planner.side_for(space.size, len(self.actions), rows)
        mesh = Mesh(low, high, (side,) * space.size, space.angular)
        noise = self.dynamics if self.noisy else None
        made_of = self.spaces, self.predictor, mesh, self.actions, self.is_end, noise, draws
        return MeshDynamics(*made_of, self.placement)

    def acting(self, plan: MeshPlan) -> MeshPlan:
        """The plan as it acts: on the CPU, wherever it was made."""
        if self.placement.default or self.predictor is not self.dynamics:
            return plan
        return replace(plan, on_mesh=plan.on_mesh.through(self.dynamics.on_cpu))


#: A plan that looks far ahead takes its time: it is tried from fewer first states.
DEEP, FEW_STARTS = 3, 4


@dataclass(frozen=True, eq=False)
class TriedPlan:
    """A plan, its returns (k,) inside the model, and the states (n,d) that it meets there."""

    plan: MeshPlan
    returns: Any
    met: Any


def better(one: TriedPlan, other: TriedPlan) -> TriedPlan:
    """The one with the larger mean return from the starts that both were tried from; the first of equals."""
    both = min(len(one.returns), len(other.returns))
    return other if other.returns[:both].mean() > one.returns[:both].mean() else one


class Search:
    """Tries plans for one reward of a request, from some first states (k,d)."""

    def __init__(
        self, preparation: Preparation, request: PlanRequest, reward: RewardFunction, starts: Any
    ) -> None:
        self.preparation, self.request, self.reward, self.starts = preparation, request, reward, starts
        self.horizon = _horizon(request)
        self.counted = request.counted_discount  # that returns are counted with

    def best(self, on_mesh: MeshDynamics, depth: int, discounts: tuple[float, ...], tell: Tell) -> TriedPlan:
        """The best of some discounts on one mesh."""
        rewards, changing = self._rewards_on(on_mesh), self.reward.uses_step
        backward, forward = parts(tell, 2)
        values = [
            value_iteration(on_mesh, rewards, self.horizon, discount, changing, part)
            for discount, part in zip(discounts, parts(backward, len(discounts)), strict=True)
        ]
        return reduce(better, self.tried(on_mesh, values, depth, forward))

    def tried(
        self, on_mesh: MeshDynamics, values: Sequence[MeshValues], depth: int, tell: Tell
    ) -> list[TriedPlan]:
        """Plans with what they gain inside the model, and the states they meet."""
        plans = [self._plan(on_mesh, one, depth) for one in values]
        deep = depth > (1 if self.preparation.many_actions else DEEP)
        starts = self.starts[:FEW_STARTS] if deep else self.starts
        outcomes = imagined_returns(plans, starts, self.counted, tell)
        return [TriedPlan(plan, *outcome) for plan, outcome in zip(plans, outcomes, strict=True)]

    def is_perfect(self, best: TriedPlan) -> bool:
        """Whether every step gains the largest reward that there is: nothing can be better."""
        if self.horizon is None or self.reward.uses_step:
            return False
        if self._largest < 0.0:  # an episode that ends sooner may lose less
            return False
        most = self._largest * float(np.sum(self.counted ** np.arange(self.horizon)))
        return bool(best.returns.mean() >= most - 1e-9 * most)

    @cached_property
    def _largest(self) -> float:
        """The largest reward on the first mesh."""
        return float(self._rewards_on(self.preparation.on_mesh)(0).max())

    def _rewards_on(self, on_mesh: MeshDynamics) -> Callable[[int], Any]:
        """r_h at every action and node, averaged over what may follow."""
        outcomes = on_mesh.outcomes if self.reward.uses_next else on_mesh.outcomes[:1]

        def at(h: int) -> Any:
            rewards = [self.reward(h, *on_mesh.pairs, next_state) for next_state in outcomes]
            return sum(rewards) / len(rewards)

        return at

    def _plan(self, on_mesh: MeshDynamics, values: MeshValues, depth: int) -> MeshPlan:
        preparation = self.preparation
        return MeshPlan(
            **self.request.header(
                preparation.planner,
                horizon=self.horizon,
                model=preparation.dynamics.model,
                transitions=len(preparation.dynamics.points),
                discount=values.discount,
            ),
            reward=self.reward,
            on_mesh=on_mesh,
            mesh_values=values,
            depth=1 if on_mesh.noisy else depth,
            expected=0.0,
        )


#: A lookahead may ask for this many next states at its last step.
MOST_LEAVES, DEEPEST_TRIED = 250, 5
#: Plans are compared from this many first states.
FIRST_STATES = 12
#: With a horizon H the larger discount is 1 - this/H. At exactly 1 waiting costs nothing, and a plan may
#: leave everything to the last moment, where a small error of the model is the end of it.
IMPATIENCE = 0.2


@registered("planner", "dynamics")
@dataclass(frozen=True)
class DynamicsPlanner(Planner):
    """KRR of the state change, then value iteration with convex interpolation on a mesh; up to 4 variables.

    `actions` is how many candidates a Box of actions gets, `discounts` and `depths` (of lookahead) what is
    tried: the ones with the best return inside the model are used. `noise`: next states are random, None to
    let the data say. `sides` nodes for each variable. On more than two variables the mesh is laid again over
    what the first plan meets, `rounds` times; None: twice, or where actions have several variables once on
    three, never on four: there the first mesh is finer.
    """

    actions: int = 11
    discounts: tuple[float, ...] | None = None
    depths: tuple[int, ...] | None = None
    sides: int | None = None
    rounds: int | None = None
    noise: bool | None = None
    plans_finite: ClassVar[bool] = False
    takes_starts: ClassVar[bool] = True
    takes_device: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("discounts", "depths"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, (tuple, list)) or not given):
                raise ValueError(f"{name} must be some numbers, such as (1.0, 0.99), or None, got {given!r}")
        if self.noise not in (None, True, False):
            raise ValueError(f"noise must be True, False or None, got {self.noise!r}")
        check_fields(
            self,
            actions=partial(count, at_least=2),
            rounds=partial(count, at_least=0),
            sides=partial(count, at_least=3),
            discounts=lambda given, name: tuple(as_discount(discount, name) for discount in given),
            depths=lambda given, name: tuple(count(depth, "depth") for depth in given),
        )

    def plan(self, request: PlanRequest, predictor: NextStateModel | None = None) -> list[MeshPlan]:
        """For each reward the plan with the best return inside the model, from the first states seen.

        `predictor` replaces the learnt dynamics: a simulator, for comparison.
        """
        data, rewards = request.data, request.rewards
        if not isinstance(data, Experience):
            raise ValueError(
                "DynamicsPlanner() is for real states: use Mean(), Optimistic(beta) or Pessimistic(beta)"
            )
        functions = [RewardFunction(reward, data.spaces) for reward in rewards]
        if request.endless and any(function.uses_step for function in functions):
            raise ValueError("a reward that changes with h needs an end to count from: give a finite horizon")
        if has_mesh(data.spaces):  # before a long fit, which refuses others
            end = ", or horizon=math.inf and a discount below 1, which plan for no end"
            check_work(_horizon(request), self.first_nodes(data.spaces), "nodes of the mesh", end)
        with one_blas_thread():
            preparation = Preparation.of(self, request, predictor)
            request.tell(0.0)  # a fit is no measure of what is left
            starts = _starts(preparation.dynamics.space, data, request.starts)
            searches = [Search(preparation, request, function, starts) for function in functions]
            told = zip(searches, parts(request.tell, len(searches)), strict=True)
            return [
                self._best(search, tell, named("plan", i, len(searches)))
                for i, (search, tell) in enumerate(told)
            ]

    def _best(self, search: Search, tell: Tell, name: str) -> MeshPlan:
        """The plan with the best return inside the model, of some discounts, meshes and depths."""
        preparation = search.preparation
        variables = preparation.dynamics.space.size
        depths = self.depths_for(len(preparation.actions), variables)
        # Many actions: looking ahead costs most, so what can be chosen without it is.
        usual = depths[0] if preparation.many_actions else depths[min(1, len(depths) - 1)]
        looks_ahead = variables > REFINED_ABOVE and depths[-1] > usual and not preparation.noisy
        stages = parts(tell, 1 + preparation.rounds + looks_ahead)
        discounts = self.discounts_for(search.horizon, search.request.discount)
        best = search.best(preparation.on_mesh, usual, discounts, stages[0])
        for part in stages[1 : 1 + preparation.rounds]:
            if search.is_perfect(best):
                break
            finer = preparation.over(best.met, search.starts)
            best = better(best, search.best(finer, usual, (best.plan.discount,), part))
        if looks_ahead and not search.is_perfect(best):
            (deeper,) = search.tried(best.plan.on_mesh, [best.plan.mesh_values], depths[-1], stages[-1])
            best = better(deeper, best)
        if preparation.predictor is preparation.dynamics:
            doubt_states(preparation.dynamics, best.met, name)
            of_random = random_returns(best.plan, search.starts[: len(best.returns)], search.counted)
            doubt_gain(best.returns, of_random, preparation.noisy, name)
        tell(1.0)
        return replace(preparation.acting(best.plan), expected=float(best.returns.mean()))

    def discounts_for(self, horizon: int | None, discount: float | None) -> tuple[float, ...]:
        """Discounts to try: the given ones, or 0.99 and 1 - 0.2/H."""
        if discount is not None:
            return (discount,)
        if self.discounts is not None:
            return self.discounts
        assert horizon is not None
        return tuple(sorted({1.0 - IMPATIENCE / max(horizon, 20), 0.99}, reverse=True))

    def rounds_for(self, variables: int, action_variables: int) -> int:
        """How often the mesh is laid again, for these numbers of state and action variables."""
        if variables <= REFINED_ABOVE:
            return 0
        if self.rounds is not None:
            return self.rounds
        if action_variables == 1:
            return AGAIN
        return AGAIN_FOR_MANY if variables < max(SIDES) else 0

    def first_rows(self, spaces: Spaces) -> int:
        """All actions at all nodes of the first mesh; more where it serves every reward."""
        only = spaces.action.size > 1 and not self.rounds_for(spaces.state.size, spaces.action.size)
        return ROWS if only else FIRST_ROWS

    def side_for(self, variables: int, actions: int, rows: int) -> int:
        """How many nodes a mesh has for each variable."""
        if self.sides is not None:
            return self.sides
        fits = int((rows / actions) ** (1.0 / variables))
        return max(3, min(SIDES[variables], fits - 1 + fits % 2))  # odd: the middle is a node

    def first_nodes(self, spaces: Spaces) -> int:
        """How many nodes the first mesh has."""
        variables, actions = spaces.state.size, len(spaces.action.candidates(self.actions))
        nodes: int = self.side_for(variables, actions, self.first_rows(spaces)) ** variables
        return nodes

    def depths_for(self, actions: int, variables: int) -> tuple[int, ...]:
        """The depths to try, ascending: one on fine meshes, else also as deep as the actions allow."""
        if self.depths is not None:
            return tuple(sorted({as_depth(depth, actions) for depth in self.depths}))
        if variables <= REFINED_ABOVE:
            return (1,)
        deepest = max(
            depth for depth in range(1, DEEPEST_TRIED + 1) if depth == 1 or actions**depth <= MOST_LEAVES
        )
        return tuple(sorted({1, min(3, deepest), deepest}))


def _horizon(request: PlanRequest) -> int | None:
    """The steps of an episode; None: no end."""
    if request.endless:
        return None
    return request.data.horizon if request.horizon is None else int(request.horizon)


def _starts(space: Box, data: Experience, starts: Any) -> Any:
    """At least `FIRST_STATES` first states: those given or seen, and points between them."""
    if starts is not None:
        starts = data.spaces.state.checked(np.atleast_2d(starts), "starts")
    states = data.starts if starts is None else starts
    if not len(states):
        states = data.state[data.kept][:1]
    states = space.wrapped(states)
    if len(states) >= FIRST_STATES:
        return states[:FIRST_STATES]
    rng = stream(0, "between starts")
    one, other = (states[rng.integers(len(states), size=FIRST_STATES - len(states))] for _ in range(2))
    between = one + rng.random((len(one), 1)) * space.change(one, other)
    return np.concatenate([states, space.wrapped(between)])
