"""Which of several nearly equal values counts as the largest."""

from __future__ import annotations

from rewardfree.arrays import Array, namespace

#: Values within this fraction of the largest are ties: rounding must not decide between machines.
RELATIVE = 1e-12


def argmax_lowest(values: Array) -> Array:
    """Along the last axis, the lowest index whose value is within a relative 1e-12 of the largest."""
    xp = namespace(values)
    largest = xp.max(values, axis=-1, keepdims=True)
    # argmax of a 0/1 array is the first 1.
    tied = (values >= largest - RELATIVE * xp.abs(largest)) | (values == largest)  # the latter for infinity
    return xp.argmax(xp.astype(tied, xp.int32), axis=-1)
