"""How long to explore: a budget in one of four units, and other limits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rewardfree.arrays import count, positive
from rewardfree.model import Model

#: The largest budget; a larger one is taken for a typing error.
LARGEST_BUDGET = 10**12
UNITS = ("samples_per_step", "transitions", "episodes", "steps")


@dataclass(frozen=True)
class Budget:
    """`size` in one unit: samples in the design of each step, transitions in the pooled design, episodes, or
    environment steps (a generative query is one step)."""

    unit: str
    size: int

    @classmethod
    def of(cls, model: Model, offered: tuple[str, ...] = UNITS, **sizes: Any) -> Budget:
        """The one budget in `sizes` that is not None. It must be in a unit that suits the model."""
        given = {unit: size for unit, size in sizes.items() if size is not None}
        if model.pooled:
            right, wrong, reason = "transitions", "samples_per_step", "a pooled model has one design"
        else:
            right, wrong, reason = "samples_per_step", "transitions", "this model has a design for each step"
        if wrong in given:
            raise ValueError(f"{reason}: use {right}= instead of {wrong}=")
        if len(given) != 1:
            got = ", ".join(f"{unit}={size}" for unit, size in given.items()) or "none"
            names = [f"{unit}=" for unit in offered if unit != wrong]
            choices = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            raise ValueError(f"give exactly one budget of {choices}, got {got}")
        ((unit, size),) = given.items()
        return cls(unit, count(size, unit, at_most=LARGEST_BUDGET))


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
        """Limits from the arguments of `explore`."""
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
