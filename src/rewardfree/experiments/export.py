"""Stored results as a table that other programs read."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rewardfree.experiments.instances import MEASURES
from rewardfree.experiments.store import COLUMNS, Store
from rewardfree.files import written_whole

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


def write_records(path: Path, records: Iterable[dict[str, Any]], columns: Sequence[str]) -> None:
    """A CSV file of records with a gap for each reward: their means, and those for the worst reward."""
    gaps = [f"{measure}_{of}" for measure in MEASURES for of in ("mean_reward", "worst_reward")]
    with written_whole(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, *gaps])
        for record in records:
            values = [f"{of(record[measure]):.6g}" for measure in MEASURES for of in (np.mean, np.max)]
            writer.writerow([*(record[name] for name in columns), *values])
