"""What the C library does with the memory of arrays that are no longer needed."""

from __future__ import annotations

import ctypes

#: glibc's names: how much freed memory to keep, and how many arrays to take from the system each by itself.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Without this, temporaries of some megabytes are given back and cleared again in every round.

    That costs a tenth of the time of eight runs side by side, and as much again as they take in a Dask
    worker, whose own settings give memory back at once. Where the C library is not glibc, nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(_M_MMAP_MAX, 0)
