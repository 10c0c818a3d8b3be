"""The rows of an exploration as they come, one for each environment step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewardfree.data import Experience
from rewardfree.worlds.spaces import Box, Space, Spaces

NAMES = ("episode", "h", "state", "action", "next_state", "terminated", "kept")


@dataclass
class Log:
    """Rows of (episode, h, s, a, s', terminated, kept), and the first states that were seen."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, data: Experience) -> Log:
        """What was recorded before."""
        return cls(list(zip(*(getattr(data, name) for name in NAMES), strict=True)), list(data.starts))

    def columns(self, spaces: Spaces) -> dict[str, Any]:
        """The columns of an `Experience`, and its starts."""
        state, action = _form(spaces.state), _form(spaces.action)
        whole: tuple[Any, tuple[int, ...]] = (np.int64, ())
        flag: tuple[Any, tuple[int, ...]] = (bool, ())
        found: dict[str, Any] = {}
        for i, (name, (kind, shape)) in enumerate(
            zip(NAMES, (whole, whole, state, action, state, flag, flag), strict=True)
        ):
            column = np.array([row[i] for row in self.rows], kind).reshape(len(self.rows), *shape)
            column.flags.writeable = False
            found[name] = column
        kind, shape = state
        return {**found, "starts": np.array(self.starts, kind).reshape(len(self.starts), *shape)}


def _form(space: Space) -> tuple[Any, tuple[int, ...]]:
    """The type of a value of a space, and its shape."""
    return (np.float64, (space.size,)) if isinstance(space, Box) else (np.int64, ())
