"""The exploration loop: a world, a model and a strategy give data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rewardfree.arrays import check_kind, count
from rewardfree.autokernel import AutoKernel
from rewardfree.budget import Budget
from rewardfree.data import Experience, Transitions
from rewardfree.model import Model
from rewardfree.posterior import Posterior, room_for
from rewardfree.progress import progress as shown
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.limits import Limits
from rewardfree.strategies.round import (
    Strategy,
    check_device,
    check_grid,
    check_model,
    designer,
    lattice_of,
    prologue_of,
    shares_points,
)
from rewardfree.strategies.scout import Scout
from rewardfree.worlds.finite import FiniteWorld, check_world
from rewardfree.worlds.scaling import feature_bounds
from rewardfree.worlds.world import World


def explore(
    world: FiniteWorld | World,
    model: Model | None = None,
    strategy: Any = None,
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
    dtype: Any = None,
    posterior: Callable[[Model], Posterior] | None = None,
    progress: bool | None = None,
) -> Any:
    """Explore a world without any reward, up to a budget: `Transitions` of a finite world, else `Experience`.

    Without a `model` it is `default_model(world, strategy)`, without a `strategy` `Scout()`.
    `samples_per_step` counts rounds, each of which leaves a sample for every step it reaches, `transitions`
    kept samples of a pooled model, `steps` all of them, a query being one. A continuous world also takes
    `seconds` and a target `max_sigma`; Ctrl-C keeps what there is, and `resume` goes on from it up to the
    same total. `device`, `dtype` and `posterior` are for finite worlds.
    """
    sizes: dict[str, Any] = {
        "samples_per_step": samples_per_step, "transitions": transitions, "episodes": episodes, "steps": steps
    }  # fmt: skip
    strategy = Scout() if strategy is None else strategy
    model = default_model(world, strategy) if model is None else model
    if isinstance(world, World):
        if device != "cpu" or dtype is not None or posterior is not None:
            raise ValueError("device=, dtype= and posterior= are for finite worlds: this one runs on the CPU")
        return _journey(world, model, strategy, sizes, seconds, max_sigma, seed, resume, progress)
    if seconds is not None or max_sigma is not None or resume is not None:
        raise ValueError(
            "seconds=, max_sigma= and resume= are for continuous worlds: "
            "on a finite one a larger budget with the same seed begins with the same steps"
        )
    options: dict[str, Any] = {"device": device, "dtype": dtype, "posterior": posterior, "progress": progress}
    (data,) = explore_many(world, model, strategy, **sizes, seeds=[seed], **options)
    return data


def default_model(world: FiniteWorld | World, strategy: Any = None) -> Model:
    """The model to use where nothing better is known: a kernel from the data, one regression, centred.

    It takes dynamics that are the same at every step; a finite world that says otherwise gets a timed model,
    in which the step is a coordinate. A strategy may have a usual model of its own.
    """
    if hasattr(strategy, "usual_model"):
        usual: Model = strategy.usual_model()
        return usual
    timed = isinstance(world, FiniteWorld) and not world.stationary
    return Model(AutoKernel(), pooled=True, centred=True, timed=timed)


def _journey(
    world: World,
    model: Model,
    strategy: Any,
    sizes: dict[str, Any],
    seconds: float | None,
    max_sigma: float | None,
    seed: int,
    resume: Experience | None,
    progress: bool | None,
) -> Experience:
    check_kind(model, Model, "model", "rf.Model(kernel, ridge) or rf.Model(rf.AutoKernel())")
    if model.timed:
        raise ValueError("timed=True is for finite worlds: on real states dynamics must not change with h")
    if callable(getattr(strategy, "play", None)) and not hasattr(strategy, "travel"):
        raise ValueError(
            f"{type(strategy).__name__} is for finite worlds, rf.FiniteWorld: "
            f"on a continuous one use a strategy such as Scout(), got {world!r:.100}"
        )
    if isinstance(strategy, type) or not callable(getattr(strategy, "travel", None)):
        raise ValueError(f"strategy must be one for continuous worlds, such as Scout(), got {strategy!r}")
    generative = bool(getattr(strategy, "generative", False))
    if generative and getattr(strategy, "ties", "lowest") != "lowest":
        raise ValueError(
            f'ties="random" of {type(strategy).__name__} is for finite worlds: leave ties= out, '
            "sigma of candidates on real states has no ties to speak of"
        )
    check_model(strategy, model)
    maker = designer(strategy)
    if maker is not None and maker.needs_box(model):
        feature_bounds(world.spaces)  # say so before the first step
    limits = Limits.of(model, seconds, max_sigma, generative, **sizes)
    seed = count(seed, "seed", at_least=0)
    if resume is not None:
        check_kind(resume, Experience, "resume", "what rf.explore returned for this world")
        asked = (model, strategy, seed, world.spaces, world.horizon, _made(world.provenance))
        before = (
            resume.model,
            resume.strategy,
            resume.seed,
            resume.spaces,
            resume.horizon,
            _made(resume.provenance),
        )
        names = ("model", "strategy", "seed", "world", "horizon", "environment")
        for name, ours, theirs in zip(names, asked, before, strict=True):
            if ours != theirs:
                raise ValueError(
                    f"resume must come from the same {name}, got {theirs!r:.200} instead of {ours!r:.200}"
                )
    return Journey(world, model, strategy, seed, limits, resume).run(progress)


def _made(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """How a world was made, but for the name of its class, which is its author's to change."""
    return {name: value for name, value in provenance.items() if name != "world"}


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
    dtype: Any = None,
    posterior: Callable[[Model], Posterior] | None = None,
    batch: int | None = None,
    progress: bool | None = None,
) -> list[Transitions]:
    """`explore` for many seeds, `batch` runs at a time (by default as many as memory is kind to).

    Run by run the data are those of `explore` with that seed, whatever the batch and the device.
    """
    check_world(world)
    strategy = Scout() if strategy is None else strategy
    model = default_model(world, strategy) if model is None else model
    check_parts(world, model, strategy)
    if posterior is not None and (dtype is not None or device != "cpu"):
        raise ValueError(
            "posterior= builds its own arrays: dtype= and device= are for the default, a lattice"
        )
    if posterior is not None and lattice_of(strategy) is not Model.posteriors:
        raise ValueError(f"{type(strategy).__name__} has posteriors of its own: leave out posterior=")
    budget = Budget.of(
        model, samples_per_step=samples_per_step, transitions=transitions, episodes=episodes, steps=steps
    )
    strategy = within(budget, world, strategy)
    rounds = rounds_for(budget, world, strategy)
    seeds = as_seeds(seeds)
    options = {"device": device, "dtype": dtype, "posterior": posterior}
    batches = in_batches(seeds, batch, world, model, strategy, rounds, device)
    arenas = (Arena(world, model, strategy, some, rounds, **options) for some in batches)
    runs: list[Transitions] = []
    for arena in played(arenas, len(batches), progress):
        ended = zip(arena.data(), arena.stopped, strict=True)
        runs += [data if done else data.cut(budget) for data, done in ended]
    return runs


def check_parts(world: Any, model: Any, strategy: Any) -> None:
    """Refuse what is not a world, a model and a strategy."""
    check_world(world)
    check_kind(model, Model, "model", "rf.Model(kernel, ridge)")
    if isinstance(strategy, type) or not callable(getattr(strategy, "play", None)):
        raise ValueError(f"strategy must be a strategy such as Online(beta=0.1), got {strategy!r}")
    check_model(strategy, model)
    check_grid(strategy, world.grid)


def as_seeds(seeds: Any) -> list[int]:
    """One seed for each run."""
    try:
        return [count(seed, "seed", at_least=0) for seed in seeds]
    except TypeError:
        raise ValueError(f"seeds must be a list such as range(80), got {seeds!r}") from None


def played(arenas: Iterable[Arena], total: int, progress: bool | None) -> Iterator[Arena]:
    """Arenas, `total` of them, each when it has played all its rounds."""
    fractions = ((i + part, arena) for i, arena in enumerate(arenas) for part in arena.play())
    for _, arena in shown(fractions, total, progress):
        if arena.over:
            yield arena


def within(budget: Budget, world: FiniteWorld, strategy: Any) -> Any:
    """A strategy with what it leaves to the budget filled in."""
    return strategy.within(budget, world) if hasattr(strategy, "within") else strategy


def rounds_for(budget: Budget, world: FiniteWorld, strategy: Strategy) -> int:
    """How many whole rounds reach the budget; kept samples come after the prologue, if there is one."""
    prologue = prologue_of(strategy, world.grid, world.horizon)
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
    check_device(strategy, device)
    if model.automatic:  # every run finds a kernel of its own
        return [[seed] for seed in seeds]
    s, a = world.grid.shape
    points = rounds * (world.horizon if model.pooled else 1)
    each = 8 * model.regressions(world.horizon) * points * s * a * (world.horizon if model.timed else 1)
    if model.pooled:
        each += 8 * s * s * a * (world.horizon if model.timed else 1)  # the estimated law
    if shares_points(strategy):
        each = 8 * s * a  # a prediction; the one posterior is shared
    if hasattr(strategy, "bytes_per_run"):
        each = strategy.bytes_per_run(model, world.grid, world.horizon, rounds)
    size = max(1, room_for(device) // each) if batch is None else count(batch, "batch")
    return [seeds[first : first + size] for first in range(0, len(seeds), size)]
