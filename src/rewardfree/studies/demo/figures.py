"""The pictures of the demonstration: uncertainty that shrinks, and plans for several rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.report.style import COLOURS, HEAT, styled_figure
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
        figure.suptitle(title, fontsize=11)
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
        upper.suptitle(f"Where a reward-free explorer looks: {shown}", fontsize=11)
        left, right = lower.subplots(1, 2)
        for colour, (name, path) in zip(COLOURS, paths.items(), strict=False):
            left.plot(path.largest, color=colour, label=name)
            right.plot(path.information_gain, color=colour, label=name)
        left.set(
            xlabel="queries",
            ylabel=r"largest $\sigma$",
            title="What is left to learn",
            ylim=(0, 1.05),
        )
        right.set(xlabel="queries", ylabel="nats", title="Information gained", ylim=(0, None))
        left.legend()
    return figure
