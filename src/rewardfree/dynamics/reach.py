"""Where a system can go, as far as its learnt dynamics tell."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.data import Samples
from rewardfree.dynamics.extent import FARTHEST
from rewardfree.dynamics.learnt import Dynamics
from rewardfree.streams import stream

#: Rollouts, and the chances of a new action at each step: what is held longer goes farther.
ROLLOUTS, CHANCES = 64, (1.0, 0.3, 0.1, 0.03)
#: The longest rollout.
MOST_STEPS = 200


def reached(
    dynamics: Dynamics, samples: Samples, starts: Any, ended: Callable[[Any], Any], steps: int
) -> Any:
    """States (n,d) that rollouts inside the model meet, from starts (k,d), with actions of the samples.

    An action is drawn and held for some steps; a rollout that ends begins again. What is predicted farther
    out than `FARTHEST` times the range of the samples counts as there.
    """
    rng, space = stream(0, "reach"), dynamics.space
    seen = space.wrapped(np.concatenate([samples.state, samples.next_state]))
    middle = 0.5 * (seen.max(axis=0) + seen.min(axis=0))
    farthest = np.where(space.angular, np.inf, FARTHEST * (seen.max(axis=0) - middle))
    chance = rng.choice(CHANCES, ROLLOUTS)

    def drawn(rows: Any) -> Any:
        return rows[rng.integers(len(rows), size=ROLLOUTS)]

    state, action = drawn(starts), drawn(samples.action)
    met = [state]
    for _ in range(min(steps, MOST_STEPS)):
        anew = rng.random(ROLLOUTS) < chance
        action = np.where(anew.reshape(-1, *(1,) * (action.ndim - 1)), drawn(samples.action), action)
        state = np.clip(dynamics.next_state(state, action), middle - farthest, middle + farthest)
        met.append(state)
        state = np.where(ended(state)[:, None], drawn(starts), state)
    return space.wrapped(np.concatenate(met))
