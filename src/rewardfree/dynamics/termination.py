"""Where episodes end: as a function says, or as the nearest state seen did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.arrays import check_finite
from rewardfree.rewards import ends_of, for_each
from rewardfree.worlds import Scaling, Space, Spaces

#: Squares of what is farther away would be infinite, and nothing would be near.
FAR = 1e100


def nearest(tree: Any, points: Any, count: int = 1) -> Any:
    """The nearest points of a k-d tree to points (n,f), (n,) or (n,count)."""
    _, indices = tree.query(np.clip(points, -FAR, FAR), k=count)
    return indices


class ObservedTermination:
    """A state ends an episode if the nearest next state seen did; distances in standardised features."""

    def __init__(self, space: Space, next_state: Any, terminated: Any) -> None:
        self.space, self.next_state, self.terminated = space, next_state, terminated
        from scipy.spatial import cKDTree  # here, as in MeshDynamics: importing it takes its time

        features = space.features(next_state)
        self._scaling = Scaling.of_data(features)
        self._tree = cKDTree(self._scaling(features)) if terminated.any() else None

    def __call__(self, state: Any) -> Any:
        """Whether states (n,d) are ends, (n,) bool."""
        if self._tree is None:
            return np.zeros(len(state), bool)
        return self.terminated[nearest(self._tree, self._scaling(self.space.features(state)))]


class GivenTermination:
    """A user's own function of states (n,d), checked; `text` if it was a formula."""

    def __init__(self, space: Any, function: Callable[[Any], Any], text: str | None = None) -> None:
        self.space, self.function, self.text = space, function, text

    @classmethod
    def of(cls, terminated: Any, spaces: Spaces) -> GivenTermination:
        """From a function or a formula, as a user gives it."""
        return cls(spaces.state, *ends_of(terminated, spaces))

    def __call__(self, state: Any) -> Any:
        ended = np.asarray(for_each(self.function, self.space.wrapped(state)))
        if ended.dtype.kind == "f":
            check_finite(ended, "what terminated(state) returns")
        if ended.shape != (len(state),):
            raise ValueError(
                f"terminated(state) must return ({len(state)},) for {len(state)} states, got {ended.shape}"
            )
        return ended.astype(bool)
