"""Gymnasium environments as worlds: all can be stepped, those of classic control put into any state."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rewardfree.arrays import as_horizon, count
from rewardfree.worlds.classic_control import CLASSIC_CONTROL, ClassicControl
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.spaces import Box, Discrete, Space
from rewardfree.worlds.world import World

#: Wrappers that change nothing of what a step does.
TRANSPARENT = {"TimeLimit", "OrderEnforcing", "PassiveEnvChecker"}
#: An image is not a state that a kernel can learn from.
MOST_VARIABLES = 64


def from_gymnasium(
    env: Any,
    *,
    horizon: int | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    pilot: int | None = None,
    **options: Any,
) -> GymnasiumWorld | FiniteWorld:
    """The world of an environment, or of an id such as "Pendulum-v1"; its rewards are never read.

    `horizon` is the steps of an episode, by default the environment's time limit. `bounds` replaces those of
    variables by name; `pilot=500` measures infinite ones by 500 random steps. `options` go to
    gymnasium.make. A toy-text environment becomes the `FiniteWorld` of its table, with one more state for the
    end of an episode.
    """
    import gymnasium

    name, made = None, env
    if isinstance(env, str):
        name = env
        if horizon is not None:
            if options.get("max_episode_steps", horizon) != horizon:
                raise ValueError(
                    f"horizon={horizon} and max_episode_steps={options['max_episode_steps']} differ"
                )
            options["max_episode_steps"] = as_horizon(horizon)
        try:
            made = gymnasium.make(env, **options)
        except (gymnasium.error.Error, ImportError, TypeError) as error:
            raise ValueError(f"there is no environment {env!r} to be made: {error}") from None
    elif options:
        raise ValueError(f"{', '.join(options)} goes to gymnasium.make: give an id, not an environment")
    if not isinstance(made, gymnasium.Env):
        raise ValueError(f"env must be a Gymnasium environment or its id, got {env!r:.200}")
    longest = getattr(made.spec, "max_episode_steps", None)
    limit = longest if horizon is None else horizon
    if longest is not None and limit is not None and as_horizon(limit) > longest:
        raise ValueError(
            f"this environment cuts episodes after {longest} steps: make one with a larger time limit"
        )
    if limit is None:
        raise ValueError("this environment has no time limit: give horizon=, the steps of an episode")
    limit = as_horizon(limit)
    if _is_table(made):
        if bounds or pilot is not None:
            raise ValueError(
                "bounds= and pilot= are for real variables, and this environment has labels only"
            )
        return _finite(made.unwrapped, limit)
    return GymnasiumWorld(made, name, dict(options), limit, dict(bounds or {}), pilot)


def recorded_environment(
    provenance: Mapping[str, Any], allow_imports: bool = False
) -> tuple[str | None, dict[str, Any]]:
    """The environment that a file says it is from: its id, if it has one, and options for `from_gymnasium`.

    Gymnasium imports the module of a name such as "module:Env-v0". Who sent the file must not choose that.
    """
    name, options = provenance.get("gymnasium"), provenance.get("options") or {}
    if not isinstance(name, str | None) or not isinstance(options, Mapping):
        raise ValueError(f"it names no environment and its options, but {name!r:.100} and {options!r:.100}")
    own = sorted({"env", "horizon", "bounds", "pilot"} & set(options))
    if own:
        raise ValueError(f"its options for gymnasium.make have {own[0]}, which is none: the file is damaged")
    importing = [] if allow_imports else [text for text in _texts([name, options]) if ":" in text]
    if importing:
        raise ValueError(
            f"{importing[0]!r:.100} would import and run code of its own: say --allow-imports if you trust it"
        )
    return name, {**options, "horizon": provenance.get("horizon")}


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value of a file."""
    if isinstance(value, str):
        yield value
    parts = [*value, *value.values()] if isinstance(value, Mapping) else value
    if isinstance(parts, (list, tuple)):
        for part in parts:
            yield from _texts(part)


class GymnasiumWorld(World):
    """A Gymnasium environment as a `World`."""

    def __init__(
        self,
        env: Any,
        name: str | None,
        options: dict[str, Any],
        horizon: int,
        bounds: Mapping[str, Any],
        pilot: int | None = None,
    ) -> None:
        self._env, self._name, self._options, self.horizon = env, name, options, horizon
        kind = type(env.unwrapped)
        self._control: ClassicControl | None = (
            CLASSIC_CONTROL.get((kind.__module__, kind.__name__)) if _is_plain(env) else None
        )
        control = self._control
        action = _space(env.action_space, control.action if control else "action", "action")
        state = control.state if control else _space(env.observation_space, "s", "observation")
        variables = (*state.names, *action.names)
        unknown = sorted(set(bounds) - set(variables))
        if unknown:
            raise ValueError(f"bounds names {', '.join(unknown)}, and there is {', '.join(variables)}")
        self.observation = control.observation if control else None
        self.state: Space = _with_bounds(state, bounds)
        self.action: Space = _with_bounds(action, bounds)
        if isinstance(self.action, Box):
            self.action.need_bounds("an action")
        self.pilot_steps = 0
        if pilot is not None:
            self.state = self._measured(count(pilot, "pilot"))

    def __repr__(self) -> str:
        how = "any state" if self.generative else "online"
        return f"GymnasiumWorld({self._name or self._env!r}, horizon {self.horizon}, {how})"

    @property
    def env(self) -> Any:
        """The environment itself."""
        return self._env

    @property
    def generative(self) -> bool:
        return self._control is not None

    @property
    def provenance(self) -> Mapping[str, Any]:
        table = {"gymnasium": self._name, "options": self._options, "horizon": self.horizon}
        return table if self.pilot_steps == 0 else {**table, "pilot": self.pilot_steps}

    def reset(self, rng: np.random.Generator) -> Any:
        observation, _ = self._env.reset(seed=int(rng.integers(2**31)))
        return self._state(observation)

    def start(self, rng: np.random.Generator) -> Any:
        return self.reset(rng)

    def step(self, action: Any) -> tuple[Any, bool, bool]:
        observation, _, terminated, truncated, _ = self._env.step(self._as_given(action))
        return self._state(observation), bool(terminated), bool(truncated)

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        if self._control is None:
            raise NotImplementedError(
                f"{self!r} cannot be put into a state: explore it online, with rf.Scout()"
            )
        env, following, ended = self._env.unwrapped, [], []
        if getattr(env, "_np_random", None) is None:
            env.reset(seed=int(rng.integers(2**31)))
        for now, chosen in zip(state, action, strict=True):
            self._control.put(env, now)
            _, _, terminated, _, _ = env.step(self._as_given(chosen))
            following.append(np.array(env.state, np.float64))
            ended.append(bool(terminated))
        return np.array(following).reshape(-1, self.state.size), np.array(ended, bool)

    def copy(self) -> World | None:
        if self._name is not None:
            import gymnasium

            env = gymnasium.make(self._name, **self._options)
        else:
            try:
                env = copy.deepcopy(self._env)
            except Exception:  # a window, a socket, a rig: there is only one
                return None
        twin = copy.copy(self)
        twin._env = env
        return twin

    def _as_given(self, action: Any) -> Any:
        """An action in the type and shape of the environment."""
        space = self._env.action_space
        if isinstance(self.action, Discrete):
            return int(action)
        return np.asarray(action, space.dtype).reshape(space.shape)

    def _state(self, observation: Any) -> Any:
        """The state at an observation: the environment's `state` in classic control, else the observation."""
        if self._control is not None:
            return np.array(self._env.unwrapped.state, np.float64)
        if isinstance(self.state, Discrete):
            return np.int64(observation)
        return np.array(observation, np.float64).reshape(-1)

    def _measured(self, steps: int) -> Space:
        """The state space, with infinite bounds replaced by those of the states that random actions reach."""
        if not isinstance(self.state, Box):
            return self.state
        rng = np.random.default_rng(0)
        seen, state, h = [], self.reset(rng), 0
        candidates = self.action.candidates(9)
        for _ in range(steps):
            seen.append(state)
            state, terminated, truncated = self.step(candidates[rng.integers(len(candidates))])
            h += 1
            if terminated or truncated or h == self.horizon:
                state, h = self.reset(rng), 0
        self.pilot_steps = steps
        low, high = np.min(seen, axis=0), np.max(seen, axis=0)
        middle, half = 0.5 * (low + high), 0.75 * (high - low)
        if (half <= 0.0).any():
            still = self.state.names[int(np.argmin(half))]
            raise ValueError(
                f"{still} did not move in {steps} random steps: give its bounds= or leave it out"
            )
        measured = {
            name: (float(middle[i] - half[i]), float(middle[i] + half[i]))
            for i, name in enumerate(self.state.names)
            if not (math.isfinite(self.state.low[i]) and math.isfinite(self.state.high[i]))
        }
        return _with_bounds(self.state, measured)


def _is_plain(env: Any) -> bool:
    """Whether it is wrapped only in wrappers that change nothing of a step."""
    while env is not env.unwrapped:
        if type(env).__name__ not in TRANSPARENT:
            return False
        env = env.env
    return True


def _is_table(env: Any) -> bool:
    """Whether it is one of Gymnasium's toy-text environments, which carry their transition law."""
    law, module = getattr(env.unwrapped, "P", None), type(env.unwrapped).__module__
    return _is_plain(env) and module.startswith("gymnasium.envs.toy_text") and isinstance(law, dict)


def _finite(env: Any, horizon: int) -> FiniteWorld:
    """The table of (probability, next state, reward, ended), without its rewards."""
    s, a = int(env.observation_space.n), int(env.action_space.n)
    P = np.zeros((s + 1, a, s + 1))
    P[s, :, s] = 1.0
    for state, actions in env.P.items():
        for action, outcomes in actions.items():
            for probability, following, _, ended in outcomes:
                P[state, action, s if ended else following] += probability
    P /= P.sum(axis=-1, keepdims=True)
    return FiniteWorld(P, horizon, start=np.append(env.initial_state_distrib, 0.0))


def _space(space: Any, name: str, role: str) -> Space:
    """The `Box` or `Discrete` of a Gymnasium space; other spaces are refused."""
    import gymnasium

    if isinstance(space, gymnasium.spaces.Discrete):
        if int(space.start) != 0:
            raise ValueError(f"labels of the {role} space must begin at 0, got {space}: wrap the environment")
        return Discrete(int(space.n), name)
    if not isinstance(space, gymnasium.spaces.Box):
        raise ValueError(
            f"the {role} space must be a Box or Discrete, got {space}: "
            "wrap the environment, for example in gymnasium.wrappers.FlattenObservation"
        )
    size = int(np.prod(space.shape))
    if size > MOST_VARIABLES:
        raise ValueError(
            f"the {role} space has {size} numbers, of shape {space.shape}: images are not states, "
            f"and at most {MOST_VARIABLES} variables are taken"
        )
    low, high = (np.asarray(ends, np.float64).reshape(-1) for ends in (space.low, space.high))
    if (low >= high).any():
        raise ValueError(
            f"variable {int(np.argmax(low >= high))} of the {role} space is constant: leave it out"
        )
    low, high = np.where(low < -1e30, -np.inf, low), np.where(high > 1e30, np.inf, high)  # float32's largest
    names = (name,) if size == 1 else tuple(f"{name}{i}" for i in range(size))
    return Box(names, tuple(map(float, low)), tuple(map(float, high)), (False,) * size)


def _with_bounds(space: Space, bounds: Mapping[str, Any]) -> Space:
    """`space` with the bounds of the named variables replaced."""
    named = {name: ends for name, ends in bounds.items() if name in space.names}
    if not named:
        return space
    if not isinstance(space, Box):
        raise ValueError(f"{space.name} has labels, and no bounds")
    for name, angle in zip(space.names, space.angles, strict=True):
        if angle and name in named:
            raise ValueError(f"{name} is an angle and goes all the way round: it takes no bounds")
    variables: dict[str, Any] = {
        name: "angle" if angle else named.get(name, (low, high))
        for name, low, high, angle in zip(space.names, space.low, space.high, space.angles, strict=True)
    }
    return Box.of(**variables)
