"""Planning among labels: exact dynamic programming on the shares of what was seen."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.arrays import Actions, Floats, Integers, States, check_counts_on
from rewardfree.data import Experience, Samples, Transitions
from rewardfree.dynamics.labels import LabelLaw
from rewardfree.estimates.backups import bellman_q, remaining_range, until_end
from rewardfree.kernels import AutoKernel, Delta
from rewardfree.model import Model
from rewardfree.planning.finite import FinitePlan, states_that_end
from rewardfree.planning.planner import Planner, PlanRequest, WorldPlan, largest_spread
from rewardfree.progress import Tell, parts
from rewardfree.registry import registered
from rewardfree.rewards import RewardFunction, TabledReward
from rewardfree.ties import argmax_tied
from rewardfree.worlds import Discrete


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelPlan(WorldPlan):
    """A deterministic policy among labels, and the values it was chosen by. h counts from 0."""

    horizon: int
    text: str | None  # of the reward, if it was a formula
    actions: Integers  # (h,s)
    values: Floats  # (h,s) the planner's own V_h
    returns: tuple[float, float] | None  # least and largest inside the model; None: an older file

    @property
    def reward_text(self) -> str | None:
        return self.text

    def expects(self, reward: Any, starts: States, discount: float) -> tuple[Floats, Floats] | None:
        """Its values; for returns in low..high the standard deviation is at most sqrt((high-m)(m-low))."""
        if not isinstance(reward, str) or reward != self.text or discount != self.discount:
            return None
        if self.returns is None:
            return None
        mean = self.values_at(starts, 0)
        return mean, largest_spread(mean, *self.returns)

    def save(self, path: str | os.PathLike[str]) -> None:
        from rewardfree.planning.plan_files import write_label_plan

        write_label_plan(path, self)

    def choose(self, states: States, h: int) -> Actions:
        return np.asarray(self.actions[h][states])

    def values_at(self, states: States, h: int) -> Floats:
        return np.asarray(self.values[h][states])


@registered("planner", "counting")
@dataclass(frozen=True)
class CountingPlanner(Planner):
    """Q_h = r_h + discount P^ V_{h+1} for labels, P^ being the shares of what was seen, smoothed: `LabelLaw`.

    Steps at every h count together. An action that was never tried counts for the least that the remaining
    steps can pay; a state in which an episode was seen to end is never left.
    """

    def plan(self, request: PlanRequest) -> list[Any]:
        model = request.used_model
        if not needs_no_kernel(model):
            raise ValueError(
                "CountingPlanner counts all steps together: use a Model(..., pooled=True) whose kernel is "
                f"rf.kernels.Delta() or rf.AutoKernel(), and which is not timed, got {model!r:.200}"
            )
        check_counts_on(request.placement.device, "CountingPlanner")
        plan = _plan_finite if isinstance(request.data, Transitions) else _plan_world
        shares = zip(request.rewards, parts(request.tell, len(request.rewards)), strict=True)
        return [plan(self, replace(request, tell=tell), reward) for reward, tell in shares]


def needs_no_kernel(model: Model) -> bool:
    """Whether shares of visits may stand for its estimate: all steps together, and no kernel was chosen."""
    return model.pooled and not model.timed and isinstance(model.kernel, Delta | AutoKernel)


def _plan_finite(planner: CountingPlanner, request: PlanRequest, reward: Any) -> FinitePlan:
    run, horizon = request.data, request.steps
    assert isinstance(run, Transitions)
    kept, (_, a) = run.kept, run.grid.shape
    ends = np.flatnonzero(states_that_end(run))
    there, tried = np.repeat(ends, a), np.tile(np.arange(a), len(ends))  # as if it had been tried once
    columns = [
        np.concatenate([column[kept], more])
        for column, more in ((run.state, there), (run.action, tried), (run.next_state, there))
    ]
    samples = Samples(columns[0], columns[1], columns[2], np.zeros(len(columns[0]), bool))
    law = LabelLaw.of(run.grid.shape, samples).smoothed()
    tabled = TabledReward(reward, run.grid, horizon)
    state, action = np.divmod(law.pair, a)

    def expected(h: int) -> Any:
        table = tabled.at(h)
        if tabled.uses_next:
            return law.expected(table[state, action, law.next_state])
        return table.reshape(-1)

    low, high = (np.broadcast_to(end, horizon) for end in tabled.ends)
    discount = request.counted_discount
    least, _ = remaining_range(low, high, discount)
    tables = _backward(law, expected, least, discount, request.tell)
    return FinitePlan(run.grid, horizon, planner, None, int(kept.sum()), discount, *tables)


def _plan_world(planner: CountingPlanner, request: PlanRequest, reward: Any) -> LabelPlan:
    data, horizon, discount = request.data_with_ends, request.steps, request.counted_discount
    assert isinstance(data, Experience)
    spaces = data.spaces
    if not isinstance(spaces.state, Discrete) or not isinstance(spaces.action, Discrete):
        raise ValueError(
            f"CountingPlanner is for labels, and {', '.join(spaces.state.names)} are real variables: "
            "use DynamicsPlanner() or Mean()"
        )
    law = LabelLaw.of((spaces.state.n, spaces.action.n), data.at(np.flatnonzero(data.kept))).smoothed()
    function = RewardFunction(reward, spaces)
    state, action = np.divmod(law.pair, spaces.action.n)
    steps = range(horizon if function.uses_step else 1)
    paid = [function(h, state, action, law.next_state) for h in steps]
    low, high = (np.broadcast_to([end(r, initial=0.0) for r in paid], horizon) for end in (np.min, np.max))
    least, _ = remaining_range(low, high, discount, may_end=True)
    actions, values = _backward(
        law, lambda h: law.expected(paid[h if len(paid) > 1 else 0]), least, discount, request.tell
    )
    return LabelPlan(
        **request.header(planner, model=None),
        horizon=horizon,
        transitions=int(data.kept.sum()),
        text=function.text,
        actions=actions,
        values=values,
        returns=_ends_of_returns(law, paid, least, actions, discount),
    )


def _ends_of_returns(
    law: LabelLaw, paid: list[Any], least: Floats, actions: Integers, discount: float
) -> tuple[float, float]:
    """The least and the largest return of a policy (h,s) along outcomes that were seen.

    Not what the steps can pay at most, H times the largest reward: a prize that is won once would be hidden.
    """
    first = np.flatnonzero(np.diff(law.pair, prepend=-1))  # outcomes are in the order of their pairs
    tried, (s, a) = law.pair[first], law.shape
    ends = []
    for extreme in (np.minimum, np.maximum):
        later = np.zeros(s)
        for h in reversed(range(len(least))):
            reward = paid[h if len(paid) > 1 else 0]
            outcome = bellman_q(reward, until_end(later[law.next_state], law.ended), discount)
            of_pair = np.full(s * a, least[h])
            of_pair[tried] = extreme.reduceat(outcome, first)
            later = of_pair.reshape(s, a)[np.arange(s), actions[h]]
        ends.append(float(extreme.reduce(later)))
    return ends[0], ends[1]


def _backward(
    law: LabelLaw, expected: Callable[[int], Any], least: Floats, discount: float, tell: Tell
) -> tuple[Integers, Floats]:
    """The actions and values (h,s) for expected rewards (z,) by step, and the least that can come (h,)."""
    horizon, (s, a) = len(least), law.shape
    actions, values = np.zeros((horizon, s), np.int64), np.zeros((horizon, s))
    going, untried, value = law.going, law.visits == 0, np.zeros(s)
    for h in reversed(range(horizon)):
        q = bellman_q(expected(h), going @ value, discount)
        q = np.where(untried, least[h], q).reshape(s, a)
        actions[h], value = argmax_tied(q), q.max(axis=1)
        values[h] = value
        tell(1.0 - h / horizon)
    return actions, values
