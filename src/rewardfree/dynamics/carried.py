"""Next states on a mesh inside another one, from those that were predicted there."""

from typing import Any

import numpy as np

from rewardfree.dynamics.mesh import Mesh, MeshDynamics
from rewardfree.streams import stream

#: They are used if they miss the predictions by at most this share of the spacing (root mean square), on this
#: number of pairs.
MISSED, PAIRS = 0.02, 300


def carry_over(coarse: MeshDynamics, fine: MeshDynamics) -> None:
    """Give `fine` its next states by cubic interpolation of the changes on `coarse`, where that is accurate.

    A prediction takes a kernel value for each transition, the interpolation four products a variable.
    """
    if not _inside(fine.mesh, coarse.mesh):
        return
    d, a = len(fine.mesh.sides), len(fine.actions)
    field = coarse.change.reshape(*coarse.mesh.sides, a * d)
    for i in range(d):
        field = np.moveaxis(np.tensordot(_cubic(coarse.mesh, fine.mesh, i), field, (1, i)), 0, i)
    states, actions = fine.pairs
    change = field.reshape(fine.mesh.size, a, d).swapaxes(0, 1).reshape(-1, d)
    next_states = fine.moved(states, change)
    some = stream(0, "carried over").integers(len(states), size=PAIRS)
    exact = fine.predictor.next_state(states[some], actions[some])
    space: Any = fine.spaces.state
    missed = space.change(exact, next_states[some]) / fine.mesh.spacing
    if float(np.sqrt((missed**2).mean(axis=0)).max()) <= MISSED:
        fine.__dict__["next_states"] = next_states


def _inside(fine: Mesh, coarse: Mesh) -> bool:
    slack = 1e-9 * (coarse.high - coarse.low)
    return bool((fine.low >= coarse.low - slack).all() and (fine.high <= coarse.high + slack).all())


def _cubic(coarse: Mesh, fine: Mesh, i: int) -> Any:
    """Weights (fine,coarse) of the four nodes next to each, in variable i."""
    side, n = coarse.sides[i], fine.sides[i]
    points = np.arange(min(4, side))
    place = (fine.low[i] - coarse.low[i] + fine.spacing[i] * np.arange(n)) / coarse.spacing[i]
    first = np.floor(place).astype(np.int64) - 1
    if not coarse.angular[i]:
        first = np.clip(first, 0, side - len(points))
    weights = np.zeros((n, side))
    for j in points:
        others = points[points != j]
        share = ((place - first)[:, None] - others) / (j - others)
        np.add.at(weights, (np.arange(n), (first + j) % side), share.prod(axis=1))
    return weights
