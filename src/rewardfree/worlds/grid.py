"""The states and actions of a finite world: where a kernel sees them, and what rewards call them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.arrays import Array, Floats, as_array, as_points, to_numpy
from rewardfree.worlds.spaces import RESERVED, Discrete, check_name

#: The names of the arrays of `Grid.named_arrays`, as a pattern.
NAMED_ARRAYS = "(state|action)_(names|values)"


@dataclass(frozen=True, eq=False)
class Variables:
    """What formulas and functions call the states, or the actions: named numbers, or labels 0 .. n-1."""

    names: tuple[str, ...]
    values: Any  # (n,k)
    labels: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any], size: int, of_what: str) -> Variables:
        """Of what a caller names, such as {"level": range(21)}: a number for each of them."""
        if not values:
            raise ValueError(f'{of_what} must name at least one variable, such as {{"level": range({size})}}')
        columns = []
        for name, column in values.items():
            check_name(name)
            numbers = to_numpy(as_points(np.reshape(as_array(column, name), (-1, 1)), name))
            if np.ndim(column) > 1 or len(numbers) != size:
                raise ValueError(
                    f"{name} must have one number for each of {size} {of_what}, got {np.shape(column)}"
                )
            columns.append(numbers[:, 0].astype(np.float64))
        return cls(tuple(values), _frozen(np.stack(columns, axis=1)))

    @classmethod
    def of_labels(cls, labels: Discrete, size: int, of_what: str) -> Variables:
        """Of labels, whose values are their numbers."""
        if labels.n != size:
            raise ValueError(f"{of_what} must have a label for each of {size}, got {labels.n}")
        if labels.coordinates is not None:
            raise ValueError(
                f"{of_what} are labels, of which none is near another, or have places: leave out the "
                f'coordinates of this Discrete, or name values, {of_what}={{"{labels.name}": ...}}'
            )
        return cls((labels.name,), _frozen(np.arange(size, dtype=np.float64)[:, None]), labels=True)

    def columns(self, rows: Any) -> dict[str, Any]:
        """The numbers of some of them by name."""
        return {name: column[rows] for name, column in zip(self.names, self.values.T, strict=True)}

    def plain(self, rows: Any) -> Any:
        """Some of them as a function gets them: labels or one variable (n,), else (n,k). A copy."""
        if self.labels:
            return np.array(rows, np.int64)
        return self.values[rows, 0] if len(self.names) == 1 else self.values[rows]

    @property
    def rule(self) -> str:
        """What they are, for messages."""
        if self.labels:
            return f"{self.names[0]} is a label, 0 .. {len(self.values) - 1}"
        ranges = zip(self.names, self.values.min(axis=0), self.values.max(axis=0), strict=True)
        return ", ".join(f"{name} goes from {low:g} to {high:g}" for name, low, high in ranges)

    def same_as(self, other: Variables) -> bool:
        return (
            self.names == other.names
            and self.labels == other.labels
            and np.array_equal(self.values, other.values)
        )


@dataclass(frozen=True, eq=False)
class Grid:
    """All z = (s,a): state by state, and within a state action by action. z = s * |A| + a."""

    states: Floats  # (s,d)
    actions: Floats  # (a,e)
    state_names: Variables | None = None  # what rewards speak of; None: of the coordinates
    action_names: Variables | None = None

    @classmethod
    def of(cls, states: Any, actions: Any, sizes: tuple[int, int]) -> Grid:
        """A grid of what a caller gives, for states and for actions.

        Coordinates (s,d) or (s,); None for linspace(0, 1, s); or values by name or a `Discrete`, which
        rewards speak of. A kernel sees named values on [0, 1], and labels evenly spaced.
        """
        places, state_names = _read(states, sizes[0], "states")
        others, action_names = _read(actions, sizes[1], "actions")
        return cls(places, others, state_names, action_names)._checked()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.states), len(self.actions)

    @cached_property
    def points(self) -> Floats:
        """The coordinates of every z, (s*a, d+e)."""
        s, a = self.shape
        points = np.concatenate([np.repeat(self.states, a, axis=0), np.tile(self.actions, (s, 1))], axis=1)
        points.flags.writeable = False
        return points

    @property
    def labelled(self) -> bool:
        """Whether states and actions are labels, of which none is near another."""
        return all(names is not None and names.labels for names in (self.state_names, self.action_names))

    @cached_property
    def state_variables(self) -> Variables:
        """What rewards call the states: their names, or s, or s0, s1, ... for several coordinates."""
        return self.state_names or _of_coordinates("s", self.states)

    @cached_property
    def action_variables(self) -> Variables:
        """What rewards call the actions: their names, or a, or a0, a1, ... for several coordinates."""
        return self.action_names or _of_coordinates("a", self.actions)

    @property
    def rule(self) -> str:
        """What the variables of a formula are, for messages."""
        text = f"{self.state_variables.rule}, {self.action_variables.rule}"
        if self.state_names is None:
            example = f'states={{"level": range({len(self.states)})}}'
        elif self.action_names is None:
            example = f'actions={{"order": range({len(self.actions)})}}'
        else:
            return text
        return f"{text}: coordinates, unless the world names values, as in FiniteWorld(..., {example})"

    def same_as(self, other: Grid) -> bool:
        """Whether it has the same coordinates and the same names."""
        return (
            np.array_equal(self.states, other.states)
            and np.array_equal(self.actions, other.actions)
            and self.state_variables.same_as(other.state_variables)
            and self.action_variables.same_as(other.action_variables)
        )

    def named_arrays(self) -> dict[str, Any]:
        """Its names, for a file that holds the coordinates: all four arrays, or none without any names.

        An empty one says that there is nothing, and a missing one that the file is damaged.
        """
        if self.state_names is None and self.action_names is None:
            return {}
        arrays: dict[str, Any] = {}
        for kind, names in (("state", self.state_names), ("action", self.action_names)):
            arrays[f"{kind}_names"] = np.array(() if names is None else names.names, np.str_)
            arrays[f"{kind}_values"] = np.empty(0) if names is None or names.labels else names.values
        return arrays

    def _checked(self) -> Grid:
        names = (*self.state_variables.names, *self.action_variables.names)
        taken = (*names, *(f"next_{name}" for name in self.state_variables.names), *RESERVED)
        twice = sorted({name for name in names if taken.count(name) > 1})
        if twice:
            raise ValueError(
                f"every variable must have a name of its own, beside {', '.join(RESERVED)} and next_..., got "
                f"{', '.join(twice)} twice"
            )
        return self


def _read(given: Any, size: int, of_what: str) -> tuple[Any, Variables | None]:
    """The coordinates, and the names if there are any."""
    if isinstance(given, Mapping):
        names = Variables.of(given, size, of_what)
        low, high = names.values.min(axis=0), names.values.max(axis=0)
        return _frozen((names.values - low) / np.where(high > low, high - low, 1.0)), names
    if isinstance(given, Discrete):
        return _coordinates(None, size, of_what), Variables.of_labels(given, size, of_what)
    return _coordinates(given, size, of_what), None


def given_in(arrays: Mapping[str, Any], kind: str, coordinates: Any) -> Any:
    """What `Grid.of` takes for the states, or the actions, of a file: coordinates or what names them."""
    named = {name for name in arrays if re.fullmatch(NAMED_ARRAYS, name)}
    if not named:
        return coordinates
    if len(named) != 4:
        raise ValueError(f"of what names its states and actions it has only {', '.join(sorted(named))}")
    names, values = tuple(map(str, np.atleast_1d(arrays[f"{kind}_names"]))), arrays[f"{kind}_values"]
    if not names and not values.size:
        return coordinates
    if not values.size:
        if len(names) != 1:
            raise ValueError(f"labels of {kind}s must have one name, got {len(names)}")
        return Discrete(len(coordinates), names[0])
    return dict(zip(names, values.T, strict=True))


def stored_grid(states: Any, actions: Any, arrays: Mapping[str, Any]) -> Grid:
    """The grid of a file: its coordinates, and what `Grid.named_arrays` added to it."""
    sizes = len(states), len(actions)
    return Grid.of(given_in(arrays, "state", states), given_in(arrays, "action", actions), sizes)


def _of_coordinates(letter: str, points: Any) -> Variables:
    d = points.shape[1]
    return Variables((letter,) if d == 1 else tuple(f"{letter}{i}" for i in range(d)), points)


def _coordinates(values: Array | None, size: int, name: str) -> Any:
    if values is None:
        values = np.linspace(0.0, 1.0, size)
    try:
        values = as_array(values, name)
    except ValueError as error:
        example = f'{name}={{"level": range({size})}}, or labels, {name}=rf.Discrete({size}, "s")'
        raise ValueError(f"{error}: give coordinates, or name values, {example}") from None
    points = to_numpy(as_points(values[:, None] if values.ndim == 1 else values, name)).astype(np.float64)
    if len(points) != size:
        raise ValueError(f"{name} must have one row for each of {size}, got {len(points)}")
    return _frozen(points)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
