"""Many runs of one strategy side by side on a finite world: what they share, and what they record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.arrays import Array, clip, to_numpy
from rewardfree.data import Transitions
from rewardfree.kernelfit import candidates, fitted_model
from rewardfree.model import Model
from rewardfree.posterior import Posterior
from rewardfree.presets import Empty
from rewardfree.regressions import Regressions
from rewardfree.strategies.error_bounds import largest_errors
from rewardfree.strategies.round import Strategy, lattice_of, prologue_of, shares_points
from rewardfree.streams import stream
from rewardfree.threads import one_blas_thread
from rewardfree.ties import argmax_tied, best_of_clipped
from rewardfree.worlds.finite import FiniteWorld, next_states

#: A long exploration is played in so many parts.
PARTS = 20
#: A kernel is found from data after so many rounds, and again whenever they have doubled; while exploring, on
#: at most so many points: it is found again for a plan.
FIRST_FIT, FIT_POINTS = 4, 300


class Arena:
    """b runs of a strategy, their regressions and their random numbers, on NumPy or CUDA.

    Whatever is random comes from the run's own streams and is indexed by (round, episode, step), so a run
    does not depend on who plays beside it, or on where.
    """

    def __init__(
        self,
        world: FiniteWorld,
        model: Model,
        strategy: Strategy,
        seeds: Sequence[int],
        rounds: int,
        *,
        posterior: Callable[[Model], Posterior] | None = None,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.world, self.model, self.strategy, self.seeds = world, model, strategy, list(seeds)
        self.horizon, self.runs, self.rounds = world.horizon, len(self.seeds), rounds
        if model.automatic and self.runs > 1:
            raise ValueError("runs whose kernels are found from their data are played one at a time")
        self.round = strategy.round(self.horizon)
        self.prologue = prologue_of(strategy, world.grid, self.horizon)
        self.stopped = np.zeros(self.runs, bool)  # (b,) by a rule of the strategy
        self.lasted = np.full(self.runs, rounds)  # (b,) rounds that belong to each run
        self.notes: dict[str, Any] = {}  # what a strategy remembers from round to round
        self._options: dict[str, Any] = {"posterior": posterior, "device": device, "dtype": dtype}
        # A strategy that asks no posterior gets one when somebody else does.
        self.regressions = self.empty_regressions(rounds if strategy.curious else 1)
        where = self.regressions
        self.now = where.index([0])  # the round, as an array: see Lattice.repeat
        self.played = self._loaded = 0
        self._cumulative = where.exact(world.cumulative)
        self._uniform = where.exact(self._drawn("transitions"))
        self._points = where.index(np.zeros((self.runs, rounds, len(self.round))))
        self._following = where.index(np.zeros((self.runs, rounds, len(self.round))))
        self._ties = where.exact(self._drawn("ties")) if strategy.ties == "random" else None
        self._episodes = where.index(np.arange(self.round.episodes))
        self._every_action = where.index(np.arange(self.actions))
        self._start_rows: Array | None = None
        if world.start.max() == 1.0:
            self._start_rows = self.rows(where.index(np.full((self.runs, 1), world.start.argmax())))
        self._starts = where.index(self._drawn_starts())

    @property
    def actions(self) -> int:
        """How many there are."""
        return self.world.grid.shape[1]

    def play(self) -> Iterator[float]:
        """Play all rounds in a few parts, and say after each how far it is: 1 is the end."""
        # On a device a part costs something of its own: there it is one.
        part = self.rounds if self.regressions.on_device else -(-self.rounds // PARTS)
        learns = self.model.automatic and self.strategy.curious
        fit = FIRST_FIT
        while not self.over:
            now = min(part, self.rounds - self.played)
            if learns:
                if self.played == fit:
                    self.regressions = self.after(self.played, FIT_POINTS)
                    fit *= 2
                now = min(now, fit - self.played)
            with one_blas_thread():
                self.regressions.posteriors.repeat(self._play, now)
            self.played += now
            yield 1.0 if self.over else self.played / self.rounds

    @property
    def over(self) -> bool:
        """Whether the budget is used up, or no run wants more."""
        return self.played >= self.rounds or bool(self.stopped.all())

    def stop(self, done: Array) -> None:
        """Runs (b,) that are done: the rounds before this one are all that they have.

        They are played on beside the others, but nothing of it is theirs.
        """
        new = to_numpy(done) & ~self.stopped
        if new.any():
            self.stopped |= new
            self.lasted[new] = int(self.now[0])

    def settled(self) -> Regressions:
        """The regressions with all that was played, also where the strategy does not keep them up itself."""
        if not self.strategy.curious and self._loaded < self.played:
            self.regressions = self.after(self.played)
            self._loaded = self.played
        return self.regressions

    def after(self, rounds: int, most: int | None = None) -> Regressions:
        """Regressions with what was kept in the first rounds, or until a run stopped; a kernel to be found is
        found from at most so many of them."""
        points, following = (
            self._recorded(array, slice(self.prologue, rounds)) for array in (self._points, self._following)
        )
        own = np.maximum(np.minimum(self.lasted, rounds) - self.prologue, 0)  # (b,)
        points = self.regressions.places(np.array(self.round.h), points)
        kept = [i for i, kept in enumerate(self.round.kept) if kept]
        steps = [[i for i in kept if self.round.h[i] == h] for h in range(self.horizon)]
        steps = [kept] if self.model.pooled else steps
        places, seen = (
            [[run[:n, columns].reshape(-1) for run, n in zip(each, own, strict=True)] for columns in steps]
            for each in (points, following)
        )
        model = self.model
        if model.automatic:
            every = (np.concatenate([runs[0] for runs in each]) for each in (places, seen))
            z, next_state = every
            grid = self.world.grid
            known = candidates(model, grid, self.horizon)
            model = fitted_model(model, known, z, grid.states, next_state, most, self._options["dtype"])
        regressions = self.empty_regressions(self.rounds, model)
        regressions.load(places, seen)
        return regressions

    def starts(self) -> Array:
        """The first states of this round's episodes, (b,e)."""
        return self._starts[:, self.now][:, 0]

    def act(self, h: int, q: Array, episode: int | None = None) -> Array:
        """The greedy actions (b,k) for Q (b,k,a), clipped to [0, H], at step h of k episodes: see `move`."""
        return best_of_clipped(q, 0.0, float(self.horizon), self.tie_breaks(h, episode))[1]

    def best(self, h: int, values: Array) -> Array:
        """The best actions (b,k) for values (b,k,a) that need no clip."""
        return argmax_tied(values, self.tie_breaks(h))

    def move(self, h: int, z: Array, episode: int | None = None) -> Array:
        """Play points (b,k) at step h of one of the round's episodes, or of all k that get there.

        What follows is recorded and returned, (b,k).
        """
        columns = self.round.columns(h, episode)
        law = self._cumulative[0 if self.world.stationary else h]
        following = next_states(law, z, self._draws[:, columns])
        self._points[:, self.now, columns] = z[:, None, :]
        self._following[:, self.now, columns] = following[:, None, :]
        return following

    def tie_breaks(self, h: int, episode: int | None = None) -> Array | None:
        """Uniform numbers (b,k) that decide between ties at those steps; None: the lowest index wins."""
        return None if self._ties is None else self._ties[:, self.now, self.round.columns(h, episode)][:, 0]

    def estimate(self, h: int, value: Array | None, empty: Empty = "prior") -> tuple[Array, Array]:
        """mean_h[V] for V (b,s,c) or None, and sigma_h: (b,c,z) and (b,1,z). `empty`: both 0 without data.

        At the first step of a world with one start, there only, which spares a pass over the posterior:
        (b,c,a) and (b,1,a).
        """
        where = self.regressions
        rows = self._start_rows if h == 0 else None
        # The mean first: it computes the row that the last sample still owes in its own pass over L.
        mean = None if value is None else where.mean(h, value, rows)
        if mean is not None and empty == "zero" and where.count(h) == 0:
            mean = where.xp.zeros_like(mean)
        return mean, self.sigma(h, rows, empty)

    def sigma(self, h: int, rows: Array | None, empty: Empty = "prior") -> Array:
        """sigma_h at every z, or at rows (b,m): (b,1,z) or (b,1,m). `empty`: 0 without data."""
        where = self.regressions
        sigma = where.std(h, rows)[:, None, :]
        return where.xp.zeros_like(sigma) if empty == "zero" and where.count(h) == 0 else sigma

    def backwards(
        self,
        last: int,
        optimism: Callable[[Array], Array],
        empty: Empty,
        growth: float = 1.0,
        most: Callable[[int], float] | None = None,
    ) -> dict[int, Array]:
        """Q_h = growth mean_h[V_{h+1}] + optimism(sigma_h) for h = last .. 0, V_{last+1} = 0: (b,1,z) each.

        V is clipped to [0, H]. With `most`, Q is clipped to [0, most(steps to go)], and V is regressed around
        what it is where nothing is known, so that the estimate there is that, and not 0.
        """
        q: dict[int, Array] = {}
        value: Array | None = None
        unknown: list[float] | None = None
        if most is not None:
            unknown = largest_errors(optimism, self.regressions.prior_sigma, growth, most, last)
        for h in reversed(range(last + 1)):
            mean, sigma = self.estimate(h, value, empty)
            q[h] = optimism(sigma)
            if mean is not None:
                if unknown is not None:
                    mean = mean + unknown[last - h]
                q[h] = q[h] + (mean if growth == 1.0 else growth * mean)
            if most is not None:
                q[h] = clip(q[h], 0.0, most(last + 1 - h))
            if h:
                value = self.value(q[h])
                if unknown is not None:
                    value = value - unknown[last + 1 - h]
        return q

    def curiosity(self, gain: Callable[[Array, float], Array]) -> dict[int, Array]:
        """E_h = gain(sigma_h) + mean_h[max_a E_{h+1}] for all steps, (b,1,z) each; gain(sigma, ridge).

        Clipped to what the remaining steps can gain at most: no regression can promise more than that.
        """
        where, ridge = self.regressions, self.regressions.ridge
        xp, most, value = where.xp, None, None
        q: dict[int, Array] = {}
        for h in reversed(range(self.horizon)):
            mean, sigma = self.estimate(h, value)
            own = gain(sigma, ridge)
            top = xp.max(own, axis=-1, keepdims=True)  # (b,1,1)
            most = top if most is None else most + top
            q[h] = own if mean is None else xp.minimum(xp.maximum(mean + own, xp.zeros_like(own)), most)
            if h:
                largest = xp.max(xp.reshape(q[h], (*q[h].shape[:2], *self.world.grid.shape)), axis=-1)
                value = xp.permute_dims(largest, (0, 2, 1))
        return q

    def value(self, q: Array) -> Array:
        """V = max_a clip(Q, 0, H) for Q (b,c,z): (b,s,c). The clip is monotone: the maximum comes first."""
        xp = self.regressions.xp
        largest = xp.max(xp.reshape(q, (*q.shape[:2], *self.world.grid.shape)), axis=-1)
        return xp.permute_dims(clip(largest, 0.0, float(self.horizon)), (0, 2, 1))

    def at_states(self, q: Array, state: Array) -> Array:
        """Q (b,k,z) of k episodes at their states (b,k), or as it is if given at these alone: (b,k,a)."""
        if q.shape[2] == self.actions:
            return q
        q = self.regressions.xp.reshape(q, (*q.shape[:2], *self.world.grid.shape))
        return q[self.regressions.each_run, self._episodes[None, : q.shape[1]], state]

    def rows(self, state: Array) -> Array:
        """All z = (s,a) of states (b,1): (b,a)."""
        return state * self.actions + self._every_action

    def random_actions(self, h: int) -> Array:
        """Uniformly random actions (b,1) at step h of this round's episode."""
        return self._random_actions[:, self.now, self.round.columns(h)][:, 0]

    def uniform_numbers(self, name: str) -> Any:
        """One random number for each round, of each run's stream of that name: (b,round)."""
        return np.stack([stream(seed, name).random(self.rounds) for seed in self.seeds])

    def data(self) -> list[Transitions]:
        """What each run has recorded so far."""
        rounds, size = min(self.played, int(self.lasted.max())), len(self.round)
        points, following = (
            self._recorded(array, slice(rounds)).reshape(self.runs, -1)
            for array in (self._points, self._following)
        )
        state, action = np.divmod(points, self.world.grid.shape[1])
        episode = np.arange(rounds)[:, None] * self.round.episodes + np.array(self.round.episode)
        columns: dict[str, Any] = {
            "episode": np.full(rounds * size, -1) if self.strategy.generative else episode.reshape(-1),
            "h": np.tile(self.round.h, rounds),
            "terminated": np.zeros(rounds * size, bool),
            "kept": np.tile(self.round.kept, rounds) & (np.arange(rounds * size) >= self.prologue * size),
        }
        for array in (*columns.values(), state, action, following):
            array.flags.writeable = False  # runs share some of them
        about = (self.world.grid, self.horizon, self.model, self.strategy)
        found = []
        for b, seed in enumerate(self.seeds):
            own = {**columns, "state": state[b], "action": action[b], "next_state": following[b]}
            own = {name: column[: self.lasted[b] * size] for name, column in own.items()}
            if self.stopped[b]:
                own["stopped_by"] = "accuracy"
            found.append(Transitions(*about, seed, **own))
        return found

    def _play(self) -> None:
        if self.stopped.all():  # in the middle of a part
            return
        self._draws = self._uniform[:, self.now][:, 0]
        self.strategy.play(self)
        self.now += 1

    def empty_regressions(self, rounds: int, model: Model | None = None) -> Regressions:
        """With room for that many rounds."""
        strategy, pooled = self.strategy, self.model.pooled
        return Regressions(
            self.model if model is None else model,
            self.world.grid,
            self.horizon,
            runs=self.runs,
            capacity=rounds * self.horizon if pooled else rounds,
            same_steps=strategy.generative and not pooled,
            same_runs=shares_points(strategy),
            lattice=lattice_of(strategy),
            **self._options,
        )

    def _drawn(self, name: str) -> Any:
        """Uniform numbers of each run's stream of that name, (b,round,e), the columns by step."""
        shape = (self.rounds, len(self.round))
        return np.stack([stream(seed, name).random(shape)[:, self.round.by_step] for seed in self.seeds])

    def _recorded(self, array: Array, rounds: slice) -> Any:
        """Columns by step (b,round,e) as NumPy in the order in which the steps were made."""
        return to_numpy(array[:, rounds])[:, :, np.argsort(self.round.by_step)]

    def _drawn_starts(self) -> Any:
        shape = (self.rounds, self.round.episodes)
        if self._start_rows is not None:  # no need to draw
            return np.full((self.runs, *shape), self.world.start.argmax())
        return np.stack([self.world.first_states(stream(seed, "start").random(shape)) for seed in self.seeds])

    @cached_property
    def _random_actions(self) -> Array:
        """Actions for every environment step, (b,round,e)."""
        return self.regressions.index(np.floor(self._drawn("actions") * self.actions))
