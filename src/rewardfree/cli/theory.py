"""What `rewardfree theory` does: one question about one problem, as a table, as JSON, and as a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rewardfree as rf
from rewardfree.experiments import paper_strategies
from rewardfree.experiments.coverage import bound_curve, coverage_study
from rewardfree.presets import PUBLISHED
from rewardfree.report.gaps import save_as
from rewardfree.report.theory import coverage_table, curves_figure
from rewardfree.theory import Problem, Result, complexities, gains, spectra, table_1, widths
from rewardfree.theory.complexity import theorem_2_gap
from rewardfree.theory.gain import greedy_upper, spectral_law
from rewardfree.theory.norms import law_norms, norm_curve
from rewardfree.theory.width import (
    adaptive_width,
    every_reward_width,
    generative_width,
    self_normalised_width,
    theorem_1_corrected,
    theorem_1_printed,
    theorem_1_tight,
)

FORMS = ("png", "pdf")
#: A norm that grows by more than this from one jitter to the next has not settled.
STILL = 1.05
#: Draws on which a width is fitted; it is tested on the others.
FIT = 10
QUESTIONS: dict[str, Callable[[Problem], list[Result]]] = {
    "width": widths,
    "gain": gains,
    "spectrum": spectra,
    "complexity": complexities,
    "table1": table_1,
}


def answers(what: str, problem: Problem) -> list[Result]:
    """The results for one question."""
    if what not in QUESTIONS:
        raise ValueError(f"theory knows about {', '.join(QUESTIONS)}, got {what!r}")
    return QUESTIONS[what](problem)


def draw(what: str, problem: Problem, out: Path) -> list[Path]:
    """The pictures that go with a question; Table 1 has none."""
    pictures = {"width": _widths, "gain": _gain, "spectrum": _spectrum, "complexity": _bound}
    if what not in pictures:
        return []
    out.mkdir(parents=True, exist_ok=True)
    return save_as(pictures[what](problem), out / what, FORMS)


def coverage(
    world: str, problem: Problem, draws: int, side: int, out: Path | None, checkpoints: Sequence[int]
) -> Iterator[str]:
    """Errors of real plans against real intervals on many draws, and bounds against the measured gap."""
    worlds: dict[str, Callable[[int], Any]] = {
        "rkhs": lambda seed: rf.rkhs_world(
            problem.kernel, problem.ridge, seed=seed, states=side, actions=side, horizon=problem.horizon
        ),
        "sharpened": lambda seed: rf.sharpened_world(
            seed=seed, states=side, actions=side, horizon=problem.horizon
        ),
    }
    if world not in worlds:
        raise ValueError(f"world must be one of {', '.join(worlds)}, got {world!r}")
    if draws <= FIT:
        raise ValueError(f"draws must be more than the {FIT} that a width is fitted on, got {draws}")
    model = rf.Model(problem.kernel, problem.ridge)
    about = (problem.norm, float(problem.horizon), problem.ridge, side * side)
    b = generative_width(*about, problem.steps, problem.delta).b
    every = every_reward_width(*about, side, problem.steps, problem.delta).b
    study = coverage_study(
        worlds[world],
        model,
        paper_strategies(PUBLISHED),
        problem.samples,
        range(draws),
        (1.0, 2.0, 5.0, b, every),
    )
    yield f"{draws} draws of {world} worlds, {side} x {side}, N = {problem.samples}, planned with the mean;"
    yield f"theory: b = {b:.3g} (one reward), {every:.3g} (every reward), with B1 = {problem.norm:g}"
    yield ""
    yield from coverage_table(study, FIT, problem.delta)
    if out is None:
        return
    own, reward = worlds[world](0)
    curve = bound_curve(own, reward, model, checkpoints, runs=20)
    fitted = study["generative"].fitted(FIT, problem.delta)
    law = problem.low_rank
    printed = [
        theorem_2_gap(float(n), b, law(float(n)), problem.horizon, problem.ridge) for n in curve.samples
    ]
    curves = {
        "measured, largest over states": (curve.samples, curve.measured),
        f"a posteriori, fitted b = {fitted:.2g}": (curve.samples, fitted * curve.realised),
        f"a posteriori, theoretical b = {b:.3g}": (curve.samples, b * curve.realised),
        f"Theorem 2, b = {b:.3g}": (curve.samples, printed),
        "H: true of any policy": (curve.samples, np.full(len(curve.samples), float(problem.horizon))),
    }
    title = f"What Alg 2 loses and what is promised, {world} world"
    figure = curves_figure(curves, "samples per step N", "gap", title, dashed=["H: true of any policy"])
    out.mkdir(parents=True, exist_ok=True)
    yield f"\npictures: {', '.join(map(str, save_as(figure, out / f'bounds_{world}', FORMS)))}"


def norms(problem: Problem, side: int) -> Iterator[str]:
    """Norms on the paper's world of this kernel, over the jitter: is there a finite B1, and a finite B2?"""
    world, reward = rf.rkhs_world(
        problem.kernel, problem.ridge, states=side, actions=side, horizon=problem.horizon
    )
    model = rf.Model(problem.kernel, problem.ridge)
    data = rf.explore(world, model, rf.Generative(), samples_per_step=problem.samples)
    planned = np.stack([rf.plan(data, reward, planner).values for planner in (rf.Mean(), rf.Optimistic(0.1))])
    values = planned.reshape(-1, side).T  # (s, planners and steps)
    laws = law_norms(problem.kernel, world.grid.points, world.law(0).reshape(side * side, side))
    closure = norm_curve(problem.kernel_of_values, world.states, values)
    yield f"norms on an rkhs world of {side} x {side} points, at least (the smaller the jitter, the sharper)"
    heads = ("jitter", "max ||P(s'|.)||", "||1||", "||[PV]||, V in [0,1]", "||V|| planned")
    yield "".join(f"{head:>22s}" for head in heads)
    for i, jitter in enumerate(laws.jitters):
        row = (laws.largest[i], laws.one[i], laws.bound[i], closure.norms[i].max())
        yield f"{jitter:22.0e}" + "".join(f"{value:22.3f}" for value in row)
    grown = {"[PV]": laws.bound[-1] / laws.bound[-2], "V": float(closure.grows.max())}
    for name, ratio in grown.items():
        word = "settles" if ratio < STILL else "still grows: these points show no finite norm"
        yield f"  ||{name}|| {word} ({ratio:.2f} times from the last jitter but one to the last)"
    yield f"  Assumption 1, ||P(s'|.)|| <= 1: {'not contradicted' if laws.largest[-1] <= 1.0 else 'fails'}"
    norm = "fails" if laws.one[-1] > 1.0 else "not contradicted"
    yield f"  B1 = H, for which ||[P1]|| = ||1|| must be at most 1: {norm}"


def _samples(problem: Problem) -> Any:
    return np.unique(np.geomspace(1, problem.greedy.n, 40).astype(int))


def _spectrum(problem: Problem) -> Any:
    values = problem.spectrum.eigenvalues
    m = np.arange(1, len(values) + 1)
    left = np.maximum(problem.spectrum.trace - np.cumsum(values), 1e-16)
    curves = {"eigenvalues of z's kernel": (m, values), "what is left after m": (m[:-1], left[:-1])}
    return curves_figure(curves, "m", "eigenvalue", f"Mercer spectrum on [0,1]^{problem.dim}")


def _gain(problem: Problem) -> Any:
    n = _samples(problem)
    spectral = spectral_law(problem.spectrum, problem.ridge)
    curves: dict[str, tuple[Any, Any]] = {
        "greedy I_n": (n, problem.greedy.gains[n]),
        "at most: greedy/(1 - (1-1/n)^n)": (n, [greedy_upper(problem.gain_at(int(i))) for i in n]),
        "at most: Mercer spectrum": (n, [spectral(i) for i in n]),
        "every query independent": (n, 0.5 * n * math.log1p(1.0 / problem.ridge)),
    }
    further = np.geomspace(1, 1e6, 60)
    laws = problem.laws()
    curves |= {name: (further, [law(float(i)) for i in further]) for name, law in laws.items()}
    return curves_figure(curves, "samples n", "nats", "Information gain", dashed=list(laws))


def _widths(problem: Problem) -> Any:
    n, H, ridge = _samples(problem), float(problem.horizon), problem.ridge
    delta, each = problem.delta, problem.delta / (problem.size * problem.steps)
    B1, B2, spectrum = problem.norm, problem.value_norm, problem.value_spectrum

    def theorem(formula: Any) -> list[float]:
        return [formula(spectrum, B1, B2, ridge, int(i), each).b for i in n]

    flat = generative_width(B1, H, ridge, problem.size, problem.steps, delta).b
    upper = [greedy_upper(problem.gain_at(int(i))) for i in n]
    gained, about = problem.greedy.gains[n], (problem.states, problem.steps, delta)
    curves = {
        "Theorem 1, printed": (n, theorem(theorem_1_printed)),
        "Theorem 1, corrected": (n, theorem(theorem_1_corrected)),
        "Theorem 1, tight": (n, theorem(theorem_1_tight)),
        "generative data, one reward": (n, np.full(len(n), flat)),
        "adaptive, one V (Qiu et al., sqrt(Gamma))": (
            n, [self_normalised_width(B1, H, ridge, g, delta).b for g in upper],
        ),
        "adaptive, every reward": (
            n, [adaptive_width(B1, H, ridge, float(g), *about).b for g in gained],
        ),
    }  # fmt: skip
    return curves_figure(curves, "samples n", "width b", f"Confidence widths, H = {problem.horizon}")


def _bound(problem: Problem) -> Any:
    H, ridge = problem.horizon, problem.ridge
    b = generative_width(
        problem.norm, float(H), ridge, problem.size, problem.steps, problem.delta, joined=False
    ).b
    n = np.geomspace(1, 1e14, 80)
    curves: dict[str, tuple[Any, Any]] = {}
    for name, law in problem.laws().items():
        for width in (b, 1.0):
            gaps = [theorem_2_gap(float(i), width, law(float(i)), H, ridge) for i in n]
            curves[f"b = {width:.3g}, {name}"] = (n, gaps)
    levels = {"epsilon": problem.epsilon, "H: true of any policy": float(H)}
    curves |= {name: (n, np.full(len(n), level)) for name, level in levels.items()}
    return curves_figure(curves, "samples per step N", "gap at most", "Theorem 2", dashed=list(levels))
