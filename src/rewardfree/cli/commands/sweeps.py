"""Commands for experiments of one's own, and for what they stored."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from rewardfree.cli.console import console
from rewardfree.cli.engine import Engine, typed_command
from rewardfree.cli.options import AsEvents, Cluster, Jobs, Quiet
from rewardfree.cli.report import PORTRAITS, remember_making, write_report
from rewardfree.cli.reproduction import page_of, redraw
from rewardfree.cli.stored import RESULTS, stored
from rewardfree.experiments.export import write_csv, write_parquet
from rewardfree.experiments.running import check_devices
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.files import written_whole
from rewardfree.report.gaps import gap_pictures, gap_table, lines
from rewardfree.report.pictures import check_forms


def sweep(
    file: Annotated[Path, typer.Argument(help="The experiment, as TOML.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default out/NAME.")] = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    device: Annotated[
        str | None,
        typer.Option(help="Instead of the file's own: cuda runs its units there, as large batches."),
    ] = None,
    allow_imports: Annotated[
        bool, typer.Option("--allow-imports", help="Import what the file names as module:object.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsEvents = False,
) -> None:
    """Run an experiment of your own: worlds, models, strategies and planners in a TOML file.

    Results are stored as they come; Ctrl-C leaves them, and says the command that goes on.

    Examples: `rewardfree sweep experiment.toml --out results`,
    `rewardfree sweep experiment.toml --out results --cluster tcp://192.168.1.10:8786`
    """
    engine = Engine(jobs, cluster, console(quiet, as_json))
    plan = Sweep.load(file, allow_imports)
    if device is not None:
        plan = plan.on(device)
    check_devices(plan.units, jobs, cluster)  # before a folder is made
    folder = Path("out") / plan.name if out is None else out
    started = time.perf_counter()
    with (
        engine.looking_inside(plan.units, folder / PORTRAITS, allow_imports),
        Store(folder / RESULTS) as store,
    ):
        ran = engine.run_sweep(plan, store, allow_imports)
    if ran:
        took = f"{ran} units run in {time.perf_counter() - started:.0f} s"
        remember_making(folder, typed_command(), time=took)
    said = f"{ran} of {len(plan.units)} units run, the rest was there; results: {folder / RESULTS}"
    engine.console.say(said)


def export(
    folder: Annotated[Path, typer.Argument(help="The folder that a sweep wrote.")],
    csv: Annotated[
        bool, typer.Option("--csv", help="Text, to standard output or a file (the default).")
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet, to the file of --output.")] = False,
    output: Annotated[Path | None, typer.Option(help="A file instead of standard output.")] = None,
) -> None:
    """Write the stored results: a gap for every run, planner and checkpoint.

    Examples: `rewardfree export results --csv > gaps.csv`,
    `rewardfree export results --parquet --output gaps.parquet`
    """
    if csv and parquet:
        raise ValueError("--csv and --parquet are two forms: give one of them")
    if parquet and output is None:
        raise ValueError("--parquet needs --output FILE: it is no text for a terminal")
    with stored(folder) as store:
        if output is None:
            write_csv(store, sys.stdout)
            return
        with written_whole(output) as part:
            if parquet:
                write_parquet(store, part)
            else:
                with part.open("w", newline="") as file:
                    write_csv(store, file)


def figures(
    folder: Annotated[Path, typer.Argument(help="The folder that a sweep wrote.")],
    form: Annotated[
        list[str] | None, typer.Option("--form", help="png, pdf or svg; may be repeated.")
    ] = None,
) -> None:
    """Print the table of gaps and draw them against samples, episodes and steps, from stored results alone.

    The folder of a reproduction gets its own figures and table again, as PNG and PDF.

    Example: `rewardfree figures results --form png --form pdf`
    """
    check_forms(form or [])
    again = redraw(folder)
    if again is not None:
        for line in again:
            typer.echo(line)
        return
    with stored(folder) as store:
        found = lines(store.rows())
    drawing = Engine().draw(*gap_pictures(found, folder / "figures", form or ["png"]))
    for line in gap_table(found):
        typer.echo(line)
    typer.echo(f"\n{len(drawing())} pictures in {folder / 'figures'}")


def report(
    folder: Annotated[
        Path, typer.Argument(help="The folder of a sweep, or of the paper's figure1, betas or repeats.")
    ],
    out: Annotated[Path | None, typer.Option(help="The page; by default report.html in the folder.")] = None,
) -> None:
    """Write one page that shows a folder of results: curves with switches, tables, claims, and maps of runs.

    It needs no network, and works from disk. The reproductions figure1, betas, repeats and
    baselines end with it.

    Example: `rewardfree report out/reproduce/figure1`
    """
    page = page_of(folder, out)
    if page is None:
        page = write_report(folder, folder.resolve().name, "a sweep of your own", out=out)
    typer.echo(f"report: {page}")
