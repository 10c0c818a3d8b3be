"""Exploration with a generative model (Alg 2): look where the uncertainty is largest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rewardfree.arrays import Array, count, to_numpy
from rewardfree.model import Model
from rewardfree.registry import registered
from rewardfree.strategies.queries import QUERY_SETS, QuerySet, play_queries
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.strategy import Strategy
from rewardfree.strategies.world_run import WorldRun
from rewardfree.threads import one_blas_thread
from rewardfree.ties import Ties, argmax_tied


@registered("strategy", "generative")
@dataclass(frozen=True)
class Generative(Strategy):
    """Alg 2: query z = argmax sigma_h(z) anywhere, for every step; the world must take any state.

    On a finite world the list of queries is `query_plan`; with `ties="random"` every run has its own. On a
    continuous one `candidates` are what the learnt model can reach ("reachable"), a scrambled Sobol set of
    the bounds ("sobol"), or points anywhere in them, new for every batch ("box").
    """

    ties: Ties = "lowest"
    candidates: QuerySet = "reachable"
    generative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates not in QUERY_SETS:
            raise ValueError(f"candidates must be one of {', '.join(QUERY_SETS)}, got {self.candidates!r}")

    def play_world(self, run: WorldRun) -> None:
        play_queries(run, self.candidates)

    def play_batch(self, batch: RunBatch) -> None:
        estimate, steps = batch.estimate, range(batch.horizon)
        if batch.model.pooled:
            for h in steps:
                z = self._query(batch, h)
                estimate.add(h, z[:, 0], batch.move(h, z)[:, 0])
        else:
            z = self._query(batch, 0)
            next_states = estimate.xp.concat([batch.move(h, z) for h in steps], axis=1)
            estimate.add_all(estimate.xp.broadcast_to(z, (batch.runs, batch.horizon)), next_states)

    def _query(self, batch: RunBatch, h: int) -> Array:
        """The next query of every run, (b,1): z = argmax sigma_h(z) (Alg 2, line 4)."""
        ties = batch.tie_breaks(h)
        z = argmax_tied(batch.estimate.std(h), None if ties is None else ties[:, 0])
        return batch.estimate.xp.broadcast_to(z[:, None], (batch.runs, 1))


def query_plan(model: Model, candidates: Array, n: int) -> Any:
    """The first n queries of Alg 2 as candidate indices (n,): z_i = argmax_z sigma_{i-1}(z).

    sigma depends on where one looked, never on what was seen: the whole list exists before any data do, and
    is the same for every step, run and dynamics. Ties go to the lowest index.
    """
    n = count(n, "n", at_least=0)
    lattice = model.lattice(candidates, capacity=max(n, 1))
    plan = np.empty(n, np.int64)
    with one_blas_thread():
        for i in range(n):
            chosen = argmax_tied(lattice.std())
            lattice.append(None, chosen)
            plan[i] = int(to_numpy(chosen)[0])
    return plan


@dataclass(frozen=True)
class UncertaintyPath:
    """What a list of n queries does to the uncertainty over the candidates (m)."""

    at_query: Any  # (n,) sigma at each query, just before it is made
    largest: Any  # (n+1,) the largest sigma over the candidates after 0..n queries
    information_gain: Any  # (n+1,) after 0..n queries
    maps: dict[int, Any]  # sigma over the candidates, (m,), after each number of queries asked for


def uncertainty_path(
    model: Model, candidates: Array, queries: Sequence[int], map_after: Sequence[int] = ()
) -> UncertaintyPath:
    """Make the queries one by one and watch sigma; `map_after` says after which ones to keep all of it."""
    moments = [count(n, "map_after", at_least=0) for n in map_after]
    if any(n > len(queries) for n in moments):
        raise ValueError(f"map_after must lie in 0..{len(queries)}, the number of queries, got {moments}")
    lattice = model.lattice(candidates, capacity=max(len(queries), 1))
    at_query, largest, gain, maps = [], [], [], {}
    with one_blas_thread():
        for i in range(len(queries) + 1):
            std = to_numpy(lattice.std())[0]
            largest.append(std.max())
            gain.append(float(lattice.information_gain()[0]))
            if i in moments:
                maps[i] = std
            if i < len(queries):
                at_query.append(float(lattice.std(rows=[queries[i]])[0, 0]))
                lattice.append(None, [queries[i]])
    return UncertaintyPath(np.array(at_query), np.array(largest), np.array(gain), maps)
