"""From reward-free data and a reward to a policy (Alg 1), for one reward or many, one run or many."""

from __future__ import annotations

import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from rewardfree.arrays import as_number, check_kind, clip, count, to_numpy
from rewardfree.data import Transitions
from rewardfree.kernelfit import candidates, fitted_model
from rewardfree.model import Model
from rewardfree.posterior import Posteriors, room_for
from rewardfree.regressions import Regressions
from rewardfree.rewards import check_unit_range, reward_table
from rewardfree.strategies.options import check_options
from rewardfree.strategies.round import lattice_of
from rewardfree.streams import stream
from rewardfree.tables import tabled
from rewardfree.threads import one_blas_thread
from rewardfree.ties import Ties, best_of_clipped
from rewardfree.worlds.grid import Grid

#: What values are clipped to: [0, H], or what the remaining steps can pay.
Clip: TypeAlias = Literal["paper", "range"]


class Planner(ABC):
    """Q_h = clip(r_h + mean_h[V_{h+1}] +- min(beta sigma_h, H), 0, H), for rewards in [0,1].

    With `clip="range"` for any reward: clipped to the least and the most that the remaining steps can pay,
    (H-h) min r and (H-h) max r for h from 0, and the bonus to their difference.
    """

    ties: Ties
    clip: Clip

    @property
    @abstractmethod
    def weight(self) -> float:
        """What sigma is multiplied with: beta and its sign."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.clip not in ("paper", "range"):
            raise ValueError(f'clip must be "paper" or "range", got {self.clip!r}')


@tabled
@dataclass(frozen=True)
class Optimistic(Planner):
    """Alg 1: Q_h = clip(r_h + mean_h[V_{h+1}] + min(beta sigma_h, H), 0, H)."""

    beta: float
    ties: Ties = "lowest"
    clip: Clip = "paper"

    @property
    def weight(self) -> float:
        return self.beta


@tabled
@dataclass(frozen=True)
class Mean(Planner):
    """Alg 1 without a bonus, as `Optimistic(0)`: plan as if the estimate were the truth."""

    ties: Ties = "lowest"
    clip: Clip = "paper"
    beta: ClassVar[float] = 0.0

    @property
    def weight(self) -> float:
        return 0.0


@tabled
@dataclass(frozen=True)
class Pessimistic(Planner):
    """The lower bound instead of the upper one: what was never tried counts for little."""

    beta: float
    ties: Ties = "lowest"
    clip: Clip = "paper"

    @property
    def weight(self) -> float:
        return -self.beta


@dataclass(frozen=True, eq=False)
class Plan:
    """A deterministic policy on finitely many states, and the values it was chosen by. h counts from 0."""

    grid: Grid
    horizon: int
    planner: Planner
    actions: Any  # (h,s) indices
    values: Any  # (h,s) the planner's own V_h, not the policy's true value

    def act(self, state: Any, h: int) -> Any:
        """The action (an index) at a state or states (n,)."""
        return self._at(self.actions, state, h)

    def value(self, state: Any, h: int) -> Any:
        """The planner's V_h at a state or states (n,)."""
        return self._at(self.values, state, h)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as npz, without pickle; `rf.load_plan` reads it."""
        from rewardfree.planning.stored import write_finite_plan

        write_finite_plan(path, self)

    def __repr__(self) -> str:
        return f"Plan({self.planner!r}, horizon {self.horizon}, {self.grid.shape[0]} states)"

    def _at(self, table: Any, state: Any, h: int) -> Any:
        h = count(h, "h", at_least=0)
        if h >= self.horizon:
            raise ValueError(f"h must lie in 0..{self.horizon - 1}, got {h}")
        states = np.asarray(state)
        states = states if states.size else states.astype(np.int64)
        if states.dtype.kind not in "iu":
            raise ValueError(f"state must be an index or indices, got {states.dtype}")
        if states.size and (states.min() < 0 or states.max() >= table.shape[1]):
            raise ValueError(f"state must lie in 0..{table.shape[1] - 1}, got {state}")
        found = table[h][states]
        return found.item() if states.ndim == 0 else found


def plan_many(
    data: Transitions,
    rewards: Sequence[Any],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: Any = None,
) -> list[Plan]:
    """One plan for each reward from one factorisation: the rewards are columns of the same products.

    It is the posterior that the strategy explored with, or that of `model`.
    """
    options: dict[str, Any] = {"seed": seed, "device": device, "dtype": dtype}
    return plan_runs([data], rewards, planner, model, horizon, discount, **options)[0]


def plan_runs(
    runs: Sequence[Transitions],
    rewards: Sequence[Any],
    planner: Planner | None = None,
    model: Model | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: Any = None,
) -> list[list[Plan]]:
    """`plan_many` for each of several runs on one grid: [run][reward]."""
    if not runs:
        return []
    seed = count(seed, "seed", at_least=0)
    for run in runs:
        check_kind(run, Transitions, "data", "what rf.explore returns; rf.plan_runs takes several")
    if model is not None:
        check_kind(model, Model, "model", "rf.Model(kernel, ridge)")
    if planner is None:
        runs, planner, model = _by_default(runs, model)
    first = runs[0]
    H = _horizon(horizon, first, all(_any_horizon(model or run.model) for run in runs))
    gamma = 1.0 if discount is None else as_number(discount, "discount")
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"discount must lie in (0, 1], got {discount}")
    if any(run.horizon != first.horizon or not run.grid.same_as(first.grid) for run in runs):
        raise ValueError("runs that are planned together must come from one grid and horizon")
    table = reward_tables(rewards, first.grid, H, planner)
    plans: list[list[Plan]] = []
    with one_blas_thread():
        for some, own, same in _together(runs, model, device, dtype):
            lattice = Model.posteriors if model is not None else lattice_of(some[0].strategy)
            stages = _refitted(some, own, same, device, dtype, lattice)
            seeds = [run.seed for run in some]
            actions, values = map(to_numpy, backward(stages, table, planner, H, seeds, gamma, seed))
            plans += [
                [Plan(first.grid, H, planner, a, v) for a, v in zip(*both, strict=True)]
                for both in zip(actions, values, strict=True)
            ]
    return plans


def default_planner() -> Planner:
    """What plans where nobody says how: the mean, for rewards of any range."""
    return Mean(clip="range")


def _by_default(
    runs: Sequence[Transitions], model: Model | None
) -> tuple[list[Transitions], Planner, Model | None]:
    """The best known planning: every transition counts, and a regression for all steps is centred.

    Not one for each step: with few samples at a place, the midrange of all values is a worse guess than 0.
    """
    every = [run.using_all() for run in runs]
    if model is None:
        return [replace(run, model=_centred(run.model)) for run in every], default_planner(), None
    return every, default_planner(), _centred(model)


def _centred(model: Model) -> Model:
    return replace(model, centred=model.centred or model.pooled)


def reward_tables(rewards: Sequence[Any], grid: Grid, horizon: int, planner: Planner) -> Any:
    """Rewards for a planner, checked, (c,h,s,a); h has length 1 if no reward changes with it."""
    check_kind(planner, Planner, "planner", "Optimistic(beta), Mean() or Pessimistic(beta)")
    if isinstance(rewards, str):
        raise ValueError(f"rewards must be a list of rewards, got the one formula {rewards!r}: use plan")
    tables = [reward_table(reward, grid, horizon) for reward in rewards]
    if not tables:
        raise ValueError("rewards must hold at least one reward, got none")
    for table in tables if planner.clip == "paper" else []:
        check_unit_range(table, type(planner).__name__)
    longest = max(len(table) for table in tables)
    return np.stack([np.broadcast_to(table, (longest, *table.shape[1:])) for table in tables])


def backward(
    stages: Callable[[int], Regressions],
    rewards: Any,
    planner: Planner,
    horizon: int,
    seeds: Sequence[int],
    discount: float = 1.0,
    seed: int = 0,
) -> tuple[Any, Any]:
    """Alg 1 for b runs and c rewards (c,h,s,a): the actions and the values V_h, (b,c,h,s), on the device.

    `stages(h)` holds the regressions of step h; it is asked once for each, from the last step to the first.
    `seeds` are those of the runs; with `seed` they decide between random ties.
    """
    c, (s, a) = len(rewards), rewards.shape[2:]
    ties = None
    if planner.ties == "random":  # a run's own, whoever it is planned with: (b,h,s)
        ties = np.stack([stream(seed, "planning ties", run).random((horizon, s)) for run in seeds])
    limits = _limits(rewards, planner, horizon, discount)
    actions: list[Any] = [None] * horizon
    values: list[Any] = [None] * horizon
    value = None
    for h in reversed(range(horizon)):
        stage = stages(h)
        xp, b = stage.xp, stage.runs
        r = stage.numbers(rewards[:, h if rewards.shape[1] > 1 else 0].reshape(c, s * a))
        if value is not None:
            q = stage.mean(h, value)
            if discount < 1.0:
                q *= discount
        else:
            q = xp.zeros((b, c, s * a), dtype=r.dtype, device=stage.device)
        low, high = limits(h, stage)
        if planner.weight:
            bonus = planner.weight * stage.std(h)
            bonus = bonus if bonus.ndim == 3 else bonus[:, None, :]
            q += clip(bonus, low - high, high - low)
        q += r
        uniform = None if ties is None else stage.exact(ties[:, None, h])
        best, chosen = best_of_clipped(xp.reshape(q, (b, c, s, a)), low, high, uniform)
        actions[h], values[h] = chosen, best
        value = xp.permute_dims(best, (0, 2, 1))  # (b,s,c)
    return xp.stack(actions, axis=2), xp.stack(values, axis=2)


def _limits(
    rewards: Any, planner: Planner, horizon: int, discount: float
) -> Callable[[int, Regressions], tuple[Any, Any]]:
    """What V_h is clipped to: numbers, or arrays (c,1) where the stage's posteriors are."""
    if planner.clip == "paper":
        return lambda h, stage: (0.0, float(horizon))
    ends = np.stack([rewards.min(axis=(2, 3)), rewards.max(axis=(2, 3))])  # (2,c,h)
    ends = np.broadcast_to(ends, (*ends.shape[:2], horizon)).copy()
    for h in reversed(range(horizon - 1)):
        ends[:, :, h] += discount * ends[:, :, h + 1]
    return lambda h, stage: tuple(stage.numbers(ends[:, :, h : h + 1]))


def _horizon(horizon: int | None, data: Transitions, pooled: bool) -> int:
    if horizon is None:
        return data.horizon
    horizon = count(horizon, "horizon")
    if horizon > data.horizon and not pooled:
        raise ValueError(
            f"horizon must be at most the {data.horizon} steps of these data, got {horizon}: "
            "only a pooled model that is not timed can go beyond them"
        )
    return horizon


def _any_horizon(model: Model) -> bool:
    """Whether a model knows steps that no data had."""
    return model.pooled and not model.timed


def _together(
    runs: Sequence[Transitions], model: Model | None, device: str, dtype: Any
) -> Iterator[tuple[list[Transitions], Model, bool]]:
    """Runs that are planned at once, with which model, and whether all their regressions share their points.

    Those that do go together, others as many as memory is kind to.
    """
    own_lattice = (lambda run: None) if model is not None else (lambda run: lattice_of(run.strategy))
    for (own, _), group in groupby(runs, key=lambda run: (model or run.model, own_lattice(run))):
        alike = list(group)
        size = len(alike)
        if own.automatic:  # each has its own kernel
            for run in alike:
                yield [run], fitted_to_run(own, run, dtype), False
            continue
        if not _share_points(alike, own):
            longest = max(len(rows) for run in alike for rows in run.designs(own.pooled))
            each = 8 * max(1, longest) * len(candidates(own, alike[0].grid, alike[0].horizon))
            # On the CPU nothing is gained by more than one at a time, and its posterior stays in the cache.
            size = 1 if device == "cpu" else max(1, room_for(device) // each)
        for first in range(0, len(alike), size):
            some = alike[first : first + size]
            yield some, own, _share_points(some, own)


def _share_points(runs: Sequence[Transitions], model: Model) -> bool:
    """Whether all regressions of all runs have the same points in the same order."""
    points = [run.points(rows, model.timed) for run in runs for rows in run.designs(model.pooled)]
    return all(np.array_equal(points[0], each) for each in points)


def fitted_to_run(model: Model, run: Transitions, dtype: Any = None) -> Model:
    """An automatic model with the kernel and the ridge that all kept transitions of a run ask for."""
    rows = np.flatnonzero(run.kept)
    points = candidates(model, run.grid, run.horizon)
    seen = (run.points(rows, model.timed), run.grid.states, run.next_state[rows])
    return fitted_model(model, points, *seen, dtype=dtype)


def prepared(run: Transitions, model: Model) -> Callable[[int], Regressions]:
    """What `backward` asks for each step, from one run: planners and rewards share it."""
    own = fitted_to_run(model, run) if model.automatic else model
    return functools.lru_cache(_refitted([run], own, _share_points([run], own), "cpu", None))


def _refitted(
    runs: Sequence[Transitions],
    model: Model,
    same: bool,
    device: str,
    dtype: Any,
    lattice: Callable[..., Posteriors] = Model.posteriors,
) -> Callable[[int], Regressions]:
    """The regressions of each step, built from the data: step by step, or once where they are shared."""
    designs = [run.designs(model.pooled) for run in runs]
    steps = range(len(designs[0]))
    points = [
        [run.points(each[h], model.timed) for run, each in zip(runs, designs, strict=True)] for h in steps
    ]
    following = [[run.next_state[each[h]] for run, each in zip(runs, designs, strict=True)] for h in steps]
    capacity = max(1, *(len(z) for step in points for z in step))
    options: dict[str, Any] = {"runs": len(runs), "capacity": capacity, "device": device, "dtype": dtype}
    options["lattice"] = lattice

    def fitted(first: int, last: int) -> Regressions:
        own = Regressions(model, runs[0].grid, last - first, same_steps=same, same_runs=same, **options)
        own.load(points[first:last], following[first:last])
        return own

    if model.pooled or same:
        shared = fitted(0, runs[0].horizon if model.timed else len(points))
        return lambda h: shared
    return lambda h: fitted(h, h + 1)
