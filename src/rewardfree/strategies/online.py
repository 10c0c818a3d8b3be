"""Exploration without a generative model (Alg 3): reach for the uncertainty of each step in turn."""

from __future__ import annotations

from dataclasses import dataclass

from rewardfree.arrays import Array
from rewardfree.presets import Empty
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.options import check_options
from rewardfree.strategies.round import Round
from rewardfree.strategies.walks import target_walk
from rewardfree.tables import tabled
from rewardfree.ties import Ties


@tabled
@dataclass(frozen=True)
class Online:
    """Alg 3: an episode for every step h0, of which the sample of step h0 alone is kept, so it is unbiased.

    Episode h0 is greedy in Q_h = clip(mean_h[V_{h+1}] + beta sigma_h, 0, H), V_{h0+1} = 0. `fresh=False`
    plans all episodes of round n with the data of the rounds before, as the paper writes; `fresh=True` lets
    steps h < h0 use this round's samples, as the authors' scripts do: the episodes wait for each other.
    `empty` is what Q is at a step without data: 0 ("zero"), or what the prior gives ("prior").
    """

    beta: float
    fresh: bool = False
    ties: Ties = "lowest"
    empty: Empty = "zero"

    generative = False
    curious = True

    def __post_init__(self) -> None:
        check_options(self)

    def round(self, horizon: int) -> Round:
        return Round.growing_episodes(horizon)

    def play(self, arena: Arena) -> None:
        if self.fresh:
            for target in range(arena.horizon):
                self._play_alone(arena, target)
        else:
            self._play_together(arena)

    def travel(self, journey: Journey) -> None:
        target_walk(journey, self.beta, self.fresh, self.empty)

    def _play_alone(self, arena: Arena, target: int) -> None:
        """The episode of one target, with all data there are by now."""
        q = arena.backwards(target, lambda sigma: self.beta * sigma, self.empty)
        state = arena.starts()[:, target : target + 1]
        for h in range(target + 1):
            z = state * arena.actions + arena.act(h, arena.at_states(q[h], state), target)
            state = arena.move(h, z, target)
        arena.regressions.add(target, z[:, 0], state[:, 0])

    def _play_together(self, arena: Arena) -> None:
        """All episodes of the round: at step h, the targets beyond h share one pass over the posterior."""
        xp, steps = arena.regressions.xp, range(arena.horizon)
        own: dict[int, Array] = {}  # Q of target h at step h, with no value behind it: (b,1,z)
        beyond: dict[int, Array] = {}  # Q of the targets beyond h, (b,c,z)
        value = None
        for h in reversed(steps):
            mean, sigma = arena.estimate(h, value, self.empty)
            own[h] = self.beta * sigma
            if mean is not None:
                mean += own[h]
                beyond[h] = mean
            if h:
                values = [arena.value(q[h]) for q in (own, beyond) if h in q]
                value = xp.concat(values, axis=2)
        state, points, following = arena.starts(), [], []
        for h in steps:
            q = arena.at_states(own[h], state[:, :1])
            if h in beyond:
                q = xp.concat([q, arena.at_states(beyond[h], state[:, 1:])], axis=1)
            z = state * arena.actions + arena.act(h, q)
            state = arena.move(h, z)
            points.append(z[:, 0])
            following.append(state[:, 0])
            state = state[:, 1:]
        arena.regressions.add_all(xp.stack(points, axis=1), xp.stack(following, axis=1))
