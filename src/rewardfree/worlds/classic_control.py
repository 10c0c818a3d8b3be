"""The classic-control tasks: what their states are, and how an environment is put into one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.worlds.spaces import Box
from rewardfree.worlds.world import Observation


@dataclass(frozen=True)
class Task:
    """What Gymnasium does not declare about an environment of one class."""

    state: Box
    action: str  # what its action is called
    put: Callable[[Any, Any], None]  # put the unwrapped environment into a state (d,)
    observation: Observation | None = None  # None: the state itself


def _put(env: Any, state: Any) -> None:
    env.state = np.array(state, np.float64)


def _put_cart(env: Any, state: Any) -> None:
    env.state = np.array(state, np.float64)
    env.steps_beyond_terminated = None  # or it warns of a step after the end


def _put_car(env: Any, state: Any) -> None:
    # After its first step this one computes in float32, and any such state is exactly one of these.
    single = np.array(state, np.float32)
    env.state = single if np.array_equal(single, state) else np.array(state, np.float64)


def _seen(*columns: str) -> Observation:
    """ "cos theta", "sin theta" or "omega", one for each column."""
    pairs = (column.rpartition(" ") for column in columns)
    return Observation(tuple((how or "is", name) for how, _, name in pairs))


_CAR = Box.of(position=(-1.2, 0.6), velocity=(-0.07, 0.07))
#: By the class of the unwrapped environment: an environment derived from one of these may do anything.
TASKS: dict[tuple[str, str], Task] = {
    ("gymnasium.envs.classic_control.pendulum", "PendulumEnv"): Task(
        Box.of(theta="angle", omega=(-8.0, 8.0)), "torque", _put, _seen("cos theta", "sin theta", "omega")
    ),
    ("gymnasium.envs.classic_control.mountain_car", "MountainCarEnv"): Task(
        _CAR, "push", _put, _seen(*_CAR.names)
    ),
    ("gymnasium.envs.classic_control.continuous_mountain_car", "Continuous_MountainCarEnv"): Task(
        _CAR, "force", _put_car, _seen(*_CAR.names)
    ),
    ("gymnasium.envs.classic_control.cartpole", "CartPoleEnv"): Task(
        Box.of(x=(-4.8, 4.8), v=None, theta=(-0.418879, 0.418879), omega=None),
        "push",
        _put_cart,
        _seen("x", "v", "theta", "omega"),
    ),
    ("gymnasium.envs.classic_control.acrobot", "AcrobotEnv"): Task(
        Box.of(
            theta1="angle",
            theta2="angle",
            omega1=(-4.0 * np.pi, 4.0 * np.pi),
            omega2=(-9.0 * np.pi, 9.0 * np.pi),
        ),
        "torque",
        _put,
        _seen("cos theta1", "sin theta1", "cos theta2", "sin theta2", "omega1", "omega2"),
    ),
}
