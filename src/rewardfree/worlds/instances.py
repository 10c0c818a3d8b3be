"""Worlds on which methods are compared: fixed before any method saw them, each with several rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.kernels import Kernel, Matern, SquaredExponential
from rewardfree.model import Model
from rewardfree.presets import PUBLISHED
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.hard import (
    bumps,
    corridor_world,
    portal_world,
    rooms_world,
    sharpened_law,
    tide_world,
)

#: Of every instance; reward-free data must serve them all.
REWARDS = 5
HORIZON = 10


@dataclass(frozen=True, eq=False)
class Instance:
    """A world, the rewards (c,s,a) in [0,1] that are revealed later, and what a learner is told: a model.

    The model is the paper's: a fixed kernel and ridge, one regression for each step, uncentred.
    """

    name: str
    about: str
    world: FiniteWorld
    rewards: Any
    model: Model


def hard_suite(names: Any = None) -> list[Instance]:
    """The eight instances, or those of some names; each takes a second at most to make."""
    chosen = list(_FAMILIES) if names is None else [names] if isinstance(names, str) else list(names)
    unknown = [name for name in chosen if name not in _FAMILIES]
    if unknown:
        raise ValueError(f"there is {', '.join(_FAMILIES)}, got {', '.join(map(repr, unknown))}")
    return [_FAMILIES[name](name) for name in chosen]


def suite_names() -> tuple[str, ...]:
    """The names of the instances."""
    return tuple(_FAMILIES)


def _model(kernel: Kernel) -> Model:
    return Model(kernel, PUBLISHED.ridge(kernel))


def _sharpened(
    about: str, kernel: Kernel, sharpness: float, seed: int, learner: Kernel | None = None
) -> Callable[[str], Instance]:
    def made(name: str) -> Instance:
        law = sharpened_law(kernel, PUBLISHED.ridge(kernel), sharpness=sharpness, seed=seed)
        world = FiniteWorld(law, HORIZON, PUBLISHED.start)
        return Instance(name, about, world, bumps(world, REWARDS, seed=seed), _model(learner or kernel))

    return made


def _portal(name: str) -> Instance:
    world = portal_world(horizon=HORIZON)
    about = "the right half of a line is reached from a few states only, and all rewards lie there"
    return Instance(name, about, world, bumps(world, REWARDS, low=0.55, high=0.95, seed=5), _model(_MATERN))


def _corridor(name: str) -> Instance:
    world, _ = corridor_world(horizon=HORIZON)
    s, a = world.states, world.actions.T
    rewards = bumps(world, REWARDS, width=0.05, low=0.5, only_states=True, seed=6)
    about = "a noisy corridor that drifts back; a little is paid for staying at the wrong end"
    return Instance(name, about, world, np.maximum(rewards, 0.05 * (1.0 - s) * (1.0 - a)), _model(_MATERN))


def _rooms(name: str) -> Instance:
    world = rooms_world(horizon=HORIZON)
    rewards = bumps(world, REWARDS, width=0.15, low=(0.55, 0.0), high=1.0, only_states=True, seed=7)
    about = "two rooms of a square with one door, rewards in the other room"
    return Instance(name, about, world, rewards, _model(Matern(nu=1.5, lengthscale=0.3)))


def _tide(name: str) -> Instance:
    world = tide_world(horizon=HORIZON)
    rewards = bumps(world, REWARDS, width=0.05, low=0.5, only_states=True, seed=8)
    about = "a corridor whose drift turns within an episode: a law for each step"
    return Instance(name, about, world, rewards, _model(_MATERN))


_MATERN = Matern(nu=1.5, lengthscale=0.1)
_FAMILIES: dict[str, Callable[[str], Instance]] = {
    "matern-1.5": _sharpened("a sharpened draw of the learner's own kernel", _MATERN, 10.0, 1),
    "matern-2.5": _sharpened("a smoother draw, sharper still", Matern(nu=2.5, lengthscale=0.1), 20.0, 2),
    "squared-exponential": _sharpened("the smoothest draw", SquaredExponential(lengthscale=0.1), 5.0, 3),
    "misspecified": _sharpened(
        "drawn with a smoother kernel of thrice the lengthscale, which the learner does not know",
        SquaredExponential(lengthscale=0.3),
        5.0,
        4,
        learner=_MATERN,
    ),
    "portal": _portal,
    "corridor": _corridor,
    "rooms": _rooms,
    "tide": _tide,
}
