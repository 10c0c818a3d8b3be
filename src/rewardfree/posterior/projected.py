"""Points of which only what inducing points tell of them is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.arrays import Array, at_least_zero
from rewardfree.kernels import Kernel
from rewardfree.posterior.engine.linear_algebra import LinearAlgebra
from rewardfree.posterior.growing_factor import GrowingFactor
from rewardfree.posterior.inducing import InducingPoints

#: The most features (n,m) of all points that are kept: 128 MB. With more, each new question about targets
#: passes over the points.
KEPT = 2**24
#: Inducing points are chosen again if they leave of a new point, on average, more than LEFT_MORE times what
#: they leave of one that was there at the last choice, and of all points together more than WORTH_IT of the
#: ridge; once the points, or what is left of them beside the ridge, have GROWN by this share. So choosing
#: stays O(m^2) a point.
LEFT_MORE, WORTH_IT, GROWN = 2.0, 0.01, 0.25


@dataclass(frozen=True, eq=False)
class Projected:
    """n points seen through m inducing points. A value: more points make another one."""

    inducing: InducingPoints
    growing: GrowingFactor  # B
    count: int
    left_out: float  # the sum of k(z,z) - |phi(z)|^2
    features: Any  # phi of all points (n,m), while these are few; or None
    at_choice: tuple[int, float]  # how many points there were, and what was left out, at the last choice

    @classmethod
    def chosen(
        cls, algebra: LinearAlgebra, kernel: Kernel, ridge: float, points: Array, most: int
    ) -> Projected:
        """Points (n,f) through at most `most` of them."""
        return cls.through(InducingPoints.chosen(algebra, kernel, points, most), ridge, points)

    @classmethod
    def through(cls, inducing: InducingPoints, ridge: float, points: Array) -> Projected:
        """Points (n,f) through inducing points that are given."""
        algebra = inducing.algebra
        nothing = cls(inducing, GrowingFactor(algebra, len(inducing), ridge), 0, 0.0, None, (0, 0.0))
        return nothing.with_points(points).chosen_now()

    def with_points(self, points: Array) -> Projected:
        """More points (p,f), through the same inducing points: O(m^2) each, and O(m^3)."""
        algebra, growing, left_out = self.inducing.algebra, self.growing.copy(), self.left_out
        count, m = self.count + len(points), len(self.inducing)
        features = None
        if count * m <= KEPT:
            features = algebra.zeros(count, m)
            features[: self.count] = self.features if self.count else features[:0]
        for block in self.blocks(len(points)):
            phi = self.inducing.features(points[block])
            growing.add(phi)
            left_out += float(self.left(self.inducing.prior(points[block]), phi).sum())
            if features is not None:
                features[self.count + block.start : self.count + block.start + len(phi)] = phi
        return Projected(self.inducing, growing, count, left_out, features, self.at_choice)

    def chosen_now(self) -> Projected:
        """The same, as if the inducing points had just been chosen."""
        at_choice = self.count, self.left_out
        return Projected(self.inducing, self.growing, self.count, self.left_out, self.features, at_choice)

    @property
    def shall_be_chosen_again(self) -> bool:
        """Whether other inducing points would tell more, and it is time."""
        (n, left_then), ridge = self.at_choice, self.growing.ridge
        new, left = self.count - n, self.left_out - left_then
        if new == 0 or self.left_out <= WORTH_IT * ridge or left / new <= LEFT_MORE * left_then / n:
            return False
        return new >= GROWN * n or left >= GROWN * (left_then + ridge)

    def left(self, prior: Array, phi: Array) -> Array:
        """k(z,z) - |phi(z)|^2 of b points, (b,)."""
        return at_least_zero(prior - self.inducing.algebra.squares(phi))

    def features_of(self, points: Array, rows: Any) -> Array:
        """phi of some of the n points: (b,m). Not to be written to."""
        index = self.inducing.algebra.index(rows)
        return self.inducing.features(points[index]) if self.features is None else self.features[index]

    def projected(self, points: Array, targets: Array) -> Array:
        """sum_i phi_i y_i, (m,c), for the n points and targets (n,c).

        C^-1 K_mn Y would need one solve only, and lose up to half of the digits.
        """
        if self.features is not None:
            return self.features.T @ targets
        total = self.inducing.algebra.zeros(len(self.inducing), targets.shape[1])
        for block in self.blocks(self.count):
            total += self.inducing.features(points[block]).T @ targets[block]
        return total

    def blocks(self, points: int) -> Iterator[slice]:
        size = max(1, self.inducing.algebra.block // len(self.inducing))
        return (slice(start, start + size) for start in range(0, points, size))

    def missed(self, points: Array, targets: Array, parts: Any = None) -> Array:
        """y of a part minus its prediction from all others: (I - F B^-1 F^T)^-1 (y - F w).

        F are the features of the part and w = B^-1 sum_i phi_i y_i. Without parts, of each point alone.
        """
        algebra, growing, missed = self.inducing.algebra, self.growing, []
        weights = growing.solve(self.projected(points, targets))
        for part in self.blocks(self.count) if parts is None else parts:
            phi = self.features_of(points, part)
            rest = targets[algebra.index(part)] - phi @ weights
            if parts is None:
                missed.append(rest / (1.0 - growing.quadratic(algebra.own(phi)))[:, None])
            else:
                missed.append(growing.without(phi, rest))
        return algebra.xp.concat(missed)

    def energy(self, points: Array, targets: Array) -> Array:
        """y^T (Q_n + ridge I)^-1 y for each column of targets (n,c): (c,)."""
        xp, projected = self.inducing.algebra.xp, self.projected(points, targets)
        explained = xp.sum(projected * self.growing.solve(projected), axis=0)
        return (xp.sum(targets * targets, axis=0) - explained) / self.growing.ridge


def chosen_again(seen: Projected, points: Array, most: int) -> Projected:
    """All n points through other inducing points. Where these cannot be had, the earlier ones stay valid."""
    inducing = seen.inducing
    try:
        return Projected.chosen(inducing.algebra, inducing.kernel, seen.growing.ridge, points, most)
    except (np.linalg.LinAlgError, MemoryError):
        return seen.chosen_now()  # so that this is not tried again at once
