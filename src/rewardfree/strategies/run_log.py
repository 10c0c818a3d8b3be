"""The environment steps of a run as they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewardfree.data import COLUMNS, Experience, Row
from rewardfree.worlds.spaces import Box, Space, Spaces


@dataclass
class RunLog:
    """A row for each step, and the first states that were seen."""

    rows: list[Row] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, data: Experience) -> RunLog:
        """What was recorded before."""
        columns = zip(*(getattr(data, name) for name in COLUMNS), strict=True)
        return cls([Row(*row) for row in columns], list(data.starts))

    def columns(self, spaces: Spaces) -> dict[str, Any]:
        """The columns of an `Experience`, and its starts."""
        state, action = _form(spaces.state), _form(spaces.action)
        whole: tuple[Any, tuple[int, ...]] = (np.int64, ())
        flag: tuple[Any, tuple[int, ...]] = (bool, ())
        columns: dict[str, Any] = {}
        forms = (whole, whole, state, action, state, flag, flag)
        for i, (name, (kind, shape)) in enumerate(zip(COLUMNS, forms, strict=True)):
            column = np.array([row[i] for row in self.rows], kind).reshape(len(self.rows), *shape)
            column.flags.writeable = False
            columns[name] = column
        kind, shape = state
        return {**columns, "starts": np.array(self.starts, kind).reshape(len(self.starts), *shape)}


def _form(space: Space) -> tuple[Any, tuple[int, ...]]:
    """The type of a value of a space, and its shape."""
    return (np.float64, (space.size,)) if isinstance(space, Box) else (np.int64, ())
