"""Gymnasium's classic-control environments: what their states are, and how to put one into a state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.worlds.spaces import Box
from rewardfree.worlds.world import Observation


@dataclass(frozen=True)
class ClassicControl:
    """What Gymnasium does not declare about an environment of one class."""

    state: Box
    action: str  # the name of its action
    put: Callable[[Any, Any], None]  # puts the unwrapped environment into a state (d,)
    observation: Observation | None = None  # None: the state itself


def _put(env: Any, state: Any) -> None:
    env.state = np.array(state, np.float64)


def _put_cart(env: Any, state: Any) -> None:
    env.state = np.array(state, np.float64)
    env.steps_beyond_terminated = None  # else it warns of a step after the end


def _put_car(env: Any, state: Any) -> None:
    # From its second step on this environment computes in float32, and with states that float32 holds.
    single = np.array(state, np.float32)
    env.state = single if np.array_equal(single, state) else np.array(state, np.float64)


def _observed(*columns: str) -> Observation:
    """The observation with these columns, each such as "cos theta", "sin theta" or "omega"."""
    pairs = (column.rpartition(" ") for column in columns)
    return Observation(tuple((how or "is", name) for how, _, name in pairs))


_CAR = Box.of(position=(-1.2, 0.6), velocity=(-0.07, 0.07))
#: By the class of the unwrapped environment, not of its bases: a derived environment may do anything.
CLASSIC_CONTROL: dict[tuple[str, str], ClassicControl] = {
    ("gymnasium.envs.classic_control.pendulum", "PendulumEnv"): ClassicControl(
        Box.of(theta="angle", omega=(-8.0, 8.0)), "torque", _put, _observed("cos theta", "sin theta", "omega")
    ),
    ("gymnasium.envs.classic_control.mountain_car", "MountainCarEnv"): ClassicControl(
        _CAR, "push", _put, _observed(*_CAR.names)
    ),
    ("gymnasium.envs.classic_control.continuous_mountain_car", "Continuous_MountainCarEnv"): ClassicControl(
        _CAR, "force", _put_car, _observed(*_CAR.names)
    ),
    ("gymnasium.envs.classic_control.cartpole", "CartPoleEnv"): ClassicControl(
        Box.of(x=(-4.8, 4.8), v=None, theta=(-0.418879, 0.418879), omega=None),
        "push",
        _put_cart,
        _observed("x", "v", "theta", "omega"),
    ),
    ("gymnasium.envs.classic_control.acrobot", "AcrobotEnv"): ClassicControl(
        Box.of(
            theta1="angle",
            theta2="angle",
            omega1=(-4.0 * np.pi, 4.0 * np.pi),
            omega2=(-9.0 * np.pi, 9.0 * np.pi),
        ),
        "torque",
        _put,
        _observed("cos theta1", "sin theta1", "cos theta2", "sin theta2", "omega1", "omega2"),
    ),
}
