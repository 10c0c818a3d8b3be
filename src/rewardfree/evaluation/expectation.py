"""Whether episodes that were played return what a plan expects of the same first states."""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from rewardfree.arrays import Floats, States
from rewardfree.doubts import MissedReturn, doubt
from rewardfree.planning import Plan

#: The fewest episodes that are evidence.
LEAST = 3
#: The missing return must be this share of the returns' own size, and beyond chance at this level.
SHARE, LEVEL = 0.25, 0.95


def doubt_return(plan: Plan, reward: Any, starts: States, returns: Floats, discount: float) -> None:
    """Warn if episodes (e,) from first states (e,...) return less than the plan expects of the same states.

    Differences are paired, so that what differs between first states is no chance: mean (x - y) below
    -t s / sqrt(e), Student's t at `LEVEL`, and below -`SHARE` of the larger mean. s is at least what the plan
    says of the spread: of few episodes none may show that rarely one gains much.
    """
    if len(returns) < LEAST or (said := plan.expects(reward, starts, discount)) is None:
        return
    expected, spread = said
    n = len(expected)
    played = returns[:n]
    missing = expected - played
    error = max(float(missing.std(ddof=1)), float(np.sqrt((spread**2).mean()))) / n**0.5
    size = max(abs(float(expected.mean())), abs(float(played.mean())))
    if missing.mean() > max(SHARE * size, float(stdtrit(n - 1, LEVEL)) * error):
        doubt(
            MissedReturn,
            f"{n} episodes returned {played.mean():.4g} where the plan's model says {expected.mean():.4g} "
            "from the same first states: the model is wrong where the plan goes; explore more and plan again",
            plan,
        )
