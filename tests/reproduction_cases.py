"""Settings of `rewardfree reproduce` that several files of tests use."""

import sys
from pathlib import Path

import rewardfree as rf

COMMAND = Path(sys.executable).parent / "rewardfree"
KERNELS = {"se": rf.SquaredExponential(0.1), "matern25": rf.Matern(2.5, 0.1), "matern15": rf.Matern(1.5, 0.1)}
SMALL = ("--quick", "--kernels", "matern15", "--jobs", "1")
