"""What several files of tests ask of finite worlds."""

import numpy as np


def same_world(one, other):
    names = ("P", "start", "states", "actions")
    return one.horizon == other.horizon and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )
