"""What `rewardfree reproduce control` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rewardfree.cli.engine import Engine
from rewardfree.cli.stored import UNITS, seeds_from
from rewardfree.experiments.control import TASKS, ControlUnit
from rewardfree.experiments.unitfiles import read_stored
from rewardfree.files import written_whole
from rewardfree.report.control import control_figure, control_table, scores_table
from rewardfree.report.pictures import save_as

#: Seeds of the published table: none of them was used while the method was made.
FIRST_SEED, SEEDS = 2000, 10


def control(out: Path, runs: int | None, seed: int, quick: bool, engine: Engine) -> Iterator[str]:
    """Explore every task, plan for its rewards, play the plans; units that are stored are not run again."""
    seeds = seeds_from(FIRST_SEED, seed, runs, 1 if quick else SEEDS)
    transitions, episodes = (150, 3) if quick else (1000, 20)
    tasks = TASKS[:2] if quick else TASKS
    units = [ControlUnit(task.env, each, transitions, episodes) for each in seeds for task in reversed(tasks)]
    units += [ControlUnit(task.env, seeds[0], transitions, episodes, oracle=True) for task in tasks]
    folder = out / ("control-quick" if quick else "control")
    yield f"control: {len(units)} units of {transitions} transitions, seeds {seeds[0]} to {seeds[-1]}"
    yield from engine.run_files(units, folder / UNITS)
    records = read_stored(units, folder / UNITS)
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
