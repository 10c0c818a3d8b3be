"""A model with kernel and ridge for one data set, and the scaling of the features that belongs to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.model import Model
from rewardfree.worlds.scaling import Scaling
from rewardfree.worlds.spaces import Box, Spaces


@dataclass(frozen=True, eq=False)
class ScaledModel:
    """A model with a fixed kernel, and the scaling of the features that this kernel sees."""

    model: Model
    scaling: Scaling

    @classmethod
    def of_bounds(cls, spaces: Spaces, model: Model, open_ends: bool = False) -> ScaledModel:
        """A model whose kernel a user fixed; it sees every variable on [0, 1]: see `Scaling.of_bounds`."""
        return cls(model, Scaling.of_bounds(spaces, open_ends))

    @classmethod
    def fit(
        cls,
        spaces: Spaces,
        model: Model,
        state: Any,
        action: Any,
        next_state: Any,
        open_ends: bool = False,
    ) -> ScaledModel:
        """An automatic model gets kernel and ridge from these transitions, on standardised features."""
        if not model.automatic:
            return cls.of_bounds(spaces, model, open_ends)
        features = spaces.features(state, action)
        scaling = Scaling.of_data(features)
        targets, _, _ = change_targets(spaces, state, next_state)
        return cls(model.fitted(scaling(features), targets, spaces.groups), scaling)

    def inputs(self, spaces: Spaces, state: Any, action: Any) -> Any:
        """What the kernel sees of states (n,d) and actions, (n,f)."""
        return self.scaling(spaces.features(state, action))


def change_targets(spaces: Spaces, state: Any, next_state: Any) -> tuple[Any, Any, Any]:
    """The targets (n,c) of a regression of the dynamics, standardised, with their mean and unit.

    Targets are the change of real variables; of labels, the features of the next label.
    """
    if isinstance(spaces.state, Box):
        change = spaces.state.change(state, next_state)
    else:
        change = spaces.state.features(next_state)
    spread, middle = change.std(axis=0), change.mean(axis=0)
    unit = np.where(spread > 0.0, spread, 1.0)
    return (change - middle) / unit, middle, unit
