"""What a world of real states is: how to write one of your own, and what the library asks of it."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import as_horizon, float_dtype
from rewardfree.registry import registered
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.spaces import Box, Discrete, Space, Spaces


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

    def start(self, rng: np.random.Generator) -> Any:
        """A first state (d,)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no start: give start and sample, or reset and step"
        )

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Next states (n,d) of states (n,d) and actions (n,a), or labels (n,); and which end, (n,) bool."""
        raise NotImplementedError(f"{type(self).__name__} cannot be put into a state: it has no sample")

    @property
    def generative(self) -> bool:
        """Whether it can be put into any state."""
        return type(self).sample is not World.sample

    def reset(self, rng: np.random.Generator) -> Any:
        """Begin an episode: its first state (d,). Whatever is random until the next one comes from `rng`."""
        self._now, self._h, self._rng = np.asarray(self.start(rng)), 0, rng
        return self._now

    def step(self, action: Any) -> tuple[Any, bool, bool]:
        """The next state (d,), whether the system ended there, and whether the episode was cut instead."""
        # Copies: a simulator may work in place.
        now, chosen = np.array(self._now)[None], np.array(action)[None]
        following, terminated = self.sample(now, chosen, self._h, self._rng)
        self._now, self._h = np.asarray(following)[0], self._h + 1
        return self._now, bool(np.asarray(terminated)[0]), False

    @property
    def spaces(self) -> Spaces:
        """Its state space and its action space."""
        return Spaces(self.state, self.action)

    def features(self, state: Any, action: Any) -> Any:
        """What the kernel sees of states (n,d) and actions, (n,f), before it is standardised."""
        return self.spaces.features(state, action)

    def observe(self, state: Any) -> Any:
        """What is observed in states (n,d)."""
        return state if self.observation is None else self.observation.of(self.state, state)

    def copy(self) -> World | None:
        """A second one to play at the same time, or None where there can be only one."""
        return None

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How to make it again, as a table for a file."""
        return {"world": type(self).__name__}


@registered("observation")
@dataclass(frozen=True)
class Observation:
    """What each column of an observation is: ("cos", "theta"), ("sin", "theta"), ("is", "omega")."""

    columns: tuple[tuple[str, str], ...]
    dtype: str = "float32"

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
            names = ", ".join(name if how == "is" else f"{how} {name}" for how, name in self.columns)
            raise ValueError(f"observation must have {len(self.columns)} columns ({names}), got {seen.shape}")
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


class LabelledWorld(World):
    """A `FiniteWorld` as a `World` whose states and actions are labels."""

    def __init__(self, world: FiniteWorld) -> None:
        self.finite, self.horizon = world, world.horizon
        self.state = Discrete(len(world.states), "s", _tuples(world.states))
        self.action = Discrete(len(world.actions), "a", _tuples(world.actions))

    def start(self, rng: np.random.Generator) -> Any:
        return self.finite.first_states(rng.random())

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        state = np.asarray(state, np.int64)
        following = self.finite.sample(state, action, h, rng.random(state.shape))
        return following, np.zeros(state.shape, bool)

    def copy(self) -> World:
        return LabelledWorld(self.finite)


def _tuples(points: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, point)) for point in points)
