"""Bounds on the error of a value, E_h = clip(bonus(sigma_h) + growth mean_h[max E_{h+1}], 0, most)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def largest_errors(
    bonus: Callable[[Any], Any],
    prior: float,
    growth: float,
    most: Callable[[int], float],
    horizon: int,
) -> list[float]:
    """The bounds by steps to go, 0 to H, where nothing is known and sigma is `prior` everywhere."""
    found = [0.0]
    for to_go in range(1, horizon + 1):
        found.append(min(most(to_go), float(bonus(prior)) + growth * found[-1]))
    return found
