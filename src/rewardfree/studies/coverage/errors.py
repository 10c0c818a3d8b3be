"""How wide confidence intervals would have had to be: errors of [PV] in units of sigma, draw by draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from rewardfree.arrays import count, probability
from rewardfree.experiments.curves import learning_curves
from rewardfree.model import Model
from rewardfree.planning import Mean
from rewardfree.planning.finite import backward, reward_tables
from rewardfree.posterior import Counts, Lattice
from rewardfree.progress import progress as shown
from rewardfree.strategies import Generative, Strategy, query_plan, uncertainty_path
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.finite import FiniteWorld
from rewardfree.worlds.instance import Instance


@dataclass(frozen=True, eq=False)
class Errors:
    """One run's errors at every z and step but the last, for the values V that its own plan has."""

    ratio: Any  # (h,z) |f - f^| / sigma, f = [P_h V_{h+1}]
    noise: Any  # (h,z) the part of (f^ - f) / sigma that comes from s' alone; 0 on average without bias

    @property
    def largest(self) -> float:
        """The smallest b that covers all of it."""
        return float(self.ratio.max())

    def covered(self, b: float) -> float:
        """The share of (z,h) with |f - f^| <= b sigma."""
        return float((self.ratio <= b).mean())


def errors_of_run(
    world: FiniteWorld, reward: Any, model: Model, strategy: Strategy, samples_per_step: int, seed: int = 0
) -> Errors:
    """Explore, plan with the mean, and compare every estimate that the plan used with the truth."""
    if model.timed:
        raise ValueError("errors are measured step by step, or pooled: timed=True is neither")
    if strategy.own_posteriors:
        raise ValueError(
            f"errors are measured of the model's own posteriors, which {strategy!r} does not use"
        )
    batch = RunBatch(world, model, strategy, [seed], count(samples_per_step, "samples_per_step"))
    for _ in batch.play():
        pass
    estimate, planner = batch.settled(), Mean()
    posteriors = cast(Lattice | Counts, estimate.posteriors)
    table = reward_tables([reward], world.grid, world.horizon, planner)
    with one_blas_thread():
        _, values = backward(lambda h: estimate, table, planner, world.horizon)
        ratios, noises = [], []
        for h in range(world.horizon - 1):
            V = values[0, 0, h + 1]
            truth = (world.law(h) @ V).reshape(-1)
            sigma = estimate.std(h)[0]
            mean = estimate.mean(h, V[None, :, None])[0, 0]
            # With the truth at the samples' own points in place of V(s'), only the ridge's pull is left.
            points = posteriors.indices(estimate.designs(h).start)
            pulled = posteriors.mean(truth[points][None, :, None], designs=estimate.designs(h))[0, :, 0]
            ratios.append(np.abs(truth - mean) / sigma)
            noises.append((mean - pulled) / sigma)
    return Errors(np.stack(ratios), np.stack(noises))


@dataclass(frozen=True, eq=False)
class Coverage:
    """What many draws of a world say about one strategy."""

    largest: Any  # (draws,) the b that each needed
    covered: Mapping[float, Any]  # by b, (draws,) shares of (z,h)
    noise: Any  # (draws,) mean of the noise over (z,h)

    def fitted(self, fit: int, delta: float) -> float:
        """The ceil((1-delta)(n+1))-th smallest b of the first n draws: covers another one with 1 - delta.

        Infinite if there are too few draws for that.
        """
        rank = math.ceil((1.0 - probability(delta, "delta")) * (count(fit, "fit") + 1))
        return (
            float(np.sort(self.largest[:fit])[rank - 1]) if rank <= min(fit, len(self.largest)) else math.inf
        )

    def tested(self, b: float, fit: int) -> float:
        """The share of the draws after the first n whose every error is within b sigma."""
        return float((self.largest[fit:] <= b).mean()) if len(self.largest) > fit else math.nan

    @property
    def bias(self) -> tuple[float, float]:
        """The mean of the noise over draws, and that in standard errors: beyond 3 it is no accident."""
        if len(self.noise) < 2:
            return float(self.noise.mean()), math.nan
        error = self.noise.std(ddof=1) / math.sqrt(len(self.noise))
        return float(self.noise.mean()), float(self.noise.mean() / error)


def coverage_study(
    world_of: Callable[[int], Instance],
    model: Model,
    strategies: Mapping[str, Strategy],
    samples_per_step: int,
    draws: Sequence[int],
    widths: Sequence[float],
    progress: bool | None = None,
) -> dict[str, Coverage]:
    """One run of each strategy on every draw of a world; `world_of(seed)` gives its instance."""
    errors: dict[str, list[Errors]] = {name: [] for name in strategies}

    def study() -> Any:
        for i, seed in enumerate(draws):
            instance = world_of(seed)
            world, reward = instance.world, instance.reward
            for name, strategy in strategies.items():
                errors[name].append(errors_of_run(world, reward, model, strategy, samples_per_step, seed))
            yield float(i + 1), None

    for _ in shown(study(), len(draws), progress):
        pass
    return {
        name: Coverage(
            np.array([run.largest for run in runs]),
            {b: np.array([run.covered(b) for run in runs]) for b in widths},
            np.array([run.noise.mean() for run in runs]),
        )
        for name, runs in errors.items()
    }


@dataclass(frozen=True, eq=False)
class BoundCurve:
    """Alg 2 as its samples grow: what it really loses, and what its realised uncertainty bounds."""

    samples: Any  # (n,)
    measured: Any  # (n,) mean over runs of the largest gap over states
    realised: Any  # (n,) 2 (H-1) max_z sigma: times b a bound on the gap


def bound_curve(
    world: FiniteWorld, reward: Any, model: Model, checkpoints: Sequence[int], runs: int
) -> BoundCurve:
    """The gap of generative exploration planned with the mean, and the a-posteriori bound for b = 1."""
    curve = learning_curves(
        world, model, Generative(), reward, {"mean": Mean()},
        samples_per_step=checkpoints, seeds=range(count(runs, "runs")), progress=False,
    )["mean"]  # fmt: skip
    queries = query_plan(model, world.grid.points, int(curve.samples[-1]))
    largest = uncertainty_path(model, world.grid.points, queries).largest[curve.samples]
    return BoundCurve(curve.samples, curve.max.mean(axis=0), 2.0 * (world.horizon - 1) * largest)
