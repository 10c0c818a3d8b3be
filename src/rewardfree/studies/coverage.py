"""How wide confidence intervals have to be: errors of [PV] in units of sigma, and bounds beside the gap."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

import rewardfree as rf
from rewardfree.arrays import count, probability
from rewardfree.experiments.curves import learning_curves
from rewardfree.experiments.sweep import MOST_RUNS
from rewardfree.planning.finite import RewardColumns, backward
from rewardfree.presets import PUBLISHED
from rewardfree.progress import progress as shown
from rewardfree.report.labels import label
from rewardfree.report.numbers import standard_error
from rewardfree.report.pictures import save_as
from rewardfree.report.theory import curves_figure
from rewardfree.strategies.run_batch import RunBatch
from rewardfree.studies.paper.specification import paper_strategies
from rewardfree.theory import Problem, every_reward_width, generative_width, theorem_2_gap
from rewardfree.threads import one_blas_thread


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
    world: rf.FiniteWorld,
    reward: Any,
    model: rf.Model,
    strategy: rf.strategies.Strategy,
    samples_per_step: int,
    seed: int = 0,
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
    estimate, planner = batch.settled(), rf.Mean()
    posteriors = cast(rf.posterior.Lattice | rf.posterior.Counts, estimate.posteriors)
    rewards = RewardColumns([reward], world.grid, world.horizon, planner)
    with one_blas_thread():
        _, values = backward(lambda h: estimate, rewards, planner, world.horizon)
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
        return float(self.noise.mean()), float(self.noise.mean() / standard_error(self.noise))


def coverage_study(
    world_of: Callable[[int], rf.Instance],
    model: rf.Model,
    strategies: Mapping[str, rf.strategies.Strategy],
    samples_per_step: int,
    draws: Sequence[int],
    widths: Sequence[float],
    progress: bool | None = None,
) -> dict[str, Coverage]:
    """One run of each strategy on every draw of a world; `world_of(seed)` gives its instance."""
    errors: dict[str, list[Errors]] = {name: [] for name in strategies}
    for _, seed in shown(((float(i), seed) for i, seed in enumerate(draws)), len(draws), progress):
        instance = world_of(seed)
        world, reward = instance.world, instance.reward
        for name, strategy in strategies.items():
            errors[name].append(errors_of_run(world, reward, model, strategy, samples_per_step, seed))
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
    world: rf.FiniteWorld, reward: Any, model: rf.Model, checkpoints: Sequence[int], runs: int
) -> BoundCurve:
    """The gap of generative exploration planned with the mean, and the a-posteriori bound for b = 1."""
    curve = learning_curves(
        world, model, rf.Generative(), reward, {"mean": rf.Mean()},
        samples_per_step=checkpoints, seeds=range(count(runs, "runs", at_most=MOST_RUNS)), progress=False,
    )["mean"]  # fmt: skip
    queries = rf.query_plan(model, world.grid.points, int(curve.samples[-1]))
    largest = rf.strategies.uncertainty_path(model, world.grid.points, queries).largest[curve.samples]
    return BoundCurve(curve.samples, curve.max.mean(axis=0), 2.0 * (world.horizon - 1) * largest)


#: Draws on which a width is fitted; it is tested on the others.
FIT = 10


def coverage_lines(world: str, problem: Problem, draws: int, side: int, out: Path | None) -> Iterator[str]:
    """How wide intervals have to be on many draws of a world, and whether adaptive data are biased."""
    if problem.horizon < 2:
        raise ValueError("horizon must be at least 2: the last step has no values behind it")
    if draws <= FIT:
        raise ValueError(f"draws must be more than the {FIT} that a width is fitted on, got {draws}")
    if problem.delta < 1.0 / (FIT + 1):
        raise ValueError(f"delta must be at least 1/{FIT + 1} for {FIT} draws, got {problem.delta}")
    make, model = _worlds(world, problem, side), rf.Model(problem.kernel, problem.ridge)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # better known before the work
    bounds = (problem.norm, float(problem.horizon), problem.ridge, side * side)
    b = generative_width(*bounds, problem.steps, problem.delta).b
    every = every_reward_width(*bounds, side, problem.steps, problem.delta).b
    strategies, tried = paper_strategies(PUBLISHED), (1.0, 2.0, 5.0, b, every)
    study = coverage_study(make, model, strategies, problem.samples, range(draws), tried)
    yield f"{draws} draws of {world} worlds, {side} x {side}, N = {problem.samples}, planned with the mean;"
    yield f"theory: b = {b:.3g} (one reward), {every:.3g} (every reward), if B1 = {problem.norm:g} holds"
    yield ""
    yield from coverage_table(study, problem.delta)
    if out is not None:
        figure = _bounds_figure(world, problem, make(0), study["generative"].fitted(FIT, problem.delta))
        yield f"\npictures: {', '.join(map(str, save_as(figure, out / f'bounds_{world}')))}"


def _worlds(name: str, problem: Problem, side: int) -> Callable[[int], rf.Instance]:
    """Worlds by seed; a corridor is the same for all, and its runs differ."""
    size: dict[str, Any] = {"states": side, "actions": side, "horizon": problem.horizon}
    worlds: dict[str, Callable[[int], rf.Instance]] = {
        "rkhs": lambda seed: rf.rkhs_world(problem.kernel, problem.ridge, seed=seed, **size),
        "sharpened": lambda seed: rf.worlds.sharpened_world(problem.kernel, seed=seed, **size),
        "corridor": lambda seed: rf.worlds.corridor_world(**size),
    }
    if name not in worlds:
        raise ValueError(f"world must be one of {', '.join(worlds)}, got {name!r}")
    return worlds[name]


def coverage_table(study: Mapping[str, Coverage], delta: float) -> Iterator[str]:
    """What each strategy's intervals needed, and whether its data are biased."""
    widths = list(next(iter(study.values())).covered)
    head = "".join(f"{f'b = {b:.3g}':>11s}" for b in widths)
    yield f"{'share of (z, h) with |f - f^| <= b sigma':44s}{head}"
    for name, coverage in study.items():
        shares = "".join(f"{coverage.covered[b].mean():11.4f}" for b in widths)
        yield f"  {label(name):42s}{shares}"
    yield ""
    draws = len(next(iter(study.values())).largest)
    yield (
        f"the b that covers all (z, h) of a draw: fitted on {FIT} draws for {1 - delta:.0%}, "
        f"tested on {draws - FIT} others"
    )
    yield f"  {'':42s}{'smallest':>10s}{'largest':>10s}{'fitted':>10s}{'covers':>10s}"
    for name, coverage in study.items():
        b = coverage.fitted(FIT, delta)
        ends = f"{coverage.largest.min():10.2f}{coverage.largest.max():10.2f}"
        yield f"  {label(name):42s}{ends}{b:10.2f}{coverage.tested(b, FIT):10.0%}"
    yield ""
    yield "bias: the mean of the noise in f^, in sigma, over draws (0 if V and the samples are independent)"
    for name, coverage in study.items():
        mean, errors = coverage.bias
        word = "shows" if abs(errors) > 3.0 else "does not show"
        yield f"  {label(name):42s}{mean:+10.4f}   {errors:+.1f} standard errors: {word}"


def _bounds_figure(name: str, problem: Problem, instance: rf.Instance, fitted: float) -> Any:
    """Alg 2 on the first world: its gap, its a-posteriori bounds, and Theorem 2 with the gain it realised."""
    H, ridge = problem.horizon, problem.ridge
    checkpoints = sorted({max(1, problem.samples // 2**i) for i in range(5)})
    model = rf.Model(problem.kernel, ridge)
    curve = bound_curve(instance.world, instance.reward, model, checkpoints, runs=20)
    n, bounds = curve.samples, (problem.norm, float(H), ridge, problem.size, problem.steps, problem.delta)
    root, total = generative_width(*bounds).b, generative_width(*bounds, joined=False).b
    printed = [theorem_2_gap(float(i), total, float(problem.greedy.gains[i]), H, ridge) for i in n]
    curves = {
        "measured, largest over states": (n, curve.measured),
        f"a posteriori, fitted b = {fitted:.2g}": (n, fitted * curve.realised),
        f"a posteriori, root form b = {root:.3g}": (n, root * curve.realised),
        f"Theorem 2, sum form b = {total:.3g}, realised I_N": (n, printed),
        "H: true of any policy": (n, np.full(len(n), float(H))),
    }
    title = f"What Alg 2 loses and what is promised, {name} world"
    return curves_figure(
        curves, "samples per step N", "largest gap over states", title, ["H: true of any policy"], checkpoints
    )
