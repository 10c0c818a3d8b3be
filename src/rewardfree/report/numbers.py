"""Arrays as plain numbers of a page."""

from typing import Any

import numpy as np

#: Of numbers on the page; fewer are shown.
DIGITS = 6


def numbers(values: Any) -> list[float]:
    """An array as plain numbers, to a few digits: the same text on every machine."""
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, float).reshape(-1)]
