"""Eight instances on which methods are compared, each with several rewards that data must serve."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from rewardfree.arrays import count
from rewardfree.kernels import Kernel, Matern, SquaredExponential
from rewardfree.model import Model
from rewardfree.presets import PUBLISHED
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.hard import (
    MATERN,
    bumps,
    corridor_world,
    portal_world,
    rooms_world,
    sharpened_law,
    tide_world,
)
from rewardfree.worlds.instance import Instance

#: How many rewards each instance has.
REWARDS = 5
HORIZON = 10


def hard_suite(names: str | Iterable[str] | None = None) -> list[Instance]:
    """The eight instances, or those of some names; each takes a second at most to make."""
    chosen = list(_FAMILIES) if names is None else [names] if isinstance(names, str) else list(names)
    unknown = [name for name in chosen if name not in _FAMILIES]
    if unknown:
        raise ValueError(f"there is {', '.join(_FAMILIES)}, got {', '.join(map(repr, unknown))}")
    return [_FAMILIES[name](name) for name in chosen]


def hard_world(instance: str, *, reward: int = 0) -> Instance:
    """One instance of the suite with one of its rewards, the first by default: what a sweep can name."""
    (full,) = hard_suite([instance])
    chosen = count(reward, "reward", at_least=0)
    if chosen >= len(full.rewards):
        raise ValueError(f"reward must be one of 0..{len(full.rewards) - 1}, got {reward}")
    return replace(full, name=f"{full.name}, reward {chosen}", rewards=full.rewards[chosen, None])


def suite_names() -> tuple[str, ...]:
    """The names of the eight instances."""
    return tuple(_FAMILIES)


def _model(kernel: Kernel) -> Model:
    return Model(kernel, PUBLISHED.ridge(kernel))


def _sharpened(
    description: str, kernel: Kernel, sharpness: float, seed: int, learner: Kernel | None = None
) -> Callable[[str], Instance]:
    def make(name: str) -> Instance:
        law = sharpened_law(kernel, PUBLISHED.ridge(kernel), sharpness=sharpness, seed=seed)
        world = FiniteWorld(law, HORIZON, PUBLISHED.start)
        return Instance(name, description, world, bumps(world, REWARDS, seed=seed), _model(learner or kernel))

    return make


def _portal(name: str) -> Instance:
    world = portal_world(horizon=HORIZON)
    description = "the right half of a line is reached from a few states only, and all rewards lie there"
    return Instance(
        name, description, world, bumps(world, REWARDS, low=0.55, high=0.95, seed=5), _model(MATERN)
    )


def _corridor(name: str) -> Instance:
    corridor = corridor_world(horizon=HORIZON)
    s, a = corridor.world.states, corridor.world.actions.T
    rewards = bumps(corridor.world, REWARDS, width=0.05, low=0.5, only_states=True, seed=6)
    return replace(corridor, name=name, rewards=np.maximum(rewards, 0.05 * (1.0 - s) * (1.0 - a)))


def _rooms(name: str) -> Instance:
    world = rooms_world(horizon=HORIZON)
    rewards = bumps(world, REWARDS, width=0.15, low=(0.55, 0.0), high=1.0, only_states=True, seed=7)
    description = "two rooms of a square with one door, rewards in the other room"
    return Instance(name, description, world, rewards, _model(Matern(nu=1.5, lengthscale=0.3)))


def _tide(name: str) -> Instance:
    world = tide_world(horizon=HORIZON)
    rewards = bumps(world, REWARDS, width=0.05, low=0.5, only_states=True, seed=8)
    description = "a corridor whose drift turns within an episode: a law for each step"
    return Instance(name, description, world, rewards, _model(MATERN))


_FAMILIES: dict[str, Callable[[str], Instance]] = {
    "matern-1.5": _sharpened("a sharpened draw of the learner's own kernel", MATERN, 10.0, 1),
    "matern-2.5": _sharpened("a smoother draw, sharper still", Matern(nu=2.5, lengthscale=0.1), 20.0, 2),
    "squared-exponential": _sharpened("the smoothest draw", SquaredExponential(lengthscale=0.1), 5.0, 3),
    "misspecified": _sharpened(
        "drawn with a smoother kernel of thrice the lengthscale, which the learner does not know",
        SquaredExponential(lengthscale=0.3),
        5.0,
        4,
        learner=MATERN,
    ),
    "portal": _portal,
    "corridor": _corridor,
    "rooms": _rooms,
    "tide": _tide,
}
