"""What `rewardfree reproduce baselines` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rewardfree.cli.engine import Engine
from rewardfree.cli.stored import seeds_from
from rewardfree.experiments.baselines import (
    EXPRESS_SCALE,
    JIN_SCALE,
    LARGE_UCRL_SCALE,
    UCRL_SCALE,
    BaselineUnit,
)
from rewardfree.experiments.instances import PAPER, TABULAR, hard_and_paper, instance_named, references
from rewardfree.experiments.unitfiles import read_stored
from rewardfree.files import written_whole
from rewardfree.report.baselines import (
    AXES,
    Found,
    curves_figure,
    exponents_table,
    gaps_table,
    seconds_table,
    visits_table,
)
from rewardfree.report.complexities import complexity_table
from rewardfree.report.pictures import save_as

FIRST_SEED, RUNS = 6000, 20
QUICK_WORLDS = ("rooms", "riverswim")
SCALES = (
    f"rf-ucrl {UCRL_SCALE:g} on tabular worlds and {LARGE_UCRL_SCALE:g} on others, rf-express "
    f"{EXPRESS_SCALE:g}, jin {JIN_SCALE:g}; the theory has 1"
)
#: Costs at which systems are compared on the larger worlds: episodes, and environment steps.
AT = {"episodes": 160, "steps": 1600}


def baselines(out: Path, runs: int | None, seed: int, quick: bool, engine: Engine) -> Iterator[str]:
    """Every system on every world; units that are stored are not run again."""
    seeds = seeds_from(FIRST_SEED, seed, runs, 1 if quick else RUNS)
    worlds = QUICK_WORLDS if quick else (*PAPER, *[w for w in hard_and_paper() if w not in PAPER], *TABULAR)
    units = [BaselineUnit(world, each, quick) for each in seeds for world in worlds]
    folder = out / ("baselines-quick" if quick else "baselines")
    yield f"baselines: {len(units)} units, {len(worlds)} worlds, seeds {seeds[0]} to {seeds[-1]}"
    yield from engine.run_files(units, folder / "units")
    found = Found(read_stored(units, folder / "units"))
    about = [references(world) for world in worlds]
    large = [world for world in worlds if world not in TABULAR]
    table = [*gaps_table(found, worlds, "size", None), ""]
    for axis, cost in AT.items() if not quick else ():
        table += [*gaps_table(found, large, axis, cost), ""]
    table += [*seconds_table(found, worlds), "", f"bonus_scale: {SCALES}", ""]
    shapes = {name: instance_named(name).world for name in (*TABULAR, *([] if quick else PAPER))}
    table += visits_table({name: (*world.grid.shape, world.horizon) for name, world in shapes.items()})
    table += ["", *complexity_table(), ""]
    table += exponents_table(found, [world for world in worlds if world in PAPER or world in TABULAR])
    yield from table
    path = folder / "table.txt"
    with written_whole(path) as part:
        part.write_text("\n".join(table) + "\n", encoding="utf-8")
    pictures = [
        picture
        for axis in AXES
        for picture in save_as(curves_figure(found, about, axis), folder / f"baselines-{axis}")
    ]
    yield f"\ntable:   {path}"
    yield f"figures: {' and '.join(map(str, pictures))}"
