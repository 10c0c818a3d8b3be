"""Where there is still something to learn, and which actions lead there: optimism about sigma, not reward."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from rewardfree.data import Fitted
from rewardfree.dynamics.endings import SeenEndings
from rewardfree.dynamics.extent import whole_turns
from rewardfree.dynamics.learnt import Dynamics
from rewardfree.dynamics.mesh import Mesh
from rewardfree.dynamics.transport import Transport
from rewardfree.kernels import Matern, SquaredExponential, Sum
from rewardfree.model import Model
from rewardfree.objectives import OBJECTIVES
from rewardfree.posterior import Design
from rewardfree.worlds.spaces import Box, Spaces

DISCOUNT = 0.98
#: Nodes for each variable of the mesh on which E is computed, by the number of variables.
SIDES = {1: 61, 2: 31, 3: 15, 4: 9}
ACTIONS = 5
#: The mesh covers so many times the range that was seen: what is beyond it is reached step by step.
GROWTH = 2.0
#: How often a rollout acts at random. Some must, or all of them get stuck at the same place.
EPSILONS = (0.0, 0.1, 0.3, 0.5)
SWEEPS, SETTLED = 300, 1e-3
#: Of the exploration posterior: the longest lengthscale in units of the data's spread, and its ridge.
LONGEST, CURIOUS_RIDGE = 5.0, 1e-4


def check_variables(spaces: Spaces) -> None:
    """Refuse states that no mesh can be laid over."""
    if not isinstance(spaces.state, Box) or spaces.state.size not in SIDES:
        raise ValueError(
            f"exploring through a mesh takes up to {max(SIDES)} real state variables, got "
            f"{', '.join(spaces.state.names)}: "
            'use rf.Uniform(), rf.GreedyMaxVariance() or rf.Generative(candidates="sobol")'
        )


class Curiosity:
    """E = max_a [gain(s,a) + discount E(s')] through the learnt dynamics, from n transitions.

    `worth` gives the gain for sigma and a ridge: sigma itself by default.
    """

    def __init__(
        self,
        spaces: Spaces,
        model: Model,
        state: Any,
        action: Any,
        following: Any,
        ended: Any,
        worth: Callable[[Any, float], Any] = OBJECTIVES["sigma"],
    ) -> None:
        check_variables(spaces)
        self.spaces, self._worth = spaces, worth
        self.dynamics = Dynamics.learn(spaces, model, state, action, following)
        self.is_end = SeenEndings(spaces.state, following, ended)
        self.posterior = curious_posterior(self.dynamics.fitted, model.automatic)
        self.posterior.extend(self.dynamics.points)
        self.actions = spaces.action.candidates(ACTIONS)
        self._seen = self.dynamics.space.wrapped(np.concatenate([state, following]))

    def sigma(self, state: Any, action: Any) -> Any:
        """How little is known of (s,a), (n,)."""
        return self.posterior.std(self.dynamics.fitted.scaling(self.spaces.features(state, action)))

    def gain(self, state: Any, action: Any) -> Any:
        """What a look at (s,a) is worth, (n,)."""
        return self._worth(self.sigma(state, action), self.posterior.ridge)

    @cached_property
    def mesh(self) -> Mesh:
        space = self.dynamics.space
        low, high = self._seen.min(axis=0), self._seen.max(axis=0)
        middle, half = 0.5 * (low + high), np.maximum(0.5 * GROWTH * (high - low), 1e-9)
        low, high = np.maximum(middle - half, space.low), np.minimum(middle + half, space.high)
        return Mesh(*whole_turns(space, low, high), (SIDES[space.size],) * space.size, space.angular)

    @cached_property
    def value(self) -> Any:
        """E at the nodes, (m,)."""
        transport = Transport(self.spaces, self.dynamics, self.mesh, self.actions, self.is_end, noisy=False)
        gain = self.gain(*transport.pairs).reshape(len(self.actions), -1)
        value = np.zeros(self.mesh.size)
        for _ in range(SWEEPS):
            new = (gain + DISCOUNT * (transport.matrix @ value).reshape(gain.shape)).max(axis=0)
            done = np.abs(new - value).max() <= SETTLED * new.max()
            value = new
            if done:
                break
        return value

    def choices(self, state: Any) -> tuple[Any, Any]:
        """gain + discount E(s') of every action at states (n,d), (a,n), and the next states (a,n,d)."""
        states, actions = self.spaces.every_pair(state, self.actions)
        following = self.dynamics.next_state(states, actions)
        beyond = np.where(self.is_end(following), 0.0, self.mesh.at(self.value, following))
        q = self.gain(states, actions) + DISCOUNT * beyond
        shape = (len(self.actions), len(state))
        return q.reshape(shape), following.reshape(*shape, -1)

    def reachable(self, starts: Any, steps: int, most: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """States and actions that the model meets as it follows E from some states, more or less strictly."""
        epsilon = rng.choice([*EPSILONS, 1.0], len(starts))
        state, states, actions = starts.copy(), [], []
        each = np.arange(len(starts))
        low, high = (np.where(self.dynamics.space.angular, sign * np.inf, end) for sign, end in self._ends)
        for _ in range(steps):
            q, following = self.choices(state)
            chosen = np.where(
                rng.random(len(each)) < epsilon, rng.integers(len(q), size=len(each)), q.argmax(axis=0)
            )
            states.append(state)
            actions.append(self.actions[chosen])
            state = np.clip(following[chosen, each], low, high)
            over = self.is_end(state)
            state[over] = starts[rng.integers(len(starts), size=int(over.sum()))]
        found, tried = np.concatenate(states), np.concatenate(actions)
        # What is reached later counts less, as it does in E.
        later = np.repeat(DISCOUNT ** np.arange(steps), len(starts))
        some = rng.choice(len(found), min(most, len(found)), replace=False, p=later / later.sum())
        return found[some], tried[some]

    @property
    def _ends(self) -> tuple[tuple[float, Any], tuple[float, Any]]:
        return (-1.0, self.mesh.low), (1.0, self.mesh.high)


def curious_posterior(fitted: Fitted, automatic: bool) -> Design:
    """The posterior whose sigma says where to look.

    A kernel that was fitted to the little that was seen is sure of what it has never seen. Its lengthscales
    say which variables matter, so their ratios stay, but the shortest is at most one spread of the data, and
    the family is rough. A kernel that a user fixed is used as it is.
    """
    model = fitted.model
    kernel = model.kernel.left if isinstance(model.kernel, Sum) else model.kernel
    if not automatic or not isinstance(kernel, (Matern, SquaredExponential)):
        return model.design()
    lengths = np.array(kernel.lengthscale)
    lengths = np.minimum(lengths / max(1.0, float(lengths.min())), LONGEST)
    return Design(Matern(2.5, tuple(map(float, lengths))), ridge=CURIOUS_RIDGE)
