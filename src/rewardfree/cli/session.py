"""What long commands share: who runs their units, what they print, and how they end when interrupted."""

import shlex
import signal
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rewardfree.cli.console import Console
from rewardfree.experiments.running import Interrupted

Cluster = Annotated[
    str | None, typer.Option(help="A Dask scheduler, tcp://host:port: its workers run the units instead.")
]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one for each core.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
AsEvents = Annotated[
    bool, typer.Option("--json", help="Print one JSON object a line: progress, and what would be printed.")
]
#: The words of the command that is running.
_words: ContextVar[tuple[str, ...]] = ContextVar("words", default=())


class CommandGroup(TyperGroup):
    """Commands that know what was typed."""

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        _words.set(tuple(args))  # parsing empties them
        return super().make_context(info_name, args, *more, **extra)


def typed_command() -> str:
    """The command that is running, to be typed again."""
    return shlex.join(["rewardfree", *_words.get()])


def say(console: Console, lines: Iterable[str]) -> None:
    """Say lines as they come. An interruption says what is stored and how to go on."""
    try:
        for line in lines:
            console.say(line)
    except KeyboardInterrupt as reason:
        line, number = "interrupted; what was run is stored", signal.SIGINT
        if isinstance(reason, Interrupted):
            line, number = str(reason), reason.signal
        console.interrupted(line, typed_command())
        raise typer.Exit(128 + number) from None
