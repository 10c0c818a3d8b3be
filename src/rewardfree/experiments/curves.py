"""Learning curves: the gap of the plan as samples grow, for many runs of one strategy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Placement, check_kind, count, to_numpy
from rewardfree.budget import Budget
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.evaluation.exact import gap_of_values, optimal_value, policy_value, values_of_actions
from rewardfree.model import Model
from rewardfree.planning import Planner, PlanRequest, ValuePlanner
from rewardfree.planning.finite import RewardColumns, backward, tie_breaks
from rewardfree.posterior import Lattice
from rewardfree.rewards import reward_table
from rewardfree.strategies import RunBatch, Strategy
from rewardfree.strategies.explore import as_seeds, checked_parts, in_batches, played, rounds_for
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.finite import FiniteWorld


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Gaps of b runs at n checkpoints, and what runs had cost by then.

    A run that its own rule ended before a checkpoint has used less than others.
    """

    samples: Any  # (n,) per step, or in the pooled design
    episodes: Any  # (n,) begun; 0 with a generative model
    steps: Any  # (n,) environment steps
    start: Any  # (b,n) gap at the start
    mean: Any  # (b,n) over states
    max: Any  # (b,n) over states
    used_episodes: Any  # (b,n) of each run itself
    used_steps: Any  # (b,n)


def learning_curves(
    world: FiniteWorld,
    model: Model,
    strategy: Strategy,
    reward: Any,
    planners: Mapping[str, Planner],
    *,
    samples_per_step: Sequence[int] | None = None,
    transitions: Sequence[int] | None = None,
    seeds: Iterable[int],
    device: str = "cpu",
    dtype: Any = None,
    batch: int | None = None,
    progress: bool | None = None,
) -> dict[str, LearningCurve]:
    """The gap of every planner at each checkpoint of every run, evaluated exactly.

    The gaps are those of `explore`, `first`, `plan` and `gap` one after the other; but a run is planned on
    the posterior that it explored with. A lattice holds every earlier one, so nothing is factorised twice; a
    planner that does not plan by Alg 1 plans for every run and checkpoint anew. A run that its strategy stops
    before a checkpoint has the gap there that it stopped with.
    """
    strategy, model = checked_parts(world, model, strategy)
    if model.automatic:
        raise ValueError(
            "learning_curves plans on the posteriors of the exploration, whose kernel must be fixed: "
            "with AutoKernel() use rf.explore, data.first and rf.plan"
        )
    check_kind(planners, Mapping, "planners", 'named planners such as {"mean": rf.Mean()}')
    given = {"samples_per_step": samples_per_step, "transitions": transitions}
    sizes = {unit: None if n is None else _checkpoints(unit, n) for unit, n in given.items()}
    budget = Budget.of(model, tuple(sizes), **{unit: n and n[-1] for unit, n in sizes.items()})
    checkpoints = sizes[budget.unit] or []
    strategy = strategy.within(budget, world)
    prologue = strategy.prologue(world.grid, world.horizon)
    at = [rounds_for(Budget(budget.unit, n), world, strategy) for n in checkpoints]
    per_round = world.horizon if model.pooled else 1
    if any((rounds - prologue) * per_round != n for rounds, n in zip(at, checkpoints, strict=True)):
        raise ValueError(f"transitions must be multiples of the horizon {world.horizon}, got {checkpoints}")
    seeds = as_seeds(seeds)
    if not seeds:
        raise ValueError("seeds must name at least one run, got none")
    by_values = [planner.by_values for planner in planners.values() if planner.by_values is not None]
    table: Any = reward_table(reward, world.grid, world.horizon) if by_values else None
    for value_planner in by_values:
        value_planner.check_rewards(float(table.min()), float(table.max()))
    optimal = optimal_value(world, reward)[0]
    parts = in_batches(seeds, batch, world, model, strategy, at[-1], device)
    placement = Placement(device, dtype)
    batches = (RunBatch(world, model, strategy, part, at[-1], placement=placement) for part in parts)
    values: dict[str, list[Any]] = {name: [] for name in planners}
    rounds, played_rounds = np.array(at), []
    with one_blas_thread():
        for runs in played(batches, len(parts), progress):
            played_rounds.append(np.minimum(rounds, runs.lasted[:, None]))
            law = runs.estimate.exact(world.P)
            estimates = estimates_at(runs, checkpoints, at)
            for name, planner in planners.items():
                if planner.by_values is None:
                    budgets = [Budget(budget.unit, n) for n in checkpoints]
                    values[name].append(_planned_anew(world, runs, reward, planner, budgets))
                    continue
                first = [
                    _first_values(estimate, law, table, planner.by_values, n, runs.seeds)
                    for estimate, n in estimates
                ]
                values[name].append(np.concatenate(first, axis=1))
    one_round, used = strategy.round(world.horizon), np.concatenate(played_rounds)
    episodes, steps = 0 if strategy.generative else one_round.episodes, len(one_round)
    cost = np.array(checkpoints), rounds * episodes, rounds * steps
    curves = {}
    for name, parts_of_values in values.items():
        gaps = gap_of_values(world, optimal, np.concatenate(parts_of_values))
        curves[name] = LearningCurve(*cost, gaps.start, gaps.mean, gaps.max, used * episodes, used * steps)
    return curves


def _checkpoints(unit: str, sizes: Any) -> list[int]:
    """When to plan, in order."""
    try:
        checkpoints = sorted({count(n, unit) for n in sizes})
    except TypeError:
        checkpoints = []
    if not checkpoints:
        raise ValueError(f"{unit} must be a list of checkpoints, such as [10, 20, 40], got {sizes!r}")
    return checkpoints


def estimates_at(
    runs: RunBatch, checkpoints: Sequence[int], rounds: Sequence[int]
) -> list[tuple[FiniteEstimate, int]]:
    """The estimates at the checkpoints, which come after these rounds, and how many stand side by side."""
    last = runs.settled()
    if isinstance(last.posteriors, Lattice):
        return [(last.as_of(checkpoints), len(checkpoints))]
    return [(runs.after(n), 1) for n in rounds]  # others do not hold what they were before


def plans_at(
    estimate: FiniteEstimate, table: Any, planner: ValuePlanner, sizes: int, seeds: Sequence[int]
) -> tuple[Any, Any]:
    """Actions and values (b,n,h,s) of the plans for a reward (h,s,a) that an estimate gives at each size."""
    # The planner's columns are the sizes here: each has a posterior of its own, all have the same reward.
    reward = table[0] if len(table) == 1 else table
    rewards = RewardColumns([reward], estimate.grid, estimate.horizon, planner, sizes)
    ties = tie_breaks(planner, seeds, estimate.horizon, estimate.grid.shape[0])
    return backward(lambda h: estimate, rewards, planner, estimate.horizon, ties)


def _planned_anew(
    world: FiniteWorld, runs: RunBatch, reward: Any, planner: Planner, budgets: Sequence[Budget]
) -> Any:
    """V^pi at the first step for the plans of any planner at each budget, (b,n,s)."""
    values = []
    for data, stopped in zip(runs.data(), runs.stopped, strict=True):
        parts = [data if stopped and data.samples.min() < one.size else data.cut(one) for one in budgets]
        plans = planner.plan_runs([PlanRequest(part, [reward]) for part in parts])
        values.append([policy_value(world, plan, reward)[0] for (plan,) in plans])
    return np.array(values)


def _first_values(
    estimate: FiniteEstimate, law: Any, table: Any, planner: ValuePlanner, sizes: int, seeds: Sequence[int]
) -> Any:
    """V^pi at the first step for the plans at each size, (b,n,s)."""
    actions, _ = plans_at(estimate, table, planner, sizes, seeds)
    return to_numpy(values_of_actions(law, estimate.exact(table), actions))[:, :, 0]
