"""Data from a file, whatever kind of world they came from."""

import os
from pathlib import Path

from rewardfree.data.experience import Experience
from rewardfree.data.transitions import Transitions
from rewardfree.files import kind_of


def load(path: str | os.PathLike[str]) -> Experience | Transitions:
    """The data that `save` wrote; a damaged, foreign or newer file is refused."""
    if Path(path).suffix.lower() == ".csv":
        raise ValueError(f"{path} is a table of text: rf.Experience.from_csv reads it")
    kind = kind_of(path)
    if kind == Transitions.__name__:
        return Transitions.load(path)
    if kind.endswith("Plan"):
        raise ValueError(f"{path} holds a plan: use rf.load_plan")
    return Experience.load(path)  # which says what is wrong with any other
