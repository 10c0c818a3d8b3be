"""Norms on the paper's worlds over the jitter: is there a finite B1, and a finite B2?"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.theory import Problem, law_norms, norm_curve

#: A norm that grows by more than this from one jitter to the next has not settled.
STILL = 1.05


def norms_lines(problem: Problem, side: int) -> Iterator[str]:
    """Norms on the paper's world of this kernel, as the lines to print."""
    if problem.dim != 2:
        raise ValueError(f"norms are measured on a world of dim = 2, got {problem.dim}")
    size: dict[str, Any] = {"states": side, "actions": side, "horizon": problem.horizon}
    instance = rf.rkhs_world(problem.kernel, problem.ridge, **size)
    world, reward = instance.world, instance.reward
    model = rf.Model(problem.kernel, problem.ridge)
    data = rf.explore(world, model, rf.Generative(), samples_per_step=problem.samples)
    planned = np.stack([rf.plan(data, reward, planner).values for planner in (rf.Mean(), rf.Optimistic(0.1))])
    values = planned.reshape(-1, side).T  # (s, planners and steps)
    laws = law_norms(problem.kernel, world.grid.points, world.law(0).reshape(side * side, side))
    closure = norm_curve(problem.kernel_of_values, world.states, values).norms.max(axis=1)
    yield f"norms on an rkhs world of {side} x {side} points, from below, sharper with less jitter;"
    yield "||[PV]|| is bounded for all V in [0,1]^S at once, ||V|| is the largest of the values planned"
    heads = ("jitter", "max ||P(s'|.)||", "||1||", "||[PV]|| at most", "||V|| planned")
    yield "".join(f"{head:>20s}" for head in heads)
    for i, jitter in enumerate(laws.jitters):
        row = (laws.largest[i], laws.one[i], laws.bound[i], closure[i])
        yield f"{jitter:20.0e}" + "".join(f"{value:20.3f}" for value in row)
    for name, column in (("[PV]", laws.bound), ("V", closure)):
        ratio = column[-1] / column[-2]
        word = "settles" if ratio < STILL else "still grows: these points show no finite norm"
        yield f"  ||{name}|| {word} ({ratio:.2f} times from the last jitter but one to the last)"
    yield f"  Assumption 1, ||P(s'|.)|| <= 1: {'not contradicted' if laws.largest[-1] <= 1.0 else 'fails'}"
    norm = "fails" if laws.one[-1] > 1.0 else "not contradicted"
    yield f"  B1 = H, for which ||[P1]|| = ||1|| must be at most 1: {norm}"
