"""What a strategy or a planner may ask of a posterior."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from rewardfree.arrays import Array, Floats, Integers, count

#: Which of g designs: a slice, their numbers (g',), or None for all of them.
Designs: TypeAlias = slice | Sequence[int] | Integers | None


@runtime_checkable
class Posterior(Protocol):
    """Kernel ridge regression on the points seen so far. It holds no targets: they come with the question.

    The leading axes `...` are the posterior's `batch`: () for a `Design`, (g,) for a `Lattice` of g designs.
    """

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the leading axes."""

    def extend(self, points: Array) -> None:
        """Condition on more points (p,d), in place."""

    def mean(self, targets: Array, at: Array) -> Array:
        """k_n(q)^T (K_n + ridge I)^-1 y: targets (...,n) give (...,m), c columns (...,n,c) give (...,m,c)."""

    def std(self, at: Array) -> Array:
        """sigma_n(q) = sqrt(k(q,q) - k_n(q)^T (K_n + ridge I)^-1 k_n(q)), shape (...,m)."""

    def information_gain(self) -> Array:
        """1/2 logdet(I + K_n/ridge), shape (...)."""


@runtime_checkable
class BasisPosterior(Posterior, Protocol):
    """A single posterior whose mean is basis(at) @ weights(targets): one solve for many questions."""

    @property
    def batch(self) -> tuple[int, ...]:
        """(): there is one design."""
        return ()

    def __len__(self) -> int:
        """The number of points, each of which has a target."""

    def basis(self, at: Array) -> Array:
        """(m,p): k(q, z_i) for kernels, phi(q) for features."""

    def weights(self, targets: Array) -> Array:
        """For targets (n,c): (p,c)."""


@runtime_checkable
class PointPosterior(BasisPosterior, Protocol):
    """A posterior that keeps its points: what is missed of them, and where to look next."""

    ridge: float

    @property
    def points(self) -> Array:
        """The points, (n,d), in the order in which they came."""

    @property
    def basis_points(self) -> Array:
        """Those of the basis, (p,d): basis(at) is k(at, basis points)."""

    def greedy(self, candidates: Array, queries: int) -> tuple[Integers, Floats]:
        """The q candidates (m,d) to add next, each where sigma is then largest: indices and sigma, (q,)."""

    def energy(self, targets: Array) -> Floats:
        """y^T (K_n + ridge I)^-1 y for each column of targets (n,c): (c,)."""

    def missed(self, targets: Array, parts: Sequence[Integers] | None = None) -> Floats:
        """y minus its prediction from all points but its part, for targets (n,c).

        Of the rows of all parts, in their order (r,c); without parts, of each point on its own (n,c).
        """


@runtime_checkable
class Posteriors(Protocol):
    """g posteriors on one finite set Z of candidates (m,d). Candidates are named by their index.

    A `Lattice` computes all of them together. A `PosteriorList` offers separate posteriors in this form.
    """

    @property
    def candidates(self) -> Array:
        """The set Z, (m,d)."""

    def append(self, designs: Designs, indices: Array) -> None:
        """Add candidate `indices[i]` to design `designs[i]`: any designs, each once, or None for all."""

    def extend_each(self, indices: Array) -> None:
        """Add p points to every design, candidate indices (g,p)."""

    def mean(
        self, targets: Array, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None
    ) -> Array:
        """The means for targets (g,n,c), (g,m,c). Designs with fewer than n points ignore the rest."""

    def std(self, at: Array | None = None, *, rows: Array | None = None, designs: Designs = None) -> Array:
        """sigma at all of Z, at points `at` of it (m,d), or at candidate indices `rows`: (g,m)."""

    def length(self, designs: Designs = None) -> int:
        """How many targets `mean` wants for each design: the largest count."""

    def repeat(self, step: Callable[[], None], times: int) -> None:
        """Call `step` that often. A `Lattice` on CUDA records the calls, see `Lattice.repeat`."""
        for _ in range(count(times, "times", at_least=0)):
            step()
