"""How long to explore: one of four budgets, each counted in its own unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewardfree.arrays import count
from rewardfree.model import Model

UNITS = ("samples_per_step", "transitions", "episodes", "steps")


@dataclass(frozen=True)
class Budget:
    """`size` of one unit: samples in the design of each step, samples in the pooled design, episodes, or
    environment steps (a generative query is one)."""

    unit: str
    size: int

    @classmethod
    def of(cls, model: Model, offered: tuple[str, ...] = UNITS, **sizes: Any) -> Budget:
        """The one budget that was given, of those that a caller offers, if it is one for this model."""
        given = {unit: size for unit, size in sizes.items() if size is not None}
        own, foreign = (
            ("transitions", "samples_per_step") if model.pooled else ("samples_per_step", "transitions")
        )
        if foreign in given:
            kind = (
                "a pooled model has one design" if model.pooled else "this model has a design for each step"
            )
            raise ValueError(f"{kind}: use {own}= instead of {foreign}=")
        if len(given) != 1:
            came = ", ".join(f"{unit}={size}" for unit, size in given.items()) or "none"
            names = [f"{unit}=" for unit in offered if unit != foreign]
            wanted = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            raise ValueError(f"give exactly one budget of {wanted}, got {came}")
        ((unit, size),) = given.items()
        return cls(unit, count(size, unit))
