"""The picture of one exploration that serves several rewards: what each plan achieves, state by state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewardfree.report.style import COLOURS, STYLE


@dataclass(frozen=True)
class Served:
    """One reward and the values (s,) that policies for it have at the first step."""

    name: str
    optimal: Any
    planned: Any
    myopic: Any
    random: Any


def plans_figure(states: Any, served: Sequence[Served], title: str) -> Any:
    """A panel for each reward: the optimal value over the states, and those of three policies below it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * len(served), 3.2), layout="constrained")
        axes = figure.subplots(1, len(served), sharey=True, squeeze=False)[0]
        for axis, each in zip(axes, served, strict=True):
            axis.plot(states, each.optimal, color=COLOURS[6], linewidth=2.2, label="optimal")
            axis.plot(states, each.planned, color=COLOURS[0], linewidth=1.2, label="planned from the data")
            axis.plot(states, each.myopic, color=COLOURS[1], linestyle="--", label="myopic, argmax of r")
            axis.plot(states, each.random, color=COLOURS[3], linestyle=":", label="random actions")
            axis.set(title=each.name, xlabel="first state s")
        axes[0].set(ylabel="expected return", ylim=(0, None))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.suptitle(title, fontsize=11)
    return figure
