"""What `rewardfree reproduce beyond` does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from rewardfree.arrays import count
from rewardfree.cli.stored import said_where_it_stopped
from rewardfree.experiments.beyond import COMPARED, PAPER, BeyondUnit, references, world_names
from rewardfree.experiments.unitfiles import is_stored, read_stored, run_stored
from rewardfree.files import written_whole
from rewardfree.progress import progress
from rewardfree.report.beyond import (
    AXES,
    Found,
    ablation_table,
    cross_table,
    curves_figure,
    headline_table,
    paper_table,
    worlds_table,
)
from rewardfree.report.gaps import save_as

#: Seeds of the published tables: none of them was used while the method was made.
FIRST_SEED, RUNS = 4000, 20
QUICK_WORLDS = ("rooms", "tide")


def beyond(out: Path, runs: int | None, jobs: int | None, seed: int, quick: bool) -> Iterator[str]:
    """Every explorer, model and planner on every world; units that are stored are not run again."""
    seeds = range(FIRST_SEED + seed, FIRST_SEED + seed + (runs or (1 if quick else RUNS)))
    worlds = QUICK_WORLDS if quick else world_names()
    units = [BeyondUnit(world, each, quick) for each in seeds for world in worlds]
    folder = out / ("beyond-quick" if quick else "beyond")
    store = folder / "units"
    yield f"beyond: {len(units)} units, {len(worlds)} worlds, seeds {seeds[0]} to {seeds[-1]}"
    started, ran = time.perf_counter(), 0
    work = run_stored(units, store, os.cpu_count() or 1 if jobs is None else count(jobs, "jobs"))

    def stored() -> tuple[int, int]:
        return sum(is_stored(unit, store) for unit in units), len(units)

    with said_where_it_stopped(stored, store):
        for _ in progress(((float(done), unit) for done, unit in work), len(units)):
            ran += 1
    yield f"{ran} units run in {time.perf_counter() - started:.0f} s, the rest was stored\n"
    records = read_stored(units, store)
    found, worst = Found(records), Found(records, "worst_state")
    about = [references(world) for world in worlds]
    hard = [world for world in worlds if world not in PAPER]
    table = [*worlds_table(about), ""]
    for steps in COMPARED[:1] if quick else COMPARED:
        table += [*headline_table(found, hard, steps), ""]
        table += [*headline_table(worst, hard, steps, "largest gap over states, mean"), ""]
        table += [*cross_table(found, about, hard, steps), ""]
    if not quick:
        table += [*paper_table(found, about, max(COMPARED)), "", *ablation_table(found, about, hard)]
    yield from table
    path = folder / "table.txt"
    with written_whole(path) as part:
        part.write_text("\n".join(table) + "\n", encoding="utf-8")
    pictures = [
        picture
        for axis in AXES
        for picture in save_as(curves_figure(found, about, axis), folder / f"beyond-{axis.replace('_', '-')}")
    ]
    yield f"\ntable:   {path}"
    yield f"figures: {' and '.join(map(str, pictures))}"
