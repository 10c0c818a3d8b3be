"""Tabular exploration by reaching every state at every step in turn (Jin et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from rewardfree.arrays import Array, check_fields, count
from rewardfree.baselines.counting import CountingStrategy
from rewardfree.budget import Budget
from rewardfree.estimates import FiniteEstimate
from rewardfree.model import Model
from rewardfree.registry import registered
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.ties import Ties, argmax_tied
from rewardfree.worlds import FiniteWorld, Grid


def bernstein_bonus(
    visits: Array, variance: Array, later: Array, log_term: float, most: float = 1.0
) -> Array:
    """sqrt(8 L Var/n) + 14 m L/(3n) + sqrt(8 D/n): L = `log_term`, Var = Var_{s' ~ P^} V(s'), V in [0,m].

    D = `later` is the mean under P^ of `later_spread`. For n of at least 1.
    """
    n = np.maximum(visits, 1.0)
    return (
        np.sqrt(8.0 * log_term * np.maximum(variance, 0.0) / n)
        + 14.0 * most * log_term / (3.0 * n)
        + np.sqrt(8.0 * later / n)
    )


def later_spread(visits: Array, log_term: float, sizes: tuple[int, int, int], most: float = 1.0) -> Array:
    """min(100^2 m^2 H S^2 A L^2/N(s'), m^2): how far V may be from V* at s', visited N(s') times at its step.

    Azar et al. write H for m, the most that an episode pays; `sizes` are S, A and H.
    """
    S, A, H = sizes
    return most**2 * np.minimum(1e4 * H * S**2 * A * log_term**2 / np.maximum(visits, 1.0), 1.0)


@dataclass
class ReachingLearner:
    """b learners that want to be at state `goal` at step `last`: reward 1{s_last = goal}, nothing after it.

    Q_h = min(Q_h before, 1, P^ V_{h+1} + bonus_scale * bonus) for h < last, and 1 without a visit.
    """

    estimate: FiniteEstimate
    last: int
    goal: int
    log_term: float
    bonus_scale: float
    _q: list[Array] = field(init=False)  # (b,s,a) for each step before the last

    def __post_init__(self) -> None:
        self._q = [np.ones((self.estimate.runs, *self.estimate.grid.shape)) for _ in range(self.last)]

    def plan(self) -> list[Array]:
        """Q (b,s,a) of the steps before the last with all that was learnt; from there on nothing matters."""
        S, A = self.estimate.grid.shape
        value = np.zeros((self.estimate.runs, S))
        value[:, self.goal] = 1.0
        later = np.zeros((self.estimate.runs, S))  # V is known at the last step
        for h in reversed(range(self.last)):
            q, visits = self._upper(h, value, later), self.estimate.visits(h)
            self._q[h] = np.minimum(self._q[h], np.where(visits > 0, q, 1.0).reshape(-1, S, A))
            value = self._q[h].max(axis=2)
            state_visits = visits.reshape(-1, S, A).sum(axis=2)
            later = later_spread(state_visits, self.log_term, (S, A, self.estimate.horizon))
        return self._q

    def learn(self, points: Array, next_states: Array) -> None:
        """An episode of every learner: points and next states (b,h)."""
        self.estimate.add_all(points, next_states)

    def _upper(self, h: int, value: Array, later: Array) -> Array:
        """P^ V + bonus, (b,z), for V and the spread (b,s) of the next step."""
        # One product for V, V^2 and D.
        mean, square, spread = np.moveaxis(
            self.estimate.mean(h, np.stack([value, value**2, later], axis=2)), 1, 0
        )
        visits = self.estimate.visits(h)
        bonus = bernstein_bonus(visits, square - mean**2, spread, self.log_term)
        return mean + self.bonus_scale * bonus


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
        check_fields(self, episodes_per_goal=count)

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
        learner.learn(*_followed(batch, policy))

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
        for h in range(batch.horizon):
            there = last == h
            policy[runs[there], h, state[there]] = batch.random_actions(h)[there, 0]
        _followed(batch, policy)

    @property
    def _per_goal(self) -> int:
        assert self.episodes_per_goal is not None
        return self.episodes_per_goal


def _followed(batch: RunBatch, policy: Array) -> tuple[Array, Array]:
    """An episode by policies (b,h,s): points and next states (b,h)."""
    return batch.episode(lambda h, state: np.take_along_axis(policy[:, h].astype(np.int64), state, axis=1))
