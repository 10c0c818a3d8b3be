"""Arrays that several files of tests write and read."""

import numpy as np

SOME = {"P": np.arange(24.0).reshape(2, 3, 4), "flags": np.array([True, False]), "name": np.array("x")}


def same(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f")
        and one[name].dtype == other[name].dtype
        for name in one
    )
