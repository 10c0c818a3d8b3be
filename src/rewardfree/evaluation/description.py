"""What a finite world and a reward ask of a learner: does planning matter, do the assumptions hold?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rewardfree.evaluation.exact import Gap, expected_reward, myopic_gap, optimal_value, random_gap
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.rewards import FiniteReward
from rewardfree.threads import one_blas_thread
from rewardfree.worlds.finite import FiniteWorld, check_world

#: Norms are measured on at most this many of the points z.
MOST_POINTS = 2500
#: Relative to k(z,z). Both, fewer points and a jitter, can only make a norm smaller.
NORM_JITTER = 1e-10


@dataclass(frozen=True)
class Norms:
    """Lower bounds on norms in the kernel's space. Assumption 1 wants ||P_h(s'|.)|| to be at most 1."""

    reward: float  # ||r_h||, the largest over h
    law: float  # ||P_h(s'|.)||, the largest over h and s'
    law_sum: float  # sum over s' of them, the largest over h: bounds ||[P_h V]|| for V in [0,1]
    one: float  # ||1||, which every constant part of [P_h V] pays for
    points: int  # on how many z they were measured

    @property
    def assumption_1(self) -> bool:
        """Whether ||P(s'|.)|| <= 1: False proves that it fails, True that nothing was found against it."""
        return self.law <= 1.0

    @property
    def values_bounded(self) -> bool:
        """Whether ||[PV]|| <= H for V in [0,H], for which the paper needs it: no, if ||[P1]|| = ||1|| > 1."""
        return self.one <= 1.0


@dataclass(frozen=True)
class Description:
    """Numbers that tell a bandit from a world where planning matters."""

    optimal: float  # V* at the start
    row_distance: float  # mean total-variation distance of rows of P from their mean, over h
    next_states: float  # effective number of next states: exp of the rows' mean entropy
    reachable: float  # share of states that a policy made for it reaches at some step, see `reachable_states`
    myopic: Gap  # of argmax_a r(s,a), which needs no data at all
    random: Gap  # of uniformly random actions
    norms: Norms | None  # if a kernel was given

    def __str__(self) -> str:
        lines = [
            f"optimal value at the start        {self.optimal:9.4f}",
            f"rows of P from their mean (TV)    {self.row_distance:9.4f}   0: a bandit, 1: all different",
            f"effective number of next states   {self.next_states:9.1f}",
            f"states that can be reached, share {self.reachable:9.4f}",
            "gap of                                start      mean       max",
            *(
                f"  the {name:29s} {gap.start:9.4f} {gap.mean:9.4f} {gap.max:9.4f}"
                for name, gap in (("myopic policy, argmax_a r", self.myopic), ("random policy", self.random))
            ),
        ]
        if self.norms is not None:
            n = self.norms
            verdicts = ("fails", "nothing found against it")
            lines += [
                f"norms, at least (on {n.points} points)",
                f"  ||r||                           {n.reward:9.4f}",
                f"  ||P(s'|.)||, the largest        {n.law:9.4f}   sum over s' {n.law_sum:.4f}",
                f"  ||1|| = ||[P1]||                {n.one:9.4f}",
                f"  Assumption 1, ||P(s'|.)|| <= 1: {verdicts[n.assumption_1]}",
                f"  its use, ||[PV]|| <= H:         {verdicts[n.values_bounded]}",
            ]
        return "\n".join(lines)


def describe(world: FiniteWorld, reward: FiniteReward, kernel: Kernel | None = None) -> Description:
    """Whether planning matters on this world, and with a kernel whether the paper's Assumption 1 can hold."""
    check_world(world)
    r = expected_reward(world, reward)
    laws = [world.law(h) for h in range(1 if world.stationary else world.horizon)]
    return Description(
        optimal=float(optimal_value(world, reward)[0] @ world.start),
        row_distance=float(np.mean([_row_distance(law) for law in laws])),
        next_states=float(np.mean([_effective_number(law) for law in laws])),
        reachable=float(reachable_states(world).mean()),
        myopic=myopic_gap(world, reward),
        random=random_gap(world, reward),
        norms=None if kernel is None else _norms(world, r, laws, as_kernel(kernel)),
    )


def reachable_states(world: FiniteWorld) -> Any:
    """Which states some policy reaches at one of the steps with probability 1/|S| or more, (s,) bool."""
    s = len(world.states)
    best, chance = world.start, np.eye(s)
    for last in range(1, world.horizon):
        # The best chance to be in each state after `last` steps, by the state one is in: (s,target).
        steps = range(1) if world.stationary else range(last)
        chance = chance if world.stationary else np.eye(s)
        for h in reversed(steps):
            chance = (world.law(h) @ chance).max(axis=1)
        best = np.maximum(best, world.start @ chance)
    return best >= 1.0 / s


def _row_distance(law: Any) -> float:
    rows = law.reshape(-1, law.shape[-1])
    return float(0.5 * np.abs(rows - rows.mean(axis=0)).sum(axis=1).mean())


def _effective_number(law: Any) -> float:
    logs = np.log(np.where(law > 0.0, law, 1.0))
    return float(np.exp(-(law * logs).sum(axis=-1).mean()))


def _norms(world: FiniteWorld, reward: Any, laws: list[Any], kernel: Kernel) -> Norms:
    """sqrt(f^T K^-1 f) on an even subset of the points: the smallest norm of any function through f there."""
    chosen = _subset(world.grid.shape)
    points = kernel.checked(world.grid.points, "the world's points")[chosen]
    with one_blas_thread():
        matrix = kernel.between(points, points)
        matrix += NORM_JITTER * matrix.max() * np.eye(len(points))
        factor = cho_factor(matrix, lower=True, overwrite_a=True)

    def norms(values: Any) -> Any:  # (z,c) -> (c,)
        with one_blas_thread():
            return np.sqrt(np.einsum("zc,zc->c", values, cho_solve(factor, values)))

    law_norms = [norms(law.reshape(-1, law.shape[-1])[chosen]) for law in laws]
    return Norms(
        reward=float(norms(reward.reshape(len(reward), -1)[:, chosen].T).max()),
        law=float(max(norm.max() for norm in law_norms)),
        law_sum=float(max(norm.sum() for norm in law_norms)),
        one=float(norms(np.ones((len(points), 1)))[0]),
        points=len(points),
    )


def _subset(shape: tuple[int, int]) -> Any:
    """At most MOST_POINTS of the z, evenly over states and over actions."""
    states = min(shape[0], MOST_POINTS // min(shape[1], int(MOST_POINTS**0.5)))
    sizes = (states, min(shape[1], MOST_POINTS // states))
    s, a = (np.linspace(0, n - 1, size).round().astype(int) for n, size in zip(shape, sizes, strict=True))
    return (s[:, None] * shape[1] + a[None, :]).reshape(-1)
