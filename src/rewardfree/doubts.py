"""What a user should know before trusting data or a plan, as Python warnings: each says what to do."""

import sys
import warnings
from typing import Any
from weakref import WeakKeyDictionary


class Doubt(UserWarning):
    """Something computed is not to be trusted as it is; a subclass says why."""


class FitOnBounds(Doubt):
    """The fitted kernel or ridge sits on a bound on which it predicts nothing."""


class LargeError(Doubt):
    """Parts of the data that are left out are predicted hardly better than by a constant change."""


class ConstantReward(Doubt):
    """The reward is the same, or hardly differs, on everything that was seen: where it pays is a guess."""


class UnknownStates(Doubt):
    """Inside the model a plan goes to states far from all that was seen."""


class NoBetterThanRandom(Doubt):
    """Inside the model a plan gains no more than random actions do."""


class FallbackPlanner(Doubt):
    """The default planner could not lay a mesh over the states, and regressed values instead."""


class MissedReturn(Doubt):
    """Episodes that were played return less than the model says, beyond chance."""


class NoFirstStates(Doubt):
    """No episode of a table of text begins with its first step: where episodes begin is not known."""


class LeftOutColumns(Doubt):
    """Columns of a table of text that tell the time were not taken as states or actions."""


#: What was raised, each a kind and a part, by what it was about: data or a plan.
_raised: WeakKeyDictionary[Any, set[tuple[type[Doubt], str]]] = WeakKeyDictionary()


def doubt(kind: type[Doubt], message: str, about: Any = None, part: str = "") -> None:
    """Raise a warning at the line that called the package; once for each kind and thing that it is about.

    `part` tells apart what may be doubtful about one thing: one model of the data and another.
    """
    if about is not None:
        raised = _raised.setdefault(about, set())
        if (kind, part) in raised:
            return
        raised.add((kind, part))
    warnings.warn(message, kind, stacklevel=_levels())


def _levels() -> int:
    """How many frames up the caller of the package is."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "rewardfree":
        frame, levels = frame.f_back, levels + 1
    return levels
