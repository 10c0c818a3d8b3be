"""How far below zero rounding alone can push a posterior variance, and what to say beyond that."""

from __future__ import annotations

import numpy as np

from rewardfree.kernels import Kernel


def rounding_floor(kernel_prior: float, ridge: float, points: int, eps: float) -> float:
    """The most negative variance that rounding explains: n eps times the condition number of K + ridge I."""
    return -8.0 * (points + 8) * eps * kernel_prior * (1.0 + kernel_prior / ridge)


def not_positive_definite(kernel: Kernel, ridge: float, points: int, found: str) -> Exception:
    """The error of a factorisation that truly fails."""
    return np.linalg.LinAlgError(
        f"{kernel!r} with ridge {ridge:g} on {points} points gave {found}: "
        "use a larger ridge or float64, or check that the kernel is positive semi-definite"
    )
