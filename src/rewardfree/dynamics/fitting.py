"""A kernel, a ridge and a scaling for transitions: found, or as a user fixed them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardfree.data import Fitted
from rewardfree.model import Model
from rewardfree.worlds.scaling import Scaling
from rewardfree.worlds.spaces import Box, Spaces


def targets_of(spaces: Spaces, state: Any, following: Any) -> tuple[Any, Any, Any]:
    """What a regression of the dynamics learns, (n,c), with the middle and unit that were taken out.

    The state change of real variables; of labels, the features of the next one.
    """
    if isinstance(spaces.state, Box):
        raw = spaces.state.change(state, following)
    else:
        raw = spaces.state.features(following)
    spread, middle = raw.std(axis=0), raw.mean(axis=0)
    unit = np.where(spread > 0.0, spread, 1.0)
    return (raw - middle) / unit, middle, unit


def fitted_to(
    spaces: Spaces, model: Model, state: Any, action: Any, following: Any, open_ends: bool = False
) -> Fitted:
    """Kernel and ridge by `AutoKernel` on standardised features; a fixed kernel sees bounds as [0, 1]."""
    if not model.automatic:
        return Fitted(model, Scaling.of_bounds(spaces, open_ends))
    raw = spaces.features(state, action)
    scaling = Scaling.of_data(raw)
    targets, _, _ = targets_of(spaces, state, following)
    return Fitted(model.fitted(scaling(raw), targets, spaces.groups), scaling)
