"""Alg 1: plan with the estimate and a bonus, on finite worlds and on real states alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from rewardfree.arrays import check_fields, non_negative
from rewardfree.data import Experience
from rewardfree.estimates.backups import remaining_range
from rewardfree.planning.planner import Planner, PlanRequest
from rewardfree.registry import registered
from rewardfree.rewards import check_unit_range
from rewardfree.ties import Ties, check_ties

#: The range that values are clipped to: [0, H], or the least and the most that the remaining steps can pay.
Clip: TypeAlias = Literal["paper", "range"]


class ValuePlanner(Planner):
    """Q_h = clip(r_h + mean_h[V_{h+1}] +- min(beta sigma_h, H), 0, H), for rewards in [0,1].

    With `clip="range"` for any reward: clipped to the least and the most that the remaining steps can pay,
    (H-h) min r and (H-h) max r for h from 0, and the bonus to their difference.
    """

    beta: float
    ties: Ties
    clip: Clip
    #: Whether it plans as is written here; a subclass with a way of its own does not.
    is_alg1: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        cls.is_alg1 = cls.is_alg1 and not {"plan", "plan_runs"} & vars(cls).keys()

    def __post_init__(self) -> None:
        check_fields(self, beta=non_negative)
        check_ties(self.ties)
        if self.clip not in ("paper", "range"):
            raise ValueError(f'clip must be "paper" or "range", got {self.clip!r}')

    @property
    def by_values(self) -> ValuePlanner | None:
        return self if self.is_alg1 else None

    @property
    @abstractmethod
    def weight(self) -> float:
        """The factor on sigma: beta with its sign."""

    def plan(self, request: PlanRequest) -> list[Any]:
        if isinstance(request.data, Experience):
            from rewardfree.planning.sampled import plan_sampled

            return plan_sampled(self, request)
        return self.plan_runs([request])[0]

    def plan_runs(self, requests: Sequence[PlanRequest]) -> list[list[Any]]:
        from rewardfree.planning.finite import plan_finite

        return plan_finite(self, requests)

    def check_rewards(self, low: float, high: float, may_end: bool = False) -> None:
        """Refuse rewards outside [0,1] where values are clipped to [0,H]."""
        if self.clip == "paper":
            check_unit_range(low, high, self, may_end)

    def limits(
        self, low: Any, high: Any, discount: float = 1.0, may_end: bool = False
    ) -> Callable[[int], tuple[Any, Any]]:
        """The range of V_h, numbers or arrays (...), by h; for rewards in low..high (...,h)."""
        H = high.shape[-1]
        if self.clip == "paper":
            return lambda h: (0.0, float(H))
        lowest, highest = remaining_range(low, high, discount, may_end)
        return lambda h: (lowest[..., h], highest[..., h])


@registered("planner", "optimistic")
@dataclass(frozen=True)
class Optimistic(ValuePlanner):
    """Alg 1: Q_h = clip(r_h + mean_h[V_{h+1}] + min(beta sigma_h, H), 0, H)."""

    beta: float
    ties: Ties = "lowest"
    clip: Clip = "paper"

    @property
    def weight(self) -> float:
        return self.beta


@registered("planner", "mean")
@dataclass(frozen=True)
class Mean(ValuePlanner):
    """Alg 1 without a bonus, as `Optimistic(0)`: plan as if the estimate were the truth."""

    ties: Ties = "lowest"
    clip: Clip = "paper"
    beta: ClassVar[float] = 0.0  # type: ignore[misc]

    @property
    def weight(self) -> float:
        return 0.0


@registered("planner", "pessimistic")
@dataclass(frozen=True)
class Pessimistic(ValuePlanner):
    """The lower bound instead of the upper one: what was never tried counts for little."""

    beta: float
    ties: Ties = "lowest"
    clip: Clip = "paper"

    @property
    def weight(self) -> float:
        return -self.beta
