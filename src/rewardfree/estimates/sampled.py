"""The estimate of [P_h V] on real states: V is known at the next states seen, and regressed from there."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardfree.data import Row, Samples
from rewardfree.estimates.backups import Backup, bellman_q, state_value, until_end, zero_without_data
from rewardfree.estimates.estimate import Estimate
from rewardfree.model import MODEL_POSTERIORS, ModelPosteriors, midrange
from rewardfree.posterior import BasisPosterior, Sparse
from rewardfree.threads import one_blas_thread
from rewardfree.worlds import ScaledModel, Spaces, feature_bounds


@dataclass(frozen=True, eq=False)
class Regression:
    """[P_h V] as a function of the points that the kernel sees: centre + basis(points) @ weights."""

    posterior: BasisPosterior
    weights: Any  # (p,); None without samples
    centre: float

    def __call__(self, points: Any) -> Any:
        """At points (m,f): (m,)."""
        return self.from_basis(None if self.weights is None else self.posterior.basis(points))

    def from_basis(self, basis: Any) -> Any:
        """From the basis at m points, (m,p), which is often asked for many times."""
        if self.weights is None:
            return self.centre
        with one_blas_thread():
            return basis @ self.weights + self.centre


@dataclass(frozen=True, eq=False)
class NextStates:
    """Every action at the next states of one step's samples, seen by the regression of another step."""

    basis: Any  # (a*n,p); None without samples there
    sigma: Any  # (a,n)
    terminated: Any  # (n,)


class SampledEstimate(Estimate):
    """A posterior for each step, or one for all if the model is pooled, and the samples at its points."""

    def __init__(
        self,
        spaces: Spaces,
        scaled: ScaledModel,
        horizon: int,
        actions: Any,
        source: ModelPosteriors = MODEL_POSTERIORS,
    ) -> None:
        self.spaces, self.scaled, self.horizon, self.actions = spaces, scaled, horizon, actions
        self.source = source
        self.steps = scaled.model.regressions(horizon)
        self.posteriors: list[BasisPosterior] = [self._empty_posterior() for _ in range(self.steps)]
        self._rows: list[list[Row]] = [[] for _ in range(self.steps)]
        self._next_states: NextStates | None = None

    def step(self, h: int) -> int:
        """The number of the posterior that serves step h."""
        return 0 if self.steps == 1 else h

    def add(self, row: Row) -> None:
        """One more sample, at its own step."""
        points = self.points(row.state[None], row.action[None])
        self.posteriors[self.step(row.h)].extend(points)
        self._rows[self.step(row.h)].append(row)
        self._next_states = None

    def load(self, h: int, samples: Samples, inducing: Any = None) -> None:
        """Many samples of step h at once; through inducing points (m,f) if these are given."""
        posterior, points = self.posteriors[self.step(h)], self.points(samples.state, samples.action)
        if inducing is None:
            posterior.extend(points)
        elif isinstance(posterior, Sparse):
            posterior.restore(points, inducing)
        else:
            raise ValueError(f"inducing points of step {h} were given, but its posterior has none")
        columns = (samples.state, samples.action, samples.next_state, map(bool, samples.terminated))
        self._rows[self.step(h)] += [Row(-1, h, *row, True) for row in zip(*columns, strict=True)]
        self._next_states = None

    def points(self, state: Any, action: Any) -> Any:
        """What the kernel sees, (n,f)."""
        return self.scaled.inputs(self.spaces, state, action)

    def samples(self, h: int) -> Samples:
        """The samples of step h, one for each point of its posterior."""
        return Samples.of(self._rows[self.step(h)])

    def count(self, h: int) -> int:
        return len(self.posteriors[self.step(h)])

    @property
    def prior_sigma(self) -> float:
        """The largest sigma before there were samples, at their points."""
        kernel = self.scaled.model.fixed
        samples = [self.samples(h) for h in range(self.steps) if self.count(h)]
        diagonals = [kernel.diag(self.points(one.state, one.action)).max() for one in samples]
        return math.sqrt(max(diagonals, default=0.0))

    def mean(self, h: int, values: Any, around: float = 0.0) -> Regression:
        """The estimate of [P_h V] for V (n,) at the next states of step h's samples.

        V is regressed around its midrange if the model is centred, else around a number, which is also what
        is predicted far from all samples.
        """
        posterior = self.posteriors[self.step(h)]
        if not len(posterior):
            return Regression(posterior, None, around)
        centre = float(midrange(values, axis=0)) if self.scaled.model.centred else around
        return Regression(posterior, posterior.weights((values - centre)[:, None])[:, 0], centre)

    def std(self, h: int) -> Callable[[Any], Any]:
        """sigma_h as a function of points (m,f)."""
        return self.posteriors[self.step(h)].std

    def at_next_states(self, h: int, later: int) -> NextStates:
        """What the regression of step `later` says of every action at the next states of step h."""
        if self._next_states is not None:
            return self._next_states
        samples = self.samples(h)
        pairs = self.spaces.every_pair(samples.next_state, self.actions)
        points, posterior = self.points(*pairs), self.posteriors[self.step(later)]
        sigma = posterior.std(points).reshape(len(self.actions), len(samples))
        basis = posterior.basis(points) if len(posterior) else None
        next_states = NextStates(basis, sigma, samples.terminated)
        if self.steps == 1:  # the same at every step
            self._next_states = next_states
        return next_states

    def _empty_posterior(self) -> BasisPosterior:
        box = None
        if self.source.needs_box(self.scaled.model):
            low, high = feature_bounds(self.spaces)
            box = self.scaled.scaling(low), self.scaled.scaling(high)
        return self.source.posterior(self.scaled.model, box)


class SampledRecursion:
    """Q_h by a Bellman line, V_{last+1} = 0, from the last step to the first.

    `reward(h, state, action)` is known at any pair. `gained(h)` are rewards of the samples themselves (n,),
    where they depend on the next state: r + discount V is then regressed instead of V.
    """

    def __init__(
        self,
        estimate: SampledEstimate,
        last: int,
        backup: Backup,
        *,
        reward: Callable[[int, Any, Any], Any] | None = None,
        gained: Callable[[int], Any] | None = None,
        discount: float = 1.0,
    ) -> None:
        self.estimate, self.last, self.backup = estimate, last, backup
        self.reward, self.gained, self.discount = reward, gained, discount
        self._regressions: dict[int, Regression] = {}  # by h

    def q(self, h: int, state: Any) -> Any:
        """Q_h of every action at states (n,d), within its limits: (a,n)."""
        return np.clip(self._q_at(h, state), *self._limits(h))

    def value(self, h: int, state: Any) -> Any:
        """V_h at states (n,d)."""
        if h > self.last:
            return np.zeros(len(state))
        return state_value(self._q_at(h, state).T, *self._limits(h))

    def _q_at(self, h: int, state: Any) -> Any:
        estimate = self.estimate
        pairs = estimate.spaces.every_pair(state, estimate.actions)
        points, shape = estimate.points(*pairs), (len(estimate.actions), len(state))
        mean = self.regression(h)(points)
        sigma = estimate.std(h)(points).reshape(shape) if self.backup.uses_sigma else None
        return self._q(h, mean, sigma, pairs, shape)

    def regression(self, h: int) -> Regression:
        """The estimate of [P_h V_{h+1}], computed from the last step backwards."""
        for step in range(self.last, h - 1, -1):
            if step not in self._regressions:
                self._regressions[step] = self._regressed(step)
        return self._regressions[h]

    def remember(self, h: int, weights: Any, centre: float) -> None:
        """The regression of step h as it was computed before, for a plan that is read from a file."""
        posterior = self.estimate.posteriors[self.estimate.step(h)]
        self._regressions[h] = Regression(posterior, weights, centre)

    def _regressed(self, h: int) -> Regression:
        estimate, to_go = self.estimate, self.last - h
        targets = np.zeros(estimate.count(h))
        if h < self.last and len(targets):
            seen = estimate.at_next_states(h, h + 1)
            mean = self._regressions[h + 1].from_basis(seen.basis)
            sigma = seen.sigma if self.backup.uses_sigma else None
            pairs = estimate.spaces.every_pair(estimate.samples(h).next_state, estimate.actions)
            q = self._q(h + 1, mean, sigma, pairs, seen.sigma.shape)
            value = state_value(q.T, *self._limits(h + 1))
            targets = until_end(value, seen.terminated)
        if self.gained is not None and len(targets):
            targets = bellman_q(self.gained(h), targets, self.discount)
        around = 0.0 if self.backup.around is None else self.backup.around(to_go)
        return estimate.mean(h, targets, around)

    def _q(self, h: int, mean: Any, sigma: Any, pairs: tuple[Any, Any], shape: tuple[int, int]) -> Any:
        """Q_h of every action at n states, (a,n), for the mean at these pairs (a*n,)."""
        reward = None if self.reward is None else self.reward(h, *pairs).reshape(shape)
        mean = np.full(shape, mean) if np.ndim(mean) == 0 else mean.reshape(shape)
        q = self.backup.q(reward, mean, sigma, self.last + 1 - h)
        return zero_without_data(q, self.backup.empty, self.estimate.count(h))

    def _limits(self, h: int) -> tuple[float, float]:
        return self.backup.limits(self.last + 1 - h)
