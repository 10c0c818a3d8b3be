"""One more point for a design, against a refit from nothing, and the memory that it takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import rewardfree as rf
from table import Row, seconds, show


def rows(quick: bool = False) -> list[Row]:
    return [row(n) for n in ((50, 100) if quick else (500, 1000, 2000))]


def row(n: int) -> Row:
    z = np.random.default_rng(0).random((n + 64, 3))
    kernel, ridge = rf.Matern(nu=2.5, lengthscale=0.3), 0.1
    theirs = GaussianProcessRegressor(sk.Matern(length_scale=0.3, nu=2.5), alpha=ridge, optimizer=None)
    tracemalloc.start()
    design = rf.posterior.Design(kernel, ridge=ridge)
    for point in z[:n]:
        design.extend(point[None])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    fresh = iter(z[n:])

    def extend_by_many():
        for _ in range(16):
            design.extend(next(fresh)[None])

    with rf.threads.one_blas_thread():
        one_more = seconds(extend_by_many, repeats=3) / 16
        refit = seconds(lambda: theirs.fit(z[:n], np.zeros(n)))
    return Row(
        f"one more point at n = {n} (peak {peak / 1e6:.0f} MB, a square factor {8e-6 * n * n:.0f} MB)",
        f"{1e3 * one_more:.2f} ms",
        f"scikit-learn fit {1e3 * refit:.1f} ms",
        f"{refit / one_more:.0f}x faster",
    )


if __name__ == "__main__":
    show(rows())
