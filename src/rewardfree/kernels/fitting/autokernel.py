"""The kernel family, its parameters and the ridge from transitions: targets are functions of next states."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewardfree.arrays import Floats, Integers, count
from rewardfree.kernels.fitting.likelihood import Fit, Likelihood
from rewardfree.registry import registered
from rewardfree.threads import one_blas_thread

#: The smoothness nu of each family: Matern kernels, and infinity for the squared exponential.
FAMILIES = (math.inf, 2.5, 1.5)
#: The family is chosen on this multiple of the points that the likelihood is computed on.
JUDGE_FACTOR = 2
#: A fit that leaves more than this share of the variance at points left out is tried from other starts, too:
#: where one variable is known exactly, the likelihood has minima that fit nothing else.
DOUBTFUL = 0.1
#: Another start must leave less than this share of what the usual one leaves: of two that leave nearly the
#: same, which is all that noise allows, the usual one stays.
CLEARLY = 0.95


@registered("fitted kernel")
@dataclass(frozen=True)
class AutoKernel:
    """k = family(ARD lengthscales) + w^2 (1 + x.x'), and the ridge, by marginal likelihood.

    For each family (a smoothness nu, infinity for the squared exponential) it minimises
    sum_c n/2 log(y_c' K^-1 y_c / n) + c/2 log det K on at most `most` points. It takes the family with the
    least leave-one-out error on twice as many points: likelihood trusts smooth kernels too much where the
    dynamics have a wall. On finite worlds there is no linear part.
    """

    families: tuple[float, ...] = FAMILIES
    most: int = 600

    def __post_init__(self) -> None:
        is_list = isinstance(self.families, (tuple, list))
        if not is_list or not self.families or set(self.families) - set(FAMILIES):
            raise ValueError(f"families must be some of {FAMILIES}, got {self.families!r}")
        object.__setattr__(self, "families", tuple(map(float, self.families)))
        object.__setattr__(self, "most", count(self.most, "most", at_least=10))

    def at_most(self, points: int) -> AutoKernel:
        """The same, with the likelihood on at most `points` points."""
        return replace(self, most=min(points, self.most))

    def fit(
        self,
        points: Floats,
        targets: Floats,
        groups: Sequence[int] | None = None,
        ridge: float | None = None,
        linear: bool = True,
    ) -> Fit:
        """The best family, fitted to standardised points (n,f) and targets (n,c).

        `groups` (f,): features of one group share a lengthscale. `ridge` fixes the ridge. `linear=False`
        leaves out the linear part. Of more than `most` points an even selection is used.
        """
        rows = evenly(len(points), self.most)
        groups = range(points.shape[1]) if groups is None else groups
        varying = np.ptp(targets[rows], axis=0) > 0.0
        if len(rows) < 2 or not varying.any():
            raise ValueError("a kernel cannot be fitted to states that never change")
        likelihood = Likelihood(points[rows], targets[rows][:, varying], groups, ridge, linear)
        # Few points may show a wall, and the selection must not miss them.
        judges = evenly(len(points), JUDGE_FACTOR * self.most)
        judged = points[judges], targets[judges][:, varying]

        def fits(starts: Iterable[tuple[float, Floats]]) -> list[Fit]:
            thetas = [(nu, likelihood.minimised(nu, start)) for nu, start in starts]
            return [likelihood.fit(nu, theta, *judged) for nu, theta in thetas]

        middle_first = sorted(self.families, key=lambda nu: nu != 2.5)
        usual, *others = likelihood.starts
        with one_blas_thread():
            # All families but the first start at its parameters.
            theta = likelihood.minimised(middle_first[0], usual)
            tried = [likelihood.fit(middle_first[0], theta, *judged)]
            tried += fits((nu, theta) for nu in middle_first[1:])
            # Functions of next states, the targets without a linear part, are noisy: there this is no sign.
            best = min(tried, key=_left_out)
            if linear and best.leave_one_out > DOUBTFUL:
                more = [*((nu, usual) for nu in middle_first[1:]), *itertools.product(middle_first, others)]
                other = min(fits(more), key=_left_out)
                best = other if other.leave_one_out < CLEARLY * best.leave_one_out else best
        return best


def _left_out(fit: Fit) -> float:
    return fit.leave_one_out


def evenly(n: int, most: int) -> Integers:
    """The numbers of at most `most` rows of n, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))
