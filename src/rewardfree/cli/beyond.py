"""What `rewardfree reproduce beyond` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rewardfree.cli.engine import Engine
from rewardfree.cli.stored import UNITS, seeds_from
from rewardfree.experiments.beyond import COMPARED, BeyondUnit
from rewardfree.experiments.export import write_records
from rewardfree.experiments.instances import MEASURES, PAPER, hard_and_paper, references
from rewardfree.experiments.unitfiles import read_stored
from rewardfree.files import written_whole
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
from rewardfree.report.pictures import save_as

#: Seeds of the published tables: none of them was used while the method was made.
FIRST_SEED, RUNS = 5000, 20
QUICK_WORLDS = ("rooms", "tide")
#: A row of results.csv: one run, method and number of steps.
COLUMNS = ("world", "seed", "explorer", "model", "planner", "steps", "episodes", "samples_per_step")


def beyond(out: Path, runs: int | None, seed: int, quick: bool, engine: Engine) -> Iterator[str]:
    """Every explorer, model and planner on every world; units that are stored are not run again."""
    seeds = seeds_from(FIRST_SEED, seed, runs, 1 if quick else RUNS)
    worlds = QUICK_WORLDS if quick else hard_and_paper()
    units = [BeyondUnit(world, each, quick) for each in seeds for world in worlds]
    folder = out / ("beyond-quick" if quick else "beyond")
    yield f"beyond: {len(units)} units, {len(worlds)} worlds, seeds {seeds[0]} to {seeds[-1]}"
    yield from engine.run_files(units, folder / UNITS)
    records = read_stored(units, folder / UNITS)
    about = [references(world) for world in worlds]
    hard = [world for world in worlds if world not in PAPER]
    found = {measure: Found(records, measure) for measure in MEASURES}
    table = [*worlds_table(about), ""]
    for steps in COMPARED[:1] if quick else COMPARED:
        for each in found.values():
            table += [*headline_table(each, hard, steps), ""]
        table += [*cross_table(found["start"], about, hard, steps), ""]
    if not quick:
        table += [*paper_table(found["start"], about, max(COMPARED)), ""]
        table += [*cross_table(found["start"], about, list(PAPER), max(COMPARED)), ""]
        table += ablation_table(found["start"], about, hard)
    yield from table
    path = folder / "table.txt"
    with written_whole(path) as part:
        part.write_text("\n".join(table) + "\n", encoding="utf-8")
    write_records(folder / "results.csv", records, COLUMNS)
    pictures = [
        picture
        for axis in AXES
        for picture in save_as(
            curves_figure(found["start"], about, axis), folder / f"beyond-{axis.replace('_', '-')}"
        )
    ]
    yield f"\ntable:   {path}"
    yield f"results: {folder / 'results.csv'}"
    yield f"figures: {' and '.join(map(str, pictures))}"
