"""Settings of `rewardfree reproduce` that several files of tests use."""

import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import rewardfree as rf
from rewardfree.experiments.unit import InstanceCache

COMMAND = Path(sys.executable).parent / "rewardfree"
KERNELS = {"se": rf.SquaredExponential(0.1), "matern25": rf.Matern(2.5, 0.1), "matern15": rf.Matern(1.5, 0.1)}
SMALL = ("--quick", "--kernels", "matern15", "--jobs", "1")


def units_in(path):
    """How many units a store holds that somebody else may be making."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        try:
            return base.execute("SELECT count(*) FROM units").fetchone()[0]
        except sqlite3.OperationalError:  # no such table, or locked
            return 0


def check_cut_short(unit, monkeypatch):
    """A unit whose exploration is interrupted must not store what there is."""
    explore = rf.explore

    def interrupted(*arguments, **options):
        return replace(explore(*arguments, **options), stopped_by="interrupted")

    monkeypatch.setattr(rf, "explore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        unit.run(InstanceCache())
