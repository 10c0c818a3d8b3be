"""One look for every figure: colours that colour-blind readers can tell apart, and bytes that repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    "figure.dpi": 100,
    "savefig.dpi": 160,
}


def save(figure: Any, path: Path) -> None:
    """Write the figure; without a date in it, the same figure is the same bytes."""
    import matplotlib as mpl

    path.parent.mkdir(parents=True, exist_ok=True)
    dates = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with mpl.rc_context({"svg.hashsalt": "rewardfree"}):  # or the names inside an SVG are random
        figure.savefig(path, metadata=dates.get(path.suffix.lstrip(".")))
