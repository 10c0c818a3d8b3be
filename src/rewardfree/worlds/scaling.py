"""How features are scaled before a kernel sees them; the scaling is stored with the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.worlds.spaces import Box, Space, Spaces


@dataclass(frozen=True, eq=False)
class Scaling:
    """What features are shifted and divided by."""

    centre: Any  # (f,)
    scale: Any  # (f,)

    @classmethod
    def of_data(cls, features: Any) -> Scaling:
        """Mean 0 and variance 1 over data (n,f); a feature that does not vary is only shifted."""
        spread = features.std(axis=0)
        still = spread <= 1e-12 * np.maximum(1.0, np.abs(features).max(axis=0))
        return cls(features.mean(axis=0), np.where(still, 1.0, spread))

    @classmethod
    def of_bounds(cls, spaces: Spaces, open_ends: bool = False) -> Scaling:
        """Every variable on [0, 1] by its bounds, also cos and sin; coordinates of labels as they are.

        For kernels that a user fixed: a lengthscale must mean the same while data grow. A variable without
        bounds is refused; with `open_ends` it is left as it is.
        """
        parts = [_unit(spaces.state, open_ends), _unit(spaces.action, open_ends)]
        return cls(*(np.concatenate(ends) for ends in zip(*parts, strict=True)))

    def __call__(self, features: Any) -> Any:
        return (features - self.centre) / self.scale


def feature_bounds(spaces: Spaces) -> tuple[Any, Any]:
    """The lowest and the highest value that each feature can have before scaling, (f,)."""
    parts = [_ends(spaces.state, "a partition of space"), _ends(spaces.action, "a partition of space")]
    low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    return low, high


def _unit(space: Space, open_ends: bool) -> tuple[Any, Any]:
    if not isinstance(space, Box):
        size = len(space.groups)
        return np.zeros(size), np.ones(size)
    low, high = _ends(space, None if open_ends else "a kernel that is fixed")
    closed = np.isfinite(low) & np.isfinite(high)
    return np.where(closed, low, 0.0), np.subtract(high, low, out=np.ones(len(low)), where=closed)


def _ends(space: Space, what: str | None) -> tuple[Any, Any]:
    """The ends of every feature; `what` names who needs finite bounds, None if nobody does."""
    if not isinstance(space, Box):
        places = space.features(np.arange(space.n))
        return places.min(axis=0), places.max(axis=0)
    if what is not None:
        space.need_bounds(what)
    low, high = [], []
    for lowest, highest, angle in zip(space.low, space.high, space.angles, strict=True):
        low += [-1.0, -1.0] if angle else [lowest]
        high += [1.0, 1.0] if angle else [highest]
    return np.array(low), np.array(high)
