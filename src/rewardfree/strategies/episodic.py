"""Strategies whose rounds are one whole episode, every step of which is kept: the baselines of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from rewardfree.arrays import Array, clip
from rewardfree.presets import Empty
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.options import check_options
from rewardfree.strategies.round import Round
from rewardfree.strategies.walks import greedy_walk, optimistic_walk, random_walk
from rewardfree.tables import tabled
from rewardfree.ties import Ties, argmax_tied


class WholeEpisodes:
    """One episode a round. A subclass says which action to take."""

    generative = False
    curious = True

    def __post_init__(self) -> None:
        check_options(self)

    def round(self, horizon: int) -> Round:
        return Round.whole_episode(horizon)

    def play(self, arena: Arena) -> None:
        xp = arena.regressions.xp
        state, points, following = arena.starts(), [], []
        prepared = self._prepare(arena)
        for h in range(arena.horizon):
            z = state * arena.actions + self._action(arena, h, state, prepared)
            state = arena.move(h, z)
            points.append(z[:, 0])
            following.append(state[:, 0])
        if self.curious:
            arena.regressions.add_all(xp.stack(points, axis=1), xp.stack(following, axis=1))

    def _prepare(self, arena: Arena) -> dict[int, Array]:
        """Q_h (b,1,z), where an episode is planned before it begins."""
        return {}

    def _action(self, arena: Arena, h: int, state: Array, q: dict[int, Array]) -> Array:
        """The actions (b,1) at states (b,1)."""
        return arena.act(h, arena.at_states(q[h], state))


class OptimisticEpisodes(WholeEpisodes):
    """Greedy in Q_h = clip(mean_h[V_{h+1}] + u/H + u, 0, H), u = min(beta sigma_h, H), by any posterior."""

    beta: float
    empty: Empty

    def travel(self, journey: Journey) -> None:
        optimistic_walk(journey, self.beta, self.empty)

    def _prepare(self, arena: Arena) -> dict[int, Array]:
        H = arena.horizon

        def optimism(sigma: Array) -> Array:
            return clip(self.beta * sigma, 0.0, float(H)) * (1.0 + 1.0 / H)  # u + u/H

        return arena.backwards(H - 1, optimism, self.empty)


@tabled
@dataclass(frozen=True)
class Qiu(OptimisticEpisodes):
    """Qiu et al. 2021: greedy in Q_h = clip(mean_h[V_{h+1}] + u/H + u, 0, H), u = min(beta sigma_h, H).

    Every sample of an episode is kept, so later ones depend on earlier ones and the means are biased.
    """

    beta: float
    ties: Ties = "lowest"
    empty: Empty = "zero"


@tabled
@dataclass(frozen=True)
class GreedyMaxVariance(WholeEpisodes):
    """a_h = argmax_a sigma_h(s_h, a) along the real trajectory: a heuristic that does not look ahead."""

    ties: Ties = "lowest"
    empty: Empty = "zero"

    def travel(self, journey: Journey) -> None:
        greedy_walk(journey, self.empty)

    def _action(self, arena: Arena, h: int, state: Array, q: dict[int, Array]) -> Array:
        return argmax_tied(arena.sigma(h, arena.rows(state), self.empty), arena.tie_breaks(h))


@tabled
@dataclass(frozen=True)
class Uniform(WholeEpisodes):
    """Uniformly random actions: the reference that every exploration has to beat."""

    ties: Ties = "lowest"
    curious = False

    def travel(self, journey: Journey) -> None:
        random_walk(journey)

    def _action(self, arena: Arena, h: int, state: Array, q: dict[int, Array]) -> Array:
        return arena.random_actions(h)
