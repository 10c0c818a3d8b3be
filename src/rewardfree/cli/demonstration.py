"""What `rewardfree demo` shows: where to look, and one exploration that serves several rewards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rewardfree as rf
from rewardfree.cli.choices import grid
from rewardfree.report.plans import Served, plans_figure
from rewardfree.report.style import save
from rewardfree.report.uncertainty import uncertainty_figure

MODELS = {
    "Matern 1.5": rf.Model(rf.Matern(nu=1.5, lengthscale=0.1), ridge=0.5),
    "Matern 2.5": rf.Model(rf.Matern(nu=2.5, lengthscale=0.1), ridge=0.5),
    "Squared exponential": rf.Model(rf.SquaredExponential(lengthscale=0.1), ridge=0.01),
}
SHOWN = "Matern 1.5"
#: Rewards that nobody has thought of while the world is explored: a bump at each of these (s, a).
WISHES = {"low state, low action": (0.2, 0.2), "middle": (0.5, 0.5), "high state, high action": (0.8, 0.8)}


def run(out: Path, side: int, queries: int, transitions: int) -> Iterator[str]:
    """Do both, write the pictures, and yield the lines to print."""
    out.mkdir(parents=True, exist_ok=True)  # a folder that cannot be is better known before the work
    yield from _where_to_look(out / "uncertainty.png", side, queries)
    yield ""
    yield from _explore_once(out / "plans.png", side, transitions)


def _where_to_look(picture: Path, side: int, queries: int) -> Iterator[str]:
    started = time.perf_counter()
    points = grid(2, side)
    plans = {name: rf.query_plan(model, points, queries) for name, model in MODELS.items()}
    moments = sorted({queries // 16, queries // 4, queries // 2, queries})
    paths = {
        name: rf.strategies.uncertainty_path(model, points, plans[name], moments)
        for name, model in MODELS.items()
    }
    seconds = time.perf_counter() - started
    shown = points[plans[SHOWN]]
    yield f"Where to look first ({SHOWN}, {side} x {side} states and actions, no data needed):"
    yield "   query  state  action  sigma before"
    for i, ((s, a), sigma) in enumerate(zip(shown[:8], paths[SHOWN].at_query, strict=False)):
        yield f"   {i + 1:5d}  {s:5.3f}   {a:5.3f}  {sigma:12.4f}"
    yield ""
    yield (
        "   kernel               largest sigma after "
        + "".join(f"{n:8d}" for n in moments)
        + "   gain (nats)"
    )
    for name, path in paths.items():
        row = "".join(f"{path.largest[n]:8.3f}" for n in moments)
        yield f"   {name:19s}  {'':19s} {row}   {path.information_gain[-1]:11.1f}"
    save(uncertainty_figure(paths, SHOWN, shown, side), picture)
    yield ""
    yield f"{2 * len(MODELS)} x {queries} exact posterior updates in {seconds:.2f} s; picture: {picture}"


def _explore_once(picture: Path, side: int, transitions: int) -> Iterator[str]:
    world = rf.worlds.sharpened_world(states=side, actions=side).world
    model = rf.Model(rf.Matern(nu=1.5, lengthscale=0.1), ridge=0.5, pooled=True, centred=True)
    started = time.perf_counter()
    data = rf.explore(world, model, rf.Online(beta=0.1), transitions=transitions)
    explored = time.perf_counter() - started
    rewards = [_bump(side, *top) for top in WISHES.values()]
    started = time.perf_counter()
    plans = rf.plan_many(data, rewards, rf.Mean())
    planned = time.perf_counter() - started
    yield (
        f"Explore a world once without a reward (Alg 3, {transitions} samples kept of {data.steps} steps, "
        f"{explored:.1f} s),"
    )
    yield f"then plan for {len(rewards)} rewards nobody had thought of ({planned:.2f} s together):"
    yield "   reward at                  optimal    planned     myopic     random   (mean over first states)"
    served = []
    for name, reward, plan in zip(WISHES, rewards, plans, strict=True):
        policies = [plan, np.tile(reward.argmax(axis=1), (world.horizon, 1)), _random(world)]
        values = [rf.optimal_value(world, reward)[0]]
        values += [rf.policy_value(world, policy, reward)[0] for policy in policies]
        served.append(Served(name, *values))
        yield f"   {name:24s}" + "".join(f"{value.mean():11.3f}" for value in values)
    title = f"One exploration of {data.steps} steps, {len(rewards)} rewards"
    save(plans_figure(world.states[:, 0], served, title), picture)
    yield ""
    yield f"picture: {picture}"


def _bump(side: int, s: float, a: float) -> np.ndarray:
    axis = np.linspace(0, 1, side)
    return np.exp(-0.5 * ((axis[:, None] - s) ** 2 + (axis[None, :] - a) ** 2) / 0.1**2)


def _random(world: rf.FiniteWorld) -> np.ndarray:
    """Uniformly random actions, as probabilities (h,s,a)."""
    s, a = world.grid.shape
    return np.full((world.horizon, s, a), 1.0 / a)
