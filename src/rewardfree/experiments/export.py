"""Stored results as a table that other programs read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TextIO

from rewardfree.experiments.store import COLUMNS, Store

HEADER = ("world", "model", "strategy", *COLUMNS)


def write_csv(store: Store, file: TextIO) -> int:
    """All records with a header; numbers to the last digit. How many there were."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    written = 0
    for row in store.rows():
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
            "Parquet needs pyarrow, which is not installed: pip install 'rewardfree[parquet]', or use --csv"
        ) from error
    rows = list(store.rows())
    columns = zip(*rows, strict=True) if rows else ([] for _ in HEADER)
    parquet.write_table(pyarrow.table(dict(zip(HEADER, map(list, columns), strict=True))), path)
    return len(rows)
