"""A panel for each of many worlds, with curves and with what needs no data."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rewardfree.report.style import LEVELS, from_zero, legend_below, styled_figure, title_above

#: A name, places on the axis, means, standard errors, and how the line is drawn.
DrawnCurve: TypeAlias = tuple[str, Any, Any, Any, Mapping[str, Any]]


def panels_figure(
    levels: Mapping[str, Mapping[str, float]],
    curves: Callable[[str], Iterable[DrawnCurve]],
    axis: str,
    title: str,
    *,
    logarithmic: bool = False,
) -> Any:
    """The curves of every world, beside the levels of its policies that need no data.

    A curve with a place at 0 is left out: queries belong to no episode. `logarithmic` gaps show how fast they
    fall.
    """
    across = min(4, len(levels))
    down, width = -(-len(levels) // across), max(2.9 * across, 8.0)
    with styled_figure(width, 2.5 * down + 0.9) as figure:
        places = figure.subplots(down, across, squeeze=False).reshape(-1)
        for place, (world, policies) in zip(places, levels.items(), strict=False):
            for name, x, mean, error, style in curves(world):
                if not len(x) or not x.all():
                    continue
                place.plot(x, mean, marker=".", markersize=4, label=name, **style)
                error = np.nan_to_num(error)
                place.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.15, lw=0)
            for name, level in policies.items():
                place.axhline(level, label=f"{name} policy", **LEVELS[name])
            place.set_title(world, fontsize=9)
            place.set_xlabel(axis, fontsize=8)
            place.set_xscale("log")
        for place in places[len(levels) :]:
            place.set_visible(False)
        shown = places[: len(levels)]
        if logarithmic:
            for place in shown:
                _logarithmic(place)
        else:
            from_zero(shown)
        for place in places[::across]:
            place.set_ylabel("gap at the start")
        legend_below(figure, shown, columns=int(width / 2.7))
        title_above(figure, title)
    return figure


def _logarithmic(place: Any) -> None:
    """A logarithmic axis of gaps, with plain numbers on it: more of them where it spans little."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    place.set_yscale("log")
    low, high = place.get_ylim()
    place.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)))
    place.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    place.yaxis.set_minor_formatter(NullFormatter())
