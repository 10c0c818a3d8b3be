"""What `rewardfree theory` does: one question about one problem, answered and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.report.pictures import save_as
from rewardfree.report.theory_figures import bound_figure, gain_figure, spectrum_figure, width_figure
from rewardfree.theory import Problem, Result, complexities, gains, spectra, table_1, widths
from rewardfree.theory.norms import law_norms, norm_curve

QUESTIONS: dict[str, Callable[[Problem], list[Result]]] = {
    "width": widths,
    "gain": gains,
    "spectrum": spectra,
    "complexity": complexities,
    "table1": table_1,
}
PICTURES: dict[str, Callable[[Problem], Any]] = {
    "width": width_figure,
    "gain": gain_figure,
    "spectrum": spectrum_figure,
    "complexity": bound_figure,
}
#: A norm that grows by more than this from one jitter to the next has not settled.
STILL = 1.05


def answers(what: str, problem: Problem) -> list[Result]:
    """The results for one question."""
    if what not in QUESTIONS:
        raise ValueError(f"theory knows about {', '.join(QUESTIONS)} and norms, got {what!r}")
    return QUESTIONS[what](problem)


def draw(what: str, problem: Problem, out: Path) -> list[Path]:
    """The pictures that go with a question; Table 1 has none."""
    if what not in PICTURES:
        return []
    return save_as(PICTURES[what](problem), out / what)


def measured_norms(problem: Problem, side: int) -> Iterator[str]:
    """Norms on the paper's world of this kernel, over the jitter: is there a finite B1, and a finite B2?"""
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
