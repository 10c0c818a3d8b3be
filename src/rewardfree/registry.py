"""The names of kernels, worlds, strategies, planners: one table for files, sweeps and the command line."""

import importlib
import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

Maker = TypeVar("Maker", bound=Callable[..., Any])

#: How deep stored objects may be nested: deeper ones would exceed Python's recursion limit.
MOST_NESTED = 100
#: What makes objects of a kind, by its name in Python.
_MAKERS: dict[str, dict[str, Callable[..., Any]]] = {}
#: The same by the short names that are typed on the command line, for those that have one.
_TYPED: dict[str, dict[str, Callable[..., Any]]] = {}
#: Frozen dataclasses, whose values can be written to files.
_CLASSES: dict[str, type] = {}


def registered(kind: str, typed: str = "") -> Callable[[Maker], Maker]:
    """Give a class or a function its name: in files and sweeps its own, on the command line `typed`."""

    def register(maker: Maker) -> Maker:
        makers = _MAKERS.setdefault(kind, {})
        for taken in (makers.get(maker.__name__), _CLASSES.get(maker.__name__)):
            if taken is not None and _place(taken) != _place(maker):
                raise ValueError(f"{maker.__name__} is already the name of {taken!r}: choose another one")
        makers[maker.__name__] = maker
        if typed:
            _TYPED.setdefault(kind, {})[typed] = maker
        if isinstance(maker, type):
            _CLASSES[maker.__name__] = maker
        return maker

    return register


def _place(maker: Callable[..., Any]) -> tuple[str, str]:
    """Where something is defined: the same after its module was loaded again."""
    return maker.__module__, maker.__qualname__


# Files


def to_text(values: Mapping[str, Any]) -> str:
    """Named values as JSON."""
    return json.dumps({name: to_table(value) for name, value in values.items()}, sort_keys=True)


def from_text(text: str) -> dict[str, Any]:
    """The named values that a JSON text of a file describes; see `from_table`."""
    try:
        tables = json.loads(text)
    except RecursionError:
        raise ValueError("its text is nested too deep") from None
    if not isinstance(tables, dict):
        raise ValueError(f"its text must be a table of names, got {tables!r:.100}")
    return {name: from_table(table) for name, table in tables.items()}


def is_made_by(kind: str, value: Any) -> bool:
    """Whether a value is one of the registered classes of a kind."""
    return type(value) in _MAKERS[kind].values()


def to_table(value: Any, depth: int = 1) -> Any:
    """A value as something JSON can hold."""
    if depth > MOST_NESTED:
        raise ValueError(f"what goes into a file may be nested {MOST_NESTED} deep, this is deeper")
    if isinstance(value, np.generic):
        return to_table(value.item(), depth)
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_table(entry, depth + 1) for entry in value]
    if isinstance(value, Mapping):
        return {"table": {str(name): to_table(entry, depth + 1) for name, entry in value.items()}}
    if is_dataclass(value) and _CLASSES.get(type(value).__name__) is type(value):
        return {"type": type(value).__name__} | {
            field.name: to_table(getattr(value, field.name), depth + 1)
            for field in fields(value)
            if field.init
        }
    raise ValueError(
        f"{value!r:.200} cannot be written to a file: only rewardfree's own kinds can, and classes of yours "
        "that were given a name with rewardfree.registry.registered"
    )


def from_table(table: Any, depth: int = 1) -> Any:
    """The object that a table of a file describes; unknown names are refused, nothing in it is executed."""
    if depth > MOST_NESTED:
        raise ValueError(f"a table may be nested {MOST_NESTED} deep, this one is deeper")
    if isinstance(table, list):
        return tuple(from_table(entry, depth + 1) for entry in table)
    if not isinstance(table, Mapping):
        return table
    if "number" in table:
        return float(table["number"])
    if "table" in table:
        return {name: from_table(entry, depth + 1) for name, entry in table["table"].items()}
    name = table.get("type")
    if name not in _CLASSES:
        raise ValueError(f"there is no {name!r} here: the file is from a newer version, or is damaged")
    options = {field: from_table(entry, depth + 1) for field, entry in table.items() if field != "type"}
    try:
        return _CLASSES[name](**options)
    except TypeError as error:
        raise ValueError(f"{name} cannot be made: {error}") from error


# Sweeps


def canonical(table: Any) -> str:
    """A table as text that is the same for equal tables."""
    try:
        return json.dumps(table, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a table may hold numbers, text, lists and tables, got {table!r}") from error


def check(kind: str, table: Any, allow_imports: bool = False) -> None:
    """Refuse a table that cannot be built, without building it: a world may take its time."""
    maker, options = _read(kind, table, allow_imports)
    try:
        inspect.signature(maker).bind(**options)
    except TypeError as error:
        raise ValueError(f"{kind} {table['type']}: {error}") from error


def build(kind: str, table: Any, allow_imports: bool = False) -> Any:
    """The object that a table such as {type = "Matern", nu = 1.5} describes.

    Tables within it are of the kind that their entry is called, or kernels.
    """
    maker, options = _read(kind, table, allow_imports)
    try:
        return maker(**options)
    except TypeError as error:
        raise ValueError(f"{kind} {table['type']}: {error}") from error


def maker_named(kind: str, name: str, allow_imports: bool = False) -> Callable[..., Any]:
    """What makes objects of a kind, by its name in Python; or, where that is allowed, as module:object."""
    makers = _MAKERS[kind]
    if name in makers:
        return makers[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        names = ", ".join(sorted(makers))
        raise ValueError(f"{kind} must be one of {names}, or module:object, got {name!r}")
    if not allow_imports:
        raise ValueError(
            f"{kind} {name!r} would import and run code of its own: say --allow-imports if you trust it"
        )
    try:
        maker: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{kind} {name!r} cannot be imported: {error}") from error
    return maker


def _read(kind: str, table: Any, allow_imports: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The maker that a table names, and the options that it gives it."""
    if not isinstance(table, Mapping) or not isinstance(table.get("type"), str):
        example = f'{{type = "{min(_MAKERS[kind])}"}}'
        raise ValueError(f"a {kind} must be a table with a type, such as {example}, got {table!r}")
    options = {
        name: build(name if name in _MAKERS else "kernel", entry, allow_imports)
        if isinstance(entry, Mapping)
        else _frozen(entry)
        for name, entry in table.items()
        if name != "type"
    }
    return maker_named(kind, table["type"], allow_imports), options


def _frozen(entry: Any) -> Any:
    """Lists become tuples: kernels are frozen values."""
    return tuple(map(_frozen, entry)) if isinstance(entry, list) else entry


# The command line


def typed_names(kind: str) -> list[str]:
    """The short names of a kind."""
    return sorted(_TYPED[kind])


def typed_name(kind: str, name: str) -> str | None:
    """The short name of what has that name in Python, if it has one."""
    return next((typed for typed, maker in _TYPED[kind].items() if maker.__name__ == name), None)


def named(kind: str, typed: str, **options: Any) -> Any:
    """The object of a short name, made with those of the options that it has."""
    makers = _TYPED[kind]
    if typed not in makers:
        raise ValueError(f"{kind} must be one of {', '.join(sorted(makers))}, got {typed!r}")
    parameters = inspect.signature(makers[typed]).parameters
    return makers[typed](**{name: value for name, value in options.items() if name in parameters})
