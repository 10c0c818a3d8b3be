"""One number of the theory, with the form of its formula, its assumptions, and whether it says anything."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One quantity of the theory. If `value` is None there is no such number, and `sentence` says why."""

    name: str
    reading: str  # the form of the formula: printed, corrected, ...
    value: float | None
    assumptions: tuple[str, ...]
    vacuous: bool
    sentence: str
