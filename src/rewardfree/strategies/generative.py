"""Exploration with a generative model (Alg 2): look where the uncertainty is largest."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rewardfree.arrays import Array, Integers, count, to_numpy
from rewardfree.dynamics.exploration import check_variables, exploration_posterior
from rewardfree.model import Model
from rewardfree.registry import registered
from rewardfree.strategies.current import PILOT, CurrentExploration, next_refit, refitted_at, while_exploring
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.strategies.strategy import Strategy
from rewardfree.strategies.world_run import WorldRun
from rewardfree.threads import one_blas_thread
from rewardfree.ties import Ties, argmax_tied
from rewardfree.worlds import Box, Discrete, ScaledModel, Space

#: Where the candidates of a query come from.
QuerySet: TypeAlias = Literal["reachable", "sobol", "box"]
QUERY_SETS = ("reachable", "sobol", "box")
#: How many candidates a batch is chosen from, and how long the model's rollouts are.
POINTS, ROLLOUT = 2048, 100
#: The fewest candidates for each query of a batch, as far as the rollouts go.
LEAST_CHOICE = 8


@registered("strategy", "generative")
@dataclass(frozen=True)
class Generative(Strategy):
    """Alg 2: query z = argmax sigma_h(z) anywhere, for every step; the world must take any state.

    On a finite world with a fixed kernel the list of queries is `query_plan`; with `ties="random"` every run
    has its own. On real states `candidates` are what the learnt model can reach ("reachable"), a scrambled
    Sobol set of the bounds ("sobol"), or points anywhere in them, new for every batch ("box"). Where it looks
    depends on what was seen if the kernel is fitted, or if the candidates are "reachable".
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


def query_plan(model: Model, candidates: npt.ArrayLike, n: int) -> Integers:
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
    model: Model, candidates: Array, queries: Sequence[int] | Integers, map_after: Sequence[int] = ()
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


def play_queries(run: WorldRun, query_set: QuerySet) -> None:
    """Explore by queries until a limit is reached."""
    space = run.spaces.state
    if not run.world.generative:
        raise ValueError(
            f"{type(run.world).__name__} cannot be put into any state, as Generative() needs: use Scout()"
        )
    reachable = isinstance(space, Box) and query_set == "reachable"
    if reachable:
        check_variables(run.spaces)
    elif isinstance(space, Box):
        space.need_bounds(f'Generative(candidates="{query_set}")')
    if reachable or run.model.automatic:  # something must be learnt before one can ask well
        while run.kept < PILOT or not run.can_fit(refitted_at(run.kept)):
            upto = PILOT if run.kept < PILOT else next_refit(run.kept)
            run.episode(lambda state, h: run.random_action(), min(run.horizon, upto - run.kept))
    first_states = run.first_states
    current = CurrentExploration(run)
    # Without a pooled model every query is made at every step.
    steps = range(1) if run.model.pooled else range(run.horizon)
    while True:
        start = run.kept
        size = (next_refit(start) - start) if run.model.pooled else 1

        def batch(start: int = start, size: int = size) -> tuple[Any, Any]:
            if reachable:
                return _reachable_batch(run, current, first_states, start, size)
            return _best_of(run, _candidates(run, query_set, start), start, size)

        queries = _LazyBatch(batch)
        for i in range(size):
            for h in steps:
                run.query(functools.partial(queries.pair, i), h)
            run.round_done()


class _LazyBatch:
    """A batch that is computed when its first query is really made."""

    def __init__(self, batch: Callable[[], tuple[Any, Any]]) -> None:
        self._batch = batch
        self._pairs: tuple[Any, Any] | None = None

    def pair(self, i: int) -> tuple[Any, Any]:
        if self._pairs is None:
            self._pairs = self._batch()
        states, actions = self._pairs
        return states[i], actions[i]


def _reachable_batch(
    run: WorldRun, current: CurrentExploration, first_states: Any, start: int, size: int
) -> tuple[Any, Any]:
    """The states and actions of greatest sigma among those that the model reaches from first states."""
    value = current.value(start)
    rng = run.rng("reach", start)
    starts = np.repeat(first_states, 2, axis=0)
    points = max(POINTS, LEAST_CHOICE * size)
    state, action = value.reachable(starts, min(run.horizon, ROLLOUT), points, rng)
    scaled, posterior = value.dynamics.scaled, value.posterior
    if refitted_at(start) < start:  # what was asked since then, where every round is a batch of its own
        samples = run.samples(start)
        posterior = exploration_posterior(scaled, run.model.automatic, len(samples))
        posterior.extend(scaled.inputs(run.spaces, samples.state, samples.action))
    chosen, sigma = posterior.greedy(scaled.inputs(run.spaces, state, action), size)
    run.know_sigma(lambda: float(sigma[0]))
    return state[chosen], action[chosen]


def _best_of(run: WorldRun, candidates: tuple[Any, Any], start: int, size: int) -> tuple[Any, Any]:
    """The states and actions of greatest sigma in a set of candidates."""
    samples = run.samples(start)
    model = while_exploring(run.model, len(samples))
    if model.automatic:
        scaled = ScaledModel.fit(run.spaces, model, samples)
    else:
        scaled = ScaledModel.of_bounds(run.spaces, model)
    posterior = exploration_posterior(scaled, run.model.automatic, len(samples))
    if len(samples):
        # Without a pooled model all steps have the same points: those of the first one stand for all.
        first = np.array([run.model.pooled or row.h == 0 for row in run.kept_rows(start)])
        posterior.extend(scaled.inputs(run.spaces, samples.state[first], samples.action[first]))
    states, actions = candidates
    chosen, sigma = posterior.greedy(scaled.inputs(run.spaces, states, actions), size)
    run.know_sigma(lambda: float(sigma[0]))
    return states[chosen], actions[chosen]


def _candidates(run: WorldRun, query_set: QuerySet, start: int) -> tuple[Any, Any]:
    """All pairs of labels; of boxes, a scrambled Sobol set, or points anywhere drawn anew for every batch."""
    spaces = run.spaces
    if isinstance(spaces.state, Discrete):
        actions = spaces.action.candidates(9)
        repeats = (spaces.state.n,) + (1,) * (actions.ndim - 1)
        return np.repeat(np.arange(spaces.state.n), len(actions)), np.tile(actions, repeats)
    size = sum(space.size for space in (spaces.state, spaces.action))
    if query_set == "sobol":
        from scipy.stats import qmc  # which takes longer to import than all the rest

        unit = qmc.Sobol(size, scramble=True, rng=run.rng("sobol")).random(POINTS)
    else:
        unit = run.rng("box", start).random((POINTS, size))
    split = spaces.state.size
    return _spread(spaces.state, unit[:, :split]), _spread(spaces.action, unit[:, split:])


def _spread(space: Space, unit: Any) -> Any:
    """Points of the unit cube over a space."""
    if isinstance(space, Discrete):
        return np.minimum((unit[:, 0] * space.n).astype(np.int64), space.n - 1)
    return np.array(space.low) + unit * (np.array(space.high) - np.array(space.low))
