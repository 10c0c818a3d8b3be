"""What a state or an action is made of: named real variables, some of them angles, or labels."""

from __future__ import annotations

import keyword
import math
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import as_array, check_finite, count, to_numpy
from rewardfree.registry import registered

#: Declares a variable that wraps around: 3.1 and -3.1 radians are neighbours.
ANGLE = "angle"
#: The most points that a grid of actions may have.
MOST_CANDIDATES = 1024
#: In which a system may take its actions.
DTYPES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
#: Names that formulas and tables of data use for something else.
RESERVED = ("h", "episode", "terminated", "kept", "pi", "e")


@registered("space")
@dataclass(frozen=True)
class Box:
    """Named real variables with bounds, which may be infinite; angles are in radians and wrap around.

    `Box.of(theta="angle", omega=(-8, 8), x=None)`: an angle, a bounded and an unbounded variable.
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    angles: tuple[bool, ...]
    dtype: str = field(default="float64", compare=False, repr=False)  # in which a system takes its actions

    @classmethod
    def of(cls, **variables: Any) -> Box:
        """Each variable is "angle", (low, high), or None where no bound is known."""
        if not variables:
            raise ValueError("a Box must have at least one variable, such as x=(-1, 1)")
        low, high, angles = [], [], []
        for name, bounds in variables.items():
            angle = isinstance(bounds, str) and bounds == ANGLE
            lowest, highest = (-math.pi, math.pi) if angle else _bounds(name, bounds)
            low.append(lowest)
            high.append(highest)
            angles.append(angle)
        return cls(tuple(variables), tuple(low), tuple(high), tuple(angles))

    def __post_init__(self) -> None:
        if not self.names or not len(self.names) == len(self.low) == len(self.high) == len(self.angles):
            raise ValueError(f"a Box must have a low, a high and an angle for each name, got {self!r}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r:.200}")
        for name, low, high, angle in zip(self.names, self.low, self.high, self.angles, strict=True):
            check_name(name)
            if not (_is_float(low) and _is_float(high) and isinstance(angle, bool)):
                raise ValueError(f"{name} must have two numbers and a flag, got {(low, high, angle)!r:.200}")
            if not low < high:
                raise ValueError(f"{name} must have low < high, got ({low}, {high}): leave out a constant")

    @property
    def size(self) -> int:
        """How many variables there are."""
        return len(self.names)

    @property
    def bounded(self) -> bool:
        """Whether every bound is finite."""
        return all(map(math.isfinite, (*self.low, *self.high)))

    @cached_property
    def angular(self) -> Any:
        """Which variables are angles, (d,) bool."""
        return np.array(self.angles, bool)

    def checked(self, values: Any, name: str) -> Any:
        """`values` as finite float64 (n,d)."""
        array = to_numpy(as_array(values, name)).astype(np.float64)
        if array.ndim != 2 or array.shape[1] != self.size:
            raise ValueError(
                f"{name} must have shape (n, {self.size}) for {', '.join(self.names)}, got {array.shape}"
            )
        check_finite(array, name)
        return array

    def wrapped(self, values: Any) -> Any:
        """Values (n,d) with angles in [-pi, pi)."""
        if not any(self.angles):
            return values
        turned = np.array(values, np.result_type(values, np.float16))
        turned[..., self.angular] = wrap(turned[..., self.angular])
        return turned

    def change(self, start: Any, end: Any) -> Any:
        """end - start (n,d), the shorter way round for angles."""
        return self.wrapped(end - start)

    def features(self, values: Any) -> Any:
        """What a kernel sees (n,f): cos and sin of an angle, any other variable as it is."""
        columns: list[Any] = []
        for i, angle in enumerate(self.angles):
            columns += [np.cos(values[:, i]), np.sin(values[:, i])] if angle else [values[:, i]]
        return np.stack(columns, axis=1)

    @property
    def groups(self) -> tuple[int, ...]:
        """For each feature, the variable that it belongs to."""
        return tuple(i for i, angle in enumerate(self.angles) for _ in range(2 if angle else 1))

    def as_taken(self, values: Any) -> Any:
        """Actions (n,a) in the dtype of the system that takes them."""
        return values.astype(self.dtype, copy=False)

    def variables(self, values: Any) -> dict[str, Any]:
        """The columns (n,) by name, angles in [-pi, pi)."""
        return dict(zip(self.names, self.wrapped(values).T, strict=True))

    def inside(self, values: Any) -> Any:
        """Values (n,d) moved into the bounds; angles stay as they are."""
        low = np.where(self.angular, -np.inf, self.low)
        high = np.where(self.angular, np.inf, self.high)
        return np.clip(values, low, high)

    def candidates(self, most: int) -> Any:
        """An even grid of points (m,d), ends included, as many per variable as `most` allows, at least 2."""
        self.need_bounds("a grid of actions")
        if 2**self.size > MOST_CANDIDATES:
            raise ValueError(
                f"a grid over {self.size} actions is too large: at most {MOST_CANDIDATES} points"
            )
        side = max(2, int(most ** (1.0 / self.size) + 1e-9))
        side -= 1 - side % 2 if side > 2 else 0  # odd: the middle, often rest, is one of them
        ends = zip(self.low, self.high, self.angles, strict=True)
        axes = [np.linspace(low, high, side, endpoint=not angle) for low, high, angle in ends]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.size)

    def need_bounds(self, what: str, pilot: bool = True) -> None:
        """Refuse infinite bounds where something needs them; a pilot measures those of states alone."""
        if not self.bounded:
            unbounded = [
                name
                for name, low, high in zip(self.names, self.low, self.high, strict=True)
                if not (math.isfinite(low) and math.isfinite(high))
            ]
            first, measured = unbounded[0], ""
            if pilot:
                measured = (
                    " or pilot=500, which measures them by random steps; "
                    f"for a table of text state=rf.Box.of({first}=(low, high), ...)"
                )
            raise ValueError(
                f"{what} needs bounds, and {', '.join(unbounded)} has none: give "
                f"bounds={{{first!r}: (low, high)}}{measured}"
            )


@registered("space")
@dataclass(frozen=True)
class Discrete:
    """Labels 0 .. n-1. A kernel sees them as unit vectors, or at `coordinates`, one tuple for each."""

    n: int
    name: str = "action"
    coordinates: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", count(self.n, "n"))
        check_name(self.name)
        if self.coordinates is None:
            return
        places = tuple(tuple(map(float, np.atleast_1d(place))) for place in self.coordinates)
        object.__setattr__(self, "coordinates", places)
        if len({len(place) for place in places}) > 1 or not np.isfinite(np.concatenate(places)).all():
            raise ValueError(
                f"coordinates must be as many finite numbers for each label, got {places!r:.200}"
            )
        if len(places) != self.n:
            raise ValueError(
                f"coordinates must be given for each of {self.n} labels, got {len(self.coordinates)}"
            )

    @property
    def size(self) -> int:
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @cached_property
    def _places(self) -> Any:
        return np.eye(self.n) if self.coordinates is None else np.array(self.coordinates, np.float64)

    def checked(self, values: Any, name: str) -> Any:
        """`values` as labels (n,) int64."""
        array = np.asarray(values)
        finite = array.dtype.kind in "iufb" and np.isfinite(array).all()
        labels = array.astype(np.int64) if finite else None
        if labels is None or array.ndim != 1 or (labels != array).any():
            raise ValueError(
                f"{name} must be whole numbers of shape (n,), got {array.dtype} of shape {array.shape}"
            )
        if labels.size and (labels.min() < 0 or labels.max() >= self.n):
            raise ValueError(f"{name} must lie in 0..{self.n - 1}, got {labels.min()}..{labels.max()}")
        return labels

    def features(self, values: Any) -> Any:
        """What a kernel sees of labels (n,): (n,f)."""
        return self._places[values]

    @property
    def groups(self) -> tuple[int, ...]:
        """For each feature, the variable that it belongs to: there is one."""
        return (0,) * len(self._places[0])

    def wrapped(self, values: Any) -> Any:
        """Labels as they are."""
        return values

    def as_taken(self, values: Any) -> Any:
        """Labels as they are."""
        return values

    def variables(self, values: Any) -> dict[str, Any]:
        """The labels (n,) by name."""
        return {self.name: values.astype(np.float64)}

    def candidates(self, most: int) -> Any:
        """Every label, (m,)."""
        return np.arange(self.n)


Space: TypeAlias = Box | Discrete


@registered("space")
@dataclass(frozen=True)
class Spaces:
    """The state space and the action space of a world."""

    state: Space
    action: Space

    def __post_init__(self) -> None:
        for name, space in (("state", self.state), ("action", self.action)):
            if not isinstance(space, (Box, Discrete)):
                raise ValueError(f"the {name} space must be a Box or Discrete, got {space!r:.200}")
        reserved = [name for name in self.names if name in RESERVED]
        if reserved:
            raise ValueError(
                f"a variable cannot be called {reserved[0]}: formulas and tables of data use "
                f"{', '.join(RESERVED)} for something else, choose another name"
            )
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"every variable must have a name of its own, got {', '.join(twice)} twice: "
                "the second argument of a Discrete is its name"
            )

    def features(self, state: Any, action: Any) -> Any:
        """What a kernel sees of states (n,d) and actions, (n,f), before scaling."""
        return np.concatenate([self.state.features(state), self.action.features(action)], axis=1)

    @property
    def groups(self) -> tuple[int, ...]:
        """For each feature, the variable that it belongs to: these share a lengthscale."""
        first = self.state.groups
        return (*first, *(max(first) + 1 + group for group in self.action.groups))

    @property
    def names(self) -> tuple[str, ...]:
        """What a formula may use: state and action variables, and next_... for those of the next state."""
        return (*self.state.names, *self.action.names, *(f"next_{name}" for name in self.state.names))

    def __str__(self) -> str:
        return ", ".join([*self.state.names, *self.action.names])

    def variables(self, state: Any, action: Any, following: Any = None) -> dict[str, Any]:
        """The columns (n,) by these names; next_... only where next states are given."""
        columns = {**self.state.variables(state), **self.action.variables(action)}
        if following is not None:
            after = self.state.variables(following)
            columns.update((f"next_{name}", column) for name, column in after.items())
        return columns

    def every_pair(self, states: Any, actions: Any) -> tuple[Any, Any]:
        """Every action at every state, action by action: states and actions (a*n)."""
        repeated = np.tile(states, (len(actions),) + (1,) * (states.ndim - 1))
        return repeated, np.repeat(actions, len(states), axis=0)


def _is_float(value: Any) -> bool:
    """Whether it is a number that a float can hold: a whole number of a file may be too large."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= sys.float_info.max)


def check_name(name: Any) -> None:
    """Refuse a variable's name that a formula could not write."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"a variable's name must be a word, as a formula would write it, got {name!r}")


def wrap(values: Any) -> Any:
    """Angles in [-pi, pi)."""
    turned = np.mod(np.asarray(values) + math.pi, 2.0 * math.pi) - math.pi
    return np.where(turned >= math.pi, -math.pi, turned)  # mod may round up to 2 pi


def _bounds(name: str, bounds: Any) -> tuple[float, float]:
    if bounds is None:
        return -math.inf, math.inf
    try:
        if isinstance(bounds, str):
            raise TypeError
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        raise ValueError(f'{name} must be "angle", (low, high) or None, got {bounds!r}') from None
    return low, high
