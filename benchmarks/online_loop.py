"""The exploration loop of Alg 3 on round data, written twice: on the lattice, and on scikit-learn refits.

Both play the same world with the same uniforms, so their trajectories must be equal; and both count their
predictions, each of them a mean and a standard deviation over all (s,a). That is the same work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import array_api_compat
import numpy as np

import rewardfree as rf
from rewardfree.ties import argmax_tied


@dataclass(frozen=True)
class Setting:
    """The paper's sizes by default; `runs` of them side by side on the lattice."""

    rounds: int = 160
    horizon: int = 10
    states: int = 100
    actions: int = 100
    beta: float = 0.1
    ridge: float = 0.5
    runs: int = 1
    start: int = 20
    kernel: rf.Matern = field(default_factory=lambda: rf.Matern(nu=1.5, lengthscale=0.1))

    @property
    def points(self):
        """All (s,a), (s*a, 2), state by state."""
        s, a = np.linspace(0, 1, self.states), np.linspace(0, 1, self.actions)
        return np.stack(np.meshgrid(s, a, indexing="ij"), axis=-1).reshape(-1, 2)

    @property
    def cumulative(self):
        """A smooth drift with wide noise, as cumulative next-state probabilities (s*a, s)."""
        s, a = self.points.T
        centre = 0.5 + 0.4 * np.sin(3.0 * s + 5.0 * a)
        grid = np.linspace(0, 1, self.states)
        weight = 0.3 + np.exp(-0.5 * ((grid - centre[:, None]) / 0.2) ** 2)
        return np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)

    def uniforms(self, seed=0):
        """One uniform per (round, run, target, step)."""
        shape = (self.rounds, self.runs, self.horizon, self.horizon)
        return np.random.default_rng(seed).random(shape)


@dataclass
class Outcome:
    """The kept (s,a) as indices and their next states, both (runs, steps, rounds), and what it took."""

    chosen: object
    seen: object
    predictions: int
    lattice: rf.Lattice | None = None


def on_lattice(setting: Setting, device="cpu", dtype="float64") -> Outcome:
    """All runs at once: per round and step one pass over L, shared by the append and all targets."""
    H, A, B, N = setting.horizon, setting.actions, setting.runs, setting.rounds
    lattice = rf.Lattice(
        setting.kernel,
        setting.points,
        ridge=setting.ridge,
        designs=H * B,
        capacity=N,
        device=device,
        dtype=dtype,
    )
    xp = array_api_compat.array_namespace(lattice.candidates)
    where = array_api_compat.device(lattice.candidates)
    cumulative = xp.asarray(setting.cumulative, device=where)
    uniforms = xp.asarray(setting.uniforms(), device=where)
    runs, targets = xp.arange(B, device=where)[:, None], xp.arange(H, device=where)[None, :]
    start = xp.full((B, H), setting.start, dtype=xp.int64, device=where)
    chosen = xp.zeros((B, H, N), dtype=xp.int64, device=where)
    seen = xp.zeros((B, H, N), dtype=xp.int64, device=where)
    now = xp.zeros((1,), dtype=xp.int64, device=where)  # the round, as an array: see Lattice.repeat
    zero, top = (xp.full((), x, dtype=lattice.candidates.dtype, device=where) for x in (0.0, float(H)))

    def clip(q):
        return xp.minimum(xp.maximum(q, zero), top)

    asked = []

    def play_round():
        # Backwards. Target h itself has no value behind it: at step h its Q is the bonus alone (b,1,s,a). The
        # targets beyond it share one product, (b,c,s,a). max_a before the clip: the clip is monotone.
        own, others, value = [None] * H, [None] * H, None
        n = lattice.length()
        for h in reversed(range(H)):
            steps = slice(h * B, (h + 1) * B)  # the designs of step h, one per run
            if h < H - 1:
                behind = value[runs, seen[:, h, :n]]  # (b,n,c): V at the next states seen
                means = xp.permute_dims(lattice.mean(behind, designs=steps), (0, 2, 1))
            bonus = setting.beta * lattice.std(designs=steps)[:, None, :]
            own[h] = xp.reshape(bonus, (B, 1, -1, A))
            value = xp.max(own[h], axis=-1)
            if h < H - 1:
                means += bonus
                others[h] = xp.reshape(means, (B, H - 1 - h, -1, A))
                value = xp.concat([value, xp.max(others[h], axis=-1)], axis=1)
            asked.append(B * value.shape[1])  # a mean and a deviation over all (s,a) for each target
            value = xp.permute_dims(clip(value), (0, 2, 1))  # (b,s,c)
        # Forwards: at step h the targets h..H-1 are still being played, all from the same start.
        state, draws, kept = start, uniforms[now][0], []
        for h in range(H):
            q = own[h][runs, 0, state[:, :1]]
            if h < H - 1:
                q = xp.concat([q, others[h][runs, targets[:, : H - 1 - h], state[:, 1:]]], axis=1)
            z = state * A + argmax_tied(clip(q))
            below = cumulative[z] <= draws[:, h:, h][:, :, None]
            following = xp.count_nonzero(below[:, :, :-1], axis=-1)
            chosen[:, h, now], seen[:, h, now] = z[:, :1], following[:, :1]
            kept.append(z[:, 0])
            state = following[:, 1:]
        lattice.append(None, xp.concat(kept))
        now[...] += 1

    with rf.one_blas_thread():
        lattice.repeat(play_round, N)
    # On CUDA most rounds are replayed, and not counted here.
    return Outcome(chosen, seen, sum(asked), lattice)


def on_scikit_learn(setting: Setting) -> Outcome:
    """One run as a plain script writes it: for every target and step a fresh fit, and a prediction."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as sk

    H, A, N = setting.horizon, setting.actions, setting.rounds
    z, cumulative, uniforms = setting.points, setting.cumulative, setting.uniforms()
    kernel = sk.Matern(length_scale=setting.kernel.lengthscale, nu=setting.kernel.nu)
    chosen, seen = np.zeros((1, H, N), np.int64), np.zeros((1, H, N), np.int64)
    predictions = 0
    for n in range(N):
        for target in range(H):
            q, value = [None] * H, np.zeros(setting.states)
            for h in reversed(range(target + 1)):
                mean, std = np.zeros(len(z)), np.ones(len(z))
                if n:
                    model = GaussianProcessRegressor(kernel, alpha=setting.ridge, optimizer=None)
                    model.fit(z[chosen[0, h, :n]], value[seen[0, h, :n]])
                    mean, std = model.predict(z, return_std=True)
                predictions += 1
                q[h] = np.clip(mean + setting.beta * std, 0.0, H).reshape(-1, A)
                value = q[h].max(axis=1)
            state = setting.start
            for h in range(target + 1):
                at = state * A + int(argmax_tied(q[h][state]))
                following = int(np.count_nonzero(cumulative[at, :-1] <= uniforms[n, 0, target, h]))
                if h == target:
                    chosen[0, h, n], seen[0, h, n] = at, following
                state = following
    return Outcome(chosen, seen, predictions)
