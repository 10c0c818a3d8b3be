"""What `rewardfree demo` shows: the paper's three kernels with its published ridges."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import rewardfree as rf
from rewardfree.cli.choices import grid
from rewardfree.report.style import save
from rewardfree.report.uncertainty import uncertainty_figure

MODELS = {
    "Matern 1.5": rf.Model(rf.Matern(nu=1.5, lengthscale=0.1), ridge=0.5),
    "Matern 2.5": rf.Model(rf.Matern(nu=2.5, lengthscale=0.1), ridge=0.5),
    "Squared exponential": rf.Model(rf.SquaredExponential(lengthscale=0.1), ridge=0.01),
}
SHOWN = "Matern 1.5"


def run(out: Path, side: int, queries: int) -> Iterator[str]:
    """Plan and trace the queries, write the picture, and yield the lines to print."""
    out.mkdir(parents=True, exist_ok=True)  # a folder that cannot be is better known before the work
    started = time.perf_counter()
    points = grid(2, side)
    plans = {name: rf.query_plan(model, points, queries) for name, model in MODELS.items()}
    moments = sorted({queries // 16, queries // 4, queries // 2, queries})
    paths = {name: rf.uncertainty_path(model, points, plans[name], moments) for name, model in MODELS.items()}
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
    picture = out / "uncertainty.png"
    save(uncertainty_figure(paths, SHOWN, shown, side), picture)
    yield ""
    yield f"{2 * len(MODELS)} x {queries} exact posterior updates in {seconds:.2f} s; picture: {picture}"
