"""What `rewardfree explore | plan | evaluate | info` do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

import rewardfree as rf
from rewardfree.cli.pictures import write_gif
from rewardfree.dynamics.exploration import check_variables
from rewardfree.evaluation.diagnosis import CELLS, diagnose
from rewardfree.files import kind_of
from rewardfree.planning import MeshPlan, WorldPlan
from rewardfree.report.experience import experience_figure, plan_figure
from rewardfree.report.style import save

STRATEGIES = {
    "generative": lambda beta: rf.Generative(),
    "scout": lambda beta: rf.Scout(),
    "online": lambda beta: rf.Online(beta),
    "qiu": lambda beta: rf.Qiu(beta),
    "greedy": lambda beta: rf.GreedyMaxVariance(),
    "uniform": lambda beta: rf.Uniform(),
}
PLANNERS = {
    "dynamics": lambda beta: rf.DynamicsPlanner(),
    "mean": lambda beta: rf.Mean(),
    "optimistic": lambda beta: rf.Optimistic(beta),
    "pessimistic": lambda beta: rf.Pessimistic(beta),
}


def explore_to(
    out: Path,
    env: str,
    strategy: str | None,
    beta: float,
    seed: int,
    horizon: int | None,
    resume: Path | None,
    **limits: Any,
) -> Iterator[str]:
    """Explore an environment and write what was collected, also if it was interrupted."""
    _check_folder(out)
    world = rf.from_gymnasium(env, horizon=horizon)
    if not isinstance(world, rf.World):
        raise ValueError(
            f"{env} has finitely many states and a table: use it from Python, rf.from_gymnasium({env!r})"
        )
    name = strategy or _default_strategy(world)
    chosen = _named("strategy", name, STRATEGIES)(beta)
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
    before: Any = None if resume is None else _experience(resume)
    started = time.perf_counter()
    try:
        data = rf.explore(world, model, chosen, seed=seed, resume=before, **limits)
    except rf.WorldFailed as failure:
        failure.data.save(out)
        typer.echo(
            f"rewardfree: {failure.__cause__!r} after {len(failure.data)} steps; they are in {out}", err=True
        )
        raise typer.Exit(1) from None
    data.save(out)
    took = time.perf_counter() - started
    yield f"{len(data)} steps in {took:.1f} s by {chosen!r}, stopped by {data.stopped_by}: {out}"
    if data.stopped_by == "interrupted":
        typer.echo(f"rewardfree: interrupted; go on with --resume {out}", err=True)
        raise typer.Exit(130)
    if data.is_box and data.kept.sum() > 2:
        yield diagnose(data).verdict


def _default_strategy(world: rf.World) -> str:
    """The best that this world allows."""
    try:
        check_variables(world.spaces)
    except ValueError:  # no mesh can be laid over its states
        return "uniform"
    return "generative" if world.generative else "scout"


def plan_to(
    out: Path,
    source: Path,
    reward: str,
    planner: str | None,
    beta: float,
    horizon: int | None,
    discount: float | None,
    terminated: str | None,
) -> Iterator[str]:
    """Plan for a formula from stored data, and write the plan."""
    _check_folder(out)
    data = _experience(source)
    chosen = None if planner is None else _named("planner", planner, PLANNERS)(beta)
    started = time.perf_counter()
    plan = rf.plan(data, reward, chosen, horizon=horizon, discount=discount, terminated=terminated)
    took = time.perf_counter() - started
    plan.save(out)
    yield f"{plan!r} in {took:.1f} s: {out}"


def evaluate(
    source: Path, env: str | None, reward: str | None, episodes: int, seed: int, gif: Path | None
) -> Iterator[str]:
    """Play a stored plan in its environment."""
    if gif is not None:
        _check_folder(gif)
    plan = rf.load_plan(source)
    if not isinstance(plan, WorldPlan):
        raise ValueError(f"{source} is a plan for a finite world: play it from Python, rf.rollouts(...)")
    about = plan.provenance
    name = env or about.get("gymnasium")
    if name is None:
        raise ValueError(f"{source} does not say which environment it is for: give --env ID")
    options = {} if env else dict(about.get("options") or {})
    world: Any = rf.from_gymnasium(name, horizon=about.get("horizon"), **options)
    text = reward or plan.reward_text
    if text is None:
        raise ValueError(f"the reward of {source} was a Python function: give --reward FORMULA to count")
    counted = plan.discount if plan.horizon is None else 1.0
    score = rf.rollouts(world, plan, text, episodes, seed, discount=counted)
    low, high = score.interval()
    lowest, highest = score.returns.min(), score.returns.max()
    yield f"mean return {score.mean:.4g} over {episodes} episodes (95% interval {low:.4g} .. {high:.4g})"
    yield f"from {lowest:.4g} to {highest:.4g}, {score.lengths.mean():.4g} steps each"
    if plan.expected is not None and reward is None:
        yield f"inside its model the plan expected {plan.expected:.4g}"
    if gif is not None:
        frames = write_gif(gif, name, options, about.get("horizon"), plan, seed)
        yield f"{frames} frames: {gif}"


def info(source: Path, out: Path | None) -> Iterator[str]:
    """What a file holds, whether it was worth collecting, and a picture of it."""
    if source.suffix == ".csv" or kind_of(source) == "Experience":
        yield from _about_experience(source, out)
    elif kind_of(source) == "Transitions":
        yield from _about_transitions(rf.load(source))
    else:
        plan = rf.load_plan(source)
        yield repr(plan)
        if not isinstance(plan, WorldPlan):
            return
        if plan.reward_text is not None:
            yield f"reward      {plan.reward_text}"
        for name, value in plan.provenance.items():
            yield f"{name:<11} {value}"
        if out is not None and isinstance(plan, MeshPlan):
            save(plan_figure(plan, source.name), out)
            yield f"picture     {out}"


def _about_experience(source: Path, out: Path | None) -> Iterator[str]:
    data = _experience(source)
    kept = int(data.kept.sum())
    yield f"{len(data)} steps in {data.episodes} episodes, {kept} kept, {len(data.starts)} first states"
    yield f"strategy    {data.strategy!r}, seed {data.seed}, stopped by {data.stopped_by}"
    for name, value in data.provenance.items():
        yield f"{name:<11} {value}"
    if data.fitted is not None:
        yield f"kernel      {data.fitted.model.kernel!r}"
        yield f"ridge       {data.fitted.model.ridge:.3g}"
    yield f"actions     {data.spaces.action!r}"
    if not data.is_box:
        yield f"states      {data.spaces.state!r}"
        return
    found = diagnose(data)
    yield ""
    yield f"{'variable':<12}{'seen':>22}{'of bounds':>11}{'held-out error':>16}{'typical':>10}  (constant: 1)"
    for i, name in enumerate(found.names):
        seen = f"{found.low[i]:.3g} .. {found.high[i]:.3g}"
        span = "-" if np.isnan(found.span[i]) else f"{found.span[i]:.0%}"
        yield f"{name:<12}{seen:>22}{span:>11}{found.error[i]:>16.2%}{found.typical[i]:>10.2%}"
    total = CELLS ** len(found.names)
    yield f"cells       {found.cells} of {total} between these ends visited; {found.ends} steps were ends"
    yield f"noise       {found.noise:.2g} of the variance of a step"
    yield f"verdict     {found.verdict}"
    if out is not None:
        save(experience_figure(data, found, f"{source.name}: {found.verdict.split(':')[0]}"), out)
        yield f"picture     {out}"


def _about_transitions(data: Any) -> Iterator[str]:
    s, a = data.grid.shape
    yield repr(data)
    yield f"world       {s} states, {a} actions, horizon {data.horizon}"
    yield f"model       {data.model!r}"
    visited = len(np.unique(data.points(slice(None))))
    yield f"coverage    {visited} of {s * a} pairs of state and action were tried"


def _experience(source: Path) -> Any:
    data = rf.Experience.from_csv(source) if source.suffix == ".csv" else rf.load(source)
    if not isinstance(data, rf.Experience):
        raise ValueError(
            f"{source} holds data of a finite world: use it from Python, rf.load({str(source)!r})"
        )
    return data


def _named(kind: str, name: str, known: dict[str, Any]) -> Any:
    if name not in known:
        raise ValueError(f"{kind} must be one of {', '.join(known)}, got {name!r}")
    return known[name]


def _check_folder(path: Path) -> None:
    """Before any work is done: a result must have a place to go."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for {path.name}")
