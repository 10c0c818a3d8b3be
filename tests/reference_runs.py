"""Textbook explorers and planners: plain loops, a dense inverse for every question. src never imports this.

Only the random numbers are src's: a run's streams, indexed by (round, environment step of the round).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

import reference
import rewardfree as rf
from rewardfree.streams import stream


def newest(name):
    """The id of Gymnasium's newest environment of that name: toy texts got new versions since 1.0."""
    specs = [spec for spec in gymnasium.registry.values() if spec.name == name and spec.namespace is None]
    return max(specs, key=lambda spec: spec.version).id


COLUMNS = ("episode", "h", "state", "action", "next_state", "kept")


def small_world(each_step=False, start=2, seed=0, irregular=False, states=6, actions=5, horizon=4):
    """Uneven random dynamics; on the regular grid there are ties, on irregular coordinates there are none."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(states, 0.3), ((horizon,) if each_step else ()) + (states, actions))
    axes = {"states": rng.random(states), "actions": rng.random(actions)} if irregular else {}
    return rf.FiniteWorld(law, horizon, start, **axes)


def recorded(data):
    """The columns of `Transitions` or of a `Run`, as lists by name."""
    if isinstance(data, Run):
        return {name: [row[i] for row in data.record] for i, name in enumerate(COLUMNS)}
    return {name: getattr(data, name).tolist() for name in COLUMNS}


def pick(values, uniform=None):
    """The first index within a relative 1e-12 of the largest; with a uniform number, one of these."""
    largest = max(values)
    tied = [i for i, value in enumerate(values) if value >= largest - 1e-12 * abs(largest)]
    return tied[0] if uniform is None else tied[int(uniform * len(tied))]


def drawn(probabilities, uniform):
    """The first outcome whose cumulative probability exceeds the uniform number."""
    total = 0.0
    for outcome, probability in enumerate(probabilities):
        total += probability
        if uniform < total:
            return outcome
    return len(probabilities) - 1


def clipped(value, horizon):
    return min(max(value, 0.0), float(horizon))


def mean_of(model, points, samples, value):
    """c + mean[V - c] at every z; c is V's midrange if centred, else 0. Samples are (z, s')."""
    centre = (max(value) + min(value)) / 2 if model.centred else 0.0
    if not samples:
        return np.full(len(points), centre)
    targets = np.array([value[following] - centre for _, following in samples])
    seen = points[[z for z, _ in samples]]
    return centre + reference.mean(model.kernel, seen, model.ridge, targets, points)


def sigma_of(model, points, samples):
    """sigma at every z: where one looked decides, not what one saw."""
    if not samples:
        return np.sqrt(model.kernel.diag(points))
    seen = points[[z for z, _ in samples]]
    return np.sqrt(np.maximum(reference.variance(model.kernel, seen, model.ridge, points), 0.0))


@dataclass
class Run:
    """One run on a world: its random numbers, the samples of each step, and what was recorded."""

    world: Any
    model: Any
    strategy: Any
    seed: int
    rounds: int
    steps: int  # environment steps of a round
    record: list = field(default_factory=list)
    largest: float = 0.0  # of all Q before the upper clip

    def __post_init__(self):
        self.horizon, (self.states, self.actions) = self.world.horizon, self.world.grid.shape
        self.samples = [[] for _ in range(1 if self.model.pooled else self.horizon)]
        self.numbers = {}

    def uniform(self, name, n, column, width=None):
        """Number (round, column) of a stream that has `width` columns a round."""
        if name not in self.numbers:
            shape = (self.rounds, self.steps if width is None else width)
            self.numbers[name] = stream(self.seed, name).random(shape)
        return self.numbers[name][n, column]

    def samples_of(self, h):
        return self.samples[0 if self.model.pooled else h]

    def start(self, n, episode=0, episodes=1):
        return drawn(self.world.start, self.uniform("start", n, episode, episodes))

    def choose(self, values, n, column):
        random = self.strategy.ties == "random"
        return pick(values, self.uniform("ties", n, column) if random else None)

    def move(self, n, column, h, state, action):
        return drawn(self.world.law(h)[state, action], self.uniform("transitions", n, column))

    def is_zero(self, h):
        """Whether the rule "zero" applies: no data, so Q_h = 0."""
        return not self.samples_of(h) and getattr(self.strategy, "empty", "prior") == "zero"

    def sigma(self, h):
        """sigma_h, (s,a)."""
        sigma = sigma_of(self.model, self.world.grid.points, self.samples_of(h))
        return (0.0 if self.is_zero(h) else 1.0) * sigma.reshape(self.states, self.actions)

    def mean(self, h, value):
        """mean_h[V], (s,a)."""
        mean = mean_of(self.model, self.world.grid.points, self.samples_of(h), value)
        return (0.0 if self.is_zero(h) else 1.0) * mean.reshape(self.states, self.actions)

    def greedy_tables(self, last, bonus):
        """Q_h = clip(mean_h[V_{h+1}] + bonus(sigma_h), 0, H), V_h = max_a Q_h, for h = last .. 0."""
        tables, value = {}, None
        for h in range(last, -1, -1):
            mean = np.zeros((self.states, self.actions)) if value is None else self.mean(h, value)
            sigma = self.sigma(h)
            tables[h] = [[0.0] * self.actions for _ in range(self.states)]
            for s in range(self.states):
                for a in range(self.actions):
                    q = float(mean[s, a] + bonus(sigma[s, a]))
                    self.largest = max(self.largest, q)
                    tables[h][s][a] = clipped(q, self.horizon)
            value = [max(row) for row in tables[h]]
        return tables

    def keep(self, h, state, action, following):
        self.samples_of(h).append((state * self.actions + action, following))


def generative(run):
    """Alg 2: z = argmax sigma_h for every h. Without pooling all steps have the same points, and one draw."""
    for n in range(run.rounds):
        kept = []
        for h in range(run.horizon):
            column = h if run.model.pooled else 0
            queried = run.choose(list(run.sigma(h).reshape(-1)), n, column)
            state, action = divmod(queried, run.actions)
            following = run.move(n, h, h, state, action)
            run.record.append((-1, h, state, action, following, True))
            if run.model.pooled:
                run.keep(h, state, action, following)
            else:
                kept.append((h, state, action, following))
        for sample in kept:
            run.keep(*sample)


def online(run):
    """Alg 3: an episode for every target step, whose last sample is kept, at once if `fresh`."""
    for n in range(run.rounds):
        column, kept = 0, []
        for target in range(run.horizon):
            tables = run.greedy_tables(target, lambda sigma: run.strategy.beta * sigma)
            state = run.start(n, target, run.horizon)
            for h in range(target + 1):
                action = run.choose(tables[h][state], n, column)
                following = run.move(n, column, h, state, action)
                episode = n * run.horizon + target
                run.record.append((episode, h, state, action, following, h == target))
                last, state, column = (h, state, action, following), following, column + 1
            if run.strategy.fresh:
                run.keep(*last)
            else:
                kept.append(last)
        for sample in kept:
            run.keep(*sample)


def whole_episodes(run, action_at, prepare=lambda: None):
    """One episode a round, all of it kept; it is played with the data of the episodes before."""
    for n in range(run.rounds):
        prepared, state, kept = prepare(), run.start(n), []
        for h in range(run.horizon):
            action = action_at(prepared, n, h, state)
            following = run.move(n, h, h, state, action)
            run.record.append((n, h, state, action, following, True))
            kept.append((h, state, action, following))
            state = following
        for sample in kept:
            run.keep(*sample)


def qiu(run):
    """u = min(beta sigma, H); Q_h = clip(mean_h + u/H + u, 0, H)."""
    H, beta = run.horizon, run.strategy.beta

    def bonus(sigma):
        u = min(beta * sigma, H)
        return u / H + u

    whole_episodes(
        run,
        lambda tables, n, h, state: run.choose(tables[h][state], n, h),
        prepare=lambda: run.greedy_tables(H - 1, bonus),
    )


def greedy_max_variance(run):
    """a_h = argmax_a sigma_h(s_h, a)."""
    whole_episodes(run, lambda _, n, h, state: run.choose(list(run.sigma(h)[state]), n, h))


def uniform(run):
    whole_episodes(run, lambda _, n, h, state: int(run.uniform("actions", n, h) * run.actions))


EXPLORERS = {
    "Generative": generative,
    "Online": online,
    "Qiu": qiu,
    "GreedyMaxVariance": greedy_max_variance,
    "Uniform": uniform,
}


def explore(world, model, strategy, rounds, seed=0):
    """The run of that strategy, of so many whole rounds."""
    name, H = type(strategy).__name__, world.horizon
    run = Run(world, model, strategy, seed, rounds, H * (H + 1) // 2 if name == "Online" else H)
    EXPLORERS[name](run)
    return run


def kept_samples(data, pooled):
    """The samples (z, s') of each step, or of the pooled design, out of `Transitions`."""
    samples = [[] for _ in range(1 if pooled else data.horizon)]
    for t in range(len(data)):
        if data.kept[t]:
            z = int(data.state[t]) * data.grid.shape[1] + int(data.action[t])
            samples[0 if pooled else data.h[t]].append((z, int(data.next_state[t])))
    return samples


def plan(data, reward, planner, model=None, horizon=None, discount=1.0, seed=0):
    """Alg 1: Q_h = clip(r_h + discount mean_h[V_{h+1}] + sign min(beta sigma_h, H), 0, H): actions, V, Q.

    `reward` is an array (s,a) or (h,s,a).
    """
    model, H = model or data.model, horizon or data.horizon
    sign = {"Optimistic": 1.0, "Mean": 0.0, "Pessimistic": -1.0}[type(planner).__name__]
    (S, A), samples = data.grid.shape, kept_samples(data, model.pooled)
    uniforms = stream(seed, "planning ties", data.seed).random((H, S)) if planner.ties == "random" else None
    actions, values, tables = np.zeros((H, S), int), np.zeros((H + 1, S)), np.zeros((H, S, A))
    for h in range(H - 1, -1, -1):
        of_step = samples[0 if model.pooled else h]
        mean = mean_of(model, data.grid.points, of_step, list(values[h + 1]))
        sigma = sigma_of(model, data.grid.points, of_step)
        for s in range(S):
            for a in range(A):
                r = reward[s][a] if np.ndim(reward) == 2 else reward[h][s][a]
                bonus = sign * min(planner.beta * sigma[s * A + a], H)
                tables[h, s, a] = clipped(r + discount * mean[s * A + a] + bonus, H)
            actions[h, s] = pick(list(tables[h, s]), None if uniforms is None else uniforms[h, s])
            values[h, s] = max(tables[h, s])
    return actions, values[:H], tables


def value_iteration(world, reward):
    """V*_h(s) and the first best action, (h,s) each, for a reward (s,a)."""
    (S, A), H = world.grid.shape, world.horizon
    actions, values = np.zeros((H, S), int), np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        for s in range(S):
            q = [
                reward[s][a] + sum(world.law(h)[s, a, t] * values[h + 1, t] for t in range(S))
                for a in range(A)
            ]
            actions[h, s], values[h, s] = pick(q), max(q)
    return actions, values[:H]


def value_of(world, actions, reward):
    """V^pi at the first step for a reward (s,a), (s,)."""
    value = np.zeros(world.grid.shape[0])
    for h in range(world.horizon - 1, -1, -1):
        value = np.array(
            [reward[s][a] + sum(world.law(h)[s, a] * value) for s, a in enumerate(actions[h])], float
        )
    return value
