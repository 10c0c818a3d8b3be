"""What a theorem gives: a number, the reading behind it, and whether it says anything."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One quantity of the theory. `value` None: there is no such number, and `sentence` says why."""

    name: str
    reading: str  # which form of the formula: as printed, corrected, ...
    value: float | None
    assumptions: tuple[str, ...]
    vacuous: bool
    sentence: str
