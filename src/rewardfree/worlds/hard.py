"""Worlds where planning matters: a policy that looks at the reward alone loses on them.

The paper's draws are nearly bandits: the next state hardly depends on the action, and argmax_a r(s,a) is
close to optimal without any data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardfree.arrays import count, non_negative, positive
from rewardfree.kernels import Kernel, Matern, as_kernel
from rewardfree.presets import PUBLISHED
from rewardfree.streams import stream
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.rkhs import check_size, smooth_draw


def sharpened_world(
    kernel: Kernel | None = None,
    ridge: float | None = None,
    *,
    sharpness: float = 10.0,
    width: float = 0.1,
    seed: int = 0,
    states: int = 100,
    actions: int = 100,
    horizon: int = 10,
    coarse: int = 10,
    start: Any = None,
) -> tuple[FiniteWorld, Any]:
    """A draw of the paper with raised contrasts, P = softmax(sharpness f), and a reward (s,a) of one bump.

    `kernel` defaults to the paper's Matern 1.5, `ridge` to the one published with it; `width` is the bump's.
    """
    kernel = Matern(nu=1.5, lengthscale=0.1) if kernel is None else as_kernel(kernel)
    ridge = PUBLISHED.ridge(kernel) if ridge is None else positive(ridge, "ridge")
    states, actions = count(states, "states", at_least=2), count(actions, "actions", at_least=2)
    sharpness, width = positive(sharpness, "sharpness"), positive(width, "width")
    drawn = smooth_draw(kernel, ridge, (states, actions, states), coarse, stream(seed, "dynamics"))
    drawn *= sharpness
    law = np.exp(drawn - drawn.max(axis=-1, keepdims=True))
    law /= law.sum(axis=-1, keepdims=True)
    s, a = np.linspace(0, 1, states)[:, None], np.linspace(0, 1, actions)[None, :]
    top = stream(seed, "reward").random(2)
    square = ((s - top[0]) ** 2 + (a - top[1]) ** 2) / width**2
    return FiniteWorld(law, horizon, start), np.exp(-0.5 * square)


def corridor_world(
    *,
    stride: float = 0.15,
    drift: float = 0.03,
    noise: float = 0.03,
    consolation: float = 0.05,
    states: int = 100,
    actions: int = 100,
    horizon: int = 10,
    start: Any = 0,
) -> tuple[FiniteWorld, Any]:
    """A noisy corridor that drifts to the left, and a reward (s,a): a walk to the right end pays.

    An action a of [0,1] moves by stride (2a - 1) - drift, with Gaussian noise. The reward is one bump at the
    right end and, to lead the short-sighted astray, a little for walking left (a = 0) near the left one.
    """
    stride, noise = positive(stride, "stride"), positive(noise, "noise")
    drift, consolation = non_negative(drift, "drift"), non_negative(consolation, "consolation")
    if consolation > 1.0:
        raise ValueError(f"consolation must be at most 1, the reward at the right end, got {consolation}")
    states, actions = count(states, "states", at_least=2), count(actions, "actions", at_least=2)
    check_size((states, actions, states))
    s, a = np.linspace(0, 1, states), np.linspace(0, 1, actions)
    mean = np.clip(s[:, None] + stride * (2.0 * a[None, :] - 1.0) - drift, 0.0, 1.0)  # (s,a)
    square = (s - mean[..., None]) ** 2
    # Subtracting the least keeps a row from vanishing when the noise is far below the spacing of states.
    square -= square.min(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):  # infinity is as good as any large number here
        law = np.exp(-0.5 * square / noise / noise)
    law /= law.sum(axis=-1, keepdims=True)
    right = np.exp(-0.5 * ((s[:, None] - 1.0) / 0.05) ** 2) * np.ones_like(a)
    left = consolation * (1.0 - s[:, None]) * (1.0 - a[None, :])
    return FiniteWorld(law, horizon, start), np.maximum(right, left)
