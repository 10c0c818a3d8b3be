"""Many runs of one strategy side by side on a finite world: what they share, and what they record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from rewardfree.arrays import Array, clip, to_numpy
from rewardfree.data import Transitions
from rewardfree.model import Model
from rewardfree.posterior import Posterior
from rewardfree.regressions import Regressions
from rewardfree.streams import stream
from rewardfree.threads import one_blas_thread
from rewardfree.ties import Ties, best_of_clipped
from rewardfree.worlds.finite import FiniteWorld, next_states


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
        first = sum(step < h for step in self.h)
        reached = [e for e, step in zip(self.episode, self.h, strict=True) if step == h]
        if episode is None:
            return slice(first, first + len(reached))
        first += reached.index(episode)
        return slice(first, first + 1)


#: A long exploration is played in so many parts.
PARTS = 20
#: What an explorer's Q is at a step without data: 0, or what the prior gives.
Empty: TypeAlias = Literal["zero", "prior"]


class Strategy(Protocol):
    """How to explore. A round leaves one more sample for every step."""

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


def shares_points(strategy: Strategy) -> bool:
    """Whether all runs of a strategy look at the same points: nothing random enters its choice."""
    return strategy.generative and strategy.ties == "lowest"


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
        self.round = strategy.round(self.horizon)
        each_step = strategy.generative and not model.pooled
        self.regressions = Regressions(
            model,
            world.grid,
            self.horizon,
            runs=self.runs,
            capacity=rounds * self.horizon if model.pooled else rounds,
            same_steps=each_step,
            same_runs=shares_points(strategy),
            posterior=posterior,
            device=device,
            dtype=dtype,
        )
        where = self.regressions
        self.now = where.index([0])  # the round, as an array: see Lattice.repeat
        self.played = self._loaded = 0
        self._cumulative = where.exact(world.cumulative)
        self._uniform = where.exact(self._drawn("transitions"))
        self._points = where.index(np.zeros((self.runs, rounds, len(self.round))))
        self._following = where.index(np.zeros((self.runs, rounds, len(self.round))))
        self._ties = where.exact(self._drawn("ties")) if strategy.ties == "random" else None
        self._episodes = where.index(np.arange(self.round.episodes))
        self._actions_of = where.index(np.arange(self.actions))
        self._start_rows: Array | None = None
        if world.start.max() == 1.0:
            self._start_rows = self.rows(where.index(np.full((self.runs, 1), world.start.argmax())))
        self._starts = where.index(self._drawn_starts())

    @property
    def actions(self) -> int:
        return self.world.grid.shape[1]

    def play(self) -> Iterator[float]:
        """Play all rounds in a few parts, and say after each how far it is: 1 is the end."""
        # On a device a part costs something of its own: there it is one.
        part = self.rounds if self.regressions.on_device else -(-self.rounds // PARTS)
        while self.played < self.rounds:
            now = min(part, self.rounds - self.played)
            with one_blas_thread():
                self.regressions.posteriors.repeat(self._play, now)
            self.played += now
            yield self.played / self.rounds

    def settled(self) -> Regressions:
        """The regressions with all that was played, also where the strategy does not keep them up itself."""
        if not self.strategy.curious and self._loaded < self.played:
            new = slice(self._loaded, self.played)
            points, following = self._recorded(self._points, new), self._recorded(self._following, new)
            kept = [i for i, kept in enumerate(self.round.kept) if kept]
            steps = (
                [kept]
                if self.model.pooled
                else [[i for i in kept if self.round.h[i] == h] for h in range(self.horizon)]
            )
            self.regressions.load(
                [[run[:, columns].reshape(-1) for run in points] for columns in steps],
                [[run[:, columns].reshape(-1) for run in following] for columns in steps],
            )
            self._loaded = self.played
        return self.regressions

    def starts(self) -> Array:
        """The first states of this round's episodes, (b,e)."""
        return self._starts[:, self.now][:, 0]

    def act(self, h: int, q: Array, episode: int | None = None) -> Array:
        """The greedy actions (b,k) for Q (b,k,a), clipped to [0, H], at step h of k episodes: see `move`."""
        return best_of_clipped(q, 0.0, float(self.horizon), self.tie_breaks(h, episode))[1]

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
        sigma = where.std(h, rows)[:, None, :]
        if empty == "zero" and where.count(h) == 0:
            sigma = where.xp.zeros_like(sigma)
            mean = None if mean is None else where.xp.zeros_like(mean)
        return mean, sigma

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
        return state * self.actions + self._actions_of

    def random_actions(self, h: int) -> Array:
        """Uniformly random actions (b,1) at step h of this round's episode."""
        return self._actions[:, self.now, self.round.columns(h)][:, 0]

    def data(self) -> list[Transitions]:
        """What each run has recorded so far."""
        rounds, size = self.played, len(self.round)
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
            "kept": np.tile(self.round.kept, rounds),
        }
        for array in (*columns.values(), state, action, following):
            array.flags.writeable = False  # runs share some of them
        about = (self.world.grid, self.horizon, self.model, self.strategy)
        return [
            Transitions(*about, seed, **columns, state=state[b], action=action[b], next_state=following[b])
            for b, seed in enumerate(self.seeds)
        ]

    def _play(self) -> None:
        self._draws = self._uniform[:, self.now][:, 0]
        self.strategy.play(self)
        self.now += 1

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
    def _actions(self) -> Array:
        return self.regressions.index(np.floor(self._drawn("actions") * self.actions))
