"""Objects by name: a table such as {type = "Matern", nu = 1.5} becomes what it describes, once."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import rewardfree.model
from rewardfree import baselines, kernels, planning, posterior, strategies, worlds

#: What may stand behind `type` without a module: constructors that take keywords.
_NAMES = {
    "kernel": (kernels, "SquaredExponential Matern NeuralTangent Linear Delta Sum Product Scaled"),
    "world": (worlds, " ".join(worlds.FACTORIES)),
    "model": (rewardfree.model, "Model"),
    "strategy": (
        strategies,
        "Generative Online Qiu GreedyMaxVariance Uniform Scout",
    ),
    "features": (posterior, "FourierFeatures PolynomialFeatures"),
    "planner": (planning, "Optimistic Mean Pessimistic"),
}
KNOWN: dict[str, dict[str, Callable[..., Any]]] = {
    kind: {name: getattr(module, name) for name in names.split()} for kind, (module, names) in _NAMES.items()
}
KNOWN["strategy"] |= {
    name: getattr(baselines, name) for name in baselines.__all__ if isinstance(getattr(baselines, name), type)
}


def canonical(table: Any) -> str:
    """A table as text that is the same for equal tables."""
    try:
        return json.dumps(table, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a table may hold numbers, text, lists and tables, got {table!r}") from error


def check(kind: str, table: Any, allow_imports: bool = False) -> None:
    """Refuse a table that cannot be built, without building it: a world may take its time."""
    options = _options(kind, table, allow_imports)
    try:
        inspect.signature(_maker(kind, table["type"], allow_imports)).bind(**options)
    except TypeError as error:
        raise ValueError(f"{kind} {table['type']}: {error}") from error


def build(kind: str, table: Any, allow_imports: bool = False) -> Any:
    """The object that a table describes; tables within it are kernels, or what their name says."""
    options = _options(kind, table, allow_imports)
    maker = _maker(kind, table["type"], allow_imports)
    try:
        return maker(**options)
    except TypeError as error:
        raise ValueError(f"{kind} {table['type']}: {error}") from error


def _options(kind: str, table: Any, allow_imports: bool) -> dict[str, Any]:
    """What a table says beside its type, with the tables in it built."""
    if not isinstance(table, Mapping) or not isinstance(table.get("type"), str):
        example = f'{{type = "{next(iter(KNOWN[kind]))}"}}'
        raise ValueError(f"a {kind} must be a table with a type, such as {example}, got {table!r}")
    return {
        name: build(name if name in KNOWN else "kernel", value, allow_imports)
        if isinstance(value, Mapping)
        else _plain(value)
        for name, value in table.items()
        if name != "type"
    }


def _maker(kind: str, name: str, allow_imports: bool) -> Callable[..., Any]:
    if name in KNOWN[kind]:
        return KNOWN[kind][name]
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ValueError(f"{kind} must be one of {', '.join(KNOWN[kind])}, or module:object, got {name!r}")
    if not allow_imports:
        raise ValueError(
            f"{kind} {name!r} would import and run code of its own: say --allow-imports if you trust it"
        )
    try:
        maker: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{kind} {name!r} cannot be imported: {error}") from error
    return maker


def _plain(value: Any) -> Any:
    """Lists become tuples: kernels are frozen values."""
    return tuple(_plain(each) for each in value) if isinstance(value, list) else value
