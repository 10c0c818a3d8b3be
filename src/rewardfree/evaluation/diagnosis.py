"""Did exploration learn anything? What was covered, and how well the next state can be told from it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.data import Experience
from rewardfree.dynamics import Dynamics
from rewardfree.worlds.spaces import Box

#: Held-out errors, as a share of a constant predictor's, below which dynamics are called known or in part.
KNOWN, PARTLY = 0.1, 0.7
#: Coverage counts cells; the range of each variable has this many.
CELLS = 10


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How well the state change is predicted at transitions left out, and what was covered."""

    names: tuple[str, ...]
    error: Any  # (d,) root mean square error over that of a constant change, each transition left out
    typical: Any  # (d,) the same for the median instead of the mean square: what most states see
    low: Any  # (d,) of the states seen
    high: Any  # (d,)
    span: Any  # (d,) share of the declared bounds; NaN where these are infinite
    cells: int  # of CELLS^d cells between low and high, how many were visited
    noise: float  # share of the state change's variance that the fit takes for noise
    ends: int  # transitions that ended an episode

    @property
    def verdict(self) -> str:
        """In plain words, by the typical error of the variable that is known least."""
        worst = int(np.argmax(self.typical))
        share, name = float(self.typical[worst]), self.names[worst]
        if share <= KNOWN:
            return f"learned: the next state is known, {name} least, to {share:.2%} of a constant's error"
        if share <= PARTLY:
            return f"learned in part: {name} is known to {share:.0%} of a constant's error; explore more"
        return f"learned nothing of {name}: a constant change is as good ({share:.0%}); explore elsewhere"


def diagnose(data: Experience) -> Diagnosis:
    """What these data say about the dynamics; each transition is predicted from all others."""
    space = data.spaces.state
    if not isinstance(space, Box):
        raise ValueError("labels have no state change to predict: data of real states are wanted")
    rows = np.flatnonzero(data.kept)
    if len(rows) < 3:
        raise ValueError(f"at least three transitions are needed, got {len(rows)}")
    samples = data.at(rows)
    dynamics = Dynamics.learn(data.spaces, data.model, samples, data.fitted)
    change = space.change(samples.state, samples.next_state)
    constant = change - np.median(change, axis=0)
    usual = np.median(np.abs(constant), axis=0)
    missed = np.median(np.abs(dynamics.residuals), axis=0)
    seen = space.wrapped(np.concatenate([samples.state, samples.next_state]))
    low, high = seen.min(axis=0), seen.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    places = np.minimum(((seen - low) / width * CELLS).astype(np.int64), CELLS - 1)
    bounds = np.array(space.high) - np.array(space.low)
    return Diagnosis(
        names=space.names,
        error=dynamics.held_out(),
        typical=np.where(usual > 0.0, missed / np.where(usual > 0.0, usual, 1.0), 0.0),
        low=low,
        high=high,
        span=np.where(np.isfinite(bounds), (high - low) / bounds, np.nan),
        cells=len(np.unique(places, axis=0)),
        noise=dynamics.noise,
        ends=int(data.terminated.sum()),
    )
