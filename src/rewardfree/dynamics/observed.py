"""The paper's way on any states: [P_h V] as a regression of V at the next states seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from rewardfree.data import Fitted
from rewardfree.model import Model, midrange
from rewardfree.posterior import Weighted
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.scaling import feature_bounds
from rewardfree.worlds.spaces import Spaces


class Designer(Protocol):
    """Who makes posteriors for points as the kernel sees them."""

    def needs_box(self, model: Model) -> bool:
        """Whether its posteriors are for points of a box, so that no variable may be without bounds."""
        ...

    def design(self, model: Model, box: tuple[Any, Any] | None) -> Weighted:
        """A posterior for points of the box [low, high], (f,) each, where it needs one, else anywhere."""
        ...


class Observed:
    """A design for each step, or one for all if the model is pooled, and the next states at its points."""

    def __init__(
        self, spaces: Spaces, fitted: Fitted, horizon: int, actions: Any, designer: Designer | None = None
    ) -> None:
        self.spaces, self.fitted, self.horizon, self.actions = spaces, fitted, horizon, actions
        self.designer = designer
        steps = fitted.model.regressions(horizon)
        self.designs: list[Weighted] = [self._design() for _ in range(steps)]
        self._rows: list[list[tuple[Any, Any, Any, bool]]] = [[] for _ in range(steps)]
        self._cross: tuple[Any, Any, Any] | None = None

    def step(self, h: int) -> int:
        """The number of the design that serves step h."""
        return 0 if len(self.designs) == 1 else h

    def add(self, h: int, state: Any, action: Any, following: Any, ended: bool) -> None:
        """One more transition at step h."""
        g = self.step(h)
        self.designs[g].extend(self.points(state[None], action[None]))
        self._rows[g].append((state, action, following, bool(ended)))
        self._cross = None

    def load(self, h: int, state: Any, action: Any, following: Any, ended: Any) -> None:
        """Many transitions at step h at once."""
        g = self.step(h)
        self.designs[g].extend(self.points(state, action))
        self._rows[g] += zip(state, action, following, map(bool, ended), strict=True)
        self._cross = None

    def points(self, state: Any, action: Any) -> Any:
        """What the kernel sees."""
        return self.fitted.scaling(self.spaces.features(state, action))

    def seen(self, h: int) -> tuple[Any, Any, Any, Any]:
        """States, actions, next states and ends at the points of step h."""
        columns = zip(*self._rows[self.step(h)], strict=True)
        state, action, following, ended = (np.array(column) for column in columns)
        return state, action, following, ended

    def count(self, h: int) -> int:
        return len(self.designs[self.step(h)])

    def at_following(self, h: int, later: int) -> tuple[Any, Any, Any]:
        """The basis of step `later` at every action at the next states of step h, (a*n,p); sigma there,
        (a,n); and which of these next states are ends, (n,)."""
        if self._cross is not None:
            return self._cross
        _, _, following, ended = self.seen(h)
        states, actions = self.spaces.every_pair(following, self.actions)
        points, design = self.points(states, actions), self.designs[self.step(later)]
        shape = (len(self.actions), len(following))
        cross = design.basis(points) if len(design) else None
        found = cross, design.std(points).reshape(shape), ended
        if len(self.designs) == 1:  # the same at every step
            self._cross = found
        return found

    def _design(self) -> Weighted:
        if self.designer is None:
            return self.fitted.model.design()
        box = None
        if self.designer.needs_box(self.fitted.model):
            low, high = feature_bounds(self.spaces)
            box = self.fitted.scaling(low), self.fitted.scaling(high)
        return self.designer.design(self.fitted.model, box)


class Recursion:
    """Q_h = clip(r_h + mean_h[V_{h+1}] + bonus(sigma_h)), V_{last+1} = 0, on what was observed.

    `reward(h, state, action)` is known at any pair; `gained(h)` are rewards of the transitions themselves,
    where they depend on the next state, and are regressed with V. `bounds(steps to go)` is the clip,
    `unknown(steps to go)` what V is regressed around, if not around 0 or its middle.
    """

    def __init__(
        self,
        observed: Observed,
        last: int,
        bonus: Callable[[Any], Any],
        bounds: Callable[[int], tuple[float, float]],
        reward: Callable[[int, Any, Any], Any] | None = None,
        gained: Callable[[int], Any] | None = None,
        discount: float = 1.0,
        empty: str = "prior",
        unknown: Callable[[int], float] | None = None,
    ) -> None:
        self.observed, self.last, self.bonus, self.bounds = observed, last, bonus, bounds
        self.reward, self.gained, self.discount, self.empty = reward, gained, discount, empty
        self.unknown = unknown or (lambda to_go: 0.0)
        self._targets: dict[int, tuple[Any, float]] = {}  # by h: weights (n,) and centre

    def q(self, h: int, state: Any) -> Any:
        """Q_h of every action at states (n,d): (a,n)."""
        observed = self.observed
        states, actions = observed.spaces.every_pair(state, observed.actions)
        shape = (len(observed.actions), len(state))
        points, design = observed.points(states, actions), observed.designs[observed.step(h)]
        weights, centre = self.learnt(h)
        mean: Any = centre
        if weights is not None:
            with one_blas_thread():
                mean = (design.basis(points) @ weights + centre).reshape(shape)
        return self._clipped(h, mean, design.std(points).reshape(shape), states, actions)

    def value(self, h: int, state: Any) -> Any:
        """V_h at states (n,d)."""
        return self.q(h, state).max(axis=0) if h <= self.last else np.zeros(len(state))

    def _clipped(self, h: int, mean: Any, sigma: Any, states: Any, actions: Any) -> Any:
        if self.empty == "zero" and self.observed.count(h) == 0:
            return np.zeros(sigma.shape)
        q = mean + self.bonus(sigma)
        if self.reward is not None:
            q = q + self.reward(h, states, actions).reshape(sigma.shape)
        return np.clip(q, *self.bounds(self.last + 1 - h))

    def learnt(self, h: int) -> tuple[Any, float]:
        """The weights of the regression at step h, computed from the last step backwards."""
        for step in range(self.last, h - 1, -1):
            if step not in self._targets:
                self._targets[step] = self._regressed(step)
        return self._targets[h]

    def remember(self, h: int, weights: Any, centre: float) -> None:
        """What was learnt at step h before, for a plan that is read from a file."""
        self._targets[h] = weights, centre

    def _regressed(self, h: int) -> tuple[Any, float]:
        observed = self.observed
        if observed.count(h) == 0:
            return None, self.unknown(self.last + 1 - h)
        y = np.zeros(observed.count(h))
        if h < self.last:
            cross, sigma, ended = observed.at_following(h, h + 1)
            weights, centre = self._targets[h + 1]
            mean: Any = centre
            if weights is not None:
                with one_blas_thread():
                    mean = (cross @ weights + centre).reshape(sigma.shape)
            _, _, following, _ = observed.seen(h)
            pairs = observed.spaces.every_pair(following, observed.actions)
            value = self._clipped(h + 1, mean, sigma, *pairs).max(axis=0)
            y = self.discount * np.where(ended, 0.0, value)
        if self.gained is not None:
            y = y + self.gained(h)
        centred = observed.fitted.model.centred
        centre = float(midrange(y, axis=0)) if centred else self.unknown(self.last + 1 - h)
        return observed.designs[observed.step(h)].weights((y - centre)[:, None])[:, 0], centre
