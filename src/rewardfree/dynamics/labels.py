"""Where actions lead among labels: shares of what was seen, for states of which none is near another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from rewardfree.arrays import Floats, Integers
from rewardfree.data import Samples
from rewardfree.kernels import Delta
from rewardfree.model import Model
from rewardfree.worlds import Discrete, Spaces

#: Pairs that lead to more places than this are not smoothed.
MOST_PLACES = 8
#: How alike the chances of the places may be: a Dirichlet's concentration, from not at all to all equal.
CONCENTRATIONS = np.exp(np.linspace(-4.0, 8.0, 49))


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """P^(s'|s,a) over the m outcomes that were seen, each a pair, a next label, and whether it was an end."""

    shape: tuple[int, int]  # states, actions
    pair: Integers  # (m,) z = s * |A| + a
    next_state: Integers  # (m,)
    ended: Any  # (m,) bool
    seen: Floats  # (m,) how often
    shares: Floats  # (m,) the estimated chance

    @classmethod
    def of(cls, shape: tuple[int, int], samples: Samples) -> LabelLaw:
        """The shares of n transitions."""
        s, a = shape
        codes = (samples.state * a + samples.action) * s + samples.next_state
        codes, seen = np.unique(2 * codes + samples.terminated, return_counts=True)
        pair, next_state = np.divmod(codes // 2, s)
        visits = np.bincount(pair, seen, s * a)
        return cls(shape, pair, next_state, codes % 2 == 1, seen.astype(np.float64), seen / visits[pair])

    @cached_property
    def visits(self) -> Floats:
        """How often each pair was tried, (z,)."""
        s, a = self.shape
        return np.bincount(self.pair, self.seen, s * a).astype(np.float64)

    @cached_property
    def going(self) -> Any:
        """The law as a sparse matrix (z,s), without outcomes that were ends."""
        from scipy.sparse import csr_array  # not at the top: it changes warning filters when it is imported

        (s, a), on = self.shape, ~self.ended
        return csr_array((self.shares[on], (self.pair[on], self.next_state[on])), shape=(s * a, s))

    def expected(self, values: Floats) -> Floats:
        """The mean of values (m,) of the outcomes, (z,)."""
        s, a = self.shape
        return np.bincount(self.pair, self.shares * values, s * a).astype(np.float64)

    def smoothed(self) -> LabelLaw:
        """Shares drawn together as far as the data as a whole say that the chances of a pair are alike.

        Of pairs that were seen to lead to k places the chances have a Dirichlet(c, ..., c) prior, whose c has
        the largest likelihood over all of these pairs, given that all k were seen; the shares become
        (n_i + c) / (n + k c). In games chances are often equal, and then 20 visits are as good as many more.
        """
        places = np.bincount(self.pair, minlength=len(self.visits))
        shares = self.shares.copy()
        for k in range(2, min(MOST_PLACES, int(places.max(initial=0))) + 1):
            chosen = places[self.pair] == k
            if chosen.any():  # outcomes are in the order of their pairs
                counts = self.seen[chosen].reshape(-1, k)
                c = _concentration(counts)
                shares[chosen] = ((counts + c) / (counts + c).sum(axis=1, keepdims=True)).reshape(-1)
        return replace(self, shares=shares)


def _concentration(counts: Floats) -> float:
    """The c of Dirichlet(c, ..., c) that makes rows of counts (p,k), none of them 0, most likely."""
    k, (totals, rows) = counts.shape[1], np.unique(counts.sum(axis=1), return_counts=True)
    c = CONCENTRATIONS[:, None]

    def rising(start: Any, steps: Any) -> Any:  # log of start (start + 1) ... (start + steps - 1)
        return gammaln(start + steps) - gammaln(start)

    likelihood = sum(rising(c, column) for column in counts.T) - rising(k * c, counts.sum(axis=1))
    # The chance to see all k places: by inclusion and exclusion of those that are missed.
    missed = np.arange(k)
    terms = rising((k - missed) * c[:, :, None], totals[:, None]) - rising(k * c, totals)[:, :, None]
    terms = terms + gammaln(k + 1.0) - gammaln(missed + 1.0) - gammaln(k - missed + 1.0)
    seen_all = logsumexp(terms, b=(-1.0) ** missed, axis=2)
    return float(CONCENTRATIONS[np.argmax(likelihood.sum(axis=1) - (rows * seen_all).sum(axis=1))])


def are_labels(spaces: Spaces) -> bool:
    """Whether states and actions are labels, of which none is near another: there is nothing to regress."""
    both = (spaces.state, spaces.action)
    return all(isinstance(space, Discrete) and space.coordinates is None for space in both)


def counts_visits(model: Model) -> bool:
    """Whether a model is the shares of what was seen at a pair, at whatever step."""
    return isinstance(model.kernel, Delta) and model.pooled and not model.timed
