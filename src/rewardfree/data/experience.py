"""What exploration of a continuous world leaves behind."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from rewardfree.arrays import Actions, Flags, Integers, States, as_horizon, as_names, check_kind, check_reach
from rewardfree.data.csv_files import read_columns, write_columns
from rewardfree.data.run_data import MOST_EPISODES, Explorer, RunData, numbered_from_0
from rewardfree.data.run_files import read_run, write_run
from rewardfree.data.samples import Samples
from rewardfree.files import content_of
from rewardfree.model import Model, fitted_model
from rewardfree.worlds import Box, Discrete, Observation, ScaledModel, Scaling, Space, Spaces

FILE_VERSION = 2


@dataclass(frozen=True, eq=False, repr=False)
class Experience(RunData):
    """The environment steps of one run in a world of real states, t of them; no reward."""

    spaces: Spaces
    horizon: int
    model: Model
    strategy: Explorer | None  # None: recorded elsewhere
    seed: int
    episode: Integers  # (t,) int, from 0; -1 for queries of a generative model, which belong to none
    h: Integers  # (t,) int, from 0
    state: States  # (t,d), labels (t,)
    action: Actions  # (t,a), labels (t,)
    next_state: States  # (t,d), labels (t,)
    terminated: Flags  # (t,) bool: the system ended there; a time limit is no end
    kept: Flags  # (t,) bool
    starts: States  # (k,d) first states that were seen
    observation: Observation | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    stopped_by: str = "budget"  # a unit of `explore`, "seconds", "max_sigma" or "interrupted"
    fitted: ScaledModel | None = None  # to all kept steps

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}{self._through})"

    @property
    def _through(self) -> str:
        """That a plan with the model goes through inducing points, if it does."""
        own = self.strategy is not None and self.strategy.own_posteriors
        counted = isinstance(self.spaces.state, Discrete) and isinstance(self.spaces.action, Discrete)
        points = max(map(len, self.designs()), default=0)
        inducing = self.model.for_points(points).inducing
        if own or counted or not isinstance(inducing, int):
            return ""
        return f", through up to {min(inducing, points):,} inducing points"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the data as npz, without pickle; `rf.load` reads them."""
        arrays = {"starts": self.starts}
        more: dict[str, Any] = {
            "spaces": self.spaces,
            "observation": self.observation,
            "provenance": self.provenance,
            "fitted": None if self.fitted is None else self.fitted.model,
        }
        if self.fitted is not None:
            arrays |= {"centre": self.fitted.scaling.centre, "scale": self.fitted.scaling.scale}
        write_run(path, self, FILE_VERSION, arrays, more)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Experience:
        """The data in that file; a damaged or foreign one is refused."""
        columns, arrays, fields = read_run(path, cls.__name__, FILE_VERSION, "starts|centre|scale")
        with content_of(path, "an experience"):
            model = fields.pop("fitted")
            scaling = None if model is None else Scaling(arrays["centre"], arrays["scale"])
            fitted = None if scaling is None else ScaledModel(model, scaling)
            if fields.get("strategy") is None:  # recordings were once written with numbers of their own
                columns["episode"] = _renumbered(columns["episode"])
            return cls(**fields, **columns, starts=arrays["starts"], fitted=fitted)._checked()

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line for each step: episode, h, state, action, next_ state, terminated, kept."""
        write_columns(path, self)

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        *,
        state: Space | None = None,
        action: Space | Sequence[str] | None = None,
        angles: tuple[str, ...] = (),
        horizon: int | None = None,
        model: Model | None = None,
    ) -> Experience:
        """Transitions of your own: columns x, ..., actions, next_x, ..., and perhaps episode, h, terminated.

        A variable with a next_ twin is a state, any other an action; whole numbers in one action column are
        labels. Actions are within what the data span, and states within walls, where three steps or more came
        to exactly the same extreme, else without bounds, unless `action` and `state` say more. `action` may
        also be the names of the actions. Without any next_ column it must be given, all other variables are
        states, and a line leads to the next one of its episode; terminated then says that the system ended in
        that state.
        """
        if action is not None and not isinstance(action, (Box, Discrete)):
            action = as_names(action, "action must be a space, or it")
        if state is not None and not isinstance(state, (Box, Discrete)):
            raise ValueError(
                f"state must be a Box or Discrete, such as rf.Box.of(x=(-1, 1)), got {state!r:.200}"
            )
        columns = read_columns(path, state, action, as_names(angles, "angles"))
        first = np.flatnonzero(columns.pop("first"))
        last = columns["h"].max(initial=0)
        length = int(last) + 1 if horizon is None else as_horizon(horizon)
        if last >= length:
            raise ValueError(f"{path} has steps beyond the horizon of {length}: h goes up to {last}")
        return cls(
            model=fitted_model() if model is None else model,
            horizon=length,
            strategy=None,
            seed=0,
            stopped_by="csv",
            starts=columns["state"][first],
            **columns,
        )._checked()

    def check(self) -> None:
        super().check()
        check_kind(self.spaces, Spaces, "spaces", "a state space and an action space")
        check_kind(self.provenance, Mapping, "provenance", "a table")
        if self.observation is not None:
            check_kind(self.observation, Observation, "observation", "what is observed, or nothing")
            self.observation.check(self.spaces.state)
        if self.fitted is not None:
            self.fitted.check(self.spaces)

    def _checked(self) -> Self:
        """These data with states and actions in their spaces' own form; what cannot be is refused."""
        self.check()
        columns = {
            "state": self.spaces.state.checked(self.state, "state"),
            "action": self.spaces.action.checked(self.action, "action"),
            "next_state": self.spaces.state.checked(self.next_state, "next_state"),
            "starts": self.spaces.state.checked(self.starts, "starts"),
        }
        for name, column in columns.items():
            check_reach(column, name)
            column.flags.writeable = False
        return replace(self, **columns)

    def at(self, rows: Any) -> Samples:
        """Some of the steps as arrays."""
        columns = self.state, self.action, self.next_state, self.terminated, self.episode
        return Samples(*(column[rows] for column in columns))

    def ending_at(self, terminated: Flags) -> Self:
        """The same steps, with other ends of episodes (t,) bool."""
        return replace(self, terminated=terminated)

    @cached_property
    def _all_kept(self) -> Self:
        return replace(self, kept=np.ones(len(self), bool), fitted=None)  # which was fitted to the kept ones

    @cached_property
    def _centred(self) -> Self:
        fitted = self.fitted
        if fitted is not None:
            fitted = replace(fitted, model=replace(fitted.model, centred=True))
        return replace(self, model=replace(self.model, centred=True), fitted=fitted)

    def _rows(self, end: int, stopped_by: str) -> Self:
        shorter = super()._rows(end, stopped_by)
        # First states of episodes come in their order, and what was asked of a simulator when queries begin.
        asked = bool((shorter.episode < 0).any())
        starts = self.starts if asked else self.starts[: shorter.episodes]
        return replace(shorter, starts=starts, fitted=None)  # which was fitted to all of them

    def _whole_episodes(self) -> int:
        """The last one counts if the system ended or its time was over."""
        if not len(self):
            return 0
        over = bool(self.terminated[-1]) or int(self.h[-1]) + 1 >= self.horizon
        over = over or self.stopped_by == "episodes"
        return self.episodes - int(not over)

    @property
    def is_box(self) -> bool:
        """Whether states are real variables, not labels."""
        return isinstance(self.spaces.state, Box)


def _renumbered(episode: Integers) -> Integers:
    """Episodes of a recording from 0; what can be no number of one stays, and is refused by name."""
    if episode.dtype.kind not in "iu" or episode.ndim != 1:
        return episode
    if len(episode) and not (episode.min() >= -1 and episode.max() <= MOST_EPISODES):
        return episode
    numbered = numbered_from_0(episode)
    numbered.flags.writeable = False
    return numbered
