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
#: A fit that leaves more than this share of the variance of what was left out, or that sits on a bound, is
#: doubted: others are fitted as well, from other starts, to the hard targets alone, and to the first half of
#: the data, as it was fitted before they doubled.
DOUBTFUL = 0.1
#: Hard are targets of which it leaves at least this share of what it leaves of the hardest.
HARD = 0.5
#: With fewer episodes this many parts in the order of the steps are left out in turn, instead of episodes.
PARTS = 5
#: Another fit must leave less than this share of what the usual one leaves: of two that leave nearly the
#: same, which is all that noise allows, the usual one stays.
CLEARLY = 0.95


@registered("fitted kernel")
@dataclass(frozen=True)
class AutoKernel:
    """k = family(ARD lengthscales) + w^2 (1 + x.x'), and the ridge, by marginal likelihood.

    For each family (a smoothness nu, infinity for the squared exponential) it minimises
    sum_c n/2 log(y_c' K^-1 y_c / n) + c/2 log det K on at most `most` points. It takes the family that
    predicts best what is left out of twice as many points: likelihood trusts smooth kernels too much where
    the dynamics have a wall. On finite worlds there is no linear part.
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
        episode: Integers | None = None,
    ) -> Fit:
        """The best family, fitted to standardised points (n,f) and targets (n,c).

        `groups` (f,): features of one group share a lengthscale. `ridge` fixes the ridge. `linear=False`
        leaves out the linear part. Of more than `most` points an even selection is used. Fits are compared by
        what they predict of episodes (n,) left out whole, or of points if nothing is known of these.
        """
        groups = range(points.shape[1]) if groups is None else groups
        rows = evenly(len(points), self.most)
        varying = np.flatnonzero(np.ptp(targets, axis=0) > 0.0)
        if len(rows) < 2 or not len(varying):
            raise ValueError("a kernel cannot be fitted to states that never change, or all by the same")
        rows = _with_changes(rows, targets[:, varying], self.most)
        # Few points may show a wall, and the selection must not miss them.
        judges = evenly(len(points), JUDGE_FACTOR * self.most)
        parts = () if episode is None else whole_parts(episode[judges])
        judged = points[judges], targets[judges][:, varying], parts

        def likelihood(rows: Integers, columns: Integers = varying) -> Likelihood:
            return Likelihood(points[rows], targets[rows][:, columns], groups, ridge, linear)

        def fits(problem: Likelihood, starts: Iterable[tuple[float, Floats]]) -> list[Fit]:
            thetas = [(nu, problem.minimised(nu, start)) for nu, start in starts]
            return [problem.fit(nu, theta, *judged) for nu, theta in thetas]

        middle_first = sorted(self.families, key=lambda nu: nu != 2.5)
        with one_blas_thread():
            problem = likelihood(rows)
            usual, *others = problem.starts
            # All families but the first start at its parameters.
            theta = problem.minimised(middle_first[0], usual)
            tried = [problem.fit(middle_first[0], theta, *judged)]
            best = min(tried + fits(problem, ((nu, theta) for nu in middle_first[1:])), key=_left_out)
            # Functions of next states, the targets without a linear part, are noisy: there this is no sign.
            if not linear or not (best.left_out > DOUBTFUL or best.on_bounds):
                return best
            fewer = evenly(len(points), max(2, self.most // 2))
            hard = varying[np.array(best.shares) >= HARD * max(best.shares)]
            again = [(nu, usual) for nu in middle_first]
            more = fits(likelihood(fewer), itertools.product(middle_first, others))
            more += fits(likelihood(fewer, hard), again)
            more += fits(likelihood(fewer[: max(2, len(fewer) // 2)]), again)  # of the first half of the data
            other = min(more, key=_left_out)
        return other if other.left_out < CLEARLY * best.left_out else best


def _left_out(fit: Fit) -> float:
    return fit.left_out


def _with_changes(rows: Integers, targets: Floats, most: int) -> Integers:
    """A selection of rows of targets (n,c), and some more for a column that it shows no difference of."""
    for column in np.flatnonzero(np.ptp(targets[rows], axis=0) == 0.0):
        others = np.flatnonzero(targets[:, column] != targets[rows[0], column])
        rows = np.union1d(rows, others[evenly(len(others), max(1, most // 10))])
    return rows


def whole_parts(episode: Integers) -> list[Integers]:
    """The rows of each episode (n,), or of fifths where there are few; queries (-1) belong to no episode."""
    numbers = np.unique(episode)
    if len(numbers) < PARTS or numbers[0] < 0:
        return np.array_split(np.arange(len(episode)), min(PARTS, len(episode)))
    return [np.flatnonzero(episode == number) for number in numbers]


def evenly(n: int, most: int) -> Integers:
    """The numbers of at most `most` rows of n, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))
