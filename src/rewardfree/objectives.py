"""What a look at a place is worth to an explorer, by the spread of its posterior there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from rewardfree.arrays import Array, namespace

Objective: TypeAlias = Literal["sigma", "variance", "information"]


def _sigma(sigma: Array, ridge: float) -> Array:
    return sigma


def _variance(sigma: Array, ridge: float) -> Array:
    return sigma * sigma


def _information(sigma: Array, ridge: float) -> Array:
    return 0.5 * namespace(sigma).log1p(sigma * sigma / ridge)


#: sigma: RF-UCRL's form; its square: RF-Express's; 1/2 log(1 + sigma^2/ridge): the information gained.
OBJECTIVES: dict[str, Callable[[Array, float], Array]] = {
    "sigma": _sigma,
    "variance": _variance,
    "information": _information,
}


def objective_named(name: Any) -> Callable[[Array, float], Array]:
    """A function of sigma and the ridge."""
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {name!r}")
    return OBJECTIVES[name]
