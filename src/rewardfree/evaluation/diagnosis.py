"""Did exploration learn anything? What was covered, and how well the next state can be told from it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.data import Experience
from rewardfree.dynamics import Dynamics
from rewardfree.kernels.fitting import whole_parts
from rewardfree.worlds.spaces import Box

#: Held-out errors, as a share of a constant change's, up to which dynamics are predicted well, or partly.
WELL, PARTLY = 0.3, 0.7
#: A variable with bounds must have been seen over this share of them.
SEEN = 0.9
#: Of fewer transitions nothing can be told.
FEW = 50
#: Coverage counts cells of a tenth of what was seen in each variable.
CELLS = 10


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How well the state change is predicted in parts of the data left out, and what was covered."""

    names: tuple[str, ...]
    error: Any  # (d,) root mean square error over that of a constant change, each part left out in turn
    typical: Any  # (d,) the median error over a constant change's, each transition left out
    low: Any  # (d,) of the states seen
    high: Any  # (d,)
    span: Any  # (d,) share of the declared bounds; NaN where these are infinite
    cells: int  # of CELLS^d cells between low and high, how many were visited
    noise: float  # share of the state change's variance that the fit takes for noise
    ends: int  # transitions that ended an episode
    transitions: int

    @property
    def verdict(self) -> str:
        """Well, partly, not yet or cannot tell, and why; by what is known least. It says nothing of plans."""
        if self.transitions < FEW:
            return f"cannot tell: {self.transitions} transitions are too few; explore at least {FEW}"
        worst = int(np.argmax(self.error))
        share, name = float(self.error[worst]), self.names[worst]
        left_out = f"{share:.0%} of a constant change's error in parts of the data left out"
        if share > PARTLY:
            return f"not yet: {name} has {left_out}; explore more, or its changes are random"
        if share > WELL:
            return f"partly: {name} has {left_out}; explore more"
        if np.isnan(self.span).all():
            return f"partly: {name} has {left_out}; no variable has bounds, so what was not seen is unknown"
        least = int(np.nanargmin(self.span))
        seen = f"{self.names[least]} was seen over {self.span[least]:.0%} of its bounds"
        if self.span[least] < SEEN:
            return f"partly: what was seen is predicted, but {seen}; explore more if the rest can be reached"
        return f"well: {name}, which is known least, has {left_out}, and {seen}"


def diagnose(data: Experience) -> Diagnosis:
    """What these data say about the dynamics: what they predict where they were left out, and their range."""
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
        error=dynamics.held_out(samples, whole_parts(samples.episode)),
        typical=np.where(usual > 0.0, missed / np.where(usual > 0.0, usual, 1.0), 0.0),
        low=low,
        high=high,
        span=np.where(np.isfinite(bounds), (high - low) / bounds, np.nan),
        cells=len(np.unique(places, axis=0)),
        noise=dynamics.noise,
        ends=int(data.terminated.sum()),
        transitions=len(rows),
    )
