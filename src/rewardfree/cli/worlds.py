"""A world by what was typed: the id of a Gymnasium environment, or module:Class of one's own."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import rewardfree as rf
from rewardfree.registry import maker_named

AllowImports = Annotated[
    bool,
    typer.Option("--allow-imports", help="Import what is named as module:Class, here or where Python looks."),
]
#: How a world of one's own is made again, in the provenance of data and plans.
PLACE = "world"


def typed_world(name: str, allow_imports: bool, **options: Any) -> rf.World:
    """The world of that name: an id with these options, or what module:Class makes without any."""
    given = {option: value for option, value in options.items() if value is not None}
    imported = [word for word in (name, *given.values()) if isinstance(word, str) and ":" in word]
    if imported:
        if not allow_imports:
            raise ValueError(
                f"{imported[0]} may import and run code of its own: say --allow-imports if you trust it"
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
        made = rf.from_gymnasium(made, **given)
    elif given:
        raise ValueError(f"{name} says this itself: leave out {', '.join(f'{option}=' for option in given)}")
    return _with_real_states(made, name)


def placed(data: rf.Experience, name: str) -> rf.Experience:
    """The data, which say how a world of one's own is made again; an id they know."""
    return replace(data, provenance={**data.provenance, PLACE: name}) if is_own(name) else data


def place_of(provenance: Mapping[str, Any], env: str | None = None) -> tuple[str | None, dict[str, Any]]:
    """What to type for the world of a plan, or for `env` in its place, and its options; None: not known."""
    options: dict[str, Any] = {}
    if "gymnasium" in provenance:
        options = {option: provenance.get(option) for option in ("horizon", "names", "angles")}
    if env is not None:
        return env, {} if is_own(env) else options
    options |= dict(provenance.get("options") or {})
    if provenance.get("gymnasium") is not None:
        return str(provenance["gymnasium"]), options
    place = provenance.get(PLACE)
    return (place, options) if isinstance(place, str) and is_own(place) else (None, options)


def is_own(name: str) -> bool:
    """Whether it names an object of a module; an id of Gymnasium has a version, or no module."""
    return name.partition(":")[2].isidentifier()


def _with_real_states(world: rf.World | rf.FiniteWorld, name: str) -> rf.World:
    if isinstance(world, rf.FiniteWorld):
        raise ValueError(f"{name} has finitely many states and a table: use it from Python, rf.explore")
    return world
