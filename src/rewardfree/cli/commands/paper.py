"""Commands that show and reproduce: the demonstration, the paper, and what goes further."""

from pathlib import Path
from typing import Annotated

import typer

from rewardfree.cli.console import console
from rewardfree.cli.session import AsEvents, Cluster, Jobs, Quiet, say
from rewardfree.experiments.running import Runner
from rewardfree.studies.catalogue import study_named
from rewardfree.studies.demo import QUICK, Demo
from rewardfree.studies.doubling.worlds import WORLDS
from rewardfree.studies.paper.specification import KERNELS
from rewardfree.studies.study import Workspace


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/demo"),
    quick: Annotated[bool, typer.Option("--quick", help="A small grid and few queries.")] = False,
) -> None:
    """Show the library at work: where to look first, and one exploration that serves three rewards.

    Example: `rewardfree demo --out demo`
    """
    for line in (QUICK if quick else Demo()).show(out):
        typer.echo(line)


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="figure1, functions, betas, repeats, table, all of these, beyond, baselines, control, "
            "doubling, or verdicts."
        ),
    ] = "figure1",
    preset: Annotated[
        str | None, typer.Option(help="published, or literal: as the text says.", show_default="published")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Runs of each algorithm; by default 80, 20 for all but figure1, 10 for control and "
            "doubling, 2 for verdicts."
        ),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Worlds for repeats; by default 10.")] = None,
    kernels: Annotated[
        str | None, typer.Option(help="Some of them, with commas between.", show_default=",".join(KERNELS))
    ] = None,
    worlds: Annotated[
        str | None,
        typer.Option(help="For doubling: some of its worlds, with commas.", show_default=",".join(WORLDS)),
    ] = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu; cuda or cuda:N runs all of it there, in this process, as large batches.",
            show_default="cpu",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="The draw of the world, for repeats the first; for beyond, baselines, control, "
            "doubling and verdicts it is added to the run seeds."
        ),
    ] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small worlds and few runs: seconds, for a look.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for results, tables and figures.")] = Path(
        "out/reproduce"
    ),
    quiet: Quiet = False,
    as_json: AsEvents = False,
) -> None:
    """Reproduce the paper: run what is not stored yet, print the table, draw the figures.

    `figure1`: gaps of four algorithms on three kernels. `functions`: Figures 2-4, the worlds. `betas`:
    Figures 5-7. `repeats`: Figures 8-10, on other draws. `table`: Table 1, and our gaps beside the authors'.

    Further than the paper: `beyond`, every explorer, model and planner on worlds where planning matters;
    `baselines`, every system that the paper names, on its worlds, on these and on tabular ones; `control`,
    five Gymnasium tasks, explored once without a reward, planned for several; `doubling`, four worlds with
    walls, planned from ever more data; `verdicts`, what is said of data beside what plans from them gain.
    These run on the CPU.

    Ctrl-C leaves what is stored, and says the command that goes on.

    Examples: `rewardfree reproduce figure1`, `rewardfree reproduce figure1 --device cuda`,
    `rewardfree reproduce repeats --draws 3 --kernels se,matern15`
    """
    shown = console(quiet, as_json)
    runner = Runner(jobs, cluster, watch=shown.watched)
    study = study_named(
        what,
        preset=preset,
        kernels=_names(kernels),
        worlds=_names(worlds),
        seed=seed,
        runs=runs,
        draws=draws,
        quick=quick,
        device=device,
    )
    say(shown, study.reproduce(Workspace(out, runner)))


def _names(text: str | None) -> tuple[str, ...] | None:
    """The names in a comma-separated list."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
