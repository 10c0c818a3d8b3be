"""The `rewardfree` command and the names of all that it can do."""

from typing import Annotated

import typer

import rewardfree as rf
from rewardfree.cli.commands import paper, sweeps, systems, theory
from rewardfree.cli.session import CommandGroup

app = typer.Typer(
    name="rewardfree",
    cls=CommandGroup,
    help="Reward-free, kernel-based reinforcement learning: explore once, plan for any reward later.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rewardfree {rf.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Reward-free, kernel-based reinforcement learning: explore once, plan for any reward later."""


# In the order in which --help shows them.
app.command()(paper.demo)
app.command("query-plan")(theory.query_plan)
app.command()(paper.reproduce)
app.command()(theory.theory)
app.command()(theory.coverage)
app.command()(systems.explore)
app.command()(systems.plan)
app.command()(systems.evaluate)
app.command()(systems.info)
app.command()(sweeps.sweep)
app.command()(sweeps.export)
app.command()(sweeps.figures)
app.command()(sweeps.report)
