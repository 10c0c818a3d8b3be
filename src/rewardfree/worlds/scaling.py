"""How features are scaled before a kernel sees them, and models whose kernel belongs to such features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rewardfree.arrays import as_array, check_finite, check_kind
from rewardfree.kernels.fitting import on_bounds
from rewardfree.model import Model
from rewardfree.worlds.spaces import Box, Space, Spaces
from rewardfree.worlds.state_change import StateChange

#: The most points that the kernel that looks behind walls is fitted to.
FIRST_POINTS = 300


class TransitionColumns(Protocol):
    """Columns of n transitions."""

    @property
    def state(self) -> Any: ...
    @property
    def action(self) -> Any: ...
    @property
    def next_state(self) -> Any: ...
    @property
    def episode(self) -> Any:
        """(n,) int, -1 for queries; None where nobody knows."""


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
        samples: TransitionColumns,
        open_ends: bool = False,
        behind_walls: bool = True,
    ) -> ScaledModel:
        """An automatic model gets kernel and ridge from these transitions, on standardised features.

        It looks behind walls for the dynamics, whose predictions are cut at the bounds. A regression of
        values must see the walls: V(s') bends where s' does.
        """
        if not model.automatic:
            return cls.of_bounds(spaces, model, open_ends)
        features = spaces.features(samples.state, samples.action)
        scaling = Scaling.of_data(features)
        points, groups, episode = scaling(features), spaces.groups, samples.episode
        change = StateChange.of(spaces, samples.state, samples.next_state)
        if behind_walls and change.meets_walls:
            free = change.free
            known = None if episode is None else episode[free]
            first = model.at_most(FIRST_POINTS).fitted(points[free], change.targets[free], groups, known)
            change = change.behind_walls(first, points)
        return cls(model.fitted(points, change.targets, groups, episode), scaling)

    @property
    def on_bounds(self) -> tuple[str, ...]:
        """The parameters of a fit that sit on a bound which matters; one that a user fixed has none."""
        assert self.model.ridge is not None
        return on_bounds(self.model.fixed, self.model.ridge)

    def check(self, spaces: Spaces) -> None:
        """Refuse what cannot be a fit on these spaces, in what comes from a file."""
        check_kind(self.model, Model, "the fitted model", "a rewardfree Model")
        size = len(spaces.groups)
        for name in ("centre", "scale"):
            values = as_array(getattr(self.scaling, name), f"the scaling's {name}")
            check_finite(values, f"the scaling's {name}")
            if values.shape != (size,):
                raise ValueError(f"the scaling's {name} must have {size} features, got shape {values.shape}")
        if not (self.scaling.scale > 0.0).all():
            raise ValueError(f"the scaling's scale must be positive, got {self.scaling.scale.min()}")
        self.model.fixed.checked(np.zeros((1, size)), "features")

    def inputs(self, spaces: Spaces, state: Any, action: Any) -> Any:
        """What the kernel sees of states (n,d) and actions, (n,f)."""
        return self.scaling(spaces.features(state, action))
