"""Plans for one reward, compared by their returns inside the model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.dynamics import MeshDynamics
from rewardfree.planning.mesh.imagined import imagined_returns
from rewardfree.planning.mesh.plan import MeshPlan
from rewardfree.planning.mesh.preparation import Preparation
from rewardfree.planning.mesh.values import MeshValues, value_iteration
from rewardfree.rewards import RewardFunction

#: A plan that looks far ahead takes its time: it is tried from fewer first states.
DEEP, FEW_STARTS = 3, 4


@dataclass(frozen=True, eq=False)
class TriedPlan:
    """A plan, its returns (k,) inside the model, and the states (n,d) that it meets there."""

    plan: MeshPlan
    returns: Any
    met: Any


def better(one: TriedPlan, other: TriedPlan) -> TriedPlan:
    """The one with the larger mean return from the starts that both were tried from; the first of equals."""
    both = min(len(one.returns), len(other.returns))
    return other if other.returns[:both].mean() > one.returns[:both].mean() else one


class Search:
    """Tries plans for one reward. `counted` is the discount that returns are counted with."""

    def __init__(
        self,
        preparation: Preparation,
        reward: RewardFunction,
        horizon: int | None,
        counted: float,
        starts: Any,
    ) -> None:
        self.preparation, self.reward, self.horizon = preparation, reward, horizon
        self.counted, self.starts = counted, starts

    def best(self, on_mesh: MeshDynamics, depth: int, discounts: tuple[float, ...]) -> TriedPlan:
        """The best of some discounts on one mesh."""
        rewards, changing = self._rewards_on(on_mesh), self.reward.uses_step
        values = [
            value_iteration(on_mesh, rewards, self.horizon, discount, changing) for discount in discounts
        ]
        return functools.reduce(better, self.tried(on_mesh, values, depth))

    def tried(self, on_mesh: MeshDynamics, values: Sequence[MeshValues], depth: int) -> list[TriedPlan]:
        """Plans with what they gain inside the model, and the states they meet."""
        plans = [self._plan(on_mesh, one, depth) for one in values]
        starts = self.starts if depth <= DEEP else self.starts[:FEW_STARTS]
        outcomes = imagined_returns(plans, starts, self.counted)
        return [TriedPlan(plan, *outcome) for plan, outcome in zip(plans, outcomes, strict=True)]

    def is_perfect(self, best: TriedPlan) -> bool:
        """Whether every step gains the largest reward that there is: nothing can be better."""
        if self.horizon is None or self.reward.uses_step:
            return False
        if self._largest < 0.0:  # an episode that ends sooner may lose less
            return False
        most = self._largest * float(np.sum(self.counted ** np.arange(self.horizon)))
        return bool(best.returns.mean() >= most - 1e-9 * most)

    @functools.cached_property
    def _largest(self) -> float:
        """The largest reward on the first mesh."""
        return float(self._rewards_on(self.preparation.on_mesh)(0).max())

    def _rewards_on(self, on_mesh: MeshDynamics) -> Callable[[int], Any]:
        """r_h at every action and node, averaged over what may follow."""
        outcomes = on_mesh.outcomes if self.reward.uses_next else on_mesh.outcomes[:1]

        def at(h: int) -> Any:
            rewards = [self.reward(h, *on_mesh.pairs, next_state) for next_state in outcomes]
            return sum(rewards) / len(rewards)

        return at

    def _plan(self, on_mesh: MeshDynamics, values: MeshValues, depth: int) -> MeshPlan:
        preparation = self.preparation
        return MeshPlan(
            spaces=preparation.spaces,
            observation=preparation.observation,
            horizon=self.horizon,
            planner=preparation.planner,
            provenance=preparation.provenance,
            model=preparation.dynamics.model,
            transitions=len(preparation.dynamics.points),
            reward=self.reward,
            on_mesh=on_mesh,
            mesh_values=values,
            depth=1 if on_mesh.noisy else depth,
            expected=0.0,
        )
