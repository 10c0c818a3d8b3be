"""What a world of the paper looks like (its Figures 2 to 4): a reward, and where some (s,a) lead."""

from typing import Any

import numpy as np

from rewardfree.report.style import COLOURS, HEAT, styled_figure, title_above

#: The (s,a) whose laws are shown: the paper's five, and the middle of the square as the sixth.
SHOWN = ((0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (0.5, 0.0), (0.5, 0.5), (1.0, 1.0))


def functions_figure(states: Any, actions: Any, reward: Any, law: Any, title: str) -> Any:
    """r (s,a) as a surface beside P(.|z) at six z, for law (s,a,s') on states (s,) and actions (a,)."""
    with styled_figure(11.5, 4.6) as figure:
        parts: Any = figure.subfigures(1, 2, width_ratios=[1.0, 1.75])
        _surface(parts[0], states, actions, reward)
        axes = parts[1].subplots(2, 3, sharex=True, sharey=True)
        for axis, z in zip(axes.flat, SHOWN, strict=True):
            # The nearest of the paper's points: 0.5051 on a grid of 100, as its captions say.
            s, a = (_nearest(values, at) for values, at in zip((states, actions), z, strict=True))
            axis.fill_between(states, law[s, a], color=COLOURS[0], alpha=0.15, linewidth=0)
            axis.plot(states, law[s, a], color=COLOURS[0])
            axis.axhline(1.0 / len(states), color="#999999", linestyle=":", linewidth=1.0)
            axis.set(title=f"P(s' | s = {states[s]:.4g}, a = {actions[a]:.4g})")
        axes[0, 0].set_ylim(bottom=0.0)
        for axis in axes[1]:
            axis.set_xlabel("next state s'")
        for axis in axes[:, 0]:
            axis.set_ylabel("probability")
        title_above(figure, f"{title}; dotted: every next state equally likely")
    return figure


def _surface(part: Any, states: Any, actions: Any, reward: Any) -> None:
    axis = part.add_subplot(projection="3d")
    s, a = np.meshgrid(states, actions, indexing="ij")
    axis.plot_surface(s, a, reward, cmap=HEAT, rcount=50, ccount=50, linewidth=0, antialiased=False)
    axis.set(xlabel="state s", ylabel="action a", title="Reward r(s, a)", zlim=(0, 1))
    axis.view_init(elev=32, azim=-125)


def _nearest(values: Any, coordinate: float) -> int:
    """The upper one of two that are equally near, as in the paper."""
    distance = np.abs(np.asarray(values) - coordinate)
    return int(np.flatnonzero(distance <= distance.min() + 1e-9)[-1])
