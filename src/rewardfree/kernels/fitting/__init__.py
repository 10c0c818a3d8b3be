"""A kernel and a ridge fitted to transitions: the likelihood, the choice of the family, finite worlds."""

from rewardfree.kernels.fitting.autokernel import AutoKernel, evenly, whole_parts
from rewardfree.kernels.fitting.finite import first_guess, fit_next_states
from rewardfree.kernels.fitting.likelihood import (
    Fit,
    leave_one_out,
    leave_parts_out,
    missed_by_parts,
    on_bounds,
)

__all__ = [
    "AutoKernel",
    "Fit",
    "evenly",
    "first_guess",
    "fit_next_states",
    "leave_one_out",
    "leave_parts_out",
    "missed_by_parts",
    "on_bounds",
    "whole_parts",
]
