"""The paper's pseudo-code as a plain script writes it: a fresh scikit-learn fit for every step, no tricks.

It shares no code with the library, only a world's numbers. Fed with a run's own uniform numbers, its
trajectory must be the library's; with others, its gaps must be within their noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk


@dataclass
class Task:
    """A world (s,a,s'), a kernel and the settings; points are all (s,a) of two even axes, state by state."""

    P: np.ndarray
    kernel: object
    ridge: float
    start: int
    horizon: int = 10
    beta: float = 0.1
    predictions: int = field(default=0, init=False)

    def __post_init__(self):
        self.states, self.actions = self.P.shape[:2]
        s, a = np.linspace(0, 1, self.states), np.linspace(0, 1, self.actions)
        self.points = np.stack(np.meshgrid(s, a, indexing="ij"), axis=-1).reshape(-1, 2)
        self.cumulative = np.cumsum(self.P, axis=-1)

    def predict(self, chosen, targets, at):
        """Mean and standard deviation at some points, by a fit of its own."""
        self.predictions += 1
        model = GaussianProcessRegressor(self.kernel, alpha=self.ridge, optimizer=None)
        model.fit(self.points[chosen], targets)
        return model.predict(at, return_std=True)

    def step(self, state, action, uniform):
        return int(np.count_nonzero(self.cumulative[state, action, :-1] <= uniform))


def sklearn_kernel(kernel):
    """A Matern or squared exponential of the library, as scikit-learn has it."""
    if hasattr(kernel, "nu"):
        return sk.Matern(length_scale=kernel.lengthscale, nu=kernel.nu)
    return sk.RBF(length_scale=kernel.lengthscale)


def first_of_the_largest(values):
    """The tie rule: within a relative 1e-12 of the largest, the lowest index."""
    return int(np.flatnonzero(values >= values.max() - 1e-12 * abs(values.max()))[0])


def generative(task, rounds, uniforms):
    """Alg 2: (chosen, seen), each (h, rounds)."""
    chosen, seen = np.zeros((2, task.horizon, rounds), int)
    plan = []
    for _ in range(rounds):
        sigma = np.ones(len(task.points))
        if plan:
            sigma = task.predict(plan, np.zeros(len(plan)), task.points)[1]
        plan.append(first_of_the_largest(sigma))
    for n, z in enumerate(plan):
        for h in range(task.horizon):
            chosen[h, n] = z
            seen[h, n] = task.step(*divmod(z, task.actions), uniforms[n, h])
    return chosen, seen


def online(task, rounds, uniforms):
    """Alg 3 on the data of the rounds before."""
    chosen, seen = np.zeros((2, task.horizon, rounds), int)
    for n in range(rounds):
        column = 0
        for target in range(task.horizon):
            q = _backwards(
                task, chosen[:, :n], seen[:, :n], target, lambda mean, sigma: mean + task.beta * sigma
            )
            state = task.start
            for h in range(target + 1):
                action = first_of_the_largest(q[h][state])
                following = task.step(state, action, uniforms[n, column])
                column += 1
                if h == target:
                    chosen[h, n], seen[h, n] = state * task.actions + action, following
                state = following
    return chosen, seen


def qiu(task, rounds, uniforms):
    """Qiu et al. 2021."""
    H = task.horizon

    def optimism(mean, sigma):
        u = np.minimum(task.beta * sigma, H)
        return mean + u / H + u

    chosen, seen = np.zeros((2, H, rounds), int)
    for n in range(rounds):
        q = _backwards(task, chosen[:, :n], seen[:, :n], H - 1, optimism)
        state = task.start
        for h in range(H):
            action = first_of_the_largest(q[h][state])
            chosen[h, n] = state * task.actions + action
            state = seen[h, n] = task.step(state, action, uniforms[n, h])
    return chosen, seen


def greedy(task, rounds, uniforms):
    """Greedy Max Variance."""
    chosen, seen = np.zeros((2, task.horizon, rounds), int)
    for n in range(rounds):
        state = task.start
        for h in range(task.horizon):
            action = 0
            if n:
                at = task.points[state * task.actions : (state + 1) * task.actions]
                action = first_of_the_largest(task.predict(chosen[h, :n], np.zeros(n), at)[1])
            chosen[h, n] = state * task.actions + action
            state = seen[h, n] = task.step(state, action, uniforms[n, h])
    return chosen, seen


EXPLORERS = {"generative": generative, "online": online, "qiu": qiu, "greedy": greedy}


def gap(task, chosen, seen, reward, beta):
    """The gap at the start of Alg 1's policy on these data, exact."""
    H = task.horizon
    policy, value = np.zeros((H, task.states), int), np.zeros(task.states)
    for h in reversed(range(H)):
        mean, sigma = task.predict(chosen[h], value[seen[h]], task.points)
        q = np.clip(reward.reshape(-1) + mean + np.minimum(beta * sigma, H), 0.0, H).reshape(reward.shape)
        policy[h] = [first_of_the_largest(row) for row in q]
        value = q.max(axis=1)
    best, own, states = np.zeros(task.states), np.zeros(task.states), np.arange(task.states)
    for h in reversed(range(H)):
        best = (reward + task.P @ best).max(axis=1)
        own = (reward + task.P @ own)[states, policy[h]]
    return best[task.start] - own[task.start]


def _backwards(task, chosen, seen, target, optimism):
    """Q_h for h = target .. 0 with no value behind the target; Q = 0 without data."""
    q, value = {}, np.zeros(task.states)
    for h in reversed(range(target + 1)):
        q[h] = np.zeros((task.states, task.actions))
        if chosen.shape[1]:
            mean, sigma = task.predict(chosen[h], value[seen[h]], task.points)
            q[h] = np.clip(optimism(mean, sigma), 0.0, task.horizon).reshape(q[h].shape)
        else:
            task.predictions += 1  # of zeros, which the library makes as well
        value = q[h].max(axis=1)
    return q
