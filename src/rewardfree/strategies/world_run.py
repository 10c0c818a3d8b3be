"""One run on a world of real states: its steps, its limits and its random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from rewardfree.arrays import FARTHEST_STATE, counted
from rewardfree.budget import Clock, Limits
from rewardfree.data import COLUMNS, Experience, Row, Samples
from rewardfree.interruption import Interruption, interrupted_once
from rewardfree.model import Model
from rewardfree.progress import progress_line
from rewardfree.strategies.strategy import Strategy
from rewardfree.streams import stream
from rewardfree.ties import argmax_tied
from rewardfree.worlds import (
    Box,
    ScaledModel,
    Scaling,
    Space,
    Spaces,
    StateChange,
    World,
    check_declared,
    sampled,
    stepped,
)


@dataclass
class RunLog:
    """A row for each step, and the first states that were seen."""

    rows: list[Row] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, data: Experience) -> RunLog:
        """The log of the run that is resumed."""
        columns = zip(*(getattr(data, name) for name in COLUMNS), strict=True)
        return cls([Row(*row) for row in columns], list(data.starts))

    def columns(self, spaces: Spaces) -> dict[str, Any]:
        """The columns of an `Experience`, and its starts."""
        state, action = _form(spaces.state), _form(spaces.action)
        whole: tuple[Any, tuple[int, ...]] = (np.int64, ())
        flag: tuple[Any, tuple[int, ...]] = (bool, ())
        columns: dict[str, Any] = {}
        forms = (whole, whole, state, action, state, flag, flag)
        for i, (name, (kind, shape)) in enumerate(zip(COLUMNS, forms, strict=True)):
            column = np.array([row[i] for row in self.rows], kind).reshape(len(self.rows), *shape)
            column.flags.writeable = False
            columns[name] = column
        kind, shape = state
        return {**columns, "starts": np.array(self.starts, kind).reshape(len(self.starts), *shape)}


def _form(space: Space) -> tuple[Any, tuple[int, ...]]:
    """The type of a value of a space, and its shape."""
    return (np.float64, (space.size,)) if isinstance(space, Box) else (np.int64, ())


#: How many first states are drawn from a world that can be set to any state.
RESETS = 20


class ExplorationFailed(RuntimeError):
    """A strategy or a fit raised an error, and the world did not; `data` is what was collected before.

    Where a plan is played nothing is collected, and `data` is None.
    """

    def __init__(self, message: str, data: Experience | None = None) -> None:
        if data is not None:
            seen = f"{counted(len(data), 'step')} before it {'is' if len(data) == 1 else 'are'}"
            message = f"{message}; the {seen} in this error's .data"
        super().__init__(message)
        self.data = data


class WorldFailed(ExplorationFailed):
    """The world raised an error or returned what is no state."""


class LimitReached(Exception):
    """A limit is reached."""


class WorldRun:
    """What a strategy sees of a world, and what it may do there.

    Everything random comes from streams that are named by the number of the episode or step, and a choice is
    made only when its step is really made. So a run that is resumed passes over the steps there are without
    computing anything, and goes on as if it had never stopped.
    """

    def __init__(
        self,
        world: World,
        model: Model,
        strategy: Strategy,
        seed: int,
        limits: Limits,
        resume: Experience | None,
    ) -> None:
        check_declared(world)
        self.world, self.model, self.strategy, self.seed, self.limits = world, model, strategy, seed, limits
        self.spaces, self.horizon = world.spaces, world.horizon
        self._resumed = RunLog() if resume is None else RunLog.of(resume)
        self.log = RunLog()
        self.rounds = self.episodes = 0
        self.stopped_by = "interrupted"
        self._kept: list[Row] = []
        self._changed_by = math.inf  # a number of kept steps among which states change
        self._refused: int | None = None  # the last such number among which none does
        self._clock = Clock()
        self._interruption = Interruption()
        self._show_progress: Callable[[], None] = lambda: None
        self._position: tuple[int, int] | None = None  # the episode and step in which the world stands
        if not model.automatic:  # a fixed kernel needs bounds: say so before the first step
            Scaling.of_bounds(self.spaces, strategy.open_ends)

    @property
    def steps(self) -> int:
        """How many environment steps there are."""
        return len(self.log.rows)

    @property
    def kept(self) -> int:
        """How many of them are kept."""
        return len(self._kept)

    def kept_rows(self, most: int | None = None) -> list[Row]:
        """The first kept steps."""
        return self._kept[:most]

    def samples(self, most: int | None = None) -> Samples:
        """The first kept steps as arrays."""
        return Samples.of(self._kept[:most])

    def can_fit(self, kept: int) -> bool:
        """Whether the first kept steps are enough to fit a kernel to, if one is to be: states must change.

        Until then there is nothing to go by, and strategies act at random.
        """
        if not self.model.automatic or self._changed_by <= kept:
            return True
        if kept == self._refused:  # asked at every step, it would take O(n^2)
            return False
        samples = self.samples(kept)
        if kept < 2 or not StateChange.of(self.spaces, samples.state, samples.next_state).differs.any():
            self._refused = kept
            return False
        self._changed_by = kept
        return True

    # What a strategy may do

    def play(
        self, choose: Callable[[Any, int], Any], largest_sigma: Callable[[], float] | None = None
    ) -> None:
        """Play whole episodes, one a round, until a limit is reached."""
        while True:
            if largest_sigma is not None:
                self.know_sigma(largest_sigma)
            self.episode(choose)
            self.round_done()

    def episode(
        self, choose: Callable[[Any, int], Any], length: int | None = None, keep: str = "all"
    ) -> None:
        """Play an episode; `choose(state, h)` gives the actions. `keep` all of its steps, or the last one."""
        number, length = self.episodes, self.horizon if length is None else length
        world: World | None = None
        state = self._first_state(number)
        for h in range(length):
            t, resumed = self.steps, self._resumed.rows
            if t < len(resumed):
                row = resumed[t]
                cut = t + 1 < len(resumed) and resumed[t + 1].episode != number
            else:
                if world is None:
                    world = self._brought_to(number, state, h)
                    if world is None:  # it cannot be brought back to where it was: begin another episode
                        break
                action = choose(state, h)
                next_state, terminated, cut = self._stepped(world, action)
                kept = keep == "all" or terminated or cut or h == length - 1
                row = Row(number, h, state, action, next_state, terminated, kept)
            self._record(row)
            state = row.next_state
            if row.terminated or cut:
                break
        self.episodes += 1
        self._check()

    def query(self, choose: Callable[[], tuple[Any, Any]], h: int = 0) -> None:
        """Put the world into a state and try an action there: `choose()` gives both."""
        t = self.steps
        if t < len(self._resumed.rows):
            self._record(self._resumed.rows[t])
            return
        state, action = choose()
        try:
            # Copies: a simulator may work in place.
            there, tried = np.array(state)[None], np.array(action)[None]
            outcome, ended = sampled(self.world, there, tried, h, stream(self.seed, "query", t))
            next_state, terminated = self._as_state(outcome[0], "sample"), bool(ended[0])
        except Exception as error:
            self._fail(error)
        self._record(Row(-1, h, state, action, next_state, terminated, True))

    def random_action(self) -> Any:
        """Any action, drawn for the next step."""
        return self.drawn_action(self.rng("action", self.steps))

    def largest(self, values: Any) -> int:
        """The index of the largest value; of ties as the strategy says, a random one drawn for this step."""
        uniform = self.rng("ties", self.steps).random(()) if self.strategy.ties == "random" else None
        return int(argmax_tied(np.asarray(values), uniform))

    def drawn_action(self, rng: np.random.Generator) -> Any:
        """Any action."""
        space = self.spaces.action
        if isinstance(space, Box):
            return rng.uniform(space.low, space.high)
        return rng.integers(space.n)

    def rng(self, *names: str | int) -> np.random.Generator:
        """A stream of this run."""
        return stream(self.seed, *names)

    def round_done(self) -> None:
        """One more sample for every step, where the model has a design for each."""
        self.rounds += 1
        self._check()

    def know_sigma(self, largest: Callable[[], float]) -> None:
        """Offer the largest sigma that is left, for a run that stops when it is small."""
        target = self.limits.max_sigma
        if target is not None and self.steps >= len(self._resumed.rows) and largest() <= target:
            self._end("max_sigma")

    @cached_property
    def first_states(self) -> Any:
        """Where episodes begin, (k,d): as seen, and as asked of a world that can be put anywhere."""
        try:
            asked = [self._reset("starts", i) for i in range(RESETS)]
        except Exception as error:
            self._fail(error)
        self.log.starts += asked[: max(0, RESETS - len(self.log.starts))]
        return np.array(asked)

    # How it is run

    def run(self, show: bool | None) -> Experience:
        """Let the strategy play until a limit is reached, or somebody interrupts it."""
        fitted = None
        with interrupted_once() as self._interruption, self._shown(show):
            try:
                self._play()
                fitted = self._fitted()
            except KeyboardInterrupt:
                if not self.log.rows and not self._resumed.rows:
                    raise
                self.stopped_by = "interrupted"
            return self._collected(fitted)

    def _play(self) -> None:
        try:
            self.strategy.play_world(self)
        except LimitReached:
            return
        except WorldFailed:
            raise
        except Exception as error:
            if not self.log.rows:  # nothing has begun: a mistake in what was asked
                raise
            self.stopped_by = "error"
            said = f"{self.strategy!r} failed at step {self.steps}, and the world did not: {error!r}"
            raise ExplorationFailed(said, self._collected()) from error

    def _fitted(self) -> ScaledModel | None:
        """Kernel and ridge of all that was kept; None where states never change: nothing to fit."""
        samples = self.samples()
        if len(samples) < 2:
            return None
        with suppress(ValueError):
            return ScaledModel.fit(self.spaces, self.model, samples, self.strategy.open_ends)
        return None

    def _collected(self, fitted: ScaledModel | None = None) -> Experience:
        early = self.stopped_by in ("interrupted", "error") and self.steps < len(self._resumed.rows)
        if early:  # before anything new came
            self.log = self._resumed
        return Experience(
            spaces=self.spaces,
            horizon=self.horizon,
            model=self.model,
            strategy=self.strategy,
            seed=self.seed,
            **self.log.columns(self.spaces),
            observation=self.world.observation,
            provenance=dict(self.world.provenance),
            stopped_by=self.stopped_by,
            fitted=fitted,
        )

    def _record(self, row: Row) -> None:
        self.log.rows.append(row)
        if row.kept:
            self._kept.append(row)
        self._show_progress()
        self._check()

    def _used(self, unit: str) -> int:
        """How much of a budget in that unit is used."""
        return {
            "transitions": self.kept,
            "samples_per_step": self.rounds,
            "episodes": self.episodes,
            "steps": self.steps,
        }[unit]

    def _check(self) -> None:
        if self._interruption.received:  # and the world, or something in it, did not let it pass
            raise KeyboardInterrupt
        budget = self.limits.budget
        if budget is not None and self._used(budget.unit) >= budget.size:
            self._end(budget.unit)
        new = self.steps > len(self._resumed.rows)
        if new and self.limits.seconds is not None and self._clock.passed >= self.limits.seconds:
            self._end("seconds")

    def _end(self, reason: str) -> NoReturn:
        self.stopped_by = reason
        raise LimitReached

    def _first_state(self, number: int) -> Any:
        t = self.steps
        if t < len(self._resumed.rows):
            state = self._resumed.rows[t].state
        else:
            try:
                state = self._reset("episode", number)
            except Exception as error:
                self._fail(error)
            self._position = number, 0
        self.log.starts.append(state)
        return state

    def _brought_to(self, number: int, state: Any, h: int) -> World | None:
        """The world in the middle of an episode, recorded up to step h; None if it does not repeat."""
        if self._position == (number, h):
            return self.world
        played = [row for row in self.log.rows if row.episode == number]
        try:
            now = self._reset("episode", number)
        except Exception as error:
            self._fail(error)
        for row in played:
            if not np.array_equal(now, row.state):
                return None
            now, terminated, cut = self._stepped(self.world, row.action)
            if terminated or cut:
                return None
        self._position = number, h
        return self.world if np.array_equal(now, state) else None

    def _stepped(self, world: World, action: Any) -> tuple[Any, bool, bool]:
        try:
            next_state, terminated, cut = stepped(world, action)
            method = "sample" if type(world).step is World.step else "step"
            return self._as_state(next_state, method), terminated, cut
        except Exception as error:
            self._fail(error)

    def _reset(self, *names: str | int) -> Any:
        """The first state of an episode whose stream has this name."""
        method = "start" if type(self.world).reset is World.reset else "reset"
        return self._as_state(self.world.reset(self.rng(*names)), method)

    def _as_state(self, state: Any, method: str) -> Any:
        """What a method of the world returned, if it is a state."""
        space = self.spaces.state
        if not isinstance(space, Box):
            try:
                return space.checked(np.asarray(state)[None], "state")[0]
            except ValueError as error:
                raise ValueError(f"{method} returned no state: {error}") from error
        try:
            array = np.array(np.nan) if np.iscomplexobj(state) else np.array(state, np.float64)
        except (TypeError, ValueError):  # such as (observation, info)
            array = np.array(np.nan)
        if array.shape != (space.size,) or not (np.abs(array) < FARTHEST_STATE).all():
            names = ", ".join(space.names)
            far = array.shape == (space.size,) and np.isfinite(array).all()
            below = f", below {FARTHEST_STATE:g}" if far else ""
            wanted = f"a state must be {space.size} finite numbers ({names}){below}"
            raise ValueError(f"{method} returned no state: {wanted}, got {state!r:.200}")
        return array

    def _fail(self, error: Exception) -> NoReturn:
        self.stopped_by = "error"
        raise WorldFailed(f"the world failed at step {self.steps}: {error!r}", self._collected()) from error

    @contextmanager
    def _shown(self, show: bool | None) -> Iterator[None]:
        """A line that says how far it is, fed by every step."""
        budget, seconds = self.limits.budget, self.limits.seconds

        def fraction() -> float:
            parts = [0.0]
            if budget is not None:
                parts.append(self._used(budget.unit) / budget.size)
            if seconds is not None:
                parts.append(self._clock.passed / seconds)
            return min(1.0, max(parts))

        with progress_line(show) as tell:
            self._show_progress = lambda: tell(fraction())
            try:
                yield
            finally:
                self._show_progress = lambda: None
