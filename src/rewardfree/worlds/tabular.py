"""Small worlds whose states are not places, on which tabular methods are compared."""

import numpy as np

from rewardfree.arrays import count
from rewardfree.streams import stream
from rewardfree.worlds.finite import FiniteWorld


def garnet_world(
    *, states: int = 10, actions: int = 4, horizon: int = 5, branching: int = 3, seed: int = 0
) -> FiniteWorld:
    """A random world in which every (s,a) leads to `branching` states, with weights uniform on the simplex.

    It starts in state 0 (Archibald et al. 1995).
    """
    S, A = count(states, "states", at_least=2), count(actions, "actions")
    branching = count(branching, "branching")
    if branching > S:
        raise ValueError(f"branching must be at most the {S} states, got {branching}")
    rng = stream(seed, "garnet")
    law = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            law[s, a, rng.choice(S, branching, replace=False)] = rng.dirichlet(np.ones(branching))
    return FiniteWorld(law, horizon, 0)


def riverswim_world(*, states: int = 6, horizon: int = 10) -> FiniteWorld:
    """A chain with a current (Strehl and Littman 2008): action 0 always drifts one state back.

    Action 1 swims: one state on with probability 0.35, back with 0.05, else it stays; from the first state on
    with 0.6, from the last back with 0.4. It starts at the first; uniform exploration rarely sees the last.
    """
    S = count(states, "states", at_least=2)
    law = np.zeros((S, 2, S))
    for s in range(S):
        law[s, 0, max(s - 1, 0)] = 1.0
        on, back = (0.6, 0.0) if s == 0 else (0.0, 0.4) if s == S - 1 else (0.35, 0.05)
        law[s, 1, min(s + 1, S - 1)] += on
        law[s, 1, max(s - 1, 0)] += back
        law[s, 1, s] += 1.0 - on - back
    return FiniteWorld(law, horizon, 0)
