"""The picture of a query plan at work: uncertainty shrinking over a square of states and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardfree.report.style import COLOURS, HEAT, STYLE
from rewardfree.strategies import UncertaintyPath


def uncertainty_figure(paths: Mapping[str, UncertaintyPath], shown: str, queried: Any, side: int) -> Any:
    """Maps of sigma for the kernel `shown` with its queries (n,2), above the curves of all kernels."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    maps = paths[shown].maps
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 6.4), layout="constrained")
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
