"""Which of several nearly equal values counts as the largest."""

from typing import Any, Literal, TypeAlias

from rewardfree.arrays import Array, namespace

#: Values within this fraction of the largest are ties: rounding must not decide between machines.
RELATIVE = 1e-12

#: Who wins among ties: the lowest index, or one drawn at random.
Ties: TypeAlias = Literal["lowest", "random"]


def check_ties(ties: str) -> None:
    """Refuse any rule but "lowest" and "random"."""
    if ties not in ("lowest", "random"):
        raise ValueError(f'ties must be "lowest" or "random", got {ties!r}')


def argmax_tied(values: Array, uniform: Array | None = None) -> Array:
    """Along the last axis, the lowest index whose value is within a relative 1e-12 of the largest.

    With uniform random numbers (...), one of these indices at random.
    """
    xp = namespace(values)
    return _first_or_random(values >= _lowest_tied(xp.max(values, axis=-1))[..., None], uniform)


def argmax_clipped(values: Array, largest: Array, low: Any, uniform: Array | None = None) -> Array:
    """`argmax_tied` of values that are clipped, `largest` (...) being the largest of them after the clip.

    `low`, what they are clipped to from below, broadcasts against it. Values that the clip makes equal are
    ties.
    """
    lowest = _lowest_tied(largest)
    lowest = namespace(values).where(lowest <= low, -float("inf"), lowest)
    return _first_or_random(values >= lowest[..., None], uniform)


def _lowest_tied(largest: Array) -> Array:
    """largest - RELATIVE |largest|, the least value that ties with it; infinity ties with itself only."""
    return namespace(largest).minimum(largest * (1.0 - RELATIVE), largest * (1.0 + RELATIVE))


def _first_or_random(tied: Array, uniform: Array | None) -> Array:
    """The first True along the last axis; or, with uniform numbers, one at random."""
    xp = namespace(tied)
    if uniform is not None:
        rank = xp.cumulative_sum(xp.astype(tied, xp.int64), axis=-1)
        ties = rank[..., -1]
        wanted = xp.astype(xp.floor(uniform * xp.astype(ties, uniform.dtype)), xp.int64)
        wanted = xp.minimum(wanted, ties - 1)  # a number that rounding made 1
        tied = rank > wanted[..., None]
    return xp.argmax(xp.astype(tied, xp.int8), axis=-1)  # argmax of a 0/1 array is the first 1
