"""Values of a mesh by steps to go: computed backwards, kept as far as they differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Array, namespace, to_numpy
from rewardfree.dynamics import Mesh, MeshDynamics
from rewardfree.estimates.backups import bellman_q
from rewardfree.progress import Tell, tell_nobody

#: Values whose changes differ by less than this fraction of their range from node to node have settled.
SETTLED = 1e-5
#: Sweeps of an infinite horizon, and sweeps between two looks whether they have settled.
MOST_SWEEPS, LOOK = 20_000, 10
#: On a mesh with more nodes every table is kept up to ALL_UP_TO steps to go, beyond that every 2nd, 4th, ...
FINE_MESH, ALL_UP_TO = 20_000, 32


@dataclass(frozen=True, eq=False)
class MeshValues:
    """V of the nodes with k steps to go, for some k; linear between these, a steady change beyond."""

    mesh: Mesh
    tables: Any  # (k,m) float32
    to_go: Any  # (k,) steps, ascending from 0
    discount: float
    drift: float  # what one more step adds to every node beyond the last table; 0 if it was not reached

    def at(self, state: Any, to_go: int) -> Any:
        """V at states (n,d) with that many steps to go."""
        return self.between(*self.mesh.corners(state), to_go)

    def between(self, nodes: Any, weights: Any, to_go: int) -> Any:
        """V of states by the corners of their cells, (n,k) each."""
        last = int(self.to_go[-1])
        if to_go >= last:
            return _mixed(self.tables[-1], nodes, weights) + self.drift * self._steps(to_go - last)
        right = int(np.searchsorted(self.to_go, to_go))
        values = _mixed(self.tables[right], nodes, weights)
        after = int(self.to_go[right])
        if after == to_go:
            return values
        before = int(self.to_go[right - 1])
        share = (to_go - before) / (after - before)
        return share * values + (1.0 - share) * _mixed(self.tables[right - 1], nodes, weights)

    def _steps(self, more: int) -> float:
        """1 + discount + ... for `more` steps."""
        if self.discount == 1.0:
            return float(more)
        return (1.0 - self.discount**more) / (1.0 - self.discount)


def _mixed(table: Any, nodes: Any, weights: Any) -> Any:
    return np.einsum("nk,nk->n", table[nodes], weights)


def value_iteration(
    on_mesh: MeshDynamics,
    reward: Callable[[int], Any],
    horizon: int | None,
    discount: float,
    changing: bool,
    tell: Tell = tell_nobody,
) -> MeshValues:
    """V_h = max_a [r_h + discount E V_{h+1}] at the nodes, from the last step to the first.

    `reward(h)` is r_h at every action and node, (a*m,); `changing` says that it depends on h. Without a
    horizon it goes on until values have settled.
    """
    matrix, mesh, algebra = on_mesh.transitions, on_mesh.mesh, on_mesh.algebra
    xp, shape = algebra.xp, (len(on_mesh.actions), mesh.size)
    value = algebra.zeros(mesh.size)
    kept, to_go, drift = [_single(value)], [0], 0.0
    r = None if changing else algebra.array(reward(0))
    ending = float(on_mesh.matrix.sum(axis=1).min()) < 1.0 - 1e-9
    for k in range(1, (MOST_SWEEPS if horizon is None else horizon) + 1):
        if changing and horizon is not None:
            r = algebra.array(reward(horizon - k))
        if horizon is not None:
            tell(k / horizon)
        new = bellman_q(r, matrix @ value, discount).reshape(shape)
        new = xp.max(new, axis=0)
        if k % LOOK == 0 and not changing:
            change = new - value
            low, high = float(change.min()), float(change.max())
            # A change that is equal at all nodes will repeat, unless an episode can end.
            still = max(abs(low), abs(high)) if ending else high - low
            if still <= SETTLED * max(float(new.max() - new.min()), 1e-30):
                drift = 0.5 * (low + high) * discount
                value = new
                break
        value = new
        if changing or _is_kept(k, mesh.size):
            kept.append(_single(value))
            to_go.append(k)
    if to_go[-1] != k:
        kept.append(_single(value))
        to_go.append(k)
    if horizon is None:  # the last one alone, and all that would still be added
        total = value + (drift / (1.0 - discount) if discount < 1.0 else 0.0)
        return MeshValues(mesh, to_numpy(_single(total))[None], np.array([0]), discount, 0.0)
    return MeshValues(mesh, to_numpy(xp.stack(kept)), np.array(to_go), discount, drift)


def _single(value: Array) -> Array:
    """In float32, the type of the tables."""
    xp = namespace(value)
    return xp.astype(value, xp.float32)


def _is_kept(k: int, nodes: int) -> bool:
    if nodes <= FINE_MESH or k <= ALL_UP_TO:
        return True
    return k % (1 << ((k - 1) // ALL_UP_TO).bit_length()) == 0
