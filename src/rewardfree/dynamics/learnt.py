"""The next state as a regression: where does the system go from here?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.arrays import CPU, Placement
from rewardfree.data import Samples
from rewardfree.kernels.fitting import evenly
from rewardfree.model import Model
from rewardfree.posterior.kernel_sum import KernelSum
from rewardfree.worlds import Box, ScaledModel, Spaces, StateChange

#: Above this share of the variance of the state change, what the regression leaves is taken for noise.
NOISE = 1e-3
#: The most transitions that noise is resampled from.
MOST_NEIGHBOURS = 10_000
#: The standard deviation of a normal law over the median of its absolute values.
NORMAL = 1.4826


class Dynamics:
    """Kernel ridge regression of the state change s' - s on (s,a), from n transitions.

    Angles enter as cos and sin and change the shorter way round. One kernel serves all variables, each in
    units of its own spread. With another `placement` predictions are computed there, and so is a posterior
    through inducing points; what goes in and comes out is NumPy's, and so are basis and weights.
    """

    def __init__(
        self,
        spaces: Spaces,
        scaled: ScaledModel,
        basis: Any,
        weights: Any,
        middle: Any,
        unit: Any,
        ends: tuple[Any, Any],
        placement: Placement = CPU,
    ) -> None:
        self.spaces, self.space, self.scaled, self.ends = spaces, _box(spaces), scaled, ends
        self.placement = placement
        self._reach = replace(self.space, low=tuple(ends[0]), high=tuple(ends[1]))
        self.basis, self.weights = basis, weights  # (p,f) and (p,d): p = n, or inducing points
        self.middle, self.unit = middle, unit  # (d,) each

    @classmethod
    def learn(
        cls,
        spaces: Spaces,
        model: Model,
        samples: Samples,
        scaled: ScaledModel | None = None,
        placement: Placement = CPU,
    ) -> Dynamics:
        """From transitions. Of an automatic model the kernel is fitted to them, unless it is `scaled`."""
        space = _box(spaces)
        if scaled is None:
            scaled = ScaledModel.fit(spaces, model, samples)
        scaled = replace(scaled, model=scaled.model.for_points(len(samples)))
        points = scaled.inputs(spaces, samples.state, samples.action)
        change = StateChange.of(spaces, samples.state, samples.next_state).behind_walls(scaled.model, points)
        design = scaled.model.design(placement)
        design.extend(points)
        seen = np.concatenate([samples.state, samples.next_state])
        # Bounds may be a user's guess: what was seen beyond them is not cut off.
        ends = np.minimum(space.low, seen.min(axis=0)), np.maximum(space.high, seen.max(axis=0))
        weights = design.weights(change.targets)
        basis = design.basis_points
        dynamics = cls(spaces, scaled, basis, weights, change.middle, change.unit, ends, placement)
        dynamics.__dict__.update(design=design, targets=change.targets, points=points)
        return dynamics

    @property
    def model(self) -> Model:
        """With the kernel and the ridge that are used."""
        return self.scaled.model

    def next_state(self, state: Any, action: Any) -> Any:
        """The mean of s' for states (n,d) and actions: (n,d), angles in [-pi, pi), within bounds."""
        points = self.scaled.inputs(self.spaces, state, action)
        return self.inside(state + self._change(points) * self.unit + self.middle)

    @cached_property
    def _change(self) -> KernelSum:
        """The mean of the change in its units, at points (n,f)."""
        return KernelSum(self.model.fixed, self.basis, self.weights, self.placement)

    def inside(self, state: Any) -> Any:
        """States (n,d) with angles wrapped, within the bounds or what was seen beyond them."""
        return self._reach.inside(self.space.wrapped(state))

    def state_inputs(self, state: Any) -> Any:
        """States (n,d) as the kernel sees them, without actions."""
        features, scaling = self.space.features(state), self.scaled.scaling
        size = features.shape[1]
        return (features - scaling.centre[:size]) / scaling.scale[:size]

    def std(self, state: Any, action: Any) -> Any:
        """sigma at (s,a), (n,), in units of the kernel."""
        return self.design.std(self.scaled.inputs(self.spaces, state, action))

    def spread(self, state: Any, action: Any) -> Any:
        """The standard deviation of a prediction, (n,), as a share of the state change's own."""
        return self.std(state, action) * np.sqrt(self._energy.max())

    @cached_property
    def _energy(self) -> Any:
        """The variance that goes with the kernel for each variable, (d,): y' K^-1 y / n."""
        return self.design.energy(self.targets) / len(self.points)

    @cached_property
    def points(self) -> Any:
        """What the kernel saw of the transitions, (n,f). In a file there is the basis alone."""
        if isinstance(self.model.inducing, int):
            raise ValueError(
                "these dynamics come from a file, which holds their inducing points and not the transitions: "
                "make the plan from data again for sigma, noise or what is missed"
            )
        return self.basis

    @cached_property
    def on_cpu(self) -> Dynamics:
        """The same, predicted by NumPy: what plans act on. A posterior is made anew if one is asked for."""
        if self.placement.default:
            return self
        parts = self.basis, self.weights, self.middle, self.unit, self.ends
        here = Dynamics(self.spaces, self.scaled, *parts)
        known = ("points", "targets", "residuals", "noise_sample", "_energy")
        here.__dict__.update({name: self.__dict__[name] for name in known if name in self.__dict__})
        return here

    @cached_property
    def design(self) -> Any:
        """The posterior on the points."""
        design = self.model.design(self.placement)
        design.extend(self.points)
        return design

    @cached_property
    def targets(self) -> Any:
        """What was regressed, (n,d): (K + ridge I) weights."""
        matrix = self.model.fixed.between(self.points, self.points)
        return matrix @ self.weights + self.model.ridge * self.weights

    @cached_property
    def residuals(self) -> Any:
        """What the regression misses at each transition when it is left out, (n,d), in the states' units."""
        return self.design.missed(self.targets) * self.unit

    @cached_property
    def noise_sample(self) -> tuple[Any, Any]:
        """Points (k,f), evenly spread over the transitions, and the `residuals` there (k,d)."""
        rows = evenly(len(self.points), MOST_NEIGHBOURS)
        return self.points[rows], self.residuals[rows]

    @cached_property
    def noise(self) -> float:
        """The share of the state change's variance that the fitted ridge says is noise."""
        assert self.model.ridge is not None
        return float(self.model.ridge * self._energy.max())

    @property
    def noisy(self) -> bool:
        """Whether the next state is random beyond what the regression could still learn.

        At most places, that is: what bends sharply, as at a contact, is missed by much, but at few of them.
        """
        if self.noise <= NOISE:
            return False
        usual = NORMAL * np.median(np.abs(self.residuals / self.unit), axis=0)
        return bool((usual**2 > NOISE).any())

    def held_out(self, samples: Samples, parts: Sequence[Any]) -> Any:
        """Root mean square error of each variable over that of a constant change, (d,).

        Each part of the transitions that were learnt from, an array of rows, is predicted from all others.
        """
        rows = np.concatenate(parts)
        change = self.targets.copy()
        change[rows] -= self.design.missed(self.targets, parts)
        expected = self.inside(samples.state + change * self.unit + self.middle)
        missed = self.space.change(expected, samples.next_state)
        spread = self.space.change(samples.state, samples.next_state).std(axis=0)
        return np.sqrt((missed**2).mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def _box(spaces: Spaces) -> Box:
    if not isinstance(spaces.state, Box):
        raise ValueError(
            "dynamics of labels cannot be regressed: plan for a Discrete state with rf.Mean() and its like"
        )
    return spaces.state
