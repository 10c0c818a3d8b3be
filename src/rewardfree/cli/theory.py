"""What `rewardfree theory` does: one question about one problem, as a table, as JSON, and as a picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rewardfree.report.gaps import save_as
from rewardfree.report.theory import curves_figure
from rewardfree.theory import Problem, Result, complexities, gains, spectra, table_1, widths
from rewardfree.theory.complexity import theorem_2_gap
from rewardfree.theory.gain import greedy_upper, spectral_law
from rewardfree.theory.width import (
    adaptive_width,
    generative_width,
    self_normalised_width,
    theorem_1_corrected,
    theorem_1_printed,
    theorem_1_tight,
)

FORMS = ("png", "pdf")
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
