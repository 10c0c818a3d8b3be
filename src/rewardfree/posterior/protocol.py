"""What a strategy or a planner may ask of a posterior; nothing else is visible to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

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


@runtime_checkable
class BasisPosterior(Posterior, Protocol):
    """A single posterior whose mean is basis(at) @ weights(targets): many questions, one solve."""

    def __len__(self) -> int:
        """How many points there are, each of which has a target."""
        ...

    def basis(self, at: Array) -> Array:
        """(m,p): k(q, z_i) for kernels, phi(q) for features."""
        ...

    def weights(self, targets: Array) -> Array:
        """For targets (n,c): (p,c)."""
        ...


@runtime_checkable
class Posteriors(Protocol):
    """Many posteriors on one finite set Z of candidates (m,d), which are named by their index.

    `designs` picks some of them: a slice, numbers, or None for all. A `Lattice` computes them together; a
    `Bundle` makes any separate posteriors look like this.
    """

    @property
    def candidates(self) -> Array:
        """The set Z, (m,d)."""
        ...

    def append(self, designs: Any, indices: Any) -> None:
        """Add candidate `indices[i]` to design `designs[i]`."""
        ...

    def extend_each(self, indices: Any) -> None:
        """Add p candidates to every design: (g,p)."""
        ...

    def mean(self, targets: Array, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """At all of Z or as `std`: targets (g,n,c) give (g,m,c). Designs of fewer points ignore the rest."""
        ...

    def std(self, at: Any = None, *, rows: Any = None, designs: Any = None) -> Array:
        """sigma at all of Z, at points of it, or at candidate indices (g,m): (g,m)."""
        ...

    def length(self, designs: Any = None) -> int:
        """How many targets `mean` wants per design."""
        ...

    def repeat(self, step: Callable[[], None], times: int) -> None:
        """Call `step` that often, see `Lattice.repeat`."""
        ...
