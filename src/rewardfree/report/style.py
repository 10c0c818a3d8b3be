"""One look for every figure: colours that colour-blind readers can tell apart, and bytes that repeat."""

import itertools
import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewardfree.files import written_whole

#: Okabe and Ito's palette, in the order in which curves use it.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Perceptually even, and readable in grey.
HEAT = "viridis"

#: What a figure is drawn with; matplotlib's own settings are left as they are.
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
#: Of a picture in pixels.
DPI = 160


#: Policies that need no data, drawn as levels.
LEVELS: dict[str, dict[str, Any]] = {
    "myopic": {"color": COLOURS[6], "linestyle": ":", "linewidth": 1.3},
    "random": {"color": "#999999", "linestyle": "-.", "linewidth": 1.1},
}
#: Curves that are there to be compared with.
_ASIDE: dict[str, dict[str, Any]] = {
    "generative-ties": {"color": COLOURS[5], "linestyle": "--", "linewidth": 1.0},
    "uniform": {"color": "#777777", "linestyle": "--", "linewidth": 1.0},
    "uniform, pooled": {"color": "#777777", "linestyle": ":", "linewidth": 1.3},
}


@contextmanager
def styled_figure(width: float, height: float, grid: bool = True) -> Iterator[Any]:
    """A figure of this size in inches; what is drawn in the block has the one look."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, "axes.grid": grid}):
        yield Figure(figsize=(width, height), layout="constrained")


def curve_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour and line of each curve, by their order; those that are only compared with have their own."""
    named = list(dict.fromkeys(names))
    colours = itertools.product(("-", "--", ":"), COLOURS)
    drawn = (
        {"color": colour, "linestyle": dash, "linewidth": 1.5} for dash, colour in itertools.cycle(colours)
    )
    return {name: _ASIDE[name] if name in _ASIDE else next(drawn) for name in named}


def legend_below(figure: Any, axes: Iterable[Any], columns: int = 3) -> None:
    """One legend for all panels, below them."""
    drawn = [zip(*place.get_legend_handles_labels(), strict=True) for place in axes]
    handles = {label: handle for pairs in drawn for handle, label in pairs}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def title_above(figure: Any, text: str, size: float = 10) -> None:
    """The title of a figure; one that is wider stands in lines of about one length."""
    title = figure.suptitle(text, fontsize=size)
    share = title.get_window_extent().width / figure.bbox.width
    if share > 0.98:
        title.set_text(textwrap.fill(text, 4 + math.ceil(len(text) / math.ceil(share / 0.85))))


def from_zero(places: Iterable[Any]) -> None:
    """Let the vertical axis begin just below 0, so that a line at 0 is not lost in the frame."""
    for place in places:
        top = place.get_ylim()[1]
        place.set_ylim(-0.025 * top, top)


def save(figure: Any, path: Path) -> None:
    """Write the figure; without a date in it, the same figure is the same bytes."""
    import matplotlib as mpl

    path.parent.mkdir(parents=True, exist_ok=True)
    form = path.suffix.lstrip(".")
    dates = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    salt: Any = {"svg.hashsalt": "rewardfree"}  # or the names inside an SVG are random
    with mpl.rc_context(salt), written_whole(path) as part:
        figure.savefig(part, format=form, dpi=DPI, metadata=dates.get(form))
