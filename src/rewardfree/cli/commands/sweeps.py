"""Commands for experiments of one's own, and for what they stored."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rewardfree.cli.console import console
from rewardfree.cli.session import AsEvents, Cluster, Jobs, Quiet, say, typed_command
from rewardfree.experiments.export import write_csv, write_parquet
from rewardfree.experiments.folder import ResultsFolder
from rewardfree.experiments.running import Runner
from rewardfree.experiments.sweep import Sweep
from rewardfree.files import written_whole
from rewardfree.report.pictures import DrawingPool, check_forms
from rewardfree.studies.catalogue import report_of
from rewardfree.studies.study import Workspace


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
    shown = console(quiet, as_json)
    runner = Runner(jobs, cluster, allow_imports, shown.watched)
    plan = Sweep.load(file, allow_imports)
    if device is not None:
        plan = plan.on(device)
    folder = ResultsFolder(Path("out") / plan.name if out is None else out)
    say(shown, Workspace(folder.path.parent, runner).run_sweep(plan, folder, typed_command()))


def export(
    folder: Annotated[Path, typer.Argument(help="The folder that a sweep or `reproduce` wrote.")],
    csv: Annotated[
        bool, typer.Option("--csv", help="Text, to standard output or a file (the default).")
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet, to the file of --out.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "--output", help="A file instead of standard output.")
    ] = None,
) -> None:
    """Write the stored results: of a sweep a gap for every run, planner and checkpoint.

    Examples: `rewardfree export results --csv > gaps.csv`,
    `rewardfree export results --parquet --out gaps.parquet`
    """
    if csv and parquet:
        raise ValueError("--csv and --parquet are two forms: give one of them")
    if parquet and out is None:
        raise ValueError("--parquet needs --out FILE: it is no text for a terminal")
    with ResultsFolder(folder).stored() as store:
        if out is None:
            write_csv(store, sys.stdout)
            return
        with written_whole(out) as part:
            if parquet:
                write_parquet(store, part)
            else:
                with part.open("w", newline="") as file:
                    write_csv(store, file)


def figures(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Of a sweep, or of `reproduce` figure1, betas, repeats, beyond, baselines, control, "
            "doubling or verdicts."
        ),
    ],
    form: Annotated[
        list[str] | None, typer.Option("--form", help="png, pdf or svg; may be repeated.")
    ] = None,
) -> None:
    """Print the table, draw the figures and write the page again, from stored results alone.

    Example: `rewardfree figures results --form png --form pdf`
    """
    check_forms(form or [])
    with _elsewhere(f"rewardfree report {folder} --out ELSEWHERE writes the page to another disk"):
        for line in report_of(folder).show(ResultsFolder(folder), DrawingPool(), form or []):
            typer.echo(line)


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Of a sweep, or of `reproduce` figure1, betas, repeats or baselines; beyond, control, "
            "doubling and verdicts have no page: use `figures`."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The page; by default report.html in the folder.")] = None,
) -> None:
    """Write one page that shows a folder of results: curves with switches, tables, claims, and maps of runs.

    It needs no network, and works from disk. The reproductions figure1, betas, repeats and
    baselines end with it.

    Example: `rewardfree report out/reproduce/figure1`
    """
    with _elsewhere("give --out ELSEWHERE, a file on another disk"):
        typer.echo(f"report: {report_of(folder).page_of(ResultsFolder(folder), out)}")


@contextmanager
def _elsewhere(remedy: str) -> Iterator[None]:
    """Add to an error of a full disk, or of one that is read-only, what can be done."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
        raise OSError(f"{error}: {remedy}") from error
