"""What a strategy is: everything that it may say, with a default for what it leaves out; and its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rewardfree.arrays import check_counts_on, check_fields, non_negative
from rewardfree.budget import Budget
from rewardfree.data import Explorer
from rewardfree.dynamics.labels import are_labels
from rewardfree.kernels import Delta
from rewardfree.model import Model, fitted_model
from rewardfree.ties import Ties, check_ties
from rewardfree.worlds import FiniteWorld, Grid, World

if TYPE_CHECKING:
    from rewardfree.strategies.run_batch import RunBatch
    from rewardfree.strategies.world_run import WorldRun

#: The ridge of models that count visits: small, so that seen values are not drawn to the middle of all.
COUNTING_RIDGE = 0.01


@dataclass(frozen=True)
class Round:
    """The environment steps of one round, in order: e of them, in some episodes, some of them kept."""

    episode: tuple[int, ...]  # within the round
    h: tuple[int, ...]
    kept: tuple[bool, ...]

    @classmethod
    def whole_episode(cls, horizon: int) -> Round:
        """One episode, all of whose steps are kept."""
        return cls((0,) * horizon, tuple(range(horizon)), (True,) * horizon)

    @classmethod
    def growing_episodes(cls, horizon: int) -> Round:
        """Episodes of 1 .. horizon steps, of which the last one is kept (Alg 3)."""
        steps = [(target, h) for target in range(horizon) for h in range(target + 1)]
        return cls(*zip(*[(target, h, target == h) for target, h in steps], strict=True))

    def __len__(self) -> int:
        return len(self.h)

    @property
    def episodes(self) -> int:
        return max(self.episode) + 1

    def length(self, episode: int) -> int:
        """How many steps episode number `episode` of a run has."""
        return self.episode.count(episode % self.episodes)

    @cached_property
    def by_step(self) -> Any:
        """An order of the environment steps in which those of one h are side by side, (e,)."""
        return np.lexsort((self.episode, self.h))

    def columns(self, h: int, episode: int | None = None) -> slice:
        """Where step h is in that order, of all episodes that get there, or of one."""
        return self._places[h, episode]

    @cached_property
    def _places(self) -> dict[tuple[int, int | None], slice]:
        places: dict[tuple[int, int | None], slice] = {}
        for column, i in enumerate(self.by_step):
            h, place = self.h[i], slice(column, column + 1)
            places[h, self.episode[i]] = place
            places[h, None] = slice(places.get((h, None), place).start, place.stop)
        return places


class Strategy(Explorer):
    """How to explore. Write `play_batch` for finite worlds, `play_world` for all others, or both.

    A subclass is a frozen dataclass of its options; `beta`, `ties`, `empty` and `fresh` are checked here.
    """

    #: Which of several equal values counts as the largest: the lowest index, or one drawn at random.
    ties: Ties = "lowest"
    #: Whether it puts the world into states of its choice, instead of playing episodes.
    generative: ClassVar[bool] = False
    #: Whether its choices depend on the posterior, which is then kept up to date while it explores.
    uses_posterior: ClassVar[bool] = True
    #: Whether its episodes on a finite world stop at an end, where visits at all steps count together.
    stops_at_ends: ClassVar[bool] = False
    #: Whether it runs on the CPU only.
    cpu_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        options = vars(self)
        check_fields(self, beta=non_negative)
        check_ties(self.ties)
        if options.get("empty", "zero") not in ("zero", "prior"):
            raise ValueError(f'empty must be "zero" or "prior", got {options["empty"]!r}')
        if not isinstance(options.get("fresh", False), bool):
            raise ValueError(f"fresh must be True or False, got {options['fresh']!r}")

    # How it explores

    def round(self, horizon: int) -> Round:
        """The environment steps of one round, which leaves one more sample for every step."""
        return Round.whole_episode(horizon)

    def episode_length(self, episode: int, horizon: int) -> int:
        return self.round(horizon).length(episode)

    def play_batch(self, batch: RunBatch) -> None:
        """One round of all runs on a finite world, on arrays that lead with the axis b."""
        raise ValueError(f"{type(self).__name__} is for real states: it has no play_batch")

    def play_world(self, run: WorldRun) -> None:
        """Episodes or queries on a world of real states, one after the other, until `run` ends it."""
        raise ValueError(f"{type(self).__name__} is for finite worlds: it has no play_world")

    @property
    def plays_finite(self) -> bool:
        """Whether it is for finite worlds."""
        return type(self).play_batch is not Strategy.play_batch

    @property
    def plays_worlds(self) -> bool:
        """Whether it is for worlds of real states."""
        return type(self).play_world is not Strategy.play_world

    @property
    def shares_points(self) -> bool:
        """Whether all runs on a finite world look at the same points: nothing random enters its choice."""
        return self.generative and self.ties == "lowest"

    # What it needs

    def default_model(self, world: FiniteWorld | World) -> Model:
        """The model to use where a user names none: a kernel from the data, one regression, centred.

        That takes dynamics that are the same at every step; a finite world that says otherwise gets a timed
        model, in which the step is a coordinate. Among labels nothing is near anything else: visits are
        counted, for each step where dynamics change with it.
        """
        if isinstance(world, FiniteWorld) and world.grid.labelled:
            return Model(Delta(), ridge=COUNTING_RIDGE, pooled=world.stationary, centred=world.stationary)
        if isinstance(world, World) and are_labels(world.spaces):
            return Model(Delta(), ridge=COUNTING_RIDGE, pooled=True, centred=True)
        timed = isinstance(world, FiniteWorld) and not world.stationary
        return fitted_model(timed)

    def check_model(self, model: Model) -> None:
        """Refuse a model that it does not take."""

    def check_grid(self, grid: Grid) -> None:
        """Refuse states and actions of a finite world that it is not for."""

    def check_device(self, device: str | None) -> None:
        """Refuse a device that it does not run on."""
        if self.cpu_only:
            check_counts_on(device, type(self).__name__)

    def within(self, budget: Budget, world: FiniteWorld) -> Strategy:
        """This strategy with what it leaves to the budget filled in."""
        return self

    def prologue(self, grid: Grid, horizon: int) -> int:
        """How many rounds come first of which nothing is kept."""
        return 0

    def bytes_per_run(self, model: Model, grid: Grid, horizon: int, rounds: int) -> int:
        """About how much memory one of many runs side by side takes."""
        s, a = grid.shape
        if self.shares_points:
            return 8 * s * a  # a prediction: the one posterior is shared
        inputs = s * a * (horizon if model.timed else 1)
        points = rounds * (horizon if model.pooled else 1)
        law = s * inputs if model.pooled else 0  # the estimated law of a pooled model
        return 8 * (model.regressions(horizon) * points * inputs + law)
