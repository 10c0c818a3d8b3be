"""The exploration loop of Alg 3 on round data, written twice: on the lattice, and on scikit-learn refits.

Both play the same small world with the same uniforms, so their trajectories must be equal; that, and a count of
the regressions, shows that they do the same work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import array_api_compat
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

import rewardfree as rf


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
    kernel: object = field(default_factory=lambda: rf.Matern(nu=1.5, lengthscale=0.1))

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


def on_lattice(setting: Setting, device="cpu", dtype="float64"):
    """The kept (s,a) as indices and their next states, both (runs, steps, rounds), and the lattice."""
    H, S, A, B, N = (getattr(setting, n) for n in ("horizon", "states", "actions", "runs", "rounds"))
    lattice = rf.Lattice(
        setting.kernel, setting.points, ridge=setting.ridge, designs=H * B, capacity=N, device=device, dtype=dtype
    )
    xp = array_api_compat.array_namespace(lattice.candidates)
    where = array_api_compat.device(lattice.candidates)
    cumulative = xp.asarray(setting.cumulative, device=where)
    uniforms = xp.asarray(setting.uniforms(), device=where)
    runs, targets = xp.arange(B, device=where)[:, None], xp.arange(H, device=where)[None, :]
    first = setting.start * A + xp.arange(A, device=where)
    at_start = xp.full((B, H), setting.start, dtype=xp.int64, device=where)
    only_place = xp.zeros((B, H), dtype=xp.int64, device=where)
    chosen = xp.zeros((B, H, N), dtype=xp.int64, device=where)  # the kept (s,a) ...
    seen = xp.zeros((B, H, N), dtype=xp.int64, device=where)  # ... and its next state
    now = xp.zeros((1,), dtype=xp.int64, device=where)  # the round, as an array: see Lattice.repeat

    def play_round():
        # Backwards. Target h itself has no value behind it, so at step h its Q is the bonus alone (b,1,s,a); the
        # targets beyond it share one product, (b,c,s,a). max_a before the clip: the clip is monotone.
        own, others, value = [None] * H, [None] * H, None
        n = lattice.length()
        for h in reversed(range(H)):
            steps = slice(h * B, (h + 1) * B)  # the designs of step h, one per run
            # Every episode starts in one state, so the first step is asked for nothing else.
            at = None if h else first
            if h < H - 1:
                behind = value[runs, seen[:, h, :n]]  # (b,n,c): V at the next states seen
                means = xp.permute_dims(lattice.mean(behind, at, designs=steps), (0, 2, 1))
            bonus = setting.beta * lattice.std(at, designs=steps)[:, None, :]
            own[h] = xp.reshape(bonus, (B, 1, -1, A))
            if h < H - 1:
                means += bonus
                others[h] = xp.reshape(means, (B, H - 1 - h, -1, A))
            if h:
                value = xp.max(own[h], axis=-1)
                if h < H - 1:
                    value = xp.concat([value, xp.max(others[h], axis=-1)], axis=1)
                value = xp.permute_dims(xp.clip(value, 0.0, float(H)), (0, 2, 1))  # (b,s,c)
        # Forwards: at step h the targets h..H-1 are still being played, all from the same start.
        state, draws, kept = at_start, uniforms[now][0], []
        for h in range(H):
            place = state if h else only_place
            q = own[h][runs, 0, place[:, :1]]
            if h < H - 1:
                q = xp.concat([q, others[h][runs, targets[:, : H - 1 - h], place[:, 1:]]], axis=1)
            z = state * A + xp.argmax(xp.clip(q, 0.0, float(H)), axis=-1)
            below = cumulative[z] <= draws[:, h:, h][:, :, None]
            following = xp.count_nonzero(below[:, :, :-1], axis=-1)
            chosen[:, h, now], seen[:, h, now] = z[:, :1], following[:, :1]
            kept.append(z[:, 0])
            state = following[:, 1:]
        lattice.append(None, xp.concat(kept))
        now.__iadd__(1)

    lattice.repeat(play_round, N)
    return chosen, seen, lattice
