"""What a strategy is, and what one of its rounds consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rewardfree.dynamics.observed import Designer
from rewardfree.model import Model
from rewardfree.posterior import Posteriors
from rewardfree.ties import Ties
from rewardfree.worlds.grid import Grid

if TYPE_CHECKING:
    from rewardfree.strategies.arena import Arena


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
            h, own = self.h[i], slice(column, column + 1)
            places[h, self.episode[i]] = own
            places[h, None] = slice(places.get((h, None), own).start, own.stop)
        return places


class Strategy(Protocol):
    """How to explore. A round leaves one more sample for every step.

    It may have more to say: posteriors of its own (`lattice_of`, `designer`), a model that suits it
    (`usual_model`), models and finite worlds that it refuses (`check_model`, `check_grid`), variables that
    need no bounds (`open_ends`), first rounds of which nothing is kept (`prologue_of`), options that it
    leaves to the budget (`within`), what a run takes to remember (`bytes_per_run`), and that it has no
    use for a device (`check_device`).
    """

    @property
    def ties(self) -> Ties: ...

    @property
    def generative(self) -> bool:
        """Whether it needs a world that can be put into any state."""
        ...

    @property
    def curious(self) -> bool:
        """Whether its choices depend on the posterior, which is then kept up while it explores."""
        ...

    def round(self, horizon: int) -> Round:
        """What one round consists of."""
        ...

    def play(self, arena: Arena) -> None:
        """One round of all runs, on arrays that lead with the axis b."""
        ...


def lattice_of(strategy: Any) -> Callable[..., Posteriors]:
    """What makes the posteriors of a strategy, called as `Model.posteriors` is: its own, or the model's."""
    own: Callable[..., Posteriors] = getattr(strategy, "lattice", Model.posteriors)
    return own


def prologue_of(strategy: Any, grid: Grid, horizon: int) -> int:
    """How many rounds come first of which nothing is kept."""
    own: Callable[[Grid, int], int] = getattr(strategy, "prologue", lambda grid, horizon: 0)
    return own(grid, horizon)


def designer(strategy: Any) -> Designer | None:
    """A strategy that has posteriors of its own on real states; None: the model's will do."""
    return strategy if callable(getattr(strategy, "design", None)) else None


def open_ends(strategy: Any) -> bool:
    """Whether it takes real variables without bounds as they are: it has no lengthscales for them."""
    return bool(getattr(strategy, "open_ends", False))


def check_model(strategy: Any, model: Model) -> None:
    """Refuse a model that the strategy does not take."""
    refuse = getattr(strategy, "check_model", None)
    if refuse is not None:
        refuse(model)


def check_grid(strategy: Any, grid: Grid) -> None:
    """Refuse states and actions of a finite world that the strategy is not for."""
    refuse = getattr(strategy, "check_grid", None)
    if refuse is not None:
        refuse(grid)


def check_device(strategy: Any, device: str | None) -> None:
    """Refuse a device that the strategy does not run on."""
    if device not in (None, "cpu") and getattr(strategy, "cpu_only", False):
        raise ValueError(
            f'{type(strategy).__name__} counts visits, on the CPU: leave device= out, got "{device}"'
        )


def shares_points(strategy: Strategy) -> bool:
    """Whether all runs of a strategy look at the same points: nothing random enters its choice."""
    return strategy.generative and strategy.ties == "lowest"
