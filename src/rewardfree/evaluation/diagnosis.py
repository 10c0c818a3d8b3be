"""Did exploration learn anything? How well the next state is predicted, how much within reach was seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import counted
from rewardfree.data import Experience
from rewardfree.dynamics import Dynamics, ObservedTermination, reached
from rewardfree.kernels.fitting import whole_parts
from rewardfree.threads import one_blas_thread
from rewardfree.worlds import StateChange
from rewardfree.worlds.spaces import Box

#: Scores from which data are said to be known partly, and well.
PARTLY, WELL = 0.3, 0.7
#: Data are not known well where one variable has more than this share of a constant change's error.
UNKNOWN = 0.5
#: Of fewer transitions nothing can be told, and of fewer than the first nothing is computed.
LEAST, FEW = 3, 50
#: Coverage counts cells of a tenth of a range in each variable.
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
    seen: Any  # (d,) the range seen, as a share of the range that is seen or reached inside the model
    visited: float  # of the cells that are reached inside the model, the share that was visited
    bounds: tuple[str, ...]  # which of lengthscale and ridge sit on a bound that matters
    noise: float  # share of the state change's variance that the fit takes for noise
    ends: int  # transitions that ended an episode
    transitions: int
    changing: Any  # (d,) bool: the others change by the same at every step, or never

    @property
    def score(self) -> float:
        """From 0 to 1: (1 - mean error) sqrt(mean share of the range seen * share of the cells visited).

        Means are over variables whose change differs from step to step: of others there is nothing to learn.
        """
        return (1.0 - self._mean_error) * self._covered if self.changing.any() else 0.0

    @property
    def verdict(self) -> str:
        """Well, partly, not yet or cannot tell, and why. It says nothing of a reward."""
        if self.transitions < FEW:
            return too_few(self.transitions)
        if not self.changing.any():
            return STILL
        word = "well" if self.score >= WELL else "partly" if self.score >= PARTLY else "not yet"
        if word == "well" and (self.bounds or self._worst_error > UNKNOWN):
            word = "partly"
        return f"{word}: {self._reason(word)}"

    def _reason(self, word: str) -> str:
        worst = int(np.argmax(np.where(self.changing, self.error, -1.0)))
        share = f"has {self.error[worst]:.0%} of a constant change's error in parts of the data left out"
        wrong = f"{self.names[worst]} {share}"
        covered = (
            f"{self.visited:.0%} of the cells and {self.range_seen:.0%} of the range within reach were seen"
        )
        if word == "well":
            return f"{covered}, and {self.names[worst]}, which is known least, {share}"
        if self.bounds:
            sits = "sits" if len(self.bounds) == 1 else "sit"
            wrong = f"the fitted {' and '.join(self.bounds)} {sits} on a bound, and {wrong}"
        lost = max(self._mean_error, self._worst_error if word == "partly" and self.score >= WELL else 0.0)
        if self.bounds or lost > 1.0 - self._covered:
            return f"{wrong}; explore more, or its changes are random"
        return f"{covered}; explore more"

    @property
    def range_seen(self) -> float:
        """The mean of `seen` over the variables that change."""
        return float(self.seen[self.changing].mean()) if self.changing.any() else 0.0

    @property
    def _mean_error(self) -> float:
        return float(np.minimum(self.error, 1.0)[self.changing].mean())

    @property
    def _worst_error(self) -> float:
        return float(self.error[self.changing].max())

    @property
    def _covered(self) -> float:
        return float(np.sqrt(self.range_seen * self.visited))


#: The verdict where nothing that was done made a difference.
STILL = (
    "cannot tell: no state ever changed, or all of them by the same at every step; "
    "check the world or the actions"
)


def too_few(transitions: int) -> str:
    """The verdict on fewer than `FEW` transitions."""
    are = "is" if transitions == 1 else "are"
    return f"cannot tell: {counted(transitions, 'transition')} {are} too few; explore at least {FEW}"


def diagnose(data: Experience) -> Diagnosis:
    """What these data say about the dynamics: what they predict where they were left out, and their range."""
    if not isinstance(data, Experience):
        raise ValueError(
            "a finite world has no state change to predict: rf.gap(world, plan, reward) says how good "
            f"a plan of them is, rf.describe(world, reward) what a world asks, got {type(data).__name__}"
        )
    space = data.spaces.state
    if not isinstance(space, Box):
        raise ValueError(
            "labels have no state change to predict: data of real states are wanted; play a plan of labels "
            "with rf.rollouts(world, plan, reward)"
        )
    rows = np.flatnonzero(data.kept)
    if not len(rows):
        raise ValueError("there is no transition that was kept: explore first")
    samples = data.at(rows)
    states = space.wrapped(np.concatenate([samples.state, samples.next_state]))
    low, high = states.min(axis=0), states.max(axis=0)
    declared = np.array(space.high) - np.array(space.low)
    change = space.change(samples.state, samples.next_state)
    changing = StateChange.of(data.spaces, samples.state, samples.next_state).differs & (len(rows) >= LEAST)
    seen: dict[str, Any] = {
        "names": space.names,
        "low": low,
        "high": high,
        "span": np.where(np.isfinite(declared), (high - low) / declared, np.nan),
        "cells": len(_cells(states, low, high)),
        "ends": int(data.terminated.sum()),
        "transitions": len(rows),
        "changing": changing,
    }
    nothing = np.zeros(space.size)
    if not changing.any():
        return Diagnosis(
            **seen, error=nothing, typical=nothing, seen=nothing, visited=0.0, noise=0.0, bounds=()
        )
    with one_blas_thread():
        dynamics = Dynamics.learn(data.spaces, data.model, samples, data.fitted)
        is_end = ObservedTermination(space, samples.next_state, samples.terminated)
        starts = space.wrapped(data.starts if len(data.starts) else samples.state[:1])
        met = reached(dynamics, samples, starts, is_end, data.horizon)
        error = dynamics.held_out(samples, whole_parts(samples.episode))
    constant = change - np.median(change, axis=0)
    usual = np.median(np.abs(constant), axis=0)
    missed = np.median(np.abs(dynamics.residuals), axis=0)
    lowest, highest = np.minimum(low, met.min(axis=0)), np.maximum(high, met.max(axis=0))
    within_reach, visited = (_cells(points, lowest, highest) for points in (met, states))
    told = changing & (usual > 0.0)
    return Diagnosis(
        **seen,
        error=np.where(changing, error, nothing),
        typical=np.where(told, missed / np.where(told, usual, 1.0), 0.0),
        seen=np.where(
            highest > lowest, (high - low) / np.where(highest > lowest, highest - lowest, 1.0), 1.0
        ),
        visited=len(within_reach & visited) / len(within_reach),
        bounds=dynamics.scaled.on_bounds if data.model.automatic else (),
        noise=dynamics.noise,
    )


def _cells(states: Any, low: Any, high: Any) -> set[tuple[int, ...]]:
    """The cells of a regular grid over low..high (d,) in which states (n,d) lie."""
    width = np.where(high > low, high - low, 1.0)
    places = np.clip((states - low) / width * CELLS, 0, CELLS - 1).astype(np.int64)
    return set(map(tuple, np.unique(places, axis=0).tolist()))
