"""Pictures of an exploration and of a plan on real states."""

from typing import Any

import numpy as np

from rewardfree.report.style import COLOURS, HEAT, styled_figure, title_above

#: Nodes of a drawn map for each of its two variables.
DRAWN = 121


def experience_figure(data: Any, diagnosis: Any, title: str) -> Any:
    """Which states were visited, in their order, and how well the next one can be told, by variable."""
    space = data.spaces.state
    states = space.wrapped(data.state)
    pairs = [(0, 1), (2, 3)] if space.size >= 4 else [(0, min(1, space.size - 1))]
    with styled_figure(4.2 * len(pairs) + 3.2, 3.6) as figure:
        places = figure.subplots(1, len(pairs) + 1, width_ratios=[4.2] * len(pairs) + [2.6], squeeze=False)[0]
        for place, (i, j) in zip(places, pairs, strict=False):
            y = states[:, j] if j != i else np.arange(len(states))
            drawn = place.scatter(states[:, i], y, c=np.arange(len(states)), s=7, cmap=HEAT, linewidths=0)
            place.set_xlabel(space.names[i])
            place.set_ylabel(space.names[j] if j != i else "step")
            ends = np.flatnonzero(data.terminated)
            if len(ends):
                last = space.wrapped(data.next_state[ends])
                above = last[:, j] if j != i else ends
                place.scatter(last[:, i], above, marker="x", s=18, c=COLOURS[1], linewidths=1, label="end")
                place.legend(loc="upper right")
        figure.colorbar(drawn, ax=places[-2], label="environment step", pad=0.01)
        bars = places[-1]
        at = np.arange(space.size)
        bars.barh(at, np.maximum(diagnosis.error, 1e-6), color=COLOURS[0], height=0.6)
        bars.axvline(1.0, color=COLOURS[6], linestyle=":", linewidth=1.3)
        bars.set_xscale("log")
        bars.set_yticks(at, space.names)
        bars.invert_yaxis()
        bars.set_xlabel("held-out error, constant = 1")
        title_above(figure, title)
    return figure


def plan_figure(plan: Any, title: str) -> Any:
    """A plan's value and first actions over its first two state variables, the others at the middle."""
    (low, high), space = plan.drawn_over, plan.spaces.state
    j = min(1, space.size - 1)
    x, y = (np.linspace(low[i], high[i], DRAWN) for i in (0, j))
    states = np.tile(0.5 * (low + high), (DRAWN * DRAWN, 1))
    across, up = np.meshgrid(x, y)
    states[:, 0] = across.reshape(-1)
    if j:
        states[:, 1] = up.reshape(-1)
    actions = np.asarray(plan.act(states, 0), np.float64).reshape(len(states), -1)[:, 0]
    maps = {"value": plan.value(states, 0), plan.spaces.action.names[0]: actions}
    with styled_figure(9.2, 3.6, grid=False) as figure:
        for place, (name, values) in zip(figure.subplots(1, 2), maps.items(), strict=True):
            colours = HEAT if name == "value" else "coolwarm"
            drawn = place.pcolormesh(
                x, y, values.reshape(DRAWN, DRAWN), cmap=colours, shading="nearest", rasterized=True
            )
            figure.colorbar(drawn, ax=place, label=name)
            place.set_xlabel(space.names[0])
            place.set_ylabel(space.names[j] if j else "")
        title_above(figure, title)
    return figure
