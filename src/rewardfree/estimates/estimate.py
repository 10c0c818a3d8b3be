"""What recursions ask of an estimate of [P_h V]."""

from typing import Any, Protocol

from rewardfree.arrays import Array


class Estimate(Protocol):
    """[P_h V] by kernel ridge regression of V(s') on z, for every step h.

    A `FiniteEstimate` takes V at all states (b,s,c) and answers at all z. A `SampledEstimate` takes V at the
    next states of step h's samples (n,) and answers with functions of the points as the kernel sees them.
    """

    def mean(self, h: int, values: Array) -> Any:
        """The estimate of [P_h V]."""

    def std(self, h: int) -> Any:
        """sigma_h."""

    def count(self, h: int) -> int:
        """How many samples the regression of step h has."""
