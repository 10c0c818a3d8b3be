"""A kernel and a ridge from transitions alone: no reward enters, the targets are functions of next states."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.arrays import count
from rewardfree.kernels.fitting.likelihood import Fit, Likelihood
from rewardfree.registry import registered
from rewardfree.threads import one_blas_thread

#: Smoothness of the families that are tried; infinity is the squared exponential.
FAMILIES = (math.inf, 2.5, 1.5)
#: The family is chosen on so many times as many points as the likelihood is computed on.
JUDGES = 2


@registered("fitted kernel")
@dataclass(frozen=True)
class AutoKernel:
    """k = family(ARD lengthscales) + w^2 (1 + x.x'), and the ridge, by marginal likelihood.

    Minimises sum_c n/2 log(y_c' K^-1 y_c / n) + c/2 log det K on at most `most` points, for each family (the
    smoothness of a Matern kernel, infinity the squared exponential). The family is the one with the least
    leave-one-out error, on twice as many: likelihood trusts smooth kernels at a wall too much. On finite
    worlds the linear part is left away.
    """

    families: tuple[float, ...] = FAMILIES
    most: int = 600

    def __post_init__(self) -> None:
        if (
            not isinstance(self.families, (tuple, list))
            or not self.families
            or set(self.families) - set(FAMILIES)
        ):
            raise ValueError(f"families must be some of {FAMILIES}, got {self.families!r}")
        object.__setattr__(self, "families", tuple(map(float, self.families)))
        object.__setattr__(self, "most", count(self.most, "most", at_least=10))

    def at_most(self, points: int) -> AutoKernel:
        """The same on at most that many points."""
        return replace(self, most=min(points, self.most))

    def fit(
        self,
        points: Any,
        targets: Any,
        groups: Any = None,
        ridge: float | None = None,
        linear: bool = True,
    ) -> Fit:
        """The best of the families for standardised points (n,f) and targets (n,c).

        `groups` (f,) gives features of one group a common lengthscale; `ridge` holds it fixed. Of more than
        `most` points an even selection is used. `linear=False` leaves the linear part away.
        """
        rows = evenly(len(points), self.most)
        groups = tuple(range(points.shape[1])) if groups is None else tuple(groups)
        moving = np.ptp(targets[rows], axis=0) > 0.0
        if len(rows) < 2 or not moving.any():
            raise ValueError("a kernel cannot be fitted to states that never change")
        likelihood = Likelihood(points[rows], targets[rows][:, moving], groups, ridge, linear)
        # A wall may be seen in few points, and those must not be among the ones that are passed over.
        judges = evenly(len(points), JUDGES * self.most)
        fits, start = [], None
        middle_first = sorted(self.families, key=lambda nu: nu != 2.5)
        with one_blas_thread():
            for nu in middle_first:  # the others start at its parameters
                theta = likelihood.minimised(nu, start)
                start = theta if start is None else start
                fits.append(likelihood.fit(nu, theta, points[judges], targets[judges][:, moving]))
        return min(fits, key=lambda fit: fit.leave_one_out)


def evenly(n: int, most: int) -> Any:
    """At most `most` of n rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))
