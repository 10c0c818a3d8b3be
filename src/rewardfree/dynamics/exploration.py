"""Where there is still something to learn, and which actions lead there: optimism about sigma, not reward."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.data import Samples
from rewardfree.dynamics.extent import least_half, whole_turns
from rewardfree.dynamics.learnt import Dynamics
from rewardfree.dynamics.mesh import MOST_VARIABLES, Mesh, MeshDynamics, has_mesh
from rewardfree.dynamics.termination import ObservedTermination
from rewardfree.estimates.backups import OBJECTIVES, scout_q, settled, until_end
from rewardfree.kernels import Matern, SquaredExponential, Sum
from rewardfree.model import Model
from rewardfree.posterior import PointPosterior
from rewardfree.worlds import ScaledModel, Spaces

DISCOUNT = 0.98
#: Nodes for each variable of the mesh on which E is computed, by the number of variables.
EXPLORED_SIDES = {1: 61, 2: 31, 3: 15, 4: 9}
EXPLORED_ACTIONS = 5
#: Width of the mesh as a multiple of the range that was seen: what is beyond it is reached step by step.
GROWTH = 2.0
#: How often a rollout acts at random. Some must, or all of them get stuck at the same place.
EPSILONS = (0.0, 0.1, 0.3, 0.5)
SWEEPS = 300
#: Sweeps from an earlier E, which is nearly right.
FEW_SWEEPS = 30
#: Of the exploration posterior: the longest lengthscale in units of the data's spread, and its ridge.
LONGEST, EXPLORATION_RIDGE = 5.0, 1e-4


def check_variables(spaces: Spaces) -> None:
    """Refuse states that no mesh can be laid over."""
    if not has_mesh(spaces):
        raise ValueError(
            f"exploring through a mesh takes up to {MOST_VARIABLES} real state variables, got "
            f"{', '.join(spaces.state.names)}: "
            'use rf.Uniform(), rf.GreedyMaxVariance() or rf.Generative(candidates="sobol")'
        )


class ExplorationValue:
    """E = max_a [gain(s,a) + discount E(s')] through the learnt dynamics: what is still to be learnt from s.

    `objective` gives the gain for sigma and a ridge: sigma itself by default.
    """

    def __init__(
        self,
        spaces: Spaces,
        model: Model,
        samples: Samples,
        objective: Callable[[Any, float], Any] = OBJECTIVES["sigma"],
    ) -> None:
        check_variables(spaces)
        self.spaces, self._objective = spaces, objective
        self.dynamics = Dynamics.learn(spaces, model, samples)
        self.is_end = ObservedTermination(spaces.state, samples.next_state, samples.terminated)
        self._automatic = model.automatic
        self._points = len(samples)
        self.posterior = self._empty_posterior(self._points)
        self.posterior.extend(self.dynamics.points)
        self.actions = spaces.action.candidates(EXPLORED_ACTIONS)
        self._seen = self.dynamics.space.wrapped(np.concatenate([samples.state, samples.next_state]))
        self._later: PointPosterior | None = None  # on the samples that came after the fit
        self._value: Any = None

    def sigma(self, state: Any, action: Any) -> Any:
        """How uncertain the next state of (s,a) is, (n,)."""
        points = self.dynamics.scaled.inputs(self.spaces, state, action)
        return self._with_later(self.posterior.std(points), points)

    def count(self, samples: Samples) -> None:
        """Samples that came after the fit: where they were, there is less to learn.

        Without this a policy stays where sigma was largest, and learns the same thing again at every step.
        """
        self.value  # noqa: B018  (E before them, which is then improved)
        if self._later is None:
            self._later = self._empty_posterior(None)
        self._later.extend(self.dynamics.scaled.inputs(self.spaces, samples.state, samples.action))
        self._value = self._improved(self._value, FEW_SWEEPS)

    def gain(self, state: Any, action: Any) -> Any:
        """What a sample at (s,a) is worth, (n,)."""
        return self._objective(self.sigma(state, action), self.posterior.ridge)

    @cached_property
    def mesh(self) -> Mesh:
        space = self.dynamics.space
        low, high = self._seen.min(axis=0), self._seen.max(axis=0)
        middle, half = 0.5 * (low + high), least_half(0.5 * GROWTH * (high - low), 0.5 * (low + high), 1e-9)
        low, high = np.maximum(middle - half, space.low), np.minimum(middle + half, space.high)
        return Mesh(*whole_turns(space, low, high), (EXPLORED_SIDES[space.size],) * space.size, space.angular)

    @property
    def value(self) -> Any:
        """E at the nodes, (m,)."""
        if self._value is None:
            self._value = self._improved(np.zeros(self.mesh.size), SWEEPS)
        return self._value

    def _improved(self, value: Any, sweeps: int) -> Any:
        """E by value iteration from another one, (m,)."""
        points, known = self._at_nodes
        gain = self._objective(self._with_later(known, points), self.posterior.ridge)
        gain = gain.reshape(len(self.actions), -1)

        def update(value: Any) -> Any:
            return scout_q(gain, (self._on_mesh.matrix @ value).reshape(gain.shape), DISCOUNT).max(axis=0)

        return settled(update, value, sweeps)

    @cached_property
    def _on_mesh(self) -> MeshDynamics:
        return MeshDynamics(self.spaces, self.dynamics, self.mesh, self.actions, self.is_end)

    @cached_property
    def _at_nodes(self) -> tuple[Any, Any]:
        """Every action at every node as the kernel sees them, (a*m,f), and sigma there after the fit."""
        points = self.dynamics.scaled.inputs(self.spaces, *self._on_mesh.pairs)
        return points, self.posterior.std(points)

    def _with_later(self, sigma: Any, points: Any) -> Any:
        """At most the sigma (n,) of the later samples alone: both bound the sigma of all from above."""
        return sigma if self._later is None else np.minimum(sigma, self._later.std(points))

    def _empty_posterior(self, points: int | None) -> PointPosterior:
        return exploration_posterior(self.dynamics.scaled, self._automatic, points)

    def choices(self, state: Any) -> tuple[Any, Any]:
        """gain + discount E(s') of every action at states (n,d), (a,n), and the next states (a,n,d)."""
        states, actions = self.spaces.every_pair(state, self.actions)
        next_states = self.dynamics.next_state(states, actions)
        later = until_end(self.mesh.at(self.value, next_states), self.is_end(next_states))
        q = scout_q(self.gain(states, actions), later, DISCOUNT)
        shape = (len(self.actions), len(state))
        return q.reshape(shape), next_states.reshape(*shape, -1)

    def reachable(self, starts: Any, steps: int, most: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """States and actions that the model meets as it follows E from some states, more or less strictly."""
        epsilon = rng.choice([*EPSILONS, 1.0], len(starts))
        state, states, actions = starts.copy(), [], []
        n, angular = len(starts), self.dynamics.space.angular
        low, high = np.where(angular, -np.inf, self.mesh.low), np.where(angular, np.inf, self.mesh.high)
        for _ in range(steps):
            q, next_states = self.choices(state)
            chosen = np.where(rng.random(n) < epsilon, rng.integers(len(q), size=n), q.argmax(axis=0))
            states.append(state)
            actions.append(self.actions[chosen])
            state = np.clip(next_states[chosen, np.arange(n)], low, high)
            over = self.is_end(state)
            state[over] = starts[rng.integers(n, size=int(over.sum()))]
        reached, tried = np.concatenate(states), np.concatenate(actions)
        # What is reached later counts less, as it does in E.
        weights = np.repeat(DISCOUNT ** np.arange(steps), n)
        rows = rng.choice(len(reached), min(most, len(reached)), replace=False, p=weights / weights.sum())
        return reached[rows], tried[rows]


def exploration_posterior(scaled: ScaledModel, automatic: bool, points: int | None) -> PointPosterior:
    """The posterior whose sigma says where to look, for that number of points; None is exact, for a few.

    A kernel that was fitted to the little that was seen is sure of what it has never seen. Its lengthscales
    say which variables matter, so their ratios stay, but the shortest is at most one spread of the data, and
    the family is rough. A kernel that a user fixed is used as it is.
    """
    model = replace(scaled.model, inducing=None) if points is None else scaled.model.for_points(points)
    kernel = model.kernel.left if isinstance(model.kernel, Sum) else model.kernel
    if not automatic or not isinstance(kernel, (Matern, SquaredExponential)):
        return model.design()
    lengths = np.array(kernel.lengthscale)
    lengths = np.minimum(lengths / max(1.0, float(lengths.min())), LONGEST)
    looking = Matern(2.5, tuple(map(float, lengths)))
    return replace(model, kernel=looking, ridge=EXPLORATION_RIDGE).design()
