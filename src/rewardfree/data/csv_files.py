"""Experience as a table of text: a line for each step, numbers to their last digit."""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rewardfree.arrays import MOST_STEPS
from rewardfree.data.run_data import MOST_EPISODES, numbered_from_0
from rewardfree.doubts import LeftOutColumns, NoFirstStates, doubt
from rewardfree.files import written_whole
from rewardfree.worlds.spaces import Box, Discrete, Space, Spaces

if TYPE_CHECKING:
    from rewardfree.data.experience import Experience

NEXT = "next_"
#: Columns of other tables of transitions; whoever wrote them did not mean an action.
NO_VARIABLES = ("reward", "truncated", "done", "info")
#: Columns that tell or count the time, "" as pandas writes its index: variables only where a user names them.
CLOCKS = ("time", "timestamp", "step", "index", "")
#: Columns that are no variables.
PLACES = ("episode", "h", "terminated", "kept")
#: A variable that comes to exactly its least or largest value this often is taken to meet a wall there.
MET = 3
#: How many lines are read at a time.
BLOCK = 10_000
_TRUTH = {"true": 1.0, "false": 0.0}


def write_columns(path: str | os.PathLike[str], data: Experience) -> None:
    """Write the steps of an experience as CSV."""
    spaces = data.spaces
    after = [NEXT + name for name in spaces.state.names]
    parts = [data.state, data.action, data.next_state]
    sizes = (spaces.state.size, spaces.action.size, spaces.state.size)
    variables = [part.reshape(len(data), size) for part, size in zip(parts, sizes, strict=True)]
    with written_whole(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(
            ["episode", "h", *spaces.state.names, *spaces.action.names, *after, "terminated", "kept"]
        )
        for i in range(len(data)):
            numbers = [value.item() for part in variables for value in part[i]]
            ends = [int(data.terminated[i]), int(data.kept[i])]
            lines.writerow([int(data.episode[i]), int(data.h[i]), *map(repr, numbers), *ends])


def read_columns(
    path: str | os.PathLike[str],
    state: Space | None,
    action: Space | Sequence[str] | None,
    angles: tuple[str, ...],
) -> dict[str, Any]:
    """The columns of an `Experience` from a CSV file, its spaces, and which rows are an episode's first."""
    table = _numbers(Path(path))
    for name in NO_VARIABLES:
        if name in table:
            raise ValueError(f"{path} has a column {name}, which is no state and no action: take it out")
    clocks = _leave_out_clocks(path, table, state, action)
    if (state is not None or action is not None) and not any(name.startswith(NEXT) for name in table):
        table = _followed(path, table, state, action)
    names = [name for name in table if NEXT + name in table]
    alone = [name.removeprefix(NEXT) for name in table if name.startswith(NEXT)]
    alone = [name for name in alone if name not in table]
    if alone:
        raise ValueError(f"{path} has {NEXT}{alone[0]} without {alone[0]}")
    if state is not None:
        missing = sorted(set(state.names) - set(names))
        if missing:
            raise ValueError(f"{path} lacks {missing[0]} or {NEXT}{missing[0]}")
        names = list(state.names)
    if not names:
        raise ValueError(
            f"{path} has no state: there must be columns such as x and next_x, got {', '.join(table):.200}; "
            "if its lines follow each other, give action=, the names of the actions among them"
        )
    others = [name for name in table if name not in {*PLACES, *names, *(NEXT + name for name in names)}]
    if action is not None and not isinstance(action, Discrete):
        done_by = _names_of(action)
        missing = sorted(set(done_by) - set(others))
        if missing:
            raise ValueError(f"{path} lacks the action {', '.join(missing)}")
        others = list(done_by)
    if not others:
        raise ValueError(
            f"{path} has no action: every column but {', '.join(names)} must be one{_left_out(clocks)}"
        )
    if set(angles) - set(names):
        raise ValueError(
            f"angles names {', '.join(sorted(set(angles) - set(names)))}, and there is {', '.join(names)}"
        )
    before, after = (np.stack([table[prefix + name] for name in names], axis=1) for prefix in ("", NEXT))
    done = np.stack([table[name] for name in others], axis=1)
    state_space = _seen_box(names, before, after, angles) if state is None else state
    action_space = action if isinstance(action, (Box, Discrete)) else _guessed(others, done)
    spaces = Spaces(state_space, action_space)
    rows = len(before)
    terminated = _flags(path, table, "terminated", np.zeros(rows))
    columns: dict[str, Any] = {
        "spaces": spaces,
        "state": _as(state_space, before),
        "action": _as(action_space, done),
        "next_state": _as(state_space, after),
        "terminated": terminated,
        "kept": _flags(path, table, "kept", np.ones(rows)),
    }
    h = None
    if "h" in table:
        h = _whole(path, "h", table["h"], 0, MOST_STEPS - 1)
    if "episode" in table:
        given = _whole(path, "episode", table["episode"], -1, MOST_EPISODES)
        try:
            episode = numbered_from_0(given)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    else:  # a new one begins where a step does not go on from the last
        follows = np.all(before[1:] == after[:-1], axis=1) & ~terminated[:-1]
        if h is not None:
            follows &= np.diff(h) > 0
        episode = np.concatenate([[0], np.cumsum(~follows)])
    first = np.concatenate([[True], episode[1:] != episode[:-1]])
    if h is None:
        h = np.arange(rows) - np.maximum.accumulate(np.where(first, np.arange(rows), 0))
    h = _from_0(h, episode)
    begins = first & (h == 0) & (episode >= 0)
    if not begins.any() and (episode >= 0).any():
        doubt(
            NoFirstStates,
            f"{path} has no first state of an episode, because h is never 0: count the steps of an episode "
            "from 0, or leave h out if the first line of each is its beginning; as it is, plans are made as "
            "if all episodes began in the first line",
        )
    return {**columns, "episode": episode, "h": h, "first": begins}


def _from_0(h: Any, episode: Any) -> Any:
    """Steps counted from 0 where every episode begins with step 1; queries stay as they are."""
    played = episode >= 0
    begin = h[played][np.diff(episode[played], prepend=-1) != 0]
    from_1 = len(begin) > 0 and (begin == 1).all() and h[played].min() == 1
    return h - played if from_1 else h


def _leave_out_clocks(
    path: Any, table: dict[str, Any], state: Space | None, action: Space | Sequence[str] | None
) -> list[str]:
    """Take columns that tell the time out of a table, unless a user named them or gave next_ twins."""
    named = {*(() if state is None else state.names), *(() if action is None else _names_of(action))}
    clocks = [
        name for name in table if name.lower() in CLOCKS and name not in named and NEXT + name not in table
    ]
    for name in clocks:
        del table[name]
    if clocks and (state is None or action is None):  # they would have been variables
        doubt(
            LeftOutColumns,
            f"{path}: {', '.join(name or 'a column without a name' for name in clocks)} was left out, which "
            "seems to tell the time: name all states and actions where it is one of them",
        )
    return clocks


def _left_out(clocks: list[str]) -> str:
    """What a missing action may be, after a full sentence."""
    named = [name for name in clocks if name]
    if not named:
        return ""
    are, made = ("was", "makes it one") if len(named) == 1 else ("were", "makes the first of them one")
    return f"; {', '.join(named)} {are} left out as a time; action=['{named[0]}'] {made}"


def _followed(
    path: Any, table: dict[str, Any], state: Space | None, action: Space | Sequence[str] | None
) -> dict[str, Any]:
    """A table of consecutive states as one of transitions: each line to the next one of its episode.

    `terminated` says of a line that the system ended in its state. An episode's last line has no next one.
    """
    done_by = () if action is None else _names_of(action)
    names = state.names if state is not None else [name for name in table if name not in {*PLACES, *done_by}]
    missing = sorted(set(names) - set(table))
    if missing or not names:
        raise ValueError(f"{path} lacks {', '.join(missing) or 'a state'}, got {', '.join(table):.200}")
    lines = len(table[names[0]])
    ended = _flags(path, table, "terminated", np.zeros(lines))
    goes_on = ~ended[:-1]
    for name, step in (("episode", 0.0), ("h", 1.0)):
        if name in table:
            goes_on &= np.diff(table[name]) == step
    rows = np.flatnonzero(goes_on)
    if not len(rows):
        raise ValueError(f"{path} has no line that follows another of its episode: there is no transition")
    transitions = {name: column[rows] for name, column in table.items()}
    transitions |= {NEXT + name: table[name][rows + 1] for name in names}
    return {**transitions, "terminated": ended[rows + 1].astype(np.float64)}


def _names_of(action: Space | Sequence[str]) -> tuple[str, ...]:
    return action.names if isinstance(action, (Box, Discrete)) else tuple(action)


def _numbers(path: Path) -> dict[str, Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:  # some programs put a mark in front
        lines = _readable(csv.reader(file), path)
        header = [name.strip() for name in next(lines, [])]
        if not header:
            raise ValueError(f"{path} is empty: a line of names and lines of numbers were wanted")
        if len(header) == 1 and (other := re.search(r"[;\t|]", header[0])):
            raise ValueError(
                f"{path}: columns are separated by commas, decimals have a point, got {other[0]!r}"
            )
        rows = list(_blocks(lines, len(header), path))
    if not rows or len(set(header)) != len(header):
        raise ValueError(
            f"{path} must have names that differ and at least one line of numbers, got {header!r:.200}"
        )
    return dict(zip(header, np.concatenate(rows).T, strict=True))


def _blocks(lines: Iterator[list[str]], columns: int, path: Path) -> Iterator[Any]:
    """The numbers of the lines, (n,columns) each: as Python's own, a million lines would take gigabytes."""
    numbered = ((number, line) for number, line in enumerate(lines, start=2) if line)
    while block := list(itertools.islice(numbered, BLOCK)):
        rows = np.empty((len(block), columns))
        for row, (number, line) in zip(rows, block, strict=True):
            try:
                numbers = _as_numbers(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
            if len(numbers) != columns:
                raise _not_wanted(path, number, columns, line)
            row[:] = numbers
        wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(wrong):
            raise _not_wanted(path, block[wrong[0]][0], columns, block[wrong[0]][1])
        yield rows


def _not_wanted(path: Path, number: int, columns: int, line: list[str]) -> ValueError:
    return ValueError(f"{path}, line {number}: {columns} finite numbers were wanted, got {line!r:.200}")


def _as_numbers(line: list[str]) -> list[float]:
    try:
        return list(map(float, line))
    except ValueError:  # True and False, perhaps
        return list(map(_number, line))


def _seen_box(names: list[str], before: Any, after: Any, angles: tuple[str, ...]) -> Box:
    """States within walls, where `MET` steps or more came to the same extreme; elsewhere without bounds.

    What data merely span is no bound: it would say that there is nothing beyond.
    """
    bounds: dict[str, Any] = {}
    ends = _ends(np.concatenate([before, after]))
    for i, (name, (low, high)) in enumerate(zip(names, ends, strict=True)):
        if name in angles:
            bounds[name] = "angle"
            continue
        if low == high:
            raise ValueError(f"{name} is constant ({low!r}) in these data: leave it out")
        met = [((after[:, i] == end) & (before[:, i] != end)).sum() >= MET for end in (low, high)]
        bounds[name] = low if met[0] else -np.inf, high if met[1] else np.inf
    return Box.of(**bounds)


def _ends(values: Any) -> list[tuple[float, float]]:
    """The least and the largest of each column (n,k)."""
    return [(float(column.min()), float(column.max())) for column in values.T]


def _guessed(names: list[str], values: Any) -> Space:
    """Whole numbers from 0 in one column are labels; anything else is a box."""
    column = values[:, 0]
    if len(names) == 1 and (column == column.round()).all() and column.min() >= 0.0 and column.max() < 100:
        return Discrete(int(column.max()) + 1, names[0])
    for name, (low, high) in zip(names, _ends(values), strict=True):
        if low == high:
            raise ValueError(f"{name} is constant ({low!r}) in these data: leave it out")
    return Box.of(**dict(zip(names, _ends(values), strict=True)))


def _as(space: Space, values: Any) -> Any:
    """A space's own form of columns (n,k)."""
    if values.shape[1] != space.size:
        raise ValueError(f"{', '.join(space.names)} must be {space.size} columns, got {values.shape[1]}")
    return space.checked(values[:, 0], space.name) if isinstance(space, Discrete) else values


def _whole(path: Any, name: str, column: Any, lowest: int, highest: int) -> Any:
    if (column != column.round()).any() or column.min() < lowest:
        raise ValueError(f"{path}: {name} must be whole numbers of at least {lowest}, got {column.min()}")
    if column.max() > highest:
        raise ValueError(f"{path}: {name} must be at most {highest:,}, got {column.max():g}")
    return column.astype(np.int64)


def _flags(path: Any, table: dict[str, Any], name: str, usual: Any) -> Any:
    column = table.get(name, usual)
    if not np.isin(column, (0.0, 1.0)).all():
        wrong = column[~np.isin(column, (0.0, 1.0))][0]
        raise ValueError(f"{path}: {name} must be 0 or 1, or false or true, in every line, got {wrong:g}")
    return column != 0.0


def _number(cell: str) -> float:
    """A cell; True and False as other programs write them."""
    return _TRUTH[cell.strip().lower()] if cell.strip().lower() in _TRUTH else float(cell)


def _readable(lines: Any, path: Path) -> Iterator[list[str]]:
    try:
        yield from lines
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no table of numbers: {error}") from None
