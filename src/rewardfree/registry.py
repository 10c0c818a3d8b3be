"""Frozen values as tables of text and numbers, for files: nothing in them is ever run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

_KNOWN: dict[str, type] = {}


def registered(cls: type[T]) -> type[T]:
    """Lets values of a frozen dataclass be written to files and read again by its name."""
    _KNOWN[cls.__name__] = cls
    return cls


def to_table(value: Any) -> Any:
    """A value as something JSON can hold."""
    if isinstance(value, np.generic):
        return to_table(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_table(each) for each in value]
    if isinstance(value, Mapping):
        return {"table": {str(name): to_table(each) for name, each in value.items()}}
    if is_dataclass(value) and _KNOWN.get(type(value).__name__) is type(value):
        return {"type": type(value).__name__} | {
            field.name: to_table(getattr(value, field.name)) for field in fields(value) if field.init
        }
    raise ValueError(f"{value!r:.200} cannot be written to a file: only rewardfree's own kinds can")


def from_table(table: Any) -> Any:
    """What a table describes; a name that is not known is refused, and nothing in it is executed."""
    if isinstance(table, list):
        return tuple(from_table(each) for each in table)
    if not isinstance(table, Mapping):
        return table
    if "number" in table:
        return float(table["number"])
    if "table" in table:
        return {name: from_table(each) for name, each in table["table"].items()}
    name = table.get("type")
    if name not in _KNOWN:
        raise ValueError(f"there is no {name!r} here: the file is from a newer version, or is damaged")
    options = {field: from_table(each) for field, each in table.items() if field != "type"}
    try:
        return _KNOWN[name](**options)
    except TypeError as error:
        raise ValueError(f"{name} cannot be made: {error}") from error
