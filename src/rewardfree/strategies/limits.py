"""When an exploration of a continuous world ends."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rewardfree.arrays import positive
from rewardfree.budget import Budget
from rewardfree.model import Model


@dataclass(frozen=True)
class Limits:
    """A budget in one unit, seconds, or both; and perhaps a target on the largest sigma."""

    budget: Budget | None
    seconds: float | None = None
    max_sigma: float | None = None

    @classmethod
    def of(
        cls, model: Model, seconds: float | None, max_sigma: float | None, generative: bool, **sizes: Any
    ) -> Limits:
        """As a caller of `explore` gives them."""
        given = any(size is not None for size in sizes.values())
        if max_sigma is not None and not given and seconds is None:
            raise ValueError(
                "max_sigma= is a target that may never be met: give a budget beside it, such as steps="
            )
        budget = Budget.of(model, **sizes) if given or seconds is None else None
        if budget is not None and budget.unit == "episodes" and generative:
            raise ValueError("queries of a generative model belong to no episode: use steps= or transitions=")
        return cls(
            budget,
            None if seconds is None else positive(seconds, "seconds"),
            None if max_sigma is None else positive(max_sigma, "max_sigma"),
        )


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    @property
    def passed(self) -> float:
        return time.monotonic() - self._started
