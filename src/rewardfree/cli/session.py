"""What commands share: their options, what they print, their errors, and how they end when interrupted."""

import itertools
import re
import shlex
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rewardfree.cli.console import Console
from rewardfree.experiments.running import Interrupted
from rewardfree.interruption import interrupted_later
from rewardfree.registry import typed_name
from rewardfree.strategies import WorldFailed

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

    def get_params(self, ctx: Any) -> list[Any]:
        return _with_plain_flags(super().get_params(ctx))

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        _words.set(tuple(args))  # parsing empties them
        return super().make_context(info_name, args, *more, **extra)


class Command(TyperCommand):
    """A command whose flags are shown without a type, and whose errors speak of what can be typed."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _with_plain_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        options = {str(parameter.name): parameter.opts[0] for parameter in self.params}
        with warnings.catch_warnings():
            warnings.showwarning = partial(_say_warning, options)
            try:
                return super().invoke(ctx)
            except ValueError as error:
                raise ValueError(as_typed(str(error), options)) from error
            except WorldFailed as failure:
                typer.echo(f"rewardfree: {failure}", err=True)
                raise typer.Exit(1) from failure


def _say_warning(options: Mapping[str, str], message: Warning | str, *_: Any, **__: Any) -> None:
    """One line on stderr; Python's own form is two, and speaks of files of the package."""
    typer.echo(f"rewardfree: warning: {as_typed(str(message), options)}", err=True)


def _with_plain_flags(parameters: Iterable[Any]) -> list[Any]:
    """Parameters, of which a flag is shown without the type of a value: it takes none."""
    shown = list(parameters)
    for parameter in shown:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return shown


def as_typed(message: str, options: Mapping[str, str]) -> str:
    """A message of the library in words of a command that has these options, by their names in Python.

    `steps=` becomes --steps, as does `steps` where the message begins with what it must be, `rf.Scout()`
    --strategy scout, `math.inf` inf; what is in brackets and speaks of Python goes.
    """

    def option(match: re.Match[str]) -> str:
        if match[1] not in options:
            return match[0]
        value = match[2] or match[3]
        return f"{options[match[1]]} {value}" if value else options[match[1]]

    def part(match: re.Match[str]) -> str:
        for kind in ("strategy", "planner"):
            typed = typed_name(kind, match[1])
            if kind in options and typed is not None:
                return f"{options[kind]} {typed}"
        return match[0]

    message = message.replace("math.inf", "inf")
    for python, words in _UNTYPED:
        message = re.sub(python, words, message)
    message = re.sub(r"^(\w+)(?= must )", lambda match: options.get(match[1], match[1]), message)
    message = re.sub(r'\b(\w+)=(?!=)(?:"(\w+)"|(\w+))?', option, message)
    message = re.sub(r"\b(?:rf\.)?([A-Z]\w+)\(\)", part, message)
    return re.sub(r" \([^()]*\brf\.[^()]*\)", "", message)


#: What cannot be typed, in messages, and what can be in its place.
_UNTYPED = (
    (r", ([^,]+) or rf\.[A-Z]\w+\([^()]+\)", r" or \1"),  # the last of several parts, with options
    (r" or pilot=500, which measures them by random steps", ""),
    (r"; for a table of text state=rf\.Box\.of\((?:[^()]|\([^()]*\))*\)", ""),
    (r"\baction=\['([^']+)'\]", r"action=\1"),
    (r"\bbounds=\{[^{}]*\}", "bounds in a world of your own (module:Class --allow-imports)"),
)


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


def keep(write: Callable[[Path], None], out: Path) -> None:
    """Write what a long command made to `out`, while Ctrl-C waits.

    Where that cannot be done it is kept beside it, in the working folder or in the temporary one, and an
    error says where.
    """
    with interrupted_later():
        try:
            write(out)
            return
        except OSError as error:
            failure = error
        place = _kept_elsewhere(write, out)
    raise failure if place is None else OSError(f"{failure}; what was computed is in {place}") from failure


def _kept_elsewhere(write: Callable[[Path], None], out: Path) -> Path | None:
    """Where there was room for it; nothing is replaced there."""
    for folder in (out.parent, Path.cwd(), Path(tempfile.gettempdir())):
        names = (folder / f"{out.stem}-{number}{out.suffix}" for number in itertools.count(1))
        place = next(path for path in names if not path.exists())
        with suppress(OSError):
            write(place)
            return place
    return None
