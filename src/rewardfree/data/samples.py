"""Environment steps one by one, and some of them as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Row(NamedTuple):
    """One environment step."""

    episode: int  # from 0; -1 for a query of a generative model
    h: int
    state: Any
    action: Any
    next_state: Any
    terminated: bool
    kept: bool


#: One for each field of a `Row`.
COLUMNS = Row._fields


@dataclass(frozen=True, eq=False)
class Samples:
    """The transitions of n steps."""

    state: Any  # (n,d), labels (n,)
    action: Any  # (n,a), labels (n,)
    next_state: Any  # (n,d), labels (n,)
    terminated: Any  # (n,) bool
    episode: Any = None  # (n,) int, -1 for queries; None where nobody knows

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Samples:
        """The samples of some rows."""
        names = ("state", "action", "next_state", "terminated", "episode")
        return cls(*(np.array([getattr(row, name) for row in rows]) for name in names))

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, rows: Any) -> Samples:
        """Some of them."""
        columns = (self.state, self.action, self.next_state, self.terminated, self.episode)
        return Samples(*(None if column is None else column[rows] for column in columns))
