"""The demonstration: where to look, and one exploration that serves several rewards."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.arrays import even_points
from rewardfree.report.style import COLOURS, HEAT, save, styled_figure, title_above
from rewardfree.strategies import UncertaintyPath


@dataclass(frozen=True)
class PlannedReward:
    """One reward and the values (s,) that policies for it have at the first step."""

    name: str
    optimal: Any
    planned: Any
    myopic: Any
    random: Any


def plans_figure(states: Any, rewards: Sequence[PlannedReward], title: str) -> Any:
    """A panel for each reward: the optimal value over the states, and those of three policies below it."""
    with styled_figure(3.4 * len(rewards), 3.2) as figure:
        axes = figure.subplots(1, len(rewards), sharey=True, squeeze=False)[0]
        for axis, reward in zip(axes, rewards, strict=True):
            axis.plot(states, reward.optimal, color=COLOURS[6], linewidth=2.2, label="optimal")
            axis.plot(states, reward.planned, color=COLOURS[0], linewidth=1.2, label="planned from the data")
            axis.plot(states, reward.myopic, color=COLOURS[1], linestyle="--", label="myopic, argmax of r")
            axis.plot(states, reward.random, color=COLOURS[3], linestyle=":", label="random actions")
            axis.set(title=reward.name, xlabel="first state s")
        axes[0].set(ylabel="expected return", ylim=(0, None))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        title_above(figure, title, 11)
    return figure


def uncertainty_figure(paths: Mapping[str, UncertaintyPath], shown: str, queried: Any, side: int) -> Any:
    """Maps of sigma for the kernel `shown` with its queries (n,2), above the curves of all kernels."""
    maps = paths[shown].maps
    with styled_figure(10, 6.4) as figure:
        parts: Any = figure.subfigures(2, 1, height_ratios=[1.0, 0.95])
        upper, lower = parts
        axes = upper.subplots(1, len(maps), sharey=True, squeeze=False)[0]
        for axis, (n, sigma) in zip(axes, sorted(maps.items()), strict=True):
            image = axis.imshow(
                np.reshape(sigma, (side, side)).T,
                origin="lower", extent=(0, 1, 0, 1), vmin=0.0, vmax=1.0, cmap=HEAT,
            )  # fmt: skip
            axis.plot(*np.asarray(queried[:n]).T, ".", color="white", markersize=2.5)
            axis.set(title=f"after {n} queries", xlabel="state s", xticks=[0, 1], yticks=[0, 1])
            axis.grid(False)
        axes[0].set_ylabel("action a")
        upper.colorbar(image, ax=axes, label=r"uncertainty $\sigma(s, a)$", shrink=0.9)
        title_above(upper, f"Where a reward-free explorer looks: {shown}", 11)
        left, right = lower.subplots(1, 2)
        for colour, (name, path) in zip(COLOURS, paths.items(), strict=False):
            left.plot(path.largest, color=colour, label=f"{name}, ridge {MODELS[name].ridge:g}")
            right.plot(path.information_gain, color=colour)
        left.set(
            xlabel="queries",
            ylabel=r"largest $\sigma$",
            title="What is left to learn",
            ylim=(0, 1.05),
        )
        right.set(xlabel="queries", ylabel="nats", title="Information gained", ylim=(0, None))
        left.legend()
    return figure


MODELS = {
    "Matern 1.5": rf.Model(rf.Matern(nu=1.5, lengthscale=0.1), ridge=0.5),
    "Matern 2.5": rf.Model(rf.Matern(nu=2.5, lengthscale=0.1), ridge=0.5),
    "Squared exponential": rf.Model(rf.SquaredExponential(lengthscale=0.1), ridge=0.01),
}
SHOWN = "Matern 1.5"
#: Rewards that are not known while the world is explored: a bump at each of these (s, a).
REWARDS = {"low state, low action": (0.2, 0.2), "middle": (0.5, 0.5), "high state, high action": (0.8, 0.8)}


@dataclass(frozen=True)
class Demo:
    """The size of the demonstration; the default takes a few seconds."""

    side: int = 100  # states, and as many actions
    queries: int = 160
    transitions: int = 400

    def show(self, out: Path) -> Iterator[str]:
        """Explore, plan, write the pictures, and yield the lines to print."""
        out.mkdir(parents=True, exist_ok=True)  # a folder that cannot be is better known before the work
        yield from self._where_to_look(out / "uncertainty.png")
        yield ""
        yield from self._explore_once(out / "plans.png")

    def _where_to_look(self, picture: Path) -> Iterator[str]:
        started = time.perf_counter()
        points, n = even_points(self.side, 2), self.queries
        plans = {name: rf.query_plan(model, points, n) for name, model in MODELS.items()}
        moments = sorted({n // 16, n // 4, n // 2, n})
        paths = {
            name: rf.strategies.uncertainty_path(model, points, plans[name], moments)
            for name, model in MODELS.items()
        }
        seconds = time.perf_counter() - started
        shown = points[plans[SHOWN]]
        yield f"Where to look first ({SHOWN}, {self.side} x {self.side} states and actions, no data needed):"
        yield "   query  state  action  sigma before"
        for i, ((s, a), sigma) in enumerate(zip(shown[:8], paths[SHOWN].at_query, strict=False)):
            yield f"   {i + 1:5d}  {s:5.3f}   {a:5.3f}  {sigma:12.4f}"
        yield ""
        heads = "".join(f"{moment:8d}" for moment in moments)
        yield f"   kernel               largest sigma after {heads}   gain (nats)"
        for name, path in paths.items():
            row = "".join(f"{path.largest[moment]:8.3f}" for moment in moments)
            yield f"   {name:19s}  {'':19s} {row}   {path.information_gain[-1]:11.1f}"
        save(uncertainty_figure(paths, SHOWN, shown, self.side), picture)
        yield ""
        yield f"{2 * len(MODELS)} x {n} exact posterior updates in {seconds:.2f} s; picture: {picture}"

    def _explore_once(self, picture: Path) -> Iterator[str]:
        world = rf.worlds.sharpened_world(states=self.side, actions=self.side).world
        model = rf.Model(rf.Matern(nu=1.5, lengthscale=0.1), ridge=0.5, pooled=True, centred=True)
        started = time.perf_counter()
        data = rf.explore(world, model, rf.Online(beta=0.1), transitions=self.transitions)
        explored = time.perf_counter() - started
        rewards = [self._bump(*top) for top in REWARDS.values()]
        started = time.perf_counter()
        plans = rf.plan_many(data, rewards, rf.Mean())
        planned = time.perf_counter() - started
        yield (
            f"Explore a world once without a reward (Alg 3, {self.transitions} samples kept of {data.steps} "
            f"steps, {explored:.1f} s),"
        )
        yield f"then plan for {len(rewards)} rewards that were not known before ({planned:.2f} s together):"
        heads = "".join(f"{head:>11}" for head in ("optimal", "planned", "myopic", "random"))
        yield f"   {'reward at':<24}{heads}   (mean over first states)"
        random = np.full((world.horizon, *world.grid.shape), 1.0 / self.side)  # probabilities (h,s,a)
        shown = []
        for name, reward, plan in zip(REWARDS, rewards, plans, strict=True):
            policies: list[Any] = [plan, np.tile(reward.argmax(axis=1), (world.horizon, 1)), random]
            values = [rf.optimal_value(world, reward)[0]]
            values += [rf.policy_value(world, policy, reward)[0] for policy in policies]
            shown.append(PlannedReward(name, *values))
            yield f"   {name:24s}" + "".join(f"{value.mean():11.3f}" for value in values)
        title = f"One exploration of {data.steps} steps, {len(rewards)} rewards"
        save(plans_figure(world.states[:, 0], shown, title), picture)
        yield ""
        yield f"picture: {picture}"

    def _bump(self, s: float, a: float) -> np.ndarray:
        axis = np.linspace(0, 1, self.side)
        return np.exp(-0.5 * ((axis[:, None] - s) ** 2 + (axis[None, :] - a) ** 2) / 0.1**2)


QUICK = Demo(side=30, queries=40, transitions=100)
