"""Many runs of one strategy side by side on a finite world: what they share, and what they record."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.arrays import CPU, Array, Placement, to_numpy
from rewardfree.data import Transitions
from rewardfree.estimates import Backup, Empty, FiniteEstimate, best_of_clipped, scout_q, state_value
from rewardfree.estimates.backups import bellman_q, zero_without_data
from rewardfree.model import Model, ModelPosteriors
from rewardfree.strategies.strategy import Strategy
from rewardfree.streams import stream
from rewardfree.threads import one_blas_thread
from rewardfree.ties import argmax_tied
from rewardfree.worlds.finite import FiniteWorld, next_states

#: A long exploration is played in this many parts.
PARTS = 20
#: A kernel is fitted after this many rounds, and again whenever they have doubled; while exploring, to at
#: most this many points: it is fitted again for a plan.
FIRST_FIT, FIT_POINTS = 4, 300


class RunBatch:
    """b runs of a strategy, their estimate of [P_h V] and their random numbers, on NumPy or CUDA.

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
        source: ModelPosteriors | None = None,
        placement: Placement = CPU,
    ) -> None:
        self.world, self.model, self.strategy, self.seeds = world, model, strategy, list(seeds)
        self.horizon, self.runs, self.rounds = world.horizon, len(self.seeds), rounds
        if model.automatic and self.runs > 1:
            raise ValueError("runs whose kernels are fitted to their data are played one at a time")
        self.round = strategy.round(self.horizon)
        self.prologue = strategy.prologue(world.grid, self.horizon)
        self.stopped = np.zeros(self.runs, bool)  # (b,) by a rule of the strategy
        self.lasted = np.full(self.runs, rounds)  # (b,) rounds that belong to each run
        self.notes: dict[str, Any] = {}  # what a strategy remembers from round to round
        self._source, self._placement = source or strategy, placement
        # A strategy that does not use the posterior gets one when somebody else does.
        self.estimate = estimate = self.empty_estimate(rounds if strategy.uses_posterior else 1)
        self.now = estimate.index([0])  # the round, as an array: see Lattice.repeat
        self.played = self._loaded = 0
        self._cumulative = estimate.exact(world.cumulative)
        self._uniform = estimate.exact(self._drawn("transitions"))
        self._points = estimate.index(np.zeros((self.runs, rounds, len(self.round))))
        self._next_states = estimate.index(np.zeros((self.runs, rounds, len(self.round))))
        self._ties = estimate.exact(self._drawn("ties")) if strategy.ties == "random" else None
        self._episodes = estimate.index(np.arange(self.round.episodes))
        self._every_action = estimate.index(np.arange(self.actions))
        self._start_rows: Array | None = None
        if world.start.max() == 1.0:
            self._start_rows = self.rows(estimate.index(np.full((self.runs, 1), world.start.argmax())))
        self._starts = estimate.index(self._drawn_starts())

    @property
    def actions(self) -> int:
        """The number of actions."""
        return self.world.grid.shape[1]

    def play(self) -> Iterator[float]:
        """Play all rounds in a few parts, and say after each how far it is: 1 is the end."""
        # On a device a part costs something of its own: there it is one.
        part = self.rounds if self.estimate.on_device else -(-self.rounds // PARTS)
        refits = self.model.automatic and self.strategy.uses_posterior
        next_fit = FIRST_FIT
        while not self.over:
            now = min(part, self.rounds - self.played)
            if refits:
                if self.played == next_fit:
                    self.estimate = self.after(self.played, FIT_POINTS)
                    next_fit *= 2
                now = min(now, next_fit - self.played)
            with one_blas_thread():
                self.estimate.posteriors.repeat(self._play, now)
            self.played += now
            yield 1.0 if self.over else self.played / self.rounds

    @property
    def over(self) -> bool:
        """Whether the budget is used up, or no run wants more."""
        return self.played >= self.rounds or bool(self.stopped.all())

    def stop(self, done: Array) -> None:
        """End runs (b,) before this round.

        They still play in the batch, but what they do is discarded.
        """
        new = to_numpy(done) & ~self.stopped
        if new.any():
            self.stopped |= new
            self.lasted[new] = int(self.now[0])

    def settled(self) -> FiniteEstimate:
        """The estimate from all that was played, also where the strategy does not keep it up to date."""
        if not self.strategy.uses_posterior and self._loaded < self.played:
            self.estimate = self.after(self.played)
            self._loaded = self.played
        return self.estimate

    def after(self, rounds: int, most: int | None = None) -> FiniteEstimate:
        """The estimate from what was kept in the first rounds, or until a run stopped.

        The kernel of an automatic model is fitted to at most `most` of these samples.
        """
        points, next_states = (
            self._recorded(array, slice(self.prologue, rounds)) for array in (self._points, self._next_states)
        )
        lengths = np.maximum(np.minimum(self.lasted, rounds) - self.prologue, 0)  # (b,)
        rows = self.estimate.rows_of(np.array(self.round.h), points)
        kept = [i for i, kept in enumerate(self.round.kept) if kept]
        steps = [[i for i in kept if self.round.h[i] == h] for h in range(self.horizon)]
        steps = [kept] if self.model.pooled else steps

        def kept_in(array: Any) -> list[list[Any]]:  # [step][run]
            return [
                [run[:n, columns].reshape(-1) for run, n in zip(array, lengths, strict=True)]
                for columns in steps
            ]

        z, seen = kept_in(rows), kept_in(next_states)
        model = self.model
        if model.automatic:  # of one run
            grid = self.world.grid
            model = model.fitted_to_next_states(
                model.inputs(grid.points, self.horizon),
                np.concatenate([runs[0] for runs in z]),
                grid.states,
                np.concatenate([runs[0] for runs in seen]),
                most=most,
                dtype=self._placement.dtype,
            )
        estimate = self.empty_estimate(self.rounds, model)
        estimate.load(z, seen)
        return estimate

    def starts(self) -> Array:
        """The first states of this round's episodes, (b,e)."""
        return self._starts[:, self.now][:, 0]

    def act(self, h: int, q: Array, limits: tuple[float, float], episode: int | None = None) -> Array:
        """The greedy actions (b,k) for Q (b,k,a) within its limits, at step h of k episodes: see `move`."""
        return best_of_clipped(q, *limits, self.tie_breaks(h, episode))[1]

    def best(self, h: int, values: Array) -> Array:
        """The best actions (b,k) for values (b,k,a) that need no clip."""
        return argmax_tied(values, self.tie_breaks(h))

    def move(self, h: int, z: Array, episode: int | None = None) -> Array:
        """Play points (b,k) at step h of one of the round's episodes, or of all k that get there.

        The next states are recorded and returned, (b,k).
        """
        columns = self.round.columns(h, episode)
        law = self._cumulative[0 if self.world.stationary else h]
        next_state = next_states(law, z, self._draws[:, columns])
        self._points[:, self.now, columns] = z[:, None, :]
        self._next_states[:, self.now, columns] = next_state[:, None, :]
        return next_state

    def episode(self, act: Callable[[int, Array], Array]) -> tuple[Array, Array]:
        """Play the round's one episode by act(h, state), actions (b,1) at states (b,1).

        The points and the next states are returned, (b,h).
        """
        state, points, next_states = self.starts(), [], []
        for h in range(self.horizon):
            z = state * self.actions + act(h, state)
            state = self.move(h, z)
            points.append(z[:, 0])
            next_states.append(state[:, 0])
        return self.estimate.xp.stack(points, axis=1), self.estimate.xp.stack(next_states, axis=1)

    def tie_breaks(self, h: int, episode: int | None = None) -> Array | None:
        """Uniform numbers (b,k) that decide between ties at those steps; None: the lowest index wins."""
        return None if self._ties is None else self._ties[:, self.now, self.round.columns(h, episode)][:, 0]

    def mean_and_std(self, h: int, value: Array | None, empty: Empty = "prior") -> tuple[Array, Array]:
        """mean_h[V] for V (b,s,c) or None, and sigma_h: (b,c,z) and (b,1,z). `empty`: both 0 without data.

        At the first step of a world with one start, there only, which spares a pass over the posterior:
        (b,c,a) and (b,1,a).
        """
        estimate = self.estimate
        rows = self._start_rows if h == 0 else None
        # The mean first: it computes the row that the last sample still owes in its own pass over L.
        mean = None if value is None else self._known(h, estimate.mean(h, value, rows), empty)
        return mean, self.sigma(h, rows, empty)

    def sigma(self, h: int, rows: Array | None, empty: Empty = "prior") -> Array:
        """sigma_h at every z, or at rows (b,m): (b,1,z) or (b,1,m). `empty`: 0 without data."""
        return self._known(h, self.estimate.std(h, rows)[:, None, :], empty)

    def _known(self, h: int, values: Array, empty: Empty) -> Array:
        return zero_without_data(values, empty, self.estimate.count(h))

    def backwards(self, last: int, backup: Backup) -> dict[int, Array]:
        """Q_h by a Bellman line for h = last .. 0, V_{last+1} = 0: (b,1,z) each, not yet clipped."""
        q: dict[int, Array] = {}
        value: Array | None = None
        for h in reversed(range(last + 1)):
            mean, sigma = self.mean_and_std(h, value, backup.empty)
            if mean is not None and backup.around is not None:
                mean = mean + backup.around(last - h)
            q[h] = backup.q(None, mean, sigma, last + 1 - h)
            if h:
                value = self.value(q[h], backup.limits(last + 1 - h))
                if backup.around is not None:
                    value = value - backup.around(last + 1 - h)
        return q

    def exploration(self, gain: Callable[[Array, float], Array]) -> dict[int, Array]:
        """Scout's E_h for all steps, (b,1,z) each; gain(sigma, ridge).

        Clipped to what the remaining steps can gain at most: no regression can promise more than that.
        """
        xp = self.estimate.xp
        most: Any = None  # from the step on, (b,1,1), on the device

        def q(_: Any, mean: Any, sigma: Array, to_go: int) -> Array:
            nonlocal most
            gains = gain(sigma, self.estimate.ridge)
            most = bellman_q(xp.max(gains, axis=-1, keepdims=True), most)
            if mean is None:
                return gains
            return xp.minimum(xp.maximum(scout_q(gains, mean), xp.zeros_like(gains)), most)

        return self.backwards(self.horizon - 1, Backup(q, limits=lambda to_go: (0.0, math.inf)))

    def value(self, q: Array, limits: tuple[float, float]) -> Array:
        """V = max_a Q within its limits, for Q (b,c,z): (b,s,c)."""
        xp = self.estimate.xp
        by_state = xp.reshape(q, (*q.shape[:2], *self.world.grid.shape))
        return xp.permute_dims(state_value(by_state, *limits), (0, 2, 1))

    def at_states(self, q: Array, state: Array) -> Array:
        """Q (b,k,z) of k episodes at their states (b,k), or as it is if given at these alone: (b,k,a)."""
        if q.shape[2] == self.actions:
            return q
        q = self.estimate.xp.reshape(q, (*q.shape[:2], *self.world.grid.shape))
        return q[self.estimate.run_rows, self._episodes[None, : q.shape[1]], state]

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
        points, next_states = (
            self._recorded(array, slice(rounds)).reshape(self.runs, -1)
            for array in (self._points, self._next_states)
        )
        state, action = np.divmod(points, self.world.grid.shape[1])
        episode = np.arange(rounds)[:, None] * self.round.episodes + np.array(self.round.episode)
        columns: dict[str, Any] = {
            "episode": np.full(rounds * size, -1) if self.strategy.generative else episode.reshape(-1),
            "h": np.tile(self.round.h, rounds),
            "terminated": np.zeros(rounds * size, bool),
            "kept": np.tile(self.round.kept, rounds) & (np.arange(rounds * size) >= self.prologue * size),
        }
        for array in (*columns.values(), state, action, next_states):
            array.flags.writeable = False  # runs share some of them
        data = []
        for b, seed in enumerate(self.seeds):
            run = {**columns, "state": state[b], "action": action[b], "next_state": next_states[b]}
            run = {name: column[: self.lasted[b] * size] for name, column in run.items()}
            if self.stopped[b]:
                run["stopped_by"] = "accuracy"
            data.append(Transitions(self.world.grid, self.horizon, self.model, self.strategy, seed, **run))
        return data

    def _play(self) -> None:
        if self.stopped.all():  # in the middle of a part
            return
        self._draws = self._uniform[:, self.now][:, 0]
        self.strategy.play_batch(self)
        self.now += 1

    def empty_estimate(self, rounds: int, model: Model | None = None) -> FiniteEstimate:
        """An estimate without samples, with room for that many rounds."""
        strategy, pooled = self.strategy, self.model.pooled
        try:
            return FiniteEstimate(
                self.model if model is None else model,
                self.world.grid,
                self.horizon,
                runs=self.runs,
                capacity=rounds * self.horizon if pooled else rounds,
                same_steps=strategy.generative and not pooled,
                same_runs=strategy.shares_points,
                source=self._source,
                placement=self._placement,
            )
        except MemoryError as error:
            raise MemoryError(
                f"{error}; this world's horizon of {self.horizon:,} steps asks for that: make it with a "
                "shorter one, or give a smaller budget"
            ) from error

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
        return self.estimate.index(np.floor(self._drawn("actions") * self.actions))
