"""One exploration of a continuous world: what was met, what is allowed, and what is random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from rewardfree.data import Experience, Fitted
from rewardfree.dynamics.fitting import fitted_to
from rewardfree.interruption import terminated_as_interrupted
from rewardfree.model import Model
from rewardfree.progress import progress as shown
from rewardfree.strategies.limits import Clock, Limits
from rewardfree.strategies.log import Log
from rewardfree.strategies.round import open_ends
from rewardfree.streams import stream
from rewardfree.ties import argmax_tied
from rewardfree.worlds.scaling import Scaling
from rewardfree.worlds.spaces import Box
from rewardfree.worlds.world import World, check_declared

#: A world that can be put into any state is also asked where episodes begin, so often.
STARTS = 20


class WorldFailed(RuntimeError):
    """The world raised an error or returned what is no state; `data` is what was collected before."""

    def __init__(self, message: str, data: Experience) -> None:
        super().__init__(f"{message}; the {len(data)} steps before it are in this error's .data")
        self.data = data


class Over(Exception):
    """A limit is reached."""


class Journey:
    """What a strategy sees of a world, and what it may do there.

    Everything random comes from streams that are named by the number of the episode or step, and a choice is
    made only when its step is really made. So a journey that is resumed passes over the steps there are
    without computing anything, and goes on as if it had never stopped.
    """

    def __init__(
        self, world: World, model: Model, strategy: Any, seed: int, limits: Limits, resume: Experience | None
    ) -> None:
        check_declared(world)
        self.world, self.model, self.strategy, self.seed, self.limits = world, model, strategy, seed, limits
        self.spaces, self.horizon = world.spaces, world.horizon
        self._recorded = Log() if resume is None else Log.of(resume)
        self.log = Log()
        self.kept = self.rounds = self.episodes = 0
        self.stopped_by = "interrupted"
        self._clock = Clock()
        self._told: Callable[[], None] = lambda: None
        if not model.automatic:
            # Which a fixed kernel needs: say so before the first step.
            Scaling.of_bounds(self.spaces, open_ends(strategy))

    # What a strategy may do

    def episode(
        self, choose: Callable[[Any, int], Any], length: int | None = None, keep: str = "all"
    ) -> None:
        """Play an episode; `choose(state, h)` gives the actions. `keep` all of its steps, or the last one."""
        number, length = self.episodes, self.horizon if length is None else length
        world: World | None = None
        state = self._first_state(number)
        for h in range(length):
            t = len(self.log.rows)
            recorded = self._recorded.rows[t] if t < len(self._recorded.rows) else None
            if recorded is not None:
                _, _, state, action, following, terminated, kept = recorded
                cut = t + 1 < len(self._recorded.rows) and self._recorded.rows[t + 1][0] != number
            else:
                if world is None:
                    world = self._brought_to(number, state, h)
                    if world is None:  # it cannot be brought back to where it was: begin another episode
                        break
                action = choose(state, h)
                following, terminated, cut = self._stepped(world, action)
                kept = keep == "all" or terminated or cut or h == length - 1
            self._record((number, h, state, action, following, terminated, kept))
            state = following
            if terminated or cut:
                break
        self.episodes += 1
        self._check()

    def query(self, choose: Callable[[], tuple[Any, Any]], h: int = 0) -> None:
        """Put the world into a state and try an action there: `choose()` gives both."""
        t = len(self.log.rows)
        if t < len(self._recorded.rows):
            self._record(self._recorded.rows[t])
            return
        state, action = choose()
        try:
            # Copies: a simulator may work in place.
            there, tried = np.array(state)[None], np.array(action)[None]
            found, ended = self.world.sample(there, tried, h, stream(self.seed, "query", t))
            following, terminated = self._as_state(np.asarray(found)[0]), bool(np.asarray(ended)[0])
        except Exception as error:
            self._fail(error)
        self._record((-1, h, state, action, following, terminated, True))

    def random_action(self) -> Any:
        """Any action, drawn for the next step."""
        return self.drawn_action(self.rng("action", len(self.log.rows)))

    def largest(self, values: Any) -> int:
        """The index of the largest value; of ties as the strategy says, a random one drawn for this step."""
        drawn = getattr(self.strategy, "ties", "lowest") == "random"
        uniform = self.rng("ties", len(self.log.rows)).random(()) if drawn else None
        return int(argmax_tied(np.asarray(values), uniform))

    def drawn_action(self, rng: np.random.Generator) -> Any:
        """Any action."""
        space = self.spaces.action
        if isinstance(space, Box):
            return rng.uniform(space.low, space.high)
        return rng.integers(space.n)

    def rng(self, *names: str | int) -> np.random.Generator:
        """A stream of this journey."""
        return stream(self.seed, *names)

    def round_done(self) -> None:
        """One more sample for every step, where the model has a design for each."""
        self.rounds += 1
        self._check()

    def know_sigma(self, largest: Callable[[], float]) -> None:
        """Offer the largest sigma that is left, for a journey that stops when it is small."""
        target = self.limits.max_sigma
        if target is not None and len(self.log.rows) >= len(self._recorded.rows) and largest() <= target:
            self._end("max_sigma")

    def transitions(self, most: int | None = None) -> tuple[Any, Any, Any, Any]:
        """States, actions, next states and ends of the first kept steps."""
        rows = [row for row in self.log.rows if row[6]][:most]
        state, action, following, ended = (np.array([row[i] for row in rows]) for i in (2, 3, 4, 5))
        return state, action, following, ended

    @cached_property
    def first_states(self) -> Any:
        """Where episodes begin, (k,d): as seen, and as asked of a world that can be put anywhere."""
        try:
            asked = [self._as_state(self.world.reset(self.rng("starts", i))) for i in range(STARTS)]
        except Exception as error:
            self._fail(error)
        self.log.starts += asked[: max(0, STARTS - len(self.log.starts))]
        return np.array(asked)

    # How it is run

    def run(self, show: bool | None) -> Experience:
        """Let the strategy travel until a limit is reached, or somebody interrupts it."""
        travel = getattr(self.strategy, "travel", None)
        if travel is None:
            raise ValueError(
                f"{self.strategy!r} explores finite worlds only: use Scout(), Generative(), Online(beta), "
                "Qiu(beta), GreedyMaxVariance() or Uniform()"
            )
        fitted = None
        with terminated_as_interrupted(), self._shown(show):
            try:
                self._travelled(travel)
                fitted = self._fitted()
            except KeyboardInterrupt:
                if not self.log.rows and not self._recorded.rows:
                    raise
                self.stopped_by = "interrupted"
        return self._collected(fitted)

    def _travelled(self, travel: Callable[[Journey], None]) -> None:
        try:
            travel(self)
        except (Over, WorldFailed) as end:
            if isinstance(end, WorldFailed):
                raise
        except Exception as error:
            if not self.log.rows:  # nothing has begun: a mistake in what was asked
                raise
            self._fail(error)

    def _fitted(self) -> Fitted | None:
        """Kernel and ridge of all that was kept; None where states never change: nothing to fit."""
        arrays = self.transitions()
        if len(arrays[0]) < 2:
            return None
        with suppress(ValueError):
            return fitted_to(self.spaces, self.model, *arrays[:3], open_ends(self.strategy))
        return None

    def _collected(self, fitted: Fitted | None = None) -> Experience:
        early = self.stopped_by in ("interrupted", "error") and len(self.log.rows) < len(self._recorded.rows)
        if early:  # before anything new came
            self.log = self._recorded
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

    def _record(self, row: tuple[Any, ...]) -> None:
        self.log.rows.append(row)
        self.kept += int(row[6])
        self._told()
        self._check()

    def _check(self) -> None:
        budget = self.limits.budget
        if budget is not None:
            have = {
                "transitions": self.kept,
                "samples_per_step": self.rounds,
                "episodes": self.episodes,
                "steps": len(self.log.rows),
            }[budget.unit]
            if have >= budget.size:
                self._end(budget.unit)
        new = len(self.log.rows) > len(self._recorded.rows)
        if new and self.limits.seconds is not None and self._clock.passed >= self.limits.seconds:
            self._end("seconds")

    def _end(self, reason: str) -> NoReturn:
        self.stopped_by = reason
        raise Over

    def _first_state(self, number: int) -> Any:
        t = len(self.log.rows)
        if t < len(self._recorded.rows):
            state = self._recorded.rows[t][2]
        else:
            try:
                state = self._as_state(self.world.reset(self.rng("episode", number)))
            except Exception as error:
                self._fail(error)
            self._at = number, 0
        self.log.starts.append(state)
        return state

    def _brought_to(self, number: int, state: Any, h: int) -> World | None:
        """The world in the middle of an episode, recorded up to step h; None if it does not repeat."""
        if getattr(self, "_at", None) == (number, h):
            return self.world
        played = [row for row in self.log.rows if row[0] == number]
        try:
            now = self._as_state(self.world.reset(self.rng("episode", number)))
        except Exception as error:
            self._fail(error)
        for row in played:
            if not np.array_equal(now, row[2]):
                return None
            now, terminated, cut = self._stepped(self.world, row[3])
            if terminated or cut:
                return None
        self._at = number, h
        return self.world if np.array_equal(now, state) else None

    def _stepped(self, world: World, action: Any) -> tuple[Any, bool, bool]:
        try:
            following, terminated, cut = world.step(action)
            return self._as_state(following), bool(terminated), bool(cut)
        except Exception as error:
            self._fail(error)

    def _as_state(self, state: Any) -> Any:
        space = self.spaces.state
        array = np.asarray(state)
        if isinstance(space, Box):
            if array.shape != (space.size,) or not np.isfinite(array.astype(np.float64)).all():
                raise ValueError(
                    f"a state must be {space.size} finite numbers ({', '.join(space.names)}), got {array}"
                )
            return array.astype(np.float64)
        return space.checked(array[None], "state")[0]

    def _fail(self, error: Exception) -> NoReturn:
        self.stopped_by = "error"
        raise WorldFailed(
            f"the world failed at step {len(self.log.rows)}: {error!r}", self._collected()
        ) from error

    @contextmanager
    def _shown(self, show: bool | None) -> Iterator[None]:
        """A line that says how far it is, fed by every step."""
        budget, seconds = self.limits.budget, self.limits.seconds

        def far() -> float:
            parts = [0.0]
            if budget is not None:
                have = {"transitions": self.kept, "samples_per_step": self.rounds, "episodes": self.episodes}
                parts.append(have.get(budget.unit, len(self.log.rows)) / budget.size)
            if seconds is not None:
                parts.append(self._clock.passed / seconds)
            return min(1.0, max(parts))

        def told() -> Iterator[tuple[float, None]]:
            while True:
                yield far(), None

        line = shown(told(), 1.0, show)
        self._told = lambda: next(line, None) and None
        try:
            yield
        finally:
            line.close()
            self._told = lambda: None
