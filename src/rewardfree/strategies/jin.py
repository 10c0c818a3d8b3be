"""Tabular exploration by reaching every state at every step in turn (Jin et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rewardfree.arrays import Array, count
from rewardfree.budget import Budget
from rewardfree.model import Model
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.counting import Counting
from rewardfree.strategies.round import Round
from rewardfree.strategies.ucbvi import Reach
from rewardfree.tables import tabled
from rewardfree.ties import Ties, argmax_tied
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.grid import Grid


@tabled
@dataclass(frozen=True)
class Jin(Counting):
    """Jin et al. 2020: learn to reach every state at every step, then mix all policies met on the way.

    Phase one: for each goal (s,h) `episodes_per_goal` episodes of a regret minimiser with reward 1{s_h = s};
    none is kept. UCBVI with the Bernstein bonus stands in for EULER. Phase two: each episode follows one of
    those policies, drawn uniformly, with a uniform action at its goal; all are kept. By default phase one has
    as many episodes as phase two, or a few less.
    """

    episodes_per_goal: int | None = None
    delta: float = 0.1
    bonus_scale: float = 1.0
    ties: Ties = "random"

    curious = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episodes_per_goal is not None:
            wanted = count(self.episodes_per_goal, "episodes_per_goal")
            object.__setattr__(self, "episodes_per_goal", wanted)

    def within(self, budget: Budget, world: FiniteWorld) -> Jin:
        """With half of the budget, or with as many episodes as are kept, shared evenly by the goals."""
        if self.episodes_per_goal is not None:
            return self
        H, goals = world.horizon, len(world.states) * world.horizon
        size = budget.size if budget.unit in ("samples_per_step", "episodes") else -(-budget.size // H)
        half = size if budget.unit in ("samples_per_step", "transitions") else size // 2
        if half < goals:
            raise ValueError(
                f"Jin's first phase needs an episode for each of {goals} goals (s,h), but {budget.unit}="
                f"{budget.size} leaves {half}: give a larger budget, or episodes_per_goal="
            )
        return replace(self, episodes_per_goal=half // goals)

    def prologue(self, grid: Grid, horizon: int) -> int:
        """The episodes of phase one."""
        assert self.episodes_per_goal is not None  # `within` has set it
        return grid.shape[0] * horizon * self.episodes_per_goal

    def bytes_per_run(self, model: Model, grid: Grid, horizon: int, rounds: int) -> int:
        policies = self.prologue(grid, horizon) * horizon * grid.shape[0]
        return super().bytes_per_run(model, grid, horizon, rounds) + policies

    def round(self, horizon: int) -> Round:
        return Round.whole_episode(horizon)

    def play(self, arena: Arena) -> None:
        number = int(arena.now[0])
        if number < arena.prologue:
            self._learn(arena, number)
        else:
            self._gather(arena, number)

    def _learn(self, arena: Arena, number: int) -> None:
        """An episode of the learner of one goal; its policy is remembered."""
        S, A = arena.world.grid.shape
        if number == 0:
            shape = (arena.runs, arena.prologue, arena.horizon, S)
            arena.notes["policies"] = np.zeros(shape, np.min_scalar_type(A))
        goal, turn = divmod(number, self._each)
        if turn == 0:
            arena.notes["learner"] = self._learner(arena, goal)
        learner: Reach = arena.notes["learner"]
        q = learner.plan()
        policy = arena.notes["policies"][:, number]  # (b,h,s)
        for h in range(arena.horizon):
            own = q[h] if h < learner.last else np.zeros((arena.runs, S, A))
            policy[:, h] = argmax_tied(own, arena.tie_breaks(h))
        learner.learn(*_followed(arena, [policy[:, h] for h in range(arena.horizon)]))

    def _learner(self, arena: Arena, goal: int) -> Reach:
        S, A = arena.world.grid.shape
        H, goals = arena.horizon, S * arena.horizon
        # Azar et al. have L = log(5SAT/delta) after T steps; a law for each step, and each goal its share.
        log_term = math.log(5.0 * S * A * H * (self._each * H) * goals / self.delta)
        last, state = divmod(goal, S)
        return Reach(arena.empty_regressions(self._each), last, state, log_term, self.bonus_scale)

    def _gather(self, arena: Arena, number: int) -> None:
        """An episode of one of the policies, uniform at its goal."""
        S = arena.world.grid.shape[0]
        if "drawn" not in arena.notes:
            uniform = arena.uniform_numbers("mixture")
            arena.notes["drawn"] = np.minimum((uniform * arena.prologue).astype(np.int64), arena.prologue - 1)
        drawn = arena.notes["drawn"][:, number]  # (b,)
        every = np.arange(arena.runs)
        policy = arena.notes["policies"][every, drawn].astype(np.int64)  # (b,h,s)
        last, state = np.divmod(drawn // self._each, S)
        actions = []
        for h in range(arena.horizon):
            there = last == h
            policy[every[there], h, state[there]] = arena.random_actions(h)[there, 0]
            actions.append(policy[:, h])
        _followed(arena, actions)

    @property
    def _each(self) -> int:
        assert self.episodes_per_goal is not None
        return self.episodes_per_goal


def _followed(arena: Arena, policy: list[Array]) -> tuple[Array, Array]:
    """An episode by policies (b,s) for each step: points and next states (b,h)."""
    state, points, following = arena.starts(), [], []
    for h, actions in enumerate(policy):
        z = state * arena.actions + np.take_along_axis(actions.astype(np.int64), state, axis=1)
        state = arena.move(h, z)
        points.append(z[:, 0])
        following.append(state[:, 0])
    return np.stack(points, axis=1), np.stack(following, axis=1)
