"""What an engine runs, and what is said about units that fail or take their worker with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar


class Runnable(Protocol):
    """What a worker can do: a world, a model and a strategy by their names, and results."""

    @property
    def names(self) -> tuple[str, str, str]: ...

    def run(self, allow_imports: bool = False) -> list[Any]: ...


Run = TypeVar("Run", bound=Runnable)

#: A unit whose worker dies this often is given up, and a sweep after so many such units.
ATTEMPTS = 3


@contextmanager
def errors_of(unit: Runnable) -> Iterator[None]:
    """What goes wrong in the block says which unit it came from."""
    try:
        yield
    except (ValueError, OSError, MemoryError) as error:
        raise ValueError(f"{_named(unit)}: {error}") from error


def given_up(killers: Sequence[Runnable], deaths: int = ATTEMPTS) -> ChildProcessError:
    """The error to raise when workers died on these units so often, each of them run by itself."""
    return ChildProcessError(
        f"a worker died {deaths} times on {' and on '.join(map(_named, killers))}: "
        "is there enough memory? use a smaller batch"
    )


def _named(unit: Runnable) -> str:
    world, model, strategy = unit.names
    return f"world {world}, model {model}, strategy {strategy}"
