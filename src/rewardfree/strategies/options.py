"""Checks of the options that strategies share."""

from __future__ import annotations

from typing import Any

from rewardfree.arrays import non_negative
from rewardfree.ties import check_ties


def check_explorer(strategy: Any) -> None:
    """Refuse a negative beta and unknown rules."""
    if hasattr(strategy, "beta"):
        object.__setattr__(strategy, "beta", non_negative(strategy.beta, "beta"))
    check_ties(strategy.ties)
    if getattr(strategy, "empty", "zero") not in ("zero", "prior"):
        raise ValueError(f'empty must be "zero" or "prior", got {strategy.empty!r}')
    if not isinstance(getattr(strategy, "fresh", False), bool):
        raise ValueError(f"fresh must be True or False, got {strategy.fresh!r}")
