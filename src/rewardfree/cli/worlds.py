"""A world by what was typed: the id of a Gymnasium environment, or module:Class of one's own."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import rewardfree as rf
from rewardfree.planning import WorldPlan
from rewardfree.registry import maker_named

AllowImports = Annotated[
    bool,
    typer.Option("--allow-imports", help="Import what is named as module:Class, here or where Python looks."),
]
#: How a world of one's own is made again, in the provenance of data and plans.
PLACE = "world"


def typed_world(name: str, allow_imports: bool, /, **options: Any) -> rf.World:
    """The world of that name: an id with these options, or what module:Class makes without any."""
    given = {option: value for option, value in options.items() if value is not None}
    imported = [text for text in _texts([name, given]) if ":" in text]
    if imported:
        if not allow_imports:
            raise ValueError(
                f"{imported[0]!r:.100} would import and run code of its own: "
                "say --allow-imports if you trust it"
            )
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` has it
    if not is_own(name):
        return _with_real_states(rf.from_gymnasium(name, **given), name)
    try:
        made: Any = maker_named("world", name, allow_imports)
        made = made() if callable(made) else made
    except TypeError as error:
        raise ValueError(f"{name} must be made without arguments, such as by a function: {error}") from error
    if not isinstance(made, (rf.World, rf.FiniteWorld)):
        import gymnasium

        environment: Any = made
        if not isinstance(made, (str, gymnasium.Env, gymnasium.vector.VectorEnv)):
            raise ValueError(
                f"{name} must be or make an rf.World, or a Gymnasium environment or its id, got {made!r:.200}"
            )
        made = rf.from_gymnasium(environment, **given)
    elif given:
        raise ValueError(f"{name} says this itself: leave out {', '.join(f'{option}=' for option in given)}")
    return _with_real_states(made, name)


def placed(data: rf.Experience, name: str) -> rf.Experience:
    """The data, which say how a world of one's own is made again; an id they know."""
    return replace(data, provenance={**data.provenance, PLACE: name}) if is_own(name) else data


def world_of(
    plan: WorldPlan, file: Path, env: str | None, allow_imports: bool
) -> tuple[rf.World, str, dict[str, Any]]:
    """The world of a plan, or `env` in its place, which must have its variables; what to type for it.

    Errors name the plan's file, but not where `env` that was typed is wrong.
    """
    with _named(file):
        name, options = place_of(plan.provenance, env)
    with _named(file) if env is None else nullcontext():
        world = typed_world(name, allow_imports, **options)
    with _named(file):
        plan.check_world(world, name)
    return world, name, options


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Errors that name the file in which something is wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def place_of(provenance: Mapping[str, Any], env: str | None = None) -> tuple[str, dict[str, Any]]:
    """What to type for the world of a plan, or for `env` in its place, and its options.

    What a file says is checked: who sent it must not choose other options of `from_gymnasium`.
    """
    options: dict[str, Any] = {}
    if "gymnasium" in provenance:
        options = {option: provenance.get(option) for option in ("horizon", "names", "angles")}
        _check_words(options)
    if env is not None:
        return env, {} if is_own(env) else options
    known, more = provenance.get("gymnasium"), provenance.get("options") or {}
    if not isinstance(known, str | None) or not isinstance(more, Mapping):
        raise ValueError(
            f"its provenance must hold an environment and its options, got {known!r:.100} and {more!r:.100}"
        )
    taken = sorted({"env", "horizon", "names", "angles", "bounds", "pilot"} & set(more))
    if taken:
        raise ValueError(
            f"its options for gymnasium.make have {taken[0]}, which is none: the file is damaged"
        )
    options |= more
    if known is not None:
        return known, options
    place = provenance.get(PLACE)
    if not isinstance(place, str) or not is_own(place):
        raise ValueError(
            "it does not say which world it is for: give --env ID, or --env module:Class --allow-imports"
        )
    return place, options


def is_own(name: str) -> bool:
    """Whether it names an object of a module; an id of Gymnasium has a version, or no module."""
    return name.partition(":")[2].isidentifier()


def _check_words(options: Mapping[str, Any]) -> None:
    """Names of variables, which from_gymnasium takes as a list."""
    for option in ("names", "angles"):
        words = options[option] or ()
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"its {option} must be a list of names, got {words!r:.100}")


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value that was typed or read."""
    if isinstance(value, str):
        yield value
    parts = [*value, *value.values()] if isinstance(value, Mapping) else value
    if isinstance(parts, (list, tuple)):
        for part in parts:
            yield from _texts(part)


def _with_real_states(world: rf.World | rf.FiniteWorld, name: str) -> rf.World:
    if isinstance(world, rf.FiniteWorld):
        raise ValueError(f"{name} has finitely many states and a table: use it from Python, rf.explore")
    return world
