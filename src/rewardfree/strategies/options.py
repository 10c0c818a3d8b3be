"""Checks of the options that strategies and planners share."""

from __future__ import annotations

from typing import Any

from rewardfree.arrays import non_negative
from rewardfree.ties import check_ties


def check_options(chosen: Any) -> None:
    """Refuse a negative beta and unknown rules; beta becomes a float."""
    given = vars(chosen)
    if "beta" in given:
        object.__setattr__(chosen, "beta", non_negative(given["beta"], "beta"))
    check_ties(chosen.ties)
    if given.get("empty", "zero") not in ("zero", "prior"):
        raise ValueError(f'empty must be "zero" or "prior", got {given["empty"]!r}')
    if not isinstance(given.get("fresh", False), bool):
        raise ValueError(f"fresh must be True or False, got {given['fresh']!r}")
