"""What the theory says of a problem, as a table and as the pictures that go with each question."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rewardfree.report.style import COLOURS, legend_below, styled_figure
from rewardfree.theory import (
    Problem,
    Result,
    generative_width,
    greedy_upper,
    spectral_law,
    theorem_1_corrected,
    theorem_1_printed,
    theorem_1_tight,
    theorem_2_gap,
)


def result_table(results: Sequence[Result]) -> Iterator[str]:
    """A line for each result, and its assumptions once below all that share them."""
    wide = max(len(result.name) for result in results) + 2
    read = max(len(result.reading) for result in results) + 2
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(result.assumptions, []).append(result)
    for assumptions, group in groups.items():
        for result in group:
            value = "none" if result.value is None else f"{result.value:.4g}"
            sentence = f"{'VACUOUS: ' if result.vacuous else ''}{result.sentence}"
            yield f"{result.name:{wide}s}{result.reading:{read}s}{value:>11s}  {sentence}"
        yield f"    given: {'; '.join(assumptions)}"
        yield ""


def result_json(results: Sequence[Result]) -> str:
    """A list of objects with the fields of a Result."""
    return json.dumps([asdict(result) for result in results], indent=1, allow_nan=False)


def curves_figure(
    curves: Mapping[str, tuple[Any, Any]],
    xlabel: str,
    ylabel: str,
    title: str,
    dashed: Sequence[str] = (),
    ticks: Sequence[int] = (),
) -> Any:
    """Curves (x, y) by name on two logarithmic axes; bounds that are only extrapolated are dashed.

    `ticks` are places on the x axis, written as plain numbers; by default powers of ten.
    """
    with styled_figure(6.4, 4.8) as figure:
        axis = figure.subplots()
        for i, (name, (x, y)) in enumerate(curves.items()):
            line = "--" if name in dashed else "-"
            axis.plot(x, np.asarray(y, float), line, color=COLOURS[i % len(COLOURS)], label=name)
        axis.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel, title=title)
        if ticks:
            axis.set_xticks(ticks, [str(place) for place in ticks])
            axis.set_xticks([], minor=True)
        legend_below(figure, [axis], columns=2)
    return figure


def spectrum_figure(problem: Problem) -> Any:
    """Eigenvalues, and what is left after the first m."""
    values = problem.spectrum.eigenvalues
    m = np.arange(1, len(values) + 1)
    left = np.maximum(problem.spectrum.trace - np.cumsum(values), 1e-16)
    curves = {"eigenvalues of z's kernel": (m, values), "what is left after m": (m, left)}
    return curves_figure(curves, "m", "eigenvalue", f"Mercer spectrum on [0,1]^{problem.dim}")


def gain_figure(problem: Problem) -> Any:
    """Greedy information gain, its upper bounds, and the laws that continue it."""
    n = _samples(problem)
    spectral = spectral_law(problem.spectrum, problem.ridge)
    curves: dict[str, tuple[Any, Any]] = {
        "greedy I_n": (n, problem.greedy.gains[n]),
        "at most: greedy/(1 - (1-1/n)^n)": (n, [greedy_upper(problem.gain_at(int(i))) for i in n]),
        "at most: Mercer spectrum": (n, [spectral(i) for i in n]),
        "every query independent": (n, 0.5 * n * math.log1p(1.0 / problem.ridge)),
    }
    further, laws = np.geomspace(1, 1e6, 60), problem.laws()
    curves |= {name: (further, [law(float(i)) for i in further]) for name, law in laws.items()}
    return curves_figure(curves, "samples n", "nats", "Information gain", dashed=list(laws))


def width_figure(problem: Problem) -> Any:
    """The widths over n: flat for unbiased samples, growing with the gain for adaptive ones."""
    n, delta = _samples(problem), problem.delta / (problem.size * problem.steps)
    B1, B2, ridge, spectrum = problem.norm, problem.value_norm, problem.ridge, problem.value_spectrum

    def theorem(formula: Any) -> tuple[Any, list[float]]:
        return n, [formula(spectrum, B1, B2, ridge, int(i), delta).b for i in n]

    flat = generative_width(B1, float(problem.horizon), ridge, problem.size, problem.steps, problem.delta).b
    adaptive = np.array([problem.adaptive_widths(int(i)) for i in n])
    curves = {
        "Theorem 1, printed": theorem(theorem_1_printed),
        "Theorem 1, corrected": theorem(theorem_1_corrected),
        "Theorem 1, tight": theorem(theorem_1_tight),
        "generative data, one reward": (n, np.full(len(n), flat)),
        "adaptive, one V (Qiu et al., sqrt(Gamma))": (n, adaptive[:, 0]),
        "adaptive, every reward": (n, adaptive[:, 1]),
    }
    return curves_figure(curves, "samples n", "width b", f"Confidence widths, H = {problem.horizon}")


def bound_figure(problem: Problem) -> Any:
    """Theorem 2 over N, with the width of generative data and with b = 1."""
    H, ridge = problem.horizon, problem.ridge
    bounds = (problem.norm, float(H), ridge, problem.size, problem.steps, problem.delta)
    b = generative_width(*bounds, joined=False).b
    n = np.geomspace(1, 1e14, 80)
    curves: dict[str, tuple[Any, Any]] = {}
    for name, law in problem.laws().items():
        for width in (b, 1.0):
            gaps = [theorem_2_gap(float(i), width, law(float(i)), H, ridge) for i in n]
            curves[f"b = {width:.3g}, {name}"] = (n, gaps)
    levels = {"epsilon": problem.epsilon, "H: true of any policy": float(H)}
    curves |= {name: (n, np.full(len(n), level)) for name, level in levels.items()}
    return curves_figure(curves, "samples per step N", "gap at most", "Theorem 2", dashed=list(levels))


def _samples(problem: Problem) -> Any:
    return np.unique(np.geomspace(1, problem.greedy.n, 40).astype(int))
