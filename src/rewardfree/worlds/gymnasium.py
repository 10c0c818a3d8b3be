"""Gymnasium environments as worlds: all can be stepped, those of classic control put into any state."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rewardfree.arrays import as_horizon, as_names, count
from rewardfree.worlds.classic_control import CLASSIC_CONTROL, ClassicControl
from rewardfree.worlds.finite import FiniteWorld, check_world
from rewardfree.worlds.instance import Instance
from rewardfree.worlds.spaces import Box, Discrete, Space
from rewardfree.worlds.world import World

if TYPE_CHECKING:
    import gymnasium

#: An environment, or its id.
Environment: TypeAlias = "str | gymnasium.Env[Any, Any]"
#: Gymnasium's own wrappers that have a `step` and change nothing of it but the reward, which is never read.
TRANSPARENT = {
    "TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics", "RecordVideo",
    "HumanRendering", "RenderCollection", "NormalizeReward",
}  # fmt: skip
#: An image is not a state that a kernel can learn from.
MOST_VARIABLES = 64


def from_gymnasium(
    env: Environment,
    *,
    horizon: int | None = None,
    names: Sequence[str] | None = None,
    angles: Sequence[str] = (),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    pilot: int | None = None,
    **options: Any,
) -> GymnasiumWorld | FiniteWorld:
    """The world of an environment, or of an id such as "Pendulum-v1"; its rewards are never read.

    `horizon` is the steps of an episode, by default the environment's time limit. `names` are those of the
    state's variables, instead of s0, s1, ..., and after them of the action's if you like; `angles` says which
    of the state wrap around. `bounds` replaces those of variables by name; `pilot=500` measures infinite ones
    by 500 random steps. `options` go to gymnasium.make. A toy-text environment becomes the `FiniteWorld` of
    its table: its states and actions are labels, s and action, and a state in which an episode ends is never
    left.
    """
    import gymnasium

    names = None if names is None else as_names(names, "names")
    angles = as_names(angles or (), "angles")
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
        except Exception as error:  # what an environment makes of its options
            given = f"with {options!r:.200} " if options else ""
            raise ValueError(f"there is no environment {env!r} to be made {given}here: {error!r}") from error
    elif options:
        raise ValueError(f"{', '.join(options)} goes to gymnasium.make: give an id, not an environment")
    if isinstance(made, gymnasium.vector.VectorEnv):
        raise ValueError(
            f"this is a vector of {made.num_envs} environments: give one of them, as gymnasium.make makes it"
        )
    if not isinstance(made, gymnasium.Env):
        raise ValueError(f"env must be a Gymnasium environment or its id, got {env!r:.200}")
    longest = getattr(made.spec, "max_episode_steps", None)
    limit = longest if horizon is None else horizon
    if longest is not None and limit is not None and as_horizon(limit) > longest:
        raise ValueError(
            f"this environment cuts episodes after {longest} steps: make one with a larger time limit"
        )
    if limit is None:
        _space(made.observation_space, "s", "observation")  # no horizon would help where these are refused
        _space(made.action_space, "action", "action")
        raise ValueError(
            "this environment has no time limit: give horizon=, the steps of an episode "
            "(rf.from_gymnasium takes it)"
        )
    limit = as_horizon(limit)
    if _is_table(made):
        if bounds or pilot is not None or names or angles:
            raise ValueError(
                "names=, angles=, bounds= and pilot= are for real variables, "
                "and this environment has labels only"
            )
        return _finite(made.unwrapped, limit)
    return GymnasiumWorld(made, name, dict(options), limit, dict(bounds or {}), pilot, names, angles)


def as_world(world: Any) -> World | FiniteWorld:
    """A world as it is, a Gymnasium environment or its id as `from_gymnasium` makes a world of it."""
    if isinstance(world, (World, FiniteWorld)):
        return world
    if isinstance(world, Instance):
        check_world(world)  # which says what to pass
    import gymnasium

    if not isinstance(world, (str, gymnasium.Env, gymnasium.vector.VectorEnv)):
        raise ValueError(
            f"world must be a FiniteWorld, a World, or a Gymnasium environment or its id, got {world!r:.200}"
        )
    environment: Any = world
    return from_gymnasium(environment)


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
        names: Sequence[str] | None = None,
        angles: Sequence[str] = (),
    ) -> None:
        self._env, self._name, self._options, self.horizon = env, name, options, horizon
        kind = type(env.unwrapped)
        self._control: ClassicControl | None = (
            CLASSIC_CONTROL.get((kind.__module__, kind.__name__)) if _steps_plainly(env) else None
        )
        control = self._control
        action = _space(env.action_space, control.action if control else "action", "action")
        state = control.state if control else _space(env.observation_space, "s", "observation")
        self._named: dict[str, Any] = {}
        if names is not None:
            state, action = _named(state, action, names, control is not None)
            self._named["names"] = tuple(names)
        if angles:
            state = _with_angles(state, angles, control is not None)
            self._named["angles"] = tuple(angles)
        variables = (*state.names, *action.names)
        unknown = sorted(set(bounds) - set(variables))
        if unknown:
            raise ValueError(f"bounds names {', '.join(unknown)}, and there is {', '.join(variables)}")
        self.observation = control.observation if control else None
        self.state: Space = _with_bounds(state, bounds)
        self.action: Space = _with_bounds(action, bounds)
        if isinstance(self.action, Box):
            self.action.need_bounds("an action", pilot=False)
        _ = self.spaces  # whose names must differ
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
        table = {"gymnasium": self._name, "options": self._options, "horizon": self.horizon, **self._named}
        return table if self.pilot_steps == 0 else {**table, "pilot": self.pilot_steps}

    def reset(self, rng: np.random.Generator) -> Any:
        outcome = self._env.reset(seed=int(rng.integers(2**31)))
        observation, _ = _parts(outcome, "reset", "observation, info")
        return self._state(observation)

    def start(self, rng: np.random.Generator) -> Any:
        return self.reset(rng)

    def step(self, action: Any) -> tuple[Any, bool, bool]:
        outcome = self._env.step(self._as_given(action))
        named = "observation, reward, terminated, truncated, info"
        observation, _, terminated, truncated, _ = _parts(outcome, "step", named)
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


def _parts(outcome: Any, method: str, named: str) -> Any:
    """What a method of an environment returned, if it has these parts, which are not read."""
    several = isinstance(outcome, (tuple, list))
    if not several or len(outcome) != named.count(",") + 1:
        got = f"{len(outcome)} values" if several else type(outcome).__name__
        raise ValueError(f"{method} must return ({named}), as Gymnasium wants it, got {got}")
    return outcome


def _steps_plainly(env: Any) -> bool:
    """Whether it is wrapped only in wrappers that cannot change a step, whatever they do to the reward."""
    import gymnasium

    while env is not env.unwrapped:
        kind = type(env)
        known = kind.__module__.startswith("gymnasium.wrappers.") and kind.__name__ in TRANSPARENT
        inherited = kind.step in (gymnasium.Wrapper.step, gymnasium.RewardWrapper.step)
        if not known and not (inherited and kind.reset is gymnasium.Wrapper.reset):
            return False
        env = env.env
    return True


def _is_table(env: Any) -> bool:
    """Whether it is one of Gymnasium's toy-text environments, which carry their transition law."""
    law, module = getattr(env.unwrapped, "P", None), type(env.unwrapped).__module__
    return _steps_plainly(env) and module.startswith("gymnasium.envs.toy_text") and isinstance(law, dict)


def _finite(env: Any, horizon: int) -> FiniteWorld:
    """The table of (probability, next state, reward, ended), without its rewards.

    What the table says of going on from an end is not used: no episode gets there.
    """
    state, action = (
        _space(env.observation_space, "s", "observation"),
        _space(env.action_space, "action", "action"),
    )
    assert isinstance(state, Discrete) and isinstance(action, Discrete)
    outcomes = [
        (now, chosen, *outcome)
        for now, actions in env.P.items()
        for chosen, possible in actions.items()
        for outcome in possible
    ]
    ends = sorted({following for _, _, _, following, _, ended in outcomes if ended})
    P = np.zeros((state.n, action.n, state.n))
    for now, chosen, probability, following, _, _ in outcomes:
        P[now, chosen, following] += probability
    P[ends] = np.eye(state.n)[ends][:, None]
    P /= P.sum(axis=-1, keepdims=True)
    return FiniteWorld(P, horizon, env.initial_state_distrib, states=state, actions=action, ends=ends)


def _space(space: Any, name: str, role: str) -> Space:
    """The `Box` or `Discrete` of a Gymnasium space; other spaces are refused."""
    import gymnasium

    if isinstance(space, gymnasium.spaces.Discrete):
        if int(space.start) != 0:
            raise ValueError(f"labels of the {role} space must begin at 0, got {space}: wrap the environment")
        return Discrete(int(space.n), name)
    if not isinstance(space, gymnasium.spaces.Box):
        how = "gymnasium.wrappers.FlattenObservation"
        if role == "action":
            how = "a gymnasium.ActionWrapper that numbers its actions, or makes one array of them"
        raise ValueError(
            f"the {role} space must be a Box or Discrete, got {space}: wrap the environment, "
            f"for example in {how}"
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
    ends = tuple(map(float, low)), tuple(map(float, high))
    return Box(names, *ends, (False,) * size, str(space.dtype))


def _named(state: Space, action: Space, names: Sequence[str], known: bool) -> tuple[Space, Space]:
    """The state and the action under a user's names: of the state's variables, or of both."""
    before = (*state.names, *action.names)
    if known:
        raise ValueError(f"these variables have names, {', '.join(before)}: leave out names=")
    if len(names) not in (state.size, len(before)):
        raise ValueError(
            f"names must be a list of {state.size} for {', '.join(state.names)}, "
            f"or of {len(before)} with {', '.join(action.names)}, got {names!r}"
        )
    of_state, of_action = tuple(names[: state.size]), tuple(names[state.size :])
    return _renamed(state, of_state), _renamed(action, of_action) if of_action else action


def _renamed(space: Space, names: tuple[str, ...]) -> Space:
    return replace(space, names=names) if isinstance(space, Box) else replace(space, name=names[0])


def _with_angles(state: Space, angles: Sequence[str], known: bool) -> Space:
    """The state with these variables as angles, which wrap around."""
    if known:
        raise ValueError("it is known which variables of this environment are angles: leave out angles=")
    unknown = sorted(set(angles) - set(state.names))
    if unknown or not isinstance(state, Box):
        raise ValueError(f"angles must be a list of some of {', '.join(state.names)}, got {angles!r}")
    turning = tuple(name in angles for name in state.names)
    low, high = (
        tuple(bound if turns else end for end, turns in zip(ends, turning, strict=True))
        for ends, bound in ((state.low, -math.pi), (state.high, math.pi))
    )
    return replace(state, low=low, high=high, angles=turning)


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
    return replace(Box.of(**variables), dtype=space.dtype)
