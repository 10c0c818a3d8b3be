"""The `rewardfree` command and the names of all that it can do."""

from typing import Annotated

import typer

import rewardfree as rf
from rewardfree.cli.commands import paper, sweeps, systems, theory
from rewardfree.cli.session import Command, CommandGroup

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
for command in (
    systems.explore,
    systems.plan,
    systems.evaluate,
    systems.info,
    paper.demo,
    theory.query_plan,
    paper.reproduce,
    theory.theory,
    theory.coverage,
    sweeps.sweep,
    sweeps.export,
    sweeps.figures,
    sweeps.report,
):
    app.command(command.__name__.replace("_", "-"), cls=Command)(command)
