"""Four systems with walls, and places where one gets stuck: what was seen may say little about the rest."""

from typing import Any, ClassVar

import numpy as np

import rewardfree as rf


class Unicycle(rf.World):
    """A robot in a square room: it turns and rolls, and at a wall it only turns."""

    state: Any = rf.Box.of(x=(-1, 1), y=(-1, 1), phi="angle")
    action: Any = rf.Box.of(speed=(0, 1), turn=(-1, 1))
    horizon: int = 80
    rewards: ClassVar[dict[str, str]] = {
        "corner": "exp(-((x-.9)**2+(y-.9)**2)/.05)",
        "centre": "exp(-(x**2+y**2)/.05)",
        "left wall": "exp(-((x+.9)**2+y**2)/.05)",
    }

    def start(self, rng: np.random.Generator) -> Any:
        return np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-np.pi, np.pi)])

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        phi = state[:, 2] + 0.3 * action[:, 1]
        way = 0.1 * action[:, 0]
        x = np.clip(state[:, 0] + way * np.cos(phi), -1.0, 1.0)
        y = np.clip(state[:, 1] + way * np.sin(phi), -1.0, 1.0)
        return np.stack([x, y, phi], axis=1), np.zeros(len(state), bool)


class Pusher(rf.World):
    """A cart on a track pushes a block, which it cannot pull: a block at the wall stays there."""

    state: Any = rf.Box.of(x=(-1, 1), v=(-1, 1), block=(-1, 1))
    action: Any = rf.Box.of(force=(-1, 1))
    horizon: int = 60
    rewards: ClassVar[dict[str, str]] = {
        "block at 0.5": "exp(-(block-.5)**2/.01)",
        "block at the wall": "exp(-(block-1)**2/.01)",
        "cart far left": "exp(-(x+.8)**2/.02)",
    }

    def start(self, rng: np.random.Generator) -> Any:
        return np.array([rng.uniform(-0.6, -0.2), 0.0, rng.uniform(0.0, 0.3)])

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        x, v, block = state.T
        v = np.clip(0.9 * v + 0.2 * action[:, 0], -1.0, 1.0)
        far = x + 0.1 * v
        block = np.where(x <= block, np.clip(np.maximum(block, far), -1.0, 1.0), block)
        x = np.clip(far, -1.0, 1.0)
        v = np.where(x == far, v, 0.0)  # it stops at a wall
        return np.stack([x, v, block], axis=1), np.zeros(len(state), bool)


class Tanks(rf.World):
    """Two pumps fill three tanks in a row: full ones spill, and what is in the last one stays there."""

    state: Any = rf.Box.of(first=(0, 1), second=(0, 1), last=(0, 1))
    action: Any = rf.Box.of(pump=(0, 1), back=(0, 1))
    horizon: int = 60
    rewards: ClassVar[dict[str, str]] = {
        "second half full": "exp(-(second-.5)**2/.01)",
        "last at 0.6": "exp(-(last-.6)**2/.01)",
        "first full, second empty": "exp(-((first-1)**2+second**2)/.1)",
    }

    def start(self, rng: np.random.Generator) -> Any:
        return np.array([*rng.uniform(0.1, 0.5, 2), 0.0])

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        first, second, last = state.T
        down = np.minimum(0.08 * np.sqrt(first), first)  # the pressure of what stands above
        back = np.minimum(0.1 * action[:, 1], second)  # pumped from the second tank into the first
        over = np.maximum(second - 0.7, 0.0) * 0.3  # above this height it runs into the last one
        first = np.clip(first + 0.1 * action[:, 0] - down + back, 0.0, 1.0)
        second = np.clip(second + down - back - over, 0.0, 1.0)
        last = np.clip(last + over, 0.0, 1.0)
        return np.stack([first, second, last], axis=1), np.zeros(len(state), bool)


class Skater(rf.World):
    """A skater with a heading and a speed: walls stop it, mud holds it, it cannot skate backwards."""

    state: Any = rf.Box.of(x=(-1, 1), y=(-1, 1), phi="angle", speed=(0, 1))
    action: Any = rf.Discrete(5)
    horizon: int = 60
    rewards: ClassVar[dict[str, str]] = {
        "corner": "exp(-((x+.8)**2+(y-.8)**2)/.1)",
        "bottom wall": "exp(-(x**2+(y+.9)**2)/.1)",
        "fast": "speed",
    }

    def start(self, rng: np.random.Generator) -> Any:
        return np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-np.pi, np.pi), 0.0])

    def sample(self, state: Any, action: Any, h: int, rng: np.random.Generator) -> tuple[Any, Any]:
        push = np.array([0.0, 0.3, -0.3, 0.1, 0.1])[action]
        turn = np.array([0.0, 0.0, 0.0, 0.4, -0.4])[action]
        mud = ((state[:, :2] - [0.5, 0.5]) ** 2).sum(axis=1) < 0.3**2
        phi = state[:, 2] + turn
        speed = np.clip(np.where(mud, 0.3, 0.95) * state[:, 3] + push, 0.0, 1.0)
        far = state[:, :2] + 0.15 * speed[:, None] * np.stack([np.cos(phi), np.sin(phi)], axis=1)
        place = np.clip(far, -1.0, 1.0)
        speed = np.where((place == far).all(axis=1), speed, 0.0)
        return np.column_stack([place, phi, speed]), np.zeros(len(state), bool)


WORLDS = {world.__name__.lower(): world for world in (Unicycle, Pusher, Tanks, Skater)}
#: The method was developed on the first two; the others were run once it stood.
DEVELOPED_ON = ("unicycle", "pusher")
