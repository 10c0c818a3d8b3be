"""Worlds of finitely many states and actions. Their transition law is for evaluation; no learner reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rewardfree.arrays import (
    Array,
    Flags,
    Floats,
    Integers,
    as_array,
    as_horizon,
    check_finite,
    check_kind,
    count,
    to_numpy,
)
from rewardfree.files import content_of, read_arrays, write_arrays
from rewardfree.worlds.grid import NAMED_ARRAYS, Grid, given_in
from rewardfree.worlds.spaces import Discrete

#: Where episodes begin: a state, a distribution over states (s,), or None for the usual one.
Start: TypeAlias = npt.ArrayLike | None
#: How far the sum of a row of P may be from 1: rounding of hundreds of terms, also in float32.
ROW_SUM = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
#: Of files without names and ends, which older versions read too, and of those with them.
FILE_VERSION, NAMED_VERSION = 1, 2
#: What every file of a world holds.
_ARRAYS = ("P", "horizon", "start", "states", "actions")


class FiniteWorld:
    """An episodic world with the transition law P, (s,a,s') or by step (h,s,a,s'); it holds no reward.

    `start` is a state, a distribution (s,), or None for a uniform one. `states` and `actions` are the
    coordinates that a kernel sees, evenly spaced on [0,1] unless given, and formulas call them s and a. Or
    they name values, `states={"level": range(21)}`, or labels, `states=rf.Discrete(16, "s")`, and formulas
    speak of these. `ends`, for labels, lists states that end an episode: the law must stay there.
    """

    def __init__(
        self,
        P: npt.ArrayLike,
        horizon: int,
        start: Start = None,
        *,
        states: npt.ArrayLike | Mapping[str, npt.ArrayLike] | Discrete | None = None,
        actions: npt.ArrayLike | Mapping[str, npt.ArrayLike] | Discrete | None = None,
        ends: npt.ArrayLike = (),
    ) -> None:
        self.horizon = as_horizon(horizon)
        self.P = _transition_law(P, self.horizon)
        s, a = self.P.shape[-3:-1]
        self.grid = Grid.of(states, actions, (s, a))
        self.start: Floats = _start_distribution(start, s)  # (s,)
        self.ends = _ends(ends, self.P)  # (s,) bool
        if self.ends.any() and not self.grid.labelled:
            raise ValueError(
                "ends= is for labels, whose visits are counted: "
                "give states= and actions= as rf.Discrete(n, name)"
            )

    def __repr__(self) -> str:
        s, a = self.grid.shape
        law = "one law" if self.stationary else "a law for each step"
        named = self.grid.state_names is not None or self.grid.action_names is not None
        rule = f"; {self.grid.rule}" if named else ""
        return f"FiniteWorld({s} states, {a} actions, horizon {self.horizon}, {law}{rule})"

    @property
    def states(self) -> Floats:
        """The states' coordinates, (s,d)."""
        return self.grid.states

    @property
    def actions(self) -> Floats:
        """The actions' coordinates, (a,e)."""
        return self.grid.actions

    @property
    def stationary(self) -> bool:
        """Whether one law serves every step."""
        return bool(self.P.ndim == 3)

    def law(self, h: int) -> Floats:
        """P_h, (s,a,s')."""
        return self.P if self.stationary else self.P[h]

    def features(self, state: npt.ArrayLike, action: npt.ArrayLike) -> Floats:
        """What the kernel sees of states (n,) and actions (n,): (n,d+e)."""
        points: Floats = self.grid.points[self._points(state, action)]
        return points

    def sample(self, state: npt.ArrayLike, action: npt.ArrayLike, h: int, uniform: npt.ArrayLike) -> Integers:
        """The next states of (s,a) at step h for uniform random numbers, by inverse CDF; all broadcast."""
        if count(h, "h", at_least=0) >= self.horizon:
            raise ValueError(f"h must lie in 0..{self.horizon - 1}, got {h}")
        z, uniform = np.broadcast_arrays(self._points(state, action), uniform)
        if not ((uniform >= 0.0) & (uniform < 1.0)).all():
            raise ValueError("uniform must hold random numbers of at least 0 and below 1")
        following: Integers = next_states(self.cumulative[0 if self.stationary else h], z, uniform)
        return following

    def _points(self, state: Any, action: Any) -> Any:
        """z = s * |A| + a, checked."""
        s, a = self.grid.shape
        for name, values, size in (("state", np.asarray(state), s), ("action", np.asarray(action), a)):
            if values.size and (values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= size):
                raise ValueError(f"{name} must be a whole number of 0..{size - 1}, got {values}")
        return np.asarray(state) * a + np.asarray(action)

    def first_states(self, uniform: npt.ArrayLike) -> Integers:
        """Start states for uniform random numbers, by inverse CDF."""
        uniform = np.asarray(uniform)
        law = _cumulative(self.start)[None, :]
        states: Integers = next_states(law, np.zeros(uniform.shape, np.int64), uniform)
        return states

    @cached_property
    def cumulative(self) -> Floats:
        """P summed up along s', (1 or h, s*a, s'): the CPU and a device sample from the same numbers."""
        s, a = self.grid.shape
        return _cumulative(self.P).reshape(-1, s * a, s)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the world as npz, without pickle."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        more = self.grid.named_arrays()
        if more:
            more["ends"] = np.flatnonzero(self.ends)
        write_arrays(path, "FiniteWorld", NAMED_VERSION if more else FILE_VERSION, {**arrays, **more})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FiniteWorld:
        """The world in that file; a damaged or foreign one is refused."""
        known = "|".join((*_ARRAYS, "ends", NAMED_ARRAYS))
        arrays = read_arrays(path, "FiniteWorld", NAMED_VERSION, known)
        with content_of(path, "a world"):
            given = {name: arrays[name] for name in ("P", "horizon", "start")}
            given |= {f"{kind}s": given_in(arrays, kind, arrays[f"{kind}s"]) for kind in ("state", "action")}
            return cls(**given, ends=_ends_in(arrays))


def _ends_in(arrays: Mapping[str, Any]) -> Any:
    """The ends of a file, which has them, if only none, where it has names."""
    return arrays["ends"] if "state_names" in arrays else ()


def check_world(world: Any) -> None:
    """Refuse what is not a finite world, such as the `Instance` that holds one."""
    check_kind(world, FiniteWorld, "world", "a FiniteWorld (pass instance.world of an Instance)")


def next_states(cumulative: Array, z: Array, uniform: Array) -> Array:
    """The first s' whose cumulative probability (z,s') exceeds the uniform number; z and uniform agree."""
    return (cumulative[z] <= uniform[..., None]).sum(-1)


def _cumulative(probabilities: Any) -> Floats:
    """Sums along the last axis that end at 1 exactly: rounding must not lead into an impossible state."""
    sums = _float64_copy(probabilities)
    np.cumsum(sums, axis=-1, out=sums)
    sums /= sums[..., -1:].copy()
    return sums


def _transition_law(P: Any, horizon: int) -> Floats:
    law = as_array(P, "P")
    if law.ndim not in (3, 4) or law.shape[-1] != law.shape[-3] or 0 in law.shape:
        raise ValueError(
            f"P must have shape (s, a, s) or (h, s, a, s), next states last, got {tuple(law.shape)}"
        )
    if law.ndim == 4 and law.shape[0] != horizon:
        raise ValueError(f"P must have one law for each of {horizon} steps, got {law.shape[0]}")
    check_finite(law, "P")
    law = to_numpy(law)
    if law.min() < 0.0:
        raise ValueError(f"P must not be negative, got {law.min():.3g}: clip and normalise it first")
    sums, allowed = law.sum(axis=-1, dtype=np.float64), ROW_SUM[law.dtype]
    if np.abs(sums - 1.0).max() > allowed:
        worst = np.unravel_index(np.abs(sums - 1.0).argmax(), sums.shape)
        raise ValueError(
            f"every row of P must sum to 1, got {sums[worst]:.9g} at {tuple(int(i) for i in worst)}: "
            "use P / P.sum(axis=-1, keepdims=True)"
        )
    single = law.dtype == np.float32
    law = _float64_copy(law)
    if single:  # whose rows sum to 1 in its own precision only
        law /= sums[..., None]
    law.flags.writeable = False
    return law


def _float64_copy(law: Any) -> Floats:
    """A copy in float64."""
    try:
        return np.array(law, np.float64)
    except MemoryError as error:
        raise MemoryError(
            f"this machine has no room for P of shape {law.shape}, {8 * law.size / 2**30:.1f} GiB: "
            "use fewer states or actions"
        ) from error


def _start_distribution(start: Any, states: int) -> Any:
    if start is None:
        start = np.full(states, 1.0 / states)
    elif np.ndim(start) == 0:
        index = count(start, "start", at_least=0)
        if index >= states:
            raise ValueError(f"start must be one of the states 0..{states - 1}, got {index}")
        start = np.eye(1, states, index)[0]
    given = to_numpy(as_array(start, "start"))
    start = given.astype(np.float64)
    if start.shape != (states,) or not (start >= 0.0).all() or abs(start.sum() - 1.0) > ROW_SUM[given.dtype]:
        raise ValueError(
            f"start must be a state, None, or {states} probabilities that sum to 1, "
            f"got shape {start.shape} with sum {start.sum():.6g}"
        )
    if given.dtype == np.float32:
        start /= start.sum()
    start.flags.writeable = False
    return start


def _ends(ends: Any, P: Floats) -> Flags:
    """Which states end an episode, (s,) bool."""
    size, listed = P.shape[-1], np.atleast_1d(np.asarray(ends))
    if listed.ndim != 1 or (listed.size and listed.dtype.kind not in "iu"):
        raise ValueError(f"ends must list states, such as [15], got {ends!r:.100}")
    listed = listed.astype(np.int64)
    if listed.size and (listed.min() < 0 or listed.max() >= size):
        raise ValueError(f"ends must list states of 0..{size - 1}, got {ends!r:.100}")
    for state in listed:
        if (P[..., state, :, state] < 1.0 - ROW_SUM[np.dtype(np.float64)]).any():
            raise ValueError(
                f"ends lists {state}, where the law does not stay: P[{state}, :, {state}] must be 1"
            )
    flags = np.zeros(size, bool)
    flags[listed] = True
    flags.flags.writeable = False
    return flags
