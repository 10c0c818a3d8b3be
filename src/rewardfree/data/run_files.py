"""Data of runs as files: columns as arrays, everything else as one text of JSON; no pickle."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import rewardfree.files as files
from rewardfree.data.run_data import RunData
from rewardfree.data.samples import COLUMNS
from rewardfree.registry import from_table, to_table

#: What every run says about itself.
_HEADER = ("horizon", "model", "strategy", "seed", "stopped_by")


def write_run(
    path: str | os.PathLike[str],
    run: RunData,
    version: int,
    arrays: Mapping[str, Any],
    more: Mapping[str, Any],
) -> None:
    """Write a run's columns, some arrays of its own, and what else it says about itself."""
    header = {name: to_table(getattr(run, name)) for name in _HEADER}
    header |= {name: to_table(value) for name, value in more.items()}
    columns = {name: getattr(run, name) for name in COLUMNS}
    text = np.array(json.dumps(header, sort_keys=True))
    files.write_arrays(path, type(run).__name__, version, {**columns, **arrays, "about": text})


def read_run(
    path: str | os.PathLike[str], kind: str, version: int
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Its columns, its other arrays, and what it says about itself; anything odd is refused."""
    arrays = files.read_arrays(path, kind, version)
    try:
        header = json.loads(str(arrays.pop("about")))
        fields = {name: from_table(value) for name, value in header.items()}
        columns = {name: arrays.pop(name) for name in COLUMNS}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a {kind} file, or is damaged: {error}") from error
    lengths = {name: len(column) if column.ndim else -1 for name, column in columns.items()}
    if len(set(lengths.values())) != 1 or -1 in lengths.values():
        raise ValueError(f"{path} is damaged: its columns have {lengths} rows")
    for column in columns.values():
        column.flags.writeable = False
    return columns, arrays, fields
