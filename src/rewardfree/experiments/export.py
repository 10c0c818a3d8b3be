"""Stored results as a table that other programs read."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from rewardfree.experiments.store import COLUMNS, SECONDS, Store

HEADER = ("world", "model", "strategy", *COLUMNS)


def write_csv(store: Store, file: TextIO) -> int:
    """All records with a header; numbers to the last digit. How many there were."""
    header, rows = _table(store)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    written = 0
    for row in rows:
        writer.writerow(row)
        written += 1
    return written


def write_parquet(store: Store, path: Path) -> int:
    """The same table as a Parquet file. How many records there were."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(
            "Parquet needs pyarrow, which is not installed: "
            "pip install '.[parquet]' from the checkout, or use --csv"
        ) from error
    header, rows = _table(store)
    rows = list(rows)
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    parquet.write_table(pyarrow.table(dict(zip(header, map(list, columns), strict=True))), path)
    return len(rows)


def _table(store: Store) -> tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]:
    """Gap records as they are; records that are tables with a column for each name, lists in them as JSON."""
    tables = store.tables()
    if not tables:
        return HEADER, store.rows()
    header = tuple(dict.fromkeys(name for table in tables for name in table if name != SECONDS))
    return header, [tuple(_cell(table.get(name)) for name in header) for table in tables]


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value
