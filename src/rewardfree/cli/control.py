"""What `rewardfree reproduce control` does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from rewardfree.arrays import count
from rewardfree.cli.stored import said_where_it_stopped
from rewardfree.experiments.control import TASKS, ControlUnit
from rewardfree.experiments.unitfiles import is_stored, read_stored, run_stored
from rewardfree.files import written_whole
from rewardfree.progress import progress
from rewardfree.report.control import control_figure, control_table, scores_table
from rewardfree.report.gaps import save_as

#: Seeds of the published table: none of them was used while the method was made.
FIRST_SEED, SEEDS = 2000, 10


def control(out: Path, runs: int | None, jobs: int | None, seed: int, quick: bool) -> Iterator[str]:
    """Explore every task, plan for its rewards, play the plans; units that are stored are not run again."""
    seeds = range(FIRST_SEED + seed, FIRST_SEED + seed + (runs or (1 if quick else SEEDS)))
    transitions, episodes = (150, 3) if quick else (1000, 20)
    tasks = TASKS[:2] if quick else TASKS
    units = [ControlUnit(task.env, each, transitions, episodes) for each in seeds for task in reversed(tasks)]
    units += [ControlUnit(task.env, seeds[0], transitions, episodes, oracle=True) for task in tasks]
    folder = out / ("control-quick" if quick else "control")
    yield f"control: {len(units)} units of {transitions} transitions, seeds {seeds[0]} to {seeds[-1]}"
    started, ran = time.perf_counter(), 0
    store = folder / "units"
    work = run_stored(units, store, os.cpu_count() or 1 if jobs is None else count(jobs, "jobs"))

    def stored() -> tuple[int, int]:
        return sum(is_stored(unit, store) for unit in units), len(units)

    with said_where_it_stopped(stored, store):
        for _ in progress(((float(done), unit) for done, unit in work), len(units)):
            ran += 1
    yield f"{ran} units run in {time.perf_counter() - started:.0f} s, the rest was stored\n"
    records = read_stored(units, store)
    table = control_table(records, tasks)
    if not quick:  # a quick look is no evidence
        table += ["", *scores_table(records, tasks)]
    yield from table
    path = folder / "table.txt"
    with written_whole(path) as part:
        part.write_text("\n".join(table) + "\n", encoding="utf-8")
    pictures = save_as(control_figure(records, tasks), folder / "control")
    yield f"\ntable:   {path}"
    yield f"figures: {' and '.join(map(str, pictures))}"
