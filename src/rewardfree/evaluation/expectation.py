"""Whether episodes that were played return what a plan's own model says of the same first states."""

from typing import Any

from scipy.special import stdtrit

from rewardfree.arrays import Floats, States
from rewardfree.doubts import MissedReturn, doubt
from rewardfree.planning import Plan

#: The fewest episodes that are evidence, and the most to compare: more would cost as much as playing them.
LEAST_PLAYED, MOST_PLAYED = 3, 5
#: The missing return must be this share of the returns' own size, and beyond chance at this level.
SHARE, LEVEL = 0.25, 0.95


def doubt_return(plan: Plan, reward: Any, starts: States, returns: Floats, discount: float) -> None:
    """Warn if episodes (e,) from first states (e,d) return less than the model's own from the same states.

    Differences are paired by first state, so its effect cancels: mean (x - y) below -t s / sqrt(e), Student's
    t at `LEVEL`, and below -`SHARE` of the larger mean.
    """
    n = min(len(returns), MOST_PLAYED)
    imagined = None if n < LEAST_PLAYED else plan.returns_in_model(reward, starts[:n], discount)
    if imagined is None:
        return
    played = returns[:n]
    missing = imagined - played
    error = float(missing.std(ddof=1)) / n**0.5
    size = max(abs(float(imagined.mean())), abs(float(played.mean())))
    if missing.mean() > max(SHARE * size, float(stdtrit(n - 1, LEVEL)) * error):
        doubt(
            MissedReturn,
            f"{n} episodes returned {played.mean():.4g} where the plan's model says {imagined.mean():.4g} "
            "from the same first states: the model is wrong where the plan goes; explore more and plan again",
            plan,
        )
