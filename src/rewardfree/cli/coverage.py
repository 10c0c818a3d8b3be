"""What `rewardfree coverage` does: how wide intervals have to be, and bounds beside the gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.experiments import paper_strategies
from rewardfree.experiments.coverage import Coverage, bound_curve, coverage_study
from rewardfree.presets import PUBLISHED
from rewardfree.report.pictures import save_as
from rewardfree.report.theory import coverage_table, curves_figure
from rewardfree.theory import Problem
from rewardfree.theory.complexity import theorem_2_gap
from rewardfree.theory.width import every_reward_width, generative_width

#: Draws on which a width is fitted; it is tested on the others.
FIT = 10


def measured_coverage(
    world: str, problem: Problem, draws: int, side: int, out: Path | None, checkpoints: Sequence[int]
) -> Iterator[str]:
    """Errors of real plans against real intervals on many draws, and bounds against the measured gap."""
    if problem.horizon < 2:
        raise ValueError("horizon must be at least 2: the last step has no values behind it")
    if draws <= FIT:
        raise ValueError(f"draws must be more than the {FIT} that a width is fitted on, got {draws}")
    if problem.delta < 1.0 / (FIT + 1):
        raise ValueError(f"delta must be at least 1/{FIT + 1} for {FIT} draws, got {problem.delta}")
    make, model = _worlds(world, problem, side), rf.Model(problem.kernel, problem.ridge)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # better known before the work
    about = (problem.norm, float(problem.horizon), problem.ridge, side * side)
    b = generative_width(*about, problem.steps, problem.delta).b
    every = every_reward_width(*about, side, problem.steps, problem.delta).b
    strategies, tried = paper_strategies(PUBLISHED), (1.0, 2.0, 5.0, b, every)
    study = coverage_study(make, model, strategies, problem.samples, range(draws), tried)
    yield f"{draws} draws of {world} worlds, {side} x {side}, N = {problem.samples}, planned with the mean;"
    yield f"theory: b = {b:.3g} (one reward), {every:.3g} (every reward), if B1 = {problem.norm:g} holds"
    yield ""
    yield from coverage_table(study, FIT, problem.delta)
    if out is not None:
        figure = _bounds(world, problem, model, make, study["generative"], checkpoints)
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


def _bounds(
    name: str,
    problem: Problem,
    model: rf.Model,
    make: Callable[[int], rf.Instance],
    generative: Coverage,
    checkpoints: Sequence[int],
) -> Any:
    """Alg 2 on the first world: its gap, its a-posteriori bounds, and Theorem 2 with the gain it realised."""
    H, ridge = problem.horizon, problem.ridge
    instance = make(0)
    curve = bound_curve(instance.world, instance.reward, model, checkpoints, runs=20)
    n, fitted = curve.samples, generative.fitted(FIT, problem.delta)
    about = (problem.norm, float(H), ridge, problem.size, problem.steps, problem.delta)
    root, total = generative_width(*about).b, generative_width(*about, joined=False).b
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
