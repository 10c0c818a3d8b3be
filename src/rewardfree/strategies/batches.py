"""How an exploration of a finite world is split up: rounds for a budget, runs for a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rewardfree.arrays import check_kind, count
from rewardfree.budget import Budget
from rewardfree.model import Model
from rewardfree.posterior import room_for
from rewardfree.progress import progress as shown
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.strategy import Strategy
from rewardfree.worlds.finite import FiniteWorld, check_world


def check_parts(world: Any, model: Any, strategy: Any) -> None:
    """Refuse what is not a finite world, a model and a strategy that go together."""
    check_world(world)
    check_kind(model, Model, "model", "rf.Model(kernel, ridge)")
    check_kind(strategy, Strategy, "strategy", "a strategy such as Online(beta=0.1)")
    if not strategy.plays_finite:
        raise ValueError(f"{type(strategy).__name__} is for real states, and this world is finite: {world!r}")
    strategy.check_model(model)
    strategy.check_grid(world.grid)


def as_seeds(seeds: Any) -> list[int]:
    """One seed for each run."""
    try:
        return [count(seed, "seed", at_least=0) for seed in seeds]
    except TypeError:
        raise ValueError(f"seeds must be a list such as range(80), got {seeds!r}") from None


def rounds_for(budget: Budget, world: FiniteWorld, strategy: Strategy) -> int:
    """How many whole rounds reach the budget; kept samples come after the prologue, if there is one."""
    prologue = strategy.prologue(world.grid, world.horizon)
    whole = strategy.round(world.horizon)
    if budget.unit == "episodes" and strategy.generative:
        raise ValueError(f"{strategy!r} has no episodes: use steps=, each query being one")
    per_round = {
        "samples_per_step": 1,
        "transitions": sum(whole.kept),
        "episodes": whole.episodes,
        "steps": len(whole),
    }[budget.unit]
    rounds = -(-budget.size // per_round)
    if budget.unit in ("samples_per_step", "transitions"):
        return prologue + rounds
    if rounds <= prologue:
        raise ValueError(
            f"{budget.unit} must exceed the {prologue * per_round} of a first phase of which {strategy!r} "
            f"keeps nothing, got {budget.size}"
        )
    return rounds


def in_batches(
    seeds: list[int],
    batch: int | None,
    world: FiniteWorld,
    model: Model,
    strategy: Strategy,
    rounds: int,
    device: str,
) -> list[list[int]]:
    """Seeds that are played together: their posteriors must fit side by side."""
    strategy.check_device(device)
    if model.automatic:  # every run has a kernel of its own
        return [[seed] for seed in seeds]
    per_run = strategy.bytes_per_run(model, world.grid, world.horizon, rounds)
    size = max(1, room_for(device) // per_run) if batch is None else count(batch, "batch")
    return [seeds[first : first + size] for first in range(0, len(seeds), size)]


def played(batches: Iterable[RunBatch], total: int, progress: bool | None) -> Iterator[RunBatch]:
    """Batches, `total` of them, each when it has played all its rounds."""
    fractions = ((i + part, batch) for i, batch in enumerate(batches) for part in batch.play())
    for _, batch in shown(fractions, total, progress):
        if batch.over:
            yield batch
