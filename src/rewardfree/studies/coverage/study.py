"""The study of coverage: errors of real plans against real intervals, and bounds against the measured gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.presets import PUBLISHED
from rewardfree.report.labels import label
from rewardfree.report.pictures import save_as
from rewardfree.report.theory import curves_figure
from rewardfree.studies.coverage.errors import Coverage, bound_curve, coverage_study
from rewardfree.studies.paper.specification import paper_strategies
from rewardfree.theory import Problem
from rewardfree.theory.complexity import theorem_2_gap
from rewardfree.theory.width import every_reward_width, generative_width

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
    return curves_figure(curves, "samples per step N", "gap", title, dashed=["H: true of any policy"])
