"""The public door of exploration: a world, a model and a strategy give data, and no reward enters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, overload

from rewardfree.arrays import DType, Placement, check_kind, count
from rewardfree.budget import Budget, Limits
from rewardfree.data import COLUMNS, Experience, Transitions
from rewardfree.dynamics.labels import are_labels, counts_visits
from rewardfree.dynamics.mesh import has_mesh
from rewardfree.model import Model, SeparatePosteriors
from rewardfree.posterior import Posterior
from rewardfree.posterior.engine.backend import room_for
from rewardfree.progress import progress as shown
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.scout import Scout
from rewardfree.strategies.strategy import Strategy
from rewardfree.strategies.uniform import Uniform
from rewardfree.strategies.world_run import WorldRun
from rewardfree.worlds import (
    Environment,
    FiniteWorld,
    LabelledWorld,
    World,
    as_world,
    check_declared,
    check_world,
    feature_bounds,
)
from rewardfree.worlds.world import TIMED_ON_REAL_STATES


@overload
def explore(
    world: FiniteWorld,
    model: Model | None = None,
    strategy: Strategy | None = None,
    *,
    samples_per_step: int | None = None,
    transitions: int | None = None,
    episodes: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: DType | None = None,
    posterior: Callable[[Model], Posterior] | None = None,
    progress: bool | None = None,
) -> Transitions: ...


@overload
def explore(
    world: World,
    model: Model | None = None,
    strategy: Strategy | None = None,
    *,
    samples_per_step: int | None = None,
    transitions: int | None = None,
    episodes: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    max_sigma: float | None = None,
    seed: int = 0,
    resume: Experience | None = None,
    progress: bool | None = None,
) -> Experience: ...


@overload
def explore(
    world: FiniteWorld | World | Environment,
    model: Model | None = None,
    strategy: Strategy | None = None,
    *,
    samples_per_step: int | None = None,
    transitions: int | None = None,
    episodes: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    max_sigma: float | None = None,
    seed: int = 0,
    resume: Experience | None = None,
    device: str = "cpu",
    dtype: DType | None = None,
    posterior: Callable[[Model], Posterior] | None = None,
    progress: bool | None = None,
) -> Transitions | Experience: ...


def explore(
    world: FiniteWorld | World | Environment,
    model: Model | None = None,
    strategy: Strategy | None = None,
    *,
    samples_per_step: int | None = None,
    transitions: int | None = None,
    episodes: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    max_sigma: float | None = None,
    seed: int = 0,
    resume: Experience | None = None,
    device: str = "cpu",
    dtype: DType | None = None,
    posterior: Callable[[Model], Posterior] | None = None,
    progress: bool | None = None,
) -> Transitions | Experience:
    """Explore a world without any reward, up to a budget: `Transitions` of a finite world, else `Experience`.

    A Gymnasium environment or its id is taken as `from_gymnasium` makes a world of it. Without a `model` it
    is `default_model(world, strategy)`, without a `strategy` `Scout()`, or `Uniform()` where neither a mesh
    can be laid over the states, of more than four variables say, nor are states and actions labels.
    `samples_per_step` counts rounds, each of which leaves a sample for every step it reaches, `transitions`
    kept samples of a pooled model, `steps` all of them, a query being one. A world of real states also takes
    `seconds`, which cannot stop a step that blocks: time is looked at after it; and a target `max_sigma`.
    Ctrl-C keeps what there is, and `resume` goes on from it up to the same total. `device`, `dtype` and
    `posterior` are for finite worlds.
    """
    sizes: dict[str, Any] = {
        "samples_per_step": samples_per_step, "transitions": transitions, "episodes": episodes, "steps": steps
    }  # fmt: skip
    world = world if isinstance(world, FiniteWorld) else as_world(world)
    if not isinstance(world, FiniteWorld):
        if not Placement(device, dtype).default or posterior is not None:
            raise ValueError(
                "device=, dtype= and posterior= are for finite worlds: real states are explored on the CPU, "
                "and rf.plan takes device= and dtype= for their data"
            )
        chosen, fitting = _checked(world, model, strategy)
        limits = Limits.of(fitting, seconds, max_sigma, chosen.generative, **sizes)
        seed = count(seed, "seed", at_least=0)
        if resume is not None:
            _check_resumed(resume, world, fitting, chosen, seed)
        return WorldRun(world, fitting, chosen, seed, limits, resume).run(progress)
    if seconds is not None or max_sigma is not None or resume is not None:
        raise ValueError(
            "seconds=, max_sigma= and resume= are for real states: "
            "on a finite world a larger budget with the same seed begins with the same steps"
        )
    options: dict[str, Any] = {"device": device, "dtype": dtype, "posterior": posterior, "progress": progress}
    (data,) = explore_many(world, model, strategy, seeds=[seed], **sizes, **options)
    return data


def explore_many(
    world: FiniteWorld,
    model: Model | None = None,
    strategy: Strategy | None = None,
    *,
    seeds: Iterable[int],
    samples_per_step: int | None = None,
    transitions: int | None = None,
    episodes: int | None = None,
    steps: int | None = None,
    device: str = "cpu",
    dtype: DType | None = None,
    posterior: Callable[[Model], Posterior] | None = None,
    batch: int | None = None,
    progress: bool | None = None,
) -> list[Transitions]:
    """`explore` for many seeds, `batch` runs at a time (by default as many as fit in memory).

    Run by run the data are those of `explore` with that seed, whatever the batch and the device.
    """
    strategy, model = checked_parts(world, model, strategy)
    placement = Placement(device, dtype)
    if posterior is not None and not placement.default:
        raise ValueError(
            "posterior= builds its own arrays: dtype= and device= are for the default, a lattice"
        )
    if posterior is not None and strategy.own_posteriors:
        raise ValueError(f"{type(strategy).__name__} has posteriors of its own: leave out posterior=")
    budget = Budget.of(
        model, samples_per_step=samples_per_step, transitions=transitions, episodes=episodes, steps=steps
    )
    if _plays_labels(world, model, strategy):
        if posterior is not None or not placement.default:
            raise ValueError("visits are counted on the CPU: leave device=, dtype= and posterior= out")
        return [_among_labels(world, model, strategy, seed, budget, progress) for seed in as_seeds(seeds)]
    strategy = strategy.within(budget, world)
    rounds = rounds_for(budget, world, strategy)
    groups = in_batches(as_seeds(seeds), batch, world, model, strategy, rounds, device)
    source = posterior and SeparatePosteriors(posterior)
    batches = (
        RunBatch(world, model, strategy, group, rounds, source=source, placement=placement)
        for group in groups
    )
    runs: list[Transitions] = []
    for one in played(batches, len(groups), progress):
        ended = zip(one.data(), one.stopped, strict=True)
        runs += [data if done else data.cut(budget) for data, done in ended]
    return runs


def _plays_labels(world: FiniteWorld, model: Model, strategy: Strategy) -> bool:
    """Whether a finite world is explored by visit counts, with episodes that stop at an end."""
    return world.grid.labelled and strategy.stops_at_ends and counts_visits(model)


def _among_labels(
    world: FiniteWorld, model: Model, strategy: Strategy, seed: int, budget: Budget, progress: bool | None
) -> Transitions:
    run = WorldRun(LabelledWorld(world, ending=True), model, strategy, seed, Limits(budget), None)
    data = run.run(progress)
    if data.stopped_by == "interrupted":  # as on every finite world
        raise KeyboardInterrupt
    columns = {name: getattr(data, name) for name in COLUMNS}
    return Transitions(
        world.grid, world.horizon, model, strategy, seed, **columns, stopped_by=data.stopped_by
    )


def default_model(world: FiniteWorld | World, strategy: Strategy | None = None) -> Model:
    """The model to use where nothing better is known: see `Strategy.default_model`."""
    return _filled_in(world, None, strategy)[1]


def _filled_in(
    world: FiniteWorld | World, model: Model | None, strategy: Strategy | None
) -> tuple[Strategy, Model]:
    """A strategy and a model, by default what is used where a user names none."""
    if isinstance(world, World):
        check_declared(world)  # which the defaults look at
    strategy = _default_strategy(world) if strategy is None else strategy
    check_kind(strategy, Strategy, "strategy", "a strategy such as Scout()")
    model = strategy.default_model(world) if model is None else model
    check_kind(model, Model, "model", "rf.Model(kernel, ridge) or rf.Model(rf.AutoKernel())")
    return strategy, model


def _checked(world: World, model: Model | None, strategy: Strategy | None) -> tuple[Strategy, Model]:
    """A strategy and a model for real states, with defaults filled in."""
    strategy, model = _filled_in(world, model, strategy)
    if model.timed:
        raise ValueError(TIMED_ON_REAL_STATES)
    if not strategy.plays_worlds:
        raise ValueError(
            f"{type(strategy).__name__} is for finite worlds, rf.FiniteWorld: "
            f"on real states use a strategy such as Scout(), got {world!r:.100}"
        )
    if strategy.generative and strategy.ties != "lowest":
        raise ValueError(
            f'ties="random" of {type(strategy).__name__} is for finite worlds: leave ties= out, '
            "sigma of candidates on real states has no ties to speak of"
        )
    strategy.check_model(model)
    if strategy.needs_box(model):
        feature_bounds(world.spaces)  # say so before the first step
    return strategy, model


def _default_strategy(world: FiniteWorld | World) -> Strategy:
    """Scout; at random where neither a mesh fits its states nor visits of labels are counted."""
    if isinstance(world, World) and not (has_mesh(world.spaces) or are_labels(world.spaces)):
        return Uniform()
    return Scout()


def _check_resumed(data: Experience, world: World, model: Model, strategy: Strategy, seed: int) -> None:
    """Refuse data that another run made."""
    check_kind(data, Experience, "resume", "what rf.explore returned for this world")
    parts = {
        "model": (data.model, model),
        "strategy": (data.strategy, strategy),
        "seed": (data.seed, seed),
        "world": (data.spaces, world.spaces),
        "horizon": (data.horizon, world.horizon),
        "environment": (_environment(data.provenance), _environment(world.provenance)),
    }
    for name, (before, now) in parts.items():
        if before != now:
            raise ValueError(
                f"resume must come from the same {name}, got {before!r:.200} instead of {now!r:.200}"
            )


def _environment(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The provenance of a world without the name of its class, which its author may change."""
    return {name: value for name, value in provenance.items() if name != "world"}


def checked_parts(world: Any, model: Model | None, strategy: Strategy | None) -> tuple[Strategy, Model]:
    """A strategy and a model that go together with a finite world, with defaults filled in."""
    check_world(world)
    strategy, model = _filled_in(world, model, strategy)
    if not strategy.plays_finite:
        raise ValueError(f"{type(strategy).__name__} is for real states, and this world is finite: {world!r}")
    strategy.check_model(model)
    strategy.check_grid(world.grid)
    return strategy, model


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
