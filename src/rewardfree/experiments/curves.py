"""Learning curves: how good the plan is after so many samples, for many runs of one strategy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Placement, check_kind, count, to_numpy
from rewardfree.budget import Budget
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.evaluation.exact import gap_of_values, optimal_value, values_of_actions
from rewardfree.model import Model
from rewardfree.planning import ValuePlanner
from rewardfree.planning.finite import backward, reward_tables, tie_breaks
from rewardfree.posterior import Lattice
from rewardfree.strategies import Strategy
from rewardfree.strategies.batches import as_seeds, check_parts, in_batches, played, rounds_for
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.finite import FiniteWorld


@dataclass(frozen=True, eq=False)
class Curve:
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
    planners: Mapping[str, ValuePlanner],
    *,
    samples_per_step: Sequence[int] | None = None,
    transitions: Sequence[int] | None = None,
    seeds: Iterable[int],
    device: str = "cpu",
    dtype: Any = None,
    batch: int | None = None,
    progress: bool | None = None,
) -> dict[str, Curve]:
    """The gap of every planner at each checkpoint of every run, evaluated exactly.

    The gaps are those of `explore`, `first`, `plan` and `gap` one after the other; but a run is planned on
    the posterior that it explored with. A lattice holds every earlier one, so nothing is factorised twice. A
    run that its strategy stops before a checkpoint has the gap there that it stopped with.
    """
    check_parts(world, model, strategy)
    if model.automatic:
        raise ValueError(
            "learning_curves plans on the posteriors of the exploration, whose kernel must be fixed: "
            "with AutoKernel() use rf.explore, data.first and rf.plan"
        )
    check_kind(planners, Mapping, "planners", 'named planners such as {"mean": rf.Mean()}')
    given = {"samples_per_step": samples_per_step, "transitions": transitions}
    sizes = {unit: None if each is None else _checkpoints(unit, each) for unit, each in given.items()}
    budget = Budget.of(model, tuple(sizes), **{unit: each and each[-1] for unit, each in sizes.items()})
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
    tables = {
        name: reward_tables([reward], world.grid, world.horizon, each) for name, each in planners.items()
    }
    optimal = optimal_value(world, reward)[0]
    batches = in_batches(seeds, batch, world, model, strategy, at[-1], device)
    placement = Placement(device, dtype)
    arenas = (RunBatch(world, model, strategy, some, at[-1], placement=placement) for some in batches)
    found: dict[str, list[Any]] = {name: [] for name in planners}
    rounds, played_rounds = np.array(at), []
    with one_blas_thread():
        for arena in played(arenas, len(batches), progress):
            played_rounds.append(np.minimum(rounds, arena.lasted[:, None]))
            law = arena.estimate.exact(world.P)
            earlier = known_at(arena, checkpoints, at)
            for name, planner in planners.items():
                values = [
                    _first_values(known, law, tables[name], planner, n, arena.seeds) for known, n in earlier
                ]
                found[name].append(np.concatenate(values, axis=1))
    whole, used = strategy.round(world.horizon), np.concatenate(played_rounds)
    episodes, steps = 0 if strategy.generative else whole.episodes, len(whole)
    cost = np.array(checkpoints), rounds * episodes, rounds * steps
    curves = {}
    for name, values in found.items():
        gaps = gap_of_values(world, optimal, np.concatenate(values))
        curves[name] = Curve(*cost, gaps.start, gaps.mean, gaps.max, used * episodes, used * steps)
    return curves


def _checkpoints(unit: str, sizes: Any) -> list[int]:
    """When to plan, in order."""
    try:
        found = sorted({count(n, unit) for n in sizes})
    except TypeError:
        found = []
    if not found:
        raise ValueError(f"{unit} must be a list of checkpoints, such as [10, 20, 40], got {sizes!r}")
    return found


def known_at(
    arena: RunBatch, checkpoints: Sequence[int], rounds: Sequence[int]
) -> list[tuple[FiniteEstimate, int]]:
    """What was known at the checkpoints, after so many rounds, and how many of them are side by side."""
    last = arena.settled()
    if isinstance(last.posteriors, Lattice):
        return [(last.as_of(checkpoints), len(checkpoints))]
    return [(arena.after(n), 1) for n in rounds]  # others do not hold what they were before


def _first_values(
    ready: FiniteEstimate, law: Any, table: Any, planner: ValuePlanner, sizes: int, seeds: Sequence[int]
) -> Any:
    """V^pi at the first step for the plans that these regressions give at each of their sizes, (b,n,s)."""
    # The planner's columns are the sizes here: each has a posterior of its own, all have the same reward.
    every = np.broadcast_to(table, (sizes, *table.shape[1:]))
    ties = tie_breaks(planner, seeds, ready.horizon, ready.grid.shape[0])
    actions, _ = backward(lambda h: ready, every, planner, ready.horizon, ties)
    return to_numpy(values_of_actions(law, ready.exact(table[0]), actions))[:, :, 0]
