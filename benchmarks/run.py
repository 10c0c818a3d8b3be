"""All speed measurements in one table (`make bench`); `--quick` takes small sizes: ratios mean little."""

from __future__ import annotations

import argparse
import os
import platform
import sys

import numpy as np

import counted
import design_extend
import gpu_batch
import growth
import import_time
import loop_vs_scikit_learn
import paper_run
import scout
import tiles
from table import show

PARTS = [
    loop_vs_scikit_learn,
    growth,
    design_extend,
    gpu_batch,
    import_time,
    tiles,
    paper_run,
    scout,
    counted,
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    note = "; QUICK: sizes too small for meaningful ratios" if quick else ""
    print(f"{os.cpu_count()} cores {platform.machine()}, {versions}, one BLAS thread{note}\n")
    rows = []
    for part in PARTS:
        if sys.stderr.isatty():
            sys.stderr.write(f"running {part.__name__} ...\n")
        rows += part.rows(quick)
    show(rows)


if __name__ == "__main__":
    main()
