"""The public door of planning: data and a reward give a policy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, overload

from rewardfree.arrays import DType, Floats, Placement, States, check_kind
from rewardfree.data import Experience, RunData, Transitions
from rewardfree.dynamics import has_mesh
from rewardfree.dynamics.labels import are_labels
from rewardfree.model import Model
from rewardfree.planning.alg1 import Mean
from rewardfree.planning.counted import CountingPlanner, needs_no_kernel
from rewardfree.planning.finite import FinitePlan
from rewardfree.planning.mesh.planner import DynamicsPlanner
from rewardfree.planning.planner import Plan, Planner, PlanRequest, WorldPlan
from rewardfree.planning.trust import doubt_fallback, doubt_rewards
from rewardfree.progress import progress_line
from rewardfree.registry import registered
from rewardfree.rewards import FiniteReward, Termination, WorldReward


@overload
def plan(
    data: Transitions,
    reward: FiniteReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
    progress: bool | None = None,
) -> FinitePlan: ...


@overload
def plan(
    data: Experience,
    reward: WorldReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    device: str = "cpu",
    dtype: DType | None = None,
    progress: bool | None = None,
) -> WorldPlan: ...


@overload
def plan(
    data: Transitions | Experience,
    reward: FiniteReward | WorldReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
    progress: bool | None = None,
) -> FinitePlan | WorldPlan: ...


def plan(
    data: Transitions | Experience,
    reward: FiniteReward | WorldReward,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
    progress: bool | None = None,
) -> FinitePlan | WorldPlan:
    """A policy for a reward that the data never saw: an array, a function, or a formula.

    Arrays are for finite worlds, (s,a) or (h,s,a), or (s,a,s') and (h,s,a,s') for a reward of the next state.
    Without a `planner` it is `DefaultPlanner()`; the plan says what it was made of. `model` overrides the one
    of the data. `horizon` defaults to the data's; with `math.inf` and a `discount`
    `DynamicsPlanner` plans for no end.
    On real states `terminated` says where episodes end (a function or a formula; by default as the data saw
    it), `starts` (k,d) where they begin; `seed` is for finite worlds. `device="cuda"` computes there what is
    large (on real states for `DynamicsPlanner`), and the plan acts on the CPU. `progress`: a line on standard
    error; None: on a terminal, after two seconds.
    """
    placement = Placement(device, dtype)
    request = PlanRequest(data, [reward], model, horizon, discount, terminated, starts, seed, placement)
    policy: FinitePlan | WorldPlan = _plans(planner, request, progress)[0]
    return policy


@overload
def plan_many(
    data: Transitions,
    rewards: Sequence[FiniteReward] | Floats,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
    progress: bool | None = None,
) -> list[FinitePlan]: ...


@overload
def plan_many(
    data: Experience,
    rewards: Sequence[WorldReward],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    device: str = "cpu",
    dtype: DType | None = None,
    progress: bool | None = None,
) -> list[WorldPlan]: ...


def plan_many(
    data: RunData,
    rewards: Any,
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    terminated: Termination | None = None,
    starts: States | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
    progress: bool | None = None,
) -> list[Any]:
    """`plan` for many rewards from one factorisation: what needs no reward is computed once."""
    placement = Placement(device, dtype)
    request = PlanRequest(data, rewards, model, horizon, discount, terminated, starts, seed, placement)
    return _plans(planner, request, progress)


def plan_runs(
    runs: Sequence[Transitions],
    rewards: Sequence[FiniteReward],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: float | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
) -> list[list[FinitePlan]]:
    """`plan_many` for each of several runs on one grid: [run][reward]. Runs that share points go together."""
    if isinstance(runs, RunData):
        raise ValueError("plan_runs takes a list of runs, and got one: use plan_many for it")
    for run in runs:
        check_kind(run, Transitions, "data", "what rf.explore returns; plan_runs takes several")
    placement = Placement(device, dtype)
    requests = [
        PlanRequest(run, rewards, model, horizon, discount, seed=seed, placement=placement) for run in runs
    ]
    planner = _planner(planner)
    results = planner.plan_runs(requests)
    if not isinstance(results, list) or len(results) != len(requests):
        raise ValueError(
            f"the plan_runs method of {type(planner).__name__} must return a list with one list of plans for "
            f"each of {len(requests)} runs, got {results!r:.200}"
        )
    return [_checked(planner, plans, rewards) for plans in results]


def _planner(planner: Planner | None) -> Planner:
    planner = DefaultPlanner() if planner is None else planner
    check_kind(
        planner, Planner, "planner", "DefaultPlanner(), DynamicsPlanner(), Mean(), Optimistic(beta) and so on"
    )
    return planner


def _plans(planner: Planner | None, request: PlanRequest, progress: bool | None) -> list[Any]:
    """What a planner makes of a request; it may tell how far it is."""
    planner = _planner(planner)
    planner.check(request)
    with progress_line(progress) as tell:
        plans = _checked(planner, planner.plan(replace(request, tell=tell)), request.rewards)
    doubt_rewards(request)
    return plans


def _checked(planner: Planner, plans: Any, rewards: Any) -> list[Any]:
    """What a planner made for these rewards: it may be a user's own class."""
    if not isinstance(plans, list) or len(plans) != len(rewards):
        raise ValueError(
            f"the plan method of {type(planner).__name__} must return a list with one plan for each of "
            f"{len(rewards)} rewards, got {plans!r:.200}"
        )
    for made in plans:
        check_kind(made, Plan, f"what {type(planner).__name__} returns", "a list of rf.planning.Plan")
    return plans


@registered("planner", "default")
@dataclass(frozen=True)
class DefaultPlanner(Planner):
    """The best known planning: every transition counts, and one regression for all steps is centred.

    Then, for a pooled model, `CountingPlanner()` on labels, unless a user chose a kernel other than `Delta`,
    and `DynamicsPlanner()` on up to four real variables; else `Mean(clip="range")`, also for data of a
    strategy with posteriors of its own, which are for regressions of V. A regression for each step is not
    centred: with few samples at a place the midrange of all values is a worse guess than 0.
    """

    takes_starts: ClassVar[bool] = True  # where the one it chooses does
    takes_device: ClassVar[bool] = True  # likewise

    def plan(self, request: PlanRequest) -> list[Any]:
        request = _using_all(request)
        planner = self.choose(request)
        planner.check(request)
        return [replace(plan, chosen_by=self) for plan in planner.plan(request)]

    def plan_runs(self, requests: Sequence[PlanRequest]) -> list[list[Any]]:
        return [
            [replace(plan, chosen_by=self) for plan in plans]
            for planner, group in groupby(map(_using_all, requests), key=self.choose)
            for plans in planner.plan_runs(list(group))
        ]

    def choose(self, request: PlanRequest) -> Planner:
        """The planner for these data."""
        data = request.data
        if request.own_source is not None:
            return Mean(clip="range")
        labels = are_labels(data.spaces) if isinstance(data, Experience) else _labelled(data)
        model = request.used_model
        if labels and needs_no_kernel(model):
            return CountingPlanner()
        if not isinstance(data, Experience):
            return Mean(clip="range")
        if has_mesh(data.spaces) and model.pooled:
            return DynamicsPlanner()
        doubt_fallback(data)
        return Mean(clip="range")


def _labelled(data: RunData) -> bool:
    return isinstance(data, Transitions) and data.grid.labelled


def _using_all(request: PlanRequest) -> PlanRequest:
    """The request with every transition kept; a pooled model is centred."""
    model = request.model
    if model is not None:
        model = replace(model, centred=model.centred or model.pooled)
    return replace(request, data=request.data.using_all().centred(), model=model)
