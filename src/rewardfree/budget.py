"""How long to explore: a budget in one of four units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewardfree.arrays import count
from rewardfree.model import Model

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
        return cls(unit, count(size, unit))
