"""Tabular exploration by reaching every state at every step in turn (Jin et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rewardfree.arrays import Array, count
from rewardfree.baselines.counting import CountingStrategy
from rewardfree.baselines.ucbvi import ReachingLearner
from rewardfree.budget import Budget
from rewardfree.model import Model
from rewardfree.registry import registered
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.ties import Ties, argmax_tied
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.grid import Grid


@registered("strategy")
@dataclass(frozen=True)
class Jin(CountingStrategy):
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

    uses_posterior: ClassVar[bool] = False

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

    def play_batch(self, batch: RunBatch) -> None:
        number = int(batch.now[0])
        if number < batch.prologue:
            self._learn(batch, number)
        else:
            self._gather(batch, number)

    def _learn(self, batch: RunBatch, number: int) -> None:
        """An episode of the learner of one goal; its policy is remembered."""
        S, A = batch.world.grid.shape
        if number == 0:
            shape = (batch.runs, batch.prologue, batch.horizon, S)
            batch.notes["policies"] = np.zeros(shape, np.min_scalar_type(A))
        goal, turn = divmod(number, self._per_goal)
        if turn == 0:
            batch.notes["learner"] = self._learner(batch, goal)
        learner: ReachingLearner = batch.notes["learner"]
        q = learner.plan()
        policy = batch.notes["policies"][:, number]  # (b,h,s)
        for h in range(batch.horizon):
            q_h = q[h] if h < learner.last else np.zeros((batch.runs, S, A))
            policy[:, h] = argmax_tied(q_h, batch.tie_breaks(h))
        learner.learn(*_followed(batch, [policy[:, h] for h in range(batch.horizon)]))

    def _learner(self, batch: RunBatch, goal: int) -> ReachingLearner:
        S, A = batch.world.grid.shape
        H, goals = batch.horizon, S * batch.horizon
        # Azar et al. have L = log(5SAT/delta) after T steps; a law for each step, and each goal its share.
        log_term = math.log(5.0 * S * A * H * (self._per_goal * H) * goals / self.delta)
        last, state = divmod(goal, S)
        return ReachingLearner(batch.empty_estimate(self._per_goal), last, state, log_term, self.bonus_scale)

    def _gather(self, batch: RunBatch, number: int) -> None:
        """An episode of one of the policies, uniform at its goal."""
        S = batch.world.grid.shape[0]
        if "drawn" not in batch.notes:
            uniform = batch.uniform_numbers("mixture")
            batch.notes["drawn"] = np.minimum((uniform * batch.prologue).astype(np.int64), batch.prologue - 1)
        drawn = batch.notes["drawn"][:, number]  # (b,)
        runs = np.arange(batch.runs)
        policy = batch.notes["policies"][runs, drawn].astype(np.int64)  # (b,h,s)
        last, state = np.divmod(drawn // self._per_goal, S)
        actions = []
        for h in range(batch.horizon):
            there = last == h
            policy[runs[there], h, state[there]] = batch.random_actions(h)[there, 0]
            actions.append(policy[:, h])
        _followed(batch, actions)

    @property
    def _per_goal(self) -> int:
        assert self.episodes_per_goal is not None
        return self.episodes_per_goal


def _followed(batch: RunBatch, policy: list[Array]) -> tuple[Array, Array]:
    """An episode by policies (b,s) for each step: points and next states (b,h)."""
    state, points, next_states = batch.starts(), [], []
    for h, actions in enumerate(policy):
        z = state * batch.actions + np.take_along_axis(actions.astype(np.int64), state, axis=1)
        state = batch.move(h, z)
        points.append(z[:, 0])
        next_states.append(state[:, 0])
    return np.stack(points, axis=1), np.stack(next_states, axis=1)
