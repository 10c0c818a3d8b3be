"""Scout and planning by range as the textbook has them, with a dense inverse for every step."""

import functools

import numpy as np

import reference
import reference_runs
import rewardfree as rf
from reference_runs import recorded, small_world

CLOSE = {"rtol": 0, "atol": 1e-9}
S, A, H = 8, 5, 4
EXPLORERS = [rf.Scout(), rf.GreedyMaxVariance(), rf.Generative(), rf.Online(0.3), rf.Qiu(0.2), rf.Uniform()]
BOTH = (rf.Optimistic, rf.Pessimistic)
RANGE = [rf.Mean(clip="range"), *(make(beta, clip="range") for beta in (0.4, 5.0) for make in BOTH)]
MEAN, SURE = RANGE[:2]
KERNEL = rf.Matern(1.5, 0.3)
RNG = np.random.default_rng(3)
REWARD, BY_STEP = RNG.random((S, A)), 15.0 * RNG.random((H, S, A)) - 5.0


def model(kernel=KERNEL, ridge=0.3, pooled=True, **options):
    return rf.Model(kernel, ridge, pooled=pooled, **options)


def auto(pooled=True, **options):
    return rf.Model(rf.AutoKernel(), pooled=pooled, **options)


TIMED = model(rf.Matern(1.5, (0.6, 0.3, 0.4)), centred=True, timed=True)


def a_world(each_step=False, start=None, seed=0):
    return small_world(each_step, start, seed, irregular=True, states=S, actions=A)


@functools.cache
def explored(model, strategy=EXPLORERS[-1], steps=8 * H, seed=5, each_step=True):
    return rf.explore(a_world(each_step), model, strategy, seed=seed, steps=steps)


def same_data(one, other):
    return (recorded(one), one.model, one.strategy) == (recorded(other), other.model, other.strategy)


def assert_same_plan(one, other, atol=1e-9):
    np.testing.assert_allclose(one.values, other.values, rtol=0, atol=atol)
    assert one.actions.tolist() == other.actions.tolist()


# --- the textbook: a dense inverse for every step ---


def coordinates(grid, horizon, timed):
    """What a kernel sees of every (h,z), (h,z,f), in plain loops."""
    places = [[*s, *a] for s in grid.states for a in grid.actions]
    return np.array([[[h / max(1, horizon - 1)] * timed + z for z in places] for h in range(horizon)])


def textbook(data, reward, planner, model, horizon=None, discount=1.0):
    """Actions and values (h,s) for a reward (s,a) or (h,s,a)."""
    horizon, (s, a) = horizon or data.horizon, data.grid.shape
    x, z = coordinates(data.grid, data.horizon, model.timed), data.state * a + data.action
    rewards = np.broadcast_to(reward, (horizon, s, a))
    weight = {"Mean": 0.0, "Optimistic": 1.0, "Pessimistic": -1.0}[type(planner).__name__] * planner.beta
    actions, values = np.zeros((horizon, s), int), np.zeros((horizon + 1, s))
    low = high = 0.0
    for h in reversed(range(horizon)):
        rows, value = data.kept & (model.pooled | (data.h == h)), values[h + 1]
        about = (model.kernel, x[data.h[rows], z[rows]], model.ridge)
        c = 0.5 * (value.min() + value.max()) if model.centred else 0.0
        mean = c + reference.mean(*about, value[data.next_state[rows]] - c, x[h])
        sigma = np.sqrt(np.maximum(reference.variance(*about, x[h]), 0.0))
        low, high = rewards[h].min() + discount * low, rewards[h].max() + discount * high
        ends = (0.0, float(horizon)) if planner.clip == "paper" else (low, high)
        bonus = np.clip(weight * sigma, ends[0] - ends[1], ends[1] - ends[0])
        q = np.clip(rewards[h] + (discount * mean + bonus).reshape(s, a), *ends)
        values[h] = q.max(axis=1)
        actions[h] = (q >= (values[h] - 1e-12 * np.abs(values[h]))[:, None]).argmax(axis=1)
    used = int(data.kept.sum())
    about = (data.grid, horizon, planner, model, used, discount)
    return rf.planning.FinitePlan(*about, actions, values[:horizon])


class TimedRun(reference_runs.Run):
    """A textbook run whose one regression is over (h,z)."""

    def sigma(self, h):
        return self._at(h, reference_runs.sigma_of)

    def mean(self, h, value):
        return self._at(h, reference_runs.mean_of, value)

    def keep(self, h, state, action, following):
        self.samples[0].append((h * S * A + state * A + action, following))

    def _at(self, h, ask, *about):
        x = coordinates(self.world.grid, H, timed=True).reshape(H * S * A, -1)
        found = ask(self.model, x, self.samples[0], *about).reshape(H, S, A)[h]
        return (0.0 if self.is_zero(h) else 1.0) * found


GAINS = {
    "sigma": lambda sigma, ridge: sigma,
    "variance": lambda sigma, ridge: sigma**2,
    "information": lambda sigma, ridge: 0.5 * np.log(1.0 + sigma**2 / ridge),
}


def scout_tables(run):
    """E_h = clip(gain_h + mean_h[max_a E_{h+1}], 0, the most that is left to gain); and what was clipped."""
    tables, clipped, value, most = {}, np.zeros(2), None, 0.0
    for h in reversed(range(H)):
        own = GAINS[run.strategy.objective or "variance"](run.sigma(h), run.model.ridge)
        most += own.max()
        whole = own if value is None else own + run.mean(h, value)
        clipped = np.maximum(clipped, (-whole.min(), whole.max() - most))
        tables[h] = np.clip(whole, 0.0, most)
        value = list(tables[h].max(axis=1))
    return tables, clipped


def scout(run):
    def act(tables, n, h, state):
        return run.choose(list(tables[h][state]), n, h)

    reference_runs.whole_episodes(run, act, lambda: scout_tables(run)[0])


def textbook_run(world, model, strategy, rounds, seed):
    steps = H * (H + 1) // 2 if isinstance(strategy, rf.Online) else H
    run = (TimedRun if model.timed else reference_runs.Run)(world, model, strategy, seed, rounds, steps)
    {**reference_runs.EXPLORERS, "Scout": scout}[type(strategy).__name__](run)
    return run
