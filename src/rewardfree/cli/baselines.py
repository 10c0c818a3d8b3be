"""What `rewardfree reproduce baselines` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rewardfree.cli.engine import Engine, typed_command
from rewardfree.cli.report import remember_making, write_comparison
from rewardfree.cli.stored import UNITS, seeds_from
from rewardfree.experiments.baselines import (
    EXPRESS_SCALE,
    JIN_SCALE,
    LARGE_UCRL_SCALE,
    UCRL_SCALE,
    BaselineUnit,
)
from rewardfree.experiments.export import write_records
from rewardfree.experiments.instances import (
    PAPER,
    REWARDS,
    TABULAR,
    hard_and_paper,
    instance_named,
    references,
)
from rewardfree.experiments.unitfiles import read_stored
from rewardfree.files import written_whole
from rewardfree.report.baselines import (
    AXES,
    FIGURES,
    Found,
    as_lines,
    curves_figure,
    exponents_table,
    gaps_table,
    seconds_table,
    systems_table,
    visits_table,
)
from rewardfree.report.complexities import complexity_table
from rewardfree.report.pictures import save_as

FIRST_SEED, RUNS = 6000, 20
TITLE = "Every system that the paper names, on the same worlds"
QUICK_WORLDS = ("rooms", "riverswim")
SCALES = (
    f"bonus_scale: rf-ucrl {UCRL_SCALE:g} on tabular worlds and {LARGE_UCRL_SCALE:g} on others, rf-express "
    f"{EXPRESS_SCALE:g}, jin {JIN_SCALE:g}; the theory has 1"
)
#: Environment steps at which systems are compared on the larger worlds: 160 whole episodes.
STEPS = 1600
#: A row of results.csv: one run, system and size.
COLUMNS = ("world", "seed", "system", "size", "episodes", "steps")


def baselines(out: Path, runs: int | None, seed: int, quick: bool, engine: Engine) -> Iterator[str]:
    """Every system on every world; units that are stored are not run again."""
    seeds = seeds_from(FIRST_SEED, seed, runs, 1 if quick else RUNS)
    worlds = QUICK_WORLDS if quick else (*PAPER, *[w for w in hard_and_paper() if w not in PAPER], *TABULAR)
    units = [BaselineUnit(world, each, quick) for each in seeds for world in worlds]
    folder = out / ("baselines-quick" if quick else "baselines")
    yield f"baselines: {len(units)} units, {len(worlds)} worlds, seeds {seeds[0]} to {seeds[-1]}"
    took = yield from engine.run_files(units, folder / UNITS)
    if took:
        remember_making(folder, typed_command(), time=took)
    records = read_stored(units, folder / UNITS)
    found = Found(records)
    large = [world for world in worlds if world not in TABULAR]
    table = [*systems_table(found, worlds), SCALES, "", *gaps_table(found, worlds, "size", None), ""]
    if not quick:
        table += [*gaps_table(found, large, "steps", STEPS), ""]
    table += [*seconds_table(found, worlds), ""]
    shapes = {name: instance_named(name).world for name in (*TABULAR, *([] if quick else PAPER))}
    table += visits_table({name: (*world.grid.shape, world.horizon) for name, world in shapes.items()})
    table += ["", *complexity_table(), ""]
    table += exponents_table(found, [world for world in worlds if world in PAPER or world in TABULAR])
    yield from table
    path = folder / "table.txt"
    with written_whole(path) as part:
        part.write_text("\n".join(table) + "\n", encoding="utf-8")
    write_records(folder / "results.csv", records, COLUMNS)
    about = [references(world) for world in worlds]
    pictures = [
        picture
        for axis in AXES
        for name, systems in FIGURES.items()
        for picture in save_as(
            curves_figure(found, about, axis, systems), folder / f"baselines-{name}-{axis}"
        )
    ]
    yield f"\ntable:   {path}"
    yield f"results: {folder / 'results.csv'}"
    yield f"figures: {' and '.join(map(str, pictures))}"
    settings = f"gaps are means over {REWARDS} rewards; {SCALES}"
    yield f"report:  {write_comparison(folder, as_lines(records, about), seeds, TITLE, settings)}"
