"""Numbers as pages and tables print them: to a few digits, and with the error of a mean."""

import math
from typing import Any

import numpy as np

#: Of numbers on the page; fewer are shown.
DIGITS = 6


def numbers(values: Any) -> list[float]:
    """An array as plain numbers, to a few digits: the same text on every machine."""
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, float).reshape(-1)]


def standard_error(values: Any) -> float:
    """The standard error of the mean of values (n,); NaN for one value."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def mean_with_error(values: Any) -> str:
    """The mean of values (n,) and its standard error, if it has one, as tables of returns print them."""
    error = f" ± {standard_error(values):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{error}"
