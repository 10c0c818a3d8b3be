"""Exploration with a generative model (Alg 2): look where the uncertainty is largest."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardfree.arrays import Array, count, to_numpy
from rewardfree.model import Model
from rewardfree.threads import one_blas_thread
from rewardfree.ties import argmax_lowest


def query_plan(model: Model, candidates: Array, n: int) -> Any:
    """The first n queries of Alg 2 as candidate indices (n,): z_i = argmax_z sigma_{i-1}(z).

    sigma depends on where one looked, never on what was seen, so the whole list exists before any data do, and is the
    same for every step, run and dynamics. Ties go to the lowest index.
    """
    n = count(n, "n", at_least=0)
    lattice = model.lattice(candidates, capacity=max(n, 1))
    plan = np.empty(n, np.int64)
    with one_blas_thread():
        for i in range(n):
            chosen = argmax_lowest(lattice.std())
            lattice.append(None, chosen)
            plan[i] = int(to_numpy(chosen)[0])
    return plan
