"""Stored results as a table that other programs read."""

from __future__ import annotations

import csv
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
