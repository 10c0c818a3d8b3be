"""Worlds where planning matters: on them a policy that looks at the reward alone is poor.

The paper's draws are nearly bandits: the next state hardly depends on the action, and argmax_a r(s,a) is
close to optimal without any data. Last come two tabular problems of the literature, whose states are bare
labels.
"""

from typing import Any

import numpy as np

from rewardfree.arrays import as_horizon, check_kind, count, even_points, non_negative, positive
from rewardfree.kernels import Kernel, Matern, as_kernel
from rewardfree.model import Model
from rewardfree.presets import PUBLISHED
from rewardfree.streams import stream
from rewardfree.worlds.finite import FiniteWorld, Start, check_world
from rewardfree.worlds.instance import Instance
from rewardfree.worlds.rkhs import check_size, smooth_draw

#: The kernel of the paper's main experiments.
MATERN = Matern(nu=1.5, lengthscale=0.1)


def sharpened_law(
    kernel: Kernel,
    ridge: float,
    *,
    sharpness: float = 10.0,
    seed: int = 0,
    states: int = 100,
    actions: int = 100,
    coarse: int = 10,
) -> Any:
    """P = softmax(sharpness f) for a draw f of the paper's: (s,a,s'). Sharper is harder."""
    states, actions = count(states, "states", at_least=2), count(actions, "actions", at_least=2)
    drawn = smooth_draw(kernel, ridge, (states, actions, states), coarse, stream(seed, "dynamics"))
    drawn *= positive(sharpness, "sharpness")
    law = np.exp(drawn - drawn.max(axis=-1, keepdims=True))
    law /= law.sum(axis=-1, keepdims=True)
    return law


def sharpened_world(
    kernel: Kernel | None = None,
    ridge: float | None = None,
    *,
    sharpness: float = 10.0,
    width: float = 0.1,
    seed: int = 0,
    states: int = 100,
    actions: int = 100,
    horizon: int = 10,
    coarse: int = 10,
    start: Start = None,
) -> Instance:
    """A draw of the paper with raised contrasts, P = softmax(sharpness f), and a reward (s,a) of one bump.

    `kernel` defaults to the paper's Matern 1.5, `ridge` to the one published with it; `width` is the bump's.
    """
    kernel = MATERN if kernel is None else as_kernel(kernel)
    ridge = PUBLISHED.ridge(kernel) if ridge is None else positive(ridge, "ridge")
    width, sizes = positive(width, "width"), {"states": states, "actions": actions, "coarse": coarse}
    law = sharpened_law(kernel, ridge, sharpness=sharpness, seed=seed, **sizes)
    s, a = np.linspace(0, 1, len(law))[:, None], np.linspace(0, 1, law.shape[1])[None, :]
    top = stream(seed, "reward").random(2)
    square = ((s - top[0]) ** 2 + (a - top[1]) ** 2) / width**2
    description = f"a draw of the paper's with raised contrasts, seed {seed}"
    rewards = np.exp(-0.5 * square)[None]
    return Instance("sharpened", description, FiniteWorld(law, horizon, start), rewards, Model(kernel, ridge))


def corridor_world(
    *,
    stride: float = 0.15,
    drift: float = 0.03,
    noise: float = 0.03,
    consolation: float = 0.05,
    states: int = 100,
    actions: int = 100,
    horizon: int = 10,
    start: Start = 0,
) -> Instance:
    """A noisy corridor that drifts to the left, and a reward (s,a): a walk to the right end pays.

    An action a of [0,1] moves by stride (2a - 1) - drift, with Gaussian noise. The reward is one bump at the
    right end and, against policies that look at it alone, a little for a walk left (a = 0) near the left end.
    """
    stride, noise = positive(stride, "stride"), positive(noise, "noise")
    drift, consolation = non_negative(drift, "drift"), non_negative(consolation, "consolation")
    if consolation > 1.0:
        raise ValueError(f"consolation must be at most 1, the reward at the right end, got {consolation}")
    s, a, moved = _line(states, actions, stride)
    law = noisy_law(s[:, None], (moved - drift)[..., None], noise)
    right = np.exp(-0.5 * ((s[:, None] - 1.0) / 0.05) ** 2) * np.ones_like(a)
    left = consolation * (1.0 - s[:, None]) * (1.0 - a[None, :])
    description = "a noisy corridor that drifts back; a little is paid for staying at the wrong end"
    world, model = FiniteWorld(law, horizon, start), Model(MATERN, PUBLISHED.ridge(MATERN))
    return Instance("corridor", description, world, np.maximum(right, left)[None], model)


def _line(
    states: Any, actions: Any, stride: float, at_least: int = 2, laws: tuple[int, ...] = ()
) -> tuple[Any, Any, Any]:
    """Even states and actions of [0,1], and where an action a moves: by stride (2a - 1), (s,a).

    Refuses laws (..., s, a, s') that would not fit.
    """
    states, actions = count(states, "states", at_least=at_least), count(actions, "actions", at_least=2)
    check_size((*laws, states, actions, states))
    s, a = np.linspace(0, 1, states), np.linspace(0, 1, actions)
    return s, a, s[:, None] + stride * (2.0 * a[None, :] - 1.0)


def noisy_law(states: Any, mean: Any, noise: float, room: Any = True) -> Any:
    """P (...,s') for states (s',d) of [0,1]^d and a Gaussian around mean next states (...,d), clipped to it.

    Only states of a room (...,s') bool are reached.
    """
    square = ((states - np.clip(mean, 0.0, 1.0)[..., None, :]) ** 2).sum(axis=-1)
    square = np.where(room, square, np.inf)
    # Without the least subtracted, a row would vanish when the noise is far below the spacing of states.
    square -= square.min(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):  # exp(-inf) is the 0 of any other large number
        law = np.exp(-0.5 * square / noise / noise)
    law /= law.sum(axis=-1, keepdims=True)
    return law


def tide_world(
    *,
    stride: float = 0.12,
    drift: float = 0.12,
    noise: float = 0.03,
    states: int = 50,
    actions: int = 50,
    horizon: int = 10,
    start: Start = 0,
) -> FiniteWorld:
    """A corridor whose drift turns once within an episode: a law for each step. More drift is harder.

    An action a of [0,1] moves by stride (2a - 1), the tide of step h by drift cos(2 pi h/H).
    """
    stride, drift, noise = positive(stride, "stride"), non_negative(drift, "drift"), positive(noise, "noise")
    horizon = as_horizon(horizon)
    s, _, moved = _line(states, actions, stride, laws=(horizon,))
    tide = drift * np.cos(2.0 * np.pi * np.arange(horizon) / horizon)
    laws = np.stack([noisy_law(s[:, None], (moved + current)[..., None], noise) for current in tide])
    return FiniteWorld(laws, horizon, start)


def portal_world(
    *,
    gate: float = 0.1,
    stride: float = 0.15,
    noise: float = 0.03,
    states: int = 100,
    actions: int = 100,
    horizon: int = 10,
    start: Start = 0,
) -> FiniteWorld:
    """Two halves of a line, the right one reached only from a few states. A narrower gate is harder.

    An action a of [0,1] moves by stride (2a - 1) within a half. From states within `gate` below 0.4 the
    actions above 0.7 lead into the middle of the right half instead, and from its right end, above 0.95,
    everything leads back.
    """
    gate, stride, noise = positive(gate, "gate"), positive(stride, "stride"), positive(noise, "noise")
    s, a, moved = _line(states, actions, stride, at_least=4)
    left = s < 0.5
    law = np.empty((*moved.shape, len(s)))
    law[left] = _within(s, moved[left], noise, left)
    law[~left] = _within(s, moved[~left], noise, ~left)
    at_gate = (s > 0.4 - gate - 1e-9) & (s <= 0.4 + 1e-9)
    if not at_gate.any() or not (a > 0.7).any():
        raise ValueError(
            f"gate must hold a state: none of {len(s)} lies within {gate:g} below 0.4; use a wider one, "
            "or more states"
        )
    law[np.ix_(at_gate, a > 0.7)] = _within(s, np.array([[0.75]]), noise, ~left)[0, 0]
    law[s > 0.95] = _within(s, np.array([[0.1]]), noise, left)[0, 0]
    return FiniteWorld(law, horizon, start)


def rooms_world(
    *,
    door: float = 0.2,
    stride: float = 0.2,
    noise: float = 0.04,
    side: int = 12,
    moves: int = 5,
    horizon: int = 10,
    start: Start = None,
) -> FiniteWorld:
    """Two rooms of a square with a wall at x = 0.5 and a door in its middle. A narrower door is harder.

    States are side x side places, actions moves x moves steps of up to `stride` either way; a step
    into the wall does not move. `start` defaults to the corner (0, 0).
    """
    door, stride, noise = positive(door, "door"), positive(stride, "stride"), positive(noise, "noise")
    side, moves = count(side, "side", at_least=3), count(moves, "moves", at_least=2)
    places, steps = even_points(side, 2), even_points(moves, 2)
    check_size((len(places), len(steps), len(places)))
    before = places[:, None, :]
    after = np.clip(before + stride * (2.0 * steps[None] - 1.0), 0.0, 1.0)
    crosses = (before[..., 0] < 0.5) != (after[..., 0] < 0.5)
    run = np.where(crosses, after[..., 0] - before[..., 0], 1.0)
    at_wall = before[..., 1] + (0.5 - before[..., 0]) / run * (after[..., 1] - before[..., 1])
    stopped = crosses & (np.abs(at_wall - 0.5) > 0.5 * door)
    right = np.where(stopped, before[..., 0], after[..., 0]) >= 0.5
    # Noise does not cross the wall either.
    room = right[..., None] == (places[:, 0] >= 0.5)
    law = noisy_law(places, np.where(stopped[..., None], before, after), noise, room)
    start = 0 if start is None else start
    return FiniteWorld(law, horizon, start, states=places, actions=steps)


def bumps(
    world: FiniteWorld,
    number: int,
    *,
    width: float = 0.1,
    low: Any = 0.0,
    high: Any = 1.0,
    only_states: bool = False,
    seed: int = 0,
) -> Any:
    """Rewards (c,s,a) of one bump each, exp(-|z - top|^2/(2 width^2)), with tops at random places.

    States of tops lie in low..high, a number or one for each coordinate, actions in 0..1; `only_states` makes
    rewards that do not depend on the action.
    """
    number, width = count(number, "number"), positive(width, "width")
    grid, d = world.grid, world.states.shape[1]
    for name, ends in (("low", low), ("high", high)):
        if np.shape(ends) not in ((), (d,)):
            raise ValueError(f"{name} must be a number or one for each of {d} coordinates, got {ends!r}")
    tops = stream(seed, "bumps").random((number, grid.points.shape[1]))
    tops[:, :d] = np.asarray(low) + (np.asarray(high) - np.asarray(low)) * tops[:, :d]
    used = d if only_states else grid.points.shape[1]
    square = ((grid.points[:, :used] - tops[:, None, :used]) ** 2).sum(axis=-1)
    return np.exp(-0.5 * square / width**2).reshape(number, *grid.shape)


def bump_world(
    world: FiniteWorld,
    *,
    width: float = 0.1,
    low: Any = 0.0,
    high: Any = 1.0,
    only_states: bool = False,
    seed: int = 0,
) -> Instance:
    """A world that comes without a reward, and one reward of `bumps`."""
    check_world(world)
    rewards = bumps(world, 1, width=width, low=low, high=high, only_states=only_states, seed=seed)
    return Instance("bump", f"a reward of one bump, seed {seed}", world, rewards)


def as_instance(made: Any) -> Instance:
    """What a sweep plays: an instance as it is; a world that comes alone, with the reward of `bump_world`."""
    if isinstance(made, Instance):
        return made
    check_kind(made, FiniteWorld, "a world of a sweep", "an rf.Instance or an rf.FiniteWorld")
    return bump_world(made)


def _within(states: Any, mean: Any, noise: float, room: Any) -> Any:
    """A noisy law (...,s') around mean next states (...) that stays in a room (s',) bool."""
    low, high = states[room].min(), states[room].max()
    return noisy_law(states[:, None], np.clip(mean, low, high)[..., None], noise, room)


def garnet_world(
    *, states: int = 10, actions: int = 4, horizon: int = 5, branching: int = 3, seed: int = 0
) -> FiniteWorld:
    """A random world in which every (s,a) leads to `branching` states, with weights uniform on the simplex.

    It starts in state 0 (Archibald et al. 1995).
    """
    S, A = count(states, "states", at_least=2), count(actions, "actions")
    branching = count(branching, "branching")
    if branching > S:
        raise ValueError(f"branching must be at most the {S} states, got {branching}")
    rng = stream(seed, "garnet")
    law = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            law[s, a, rng.choice(S, branching, replace=False)] = rng.dirichlet(np.ones(branching))
    return FiniteWorld(law, horizon, 0)


def riverswim_world(*, states: int = 6, horizon: int = 10) -> FiniteWorld:
    """A chain with a current (Strehl and Littman 2008): action 0 always drifts one state back.

    Action 1 swims: one state on with probability 0.35, back with 0.05, else it stays; from the first state on
    with 0.6, from the last back with 0.4. It starts at the first; uniform exploration rarely sees the last.
    """
    S = count(states, "states", at_least=2)
    law = np.zeros((S, 2, S))
    for s in range(S):
        law[s, 0, max(s - 1, 0)] = 1.0
        on, back = (0.6, 0.0) if s == 0 else (0.0, 0.4) if s == S - 1 else (0.35, 0.05)
        law[s, 1, min(s + 1, S - 1)] += on
        law[s, 1, max(s - 1, 0)] += back
        law[s, 1, s] += 1.0 - on - back
    return FiniteWorld(law, horizon, 0)
