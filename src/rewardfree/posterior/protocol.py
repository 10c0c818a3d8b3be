"""What a strategy or a planner may ask of a posterior; nothing else is visible to them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rewardfree.arrays import Array


@runtime_checkable
class Posterior(Protocol):
    """Kernel ridge regression on the points seen so far. It holds no targets: they come with the question.

    The leading axes `...` are the posterior's `batch`: () for a `Design`, (g,) for a `Lattice` of g designs.
    """

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the leading axes."""
        ...

    def extend(self, points: Array) -> None:
        """Condition on more points (p,d), in place."""
        ...

    def mean(self, targets: Array, at: Array) -> Array:
        """k_n(q)^T (K_n + ridge I)^-1 y: targets (...,n) give (...,m), c columns (...,n,c) give (...,m,c)."""
        ...

    def std(self, at: Array) -> Array:
        """sigma_n(q) = sqrt(k(q,q) - k_n(q)^T (K_n + ridge I)^-1 k_n(q)), shape (...,m)."""
        ...

    def information_gain(self) -> Array:
        """1/2 logdet(I + K_n/ridge), shape (...)."""
        ...
