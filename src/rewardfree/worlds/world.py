"""What a world of real states is: how to write one of your own, and what the library asks of it."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rewardfree.arrays import Actions, Flags, Floats, States, as_horizon, float_dtype
from rewardfree.registry import registered
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.grid import Variables
from rewardfree.worlds.spaces import Box, Discrete, Space, Spaces

#: Said wherever a model is used on real states.
TIMED_ON_REAL_STATES = "timed=True is for finite worlds: on real states dynamics must not change with h"


class World(ABC):
    """A system to explore. It has no reward.

    Declare `state`, `action` (a `Box` or `Discrete`) and `horizon`, the steps of an episode. A simulator
    gives `start(rng)` and `sample(state, action, h, rng)`, from which the rest follows; a system that can
    only be stepped gives `reset(rng)` and `step(action)` instead.
    """

    state: Space
    action: Space
    horizon: int
    observation: Observation | None = None  # how it is observed; None: its state is seen

    def start(self, rng: np.random.Generator) -> npt.ArrayLike:
        """A first state (d,), or a label."""
        raise NotImplementedError(
            f"{type(self).__name__} has no start: give start and sample, or reset and step"
        )

    def sample(
        self, state: States, action: Actions, h: int, rng: np.random.Generator
    ) -> tuple[States, Flags]:
        """Next states (n,d) of states (n,d) and actions (n,a), or labels (n,); and which end, (n,) bool."""
        raise NotImplementedError(f"{type(self).__name__} cannot be put into a state: it has no sample")

    @property
    def generative(self) -> bool:
        """Whether it can be put into any state."""
        return type(self).sample is not World.sample

    def reset(self, rng: np.random.Generator) -> npt.ArrayLike:
        """Begin an episode: its first state. Whatever is random until the next one comes from `rng`."""
        self._now, self._h, self._rng = np.asarray(self.start(rng)), 0, rng
        return self._now

    def step(self, action: Any) -> tuple[npt.ArrayLike, bool, bool]:
        """The next state, whether the system ended there, and whether the episode was cut instead."""
        # Copies: a simulator may work in place.
        now, chosen = np.array(self._now)[None], np.array(action)[None]
        following, ended = sampled(self, now, chosen, self._h, self._rng)
        self._now, self._h = following[0], self._h + 1
        return self._now, bool(ended[0]), False

    @property
    def spaces(self) -> Spaces:
        """Its state space and its action space."""
        return Spaces(self.state, self.action)

    def features(self, state: States, action: Actions) -> Floats:
        """What the kernel sees of states (n,d) and actions, (n,f), before it is standardised."""
        features: Floats = self.spaces.features(state, action)
        return features

    def observe(self, state: States) -> npt.ArrayLike:
        """The observations in states (n,d)."""
        return state if self.observation is None else self.observation.of(self.state, state)

    def copy(self) -> World | None:
        """A second one to play at the same time, or None where there can be only one."""
        return None

    @property
    def provenance(self) -> Mapping[str, Any]:
        """The arguments that make it again, as a table for a file."""
        return {"world": type(self).__name__}


@registered("observation")
@dataclass(frozen=True)
class Observation:
    """What each column of an observation is: ("cos", "theta"), ("sin", "theta"), ("is", "omega")."""

    columns: tuple[tuple[str, str], ...]
    dtype: str = "float32"

    def __str__(self) -> str:
        """Its columns, as a reader would name them."""
        return ", ".join(name if how == "is" else f"{how} {name}" for how, name in self.columns)

    def check(self, space: Space) -> None:
        """Refuse columns from which no state of this space could be told."""
        float_dtype(self.dtype)
        given, wanted = set(self.columns), set[tuple[str, str]]()
        for name in space.names if isinstance(space, Box) else ():
            wanted |= {("is", name)} if ("is", name) in given else {("cos", name), ("sin", name)}
        if not wanted or wanted != given:
            raise ValueError(
                f"an observation must have {', '.join(space.names)} as columns, or cos and sin of them, "
                f"got {self.columns!r:.200}"
            )

    def of(self, space: Space, state: Any) -> Any:
        """Observations (n,o) of states (n,d)."""
        assert isinstance(space, Box)
        functions: dict[str, Any] = {"cos": np.cos, "sin": np.sin, "is": np.asarray}
        columns = [functions[how](state[:, space.names.index(name)]) for how, name in self.columns]
        return np.stack(columns, axis=1).astype(self.dtype)

    def state(self, space: Space, observation: Any) -> Any:
        """The states (n,d) of observations (n,o); an angle in [-pi, pi]."""
        assert isinstance(space, Box)
        seen = np.asarray(observation, np.float64)
        if seen.ndim != 2 or seen.shape[1] != len(self.columns):
            raise ValueError(f"observation must have {len(self.columns)} columns ({self}), got {seen.shape}")
        at = {column: seen[:, i] for i, column in enumerate(self.columns)}
        states = [
            at["is", name] if ("is", name) in at else np.arctan2(at["sin", name], at["cos", name])
            for name in space.names
        ]
        return np.stack(states, axis=1)


def check_declared(world: Any) -> None:
    """Refuse a world that does not say what its states, actions and episodes are."""
    for name in ("state", "action"):
        if not isinstance(getattr(world, name, None), (Box, Discrete)):
            raise ValueError(
                f"a world must declare {name} as a Box or Discrete, such as {name} = rf.Box.of(x=(-1, 1)), "
                f"got {getattr(world, name, None)!r}"
            )
    as_horizon(getattr(world, "horizon", None), "a world's horizon, the steps of an episode,")
    kind = type(world)
    simulates = kind.start is not World.start and kind.sample is not World.sample
    if not simulates and (kind.reset is World.reset or kind.step is World.step):
        raise ValueError(f"{kind.__name__} must give start and sample, or reset and step")
    _ = world.spaces  # whose names must differ


def sampled(world: World, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """What `sample` of a world returns, as arrays, if it is next states like `state` and a flag for each."""
    outcome = world.sample(state, action, h, rng)
    pair = tuple(map(np.asarray, outcome)) if isinstance(outcome, tuple) and len(outcome) == 2 else ()
    shapes = tuple(part.shape for part in pair)
    n = len(state)
    wanted = f"sample must return next states of shape {state.shape} and which of them end, of shape ({n},)"
    if not pair or pair[0].ndim != state.ndim or len(pair[0]) != n or shapes[1] != (n,):
        got = f"shapes {shapes[0]} and {shapes[1]}" if pair else f"{outcome!r:.200}"
        raise ValueError(f"{wanted}, got {got}")
    if pair[1].dtype.kind != "b" and not all(flag in (False, True) for flag in pair[1].tolist()):
        raise ValueError(f"{wanted}, True or False, got {pair[1]!r:.200}")
    return pair[0], pair[1]


def stepped(world: World, action: Any) -> tuple[Any, bool, bool]:
    """What `step` of a world returns, if it is a next state and two flags."""
    outcome = world.step(action)
    right = isinstance(outcome, tuple) and len(outcome) == 3
    if not right or any(np.ndim(flag) or flag not in (False, True) for flag in outcome[1:]):
        raise ValueError(
            "step must return the next state, whether the system ended there, and whether the episode was "
            f"cut otherwise, got {outcome!r:.200}"
        )
    return outcome[0], bool(outcome[1]), bool(outcome[2])


class LabelledWorld(World):
    """A `FiniteWorld` as a `World` whose states and actions are labels.

    It stays in the states that end an episode, as the finite world does, or with `ending` it ends there.
    """

    def __init__(self, world: FiniteWorld, ending: bool = False) -> None:
        self.finite, self.horizon, self.ending = world, world.horizon, ending
        self.state = _labels(world.grid.state_names, world.states, "s")
        self.action = _labels(world.grid.action_names, world.actions, "a")

    def start(self, rng: np.random.Generator) -> Any:
        return self.finite.first_states(rng.random())

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        state = np.asarray(state, np.int64)
        following = self.finite.sample(state, action, h, rng.random(state.shape))
        return following, self.finite.ends[following] & self.ending

    def copy(self) -> World:
        return LabelledWorld(self.finite, self.ending)


def _labels(names: Variables | None, points: Any, name: str) -> Discrete:
    """The labels of states or actions, at their coordinates unless they are labels anyway."""
    if names is not None and names.labels:
        return Discrete(len(points), names.names[0])
    return Discrete(len(points), name, tuple(tuple(map(float, point)) for point in points))
