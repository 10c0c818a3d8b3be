"""Data of runs as files: columns as arrays, everything else as one text of JSON; no pickle."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import rewardfree.files as files
from rewardfree.data.run_data import RunData
from rewardfree.data.samples import COLUMNS
from rewardfree.registry import from_text, to_text

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
    columns = {name: getattr(run, name) for name in COLUMNS}
    text = np.array(to_text({name: getattr(run, name) for name in _HEADER} | dict(more)))
    files.write_arrays(path, type(run).__name__, version, {**columns, **arrays, "about": text})


def read_run(
    path: str | os.PathLike[str], kind: str, version: int, others: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Its columns, other arrays of these names (a pattern), and what it says about itself."""
    arrays = files.read_arrays(path, kind, version, f"about|{'|'.join(COLUMNS)}|{others}")
    try:
        fields = from_text(str(arrays.pop("about")))
        columns = {name: _wide(arrays.pop(name)) for name in COLUMNS}
    except Exception as error:  # a value of a file may be anything, and break anything
        raise ValueError(f"{path} is not a {kind} file, or is damaged: {error}") from error
    lengths = {name: len(column) if column.ndim else -1 for name, column in columns.items()}
    if len(set(lengths.values())) != 1 or -1 in lengths.values():
        raise ValueError(f"{path} is damaged: its columns have {lengths} rows")
    return columns, arrays, fields


def _wide(column: Any) -> Any:
    """Whole numbers as int64: sums of smaller ones would overflow."""
    if column.dtype.kind not in "iu":
        return column
    column = column.astype(np.int64)
    column.flags.writeable = False
    return column
