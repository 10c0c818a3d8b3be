"""What the paper claims of its experiments: our numbers, and verdicts by rules that are stated here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.report.gaps import Line, Lines, Panel
from rewardfree.report.labels import label
from rewardfree.studies.paper.betas import ALGORITHMS, beta_lines

HOLDS, FAILS, DEPENDS, UNKNOWN = "holds", "does not hold", "depends on the axis", "not measured"
PLANNER = "optimistic"
FOUR = ("generative", "online", "qiu", "greedy")
#: Rules, fixed before any verdict was looked at.
CLOSE = 0.25  # "close" is a difference of at most a quarter of the larger gap
POOR = 2.0  # "poor" is at least twice the gap of Alg 3
MOST_DRAWS = 0.8  # "stable" is true of at least so many of the draws
FACTOR = 2.0  # "a factor H" is between H/2 and 2H


@dataclass(frozen=True)
class Claim:
    """One claim: what was measured, by which rule it is judged, and what was found."""

    claim: str
    rule: str
    number: str  # in how many comparisons it is true
    found: tuple[str, ...]  # one line for each comparison
    verdict: str


@dataclass(frozen=True)
class Evidence:
    """The stores that claims are judged by; those that are missing leave some of them open."""

    figure1: Lines | None = None
    betas: Lines | None = None
    repeats: Lines | None = None
    horizon: int = 10


def judged(evidence: Evidence) -> list[Claim]:
    """Every claim, in the order of the paper, and what becomes of it on each draw and by another tie rule."""
    draws = {"draw by draw": list(_draws(evidence))}
    ties = {"with ties of Alg 2 at random": _ties_at_random(evidence)}
    return [
        _with_verdicts(_generative_best, evidence, draws),
        _with_verdicts(_online_beats_qiu, evidence, draws),
        _with_verdicts(_greedy_close, evidence, draws),
        _with_verdicts(_qiu_poor, evidence, draws),
        _beta_best(evidence),
        _with_verdicts(_falls, evidence, draws | ties),
        _stable(evidence),
        _with_verdicts(_price, evidence, draws | ties),
    ]


def _draws(evidence: Evidence) -> Iterator[Evidence]:
    """Each draw of the repeats in the place of Figure 1's."""
    by_draw: dict[str, Lines] = {}
    for key, panel in (evidence.repeats or {}).items():
        by_draw.setdefault(key[0].rpartition(", ")[2], {})[key] = panel
    return (replace(evidence, figure1=own) for own in by_draw.values())


def _ties_at_random(evidence: Evidence) -> list[Evidence]:
    """Figure 1 with the curve of Alg 2 that has random ties in the place of the other."""
    swapped = {
        key: {
            ("generative", planner) if strategy == "generative-ties" else (strategy, planner): line
            for (strategy, planner), line in panel.items()
            if strategy != "generative"
        }
        for key, panel in (evidence.figure1 or {}).items()
        if ("generative-ties", PLANNER) in panel
    }
    return [replace(evidence, figure1=swapped)] if swapped else []


def _with_verdicts(
    judge: Callable[[Evidence], Claim], evidence: Evidence, again: dict[str, list[Evidence]]
) -> Claim:
    """A claim, and after what was found how the same rule judges other evidence; its verdict is its own."""
    claim, more = judge(evidence), []
    for where, others in again.items():
        verdicts = Counter(judge(each).verdict for each in others)
        if len(others) == 1:
            more.append(f"{where}: {next(iter(verdicts))}")
        elif others:
            told = ", ".join(f"{verdict} {n}" for verdict, n in verdicts.most_common())
            more.append(f"{where}, {len(others)} of them: {told}")
    return replace(claim, found=(*claim.found, *more))


# --- where two lines are compared ---


def at_equal(one: Line, other: Line, axis: str, measure: str = "start") -> tuple[Any, Any] | None:
    """The gaps of two lines' runs (runs,) at the largest cost that both have reached, or None.

    Between checkpoints gaps are interpolated in the logarithm of the cost.
    """
    if not one.cost[axis].all() or not other.cost[axis].all():
        return None
    most = min(one.cost[axis][-1], other.cost[axis][-1])
    if most < max(one.cost[axis][0], other.cost[axis][0]):
        return None
    return _at(one, axis, most, measure), _at(other, axis, most, measure)


def _at(line: Line, axis: str, cost: float, measure: str) -> Any:
    places = np.log(line.cost[axis])
    return np.array([np.interp(np.log(cost), places, run) for run in line.gaps[measure]])


def surely_less(one: Any, other: Any) -> bool:
    """Whether the mean of one is below the other's by more than two standard errors of the difference."""
    return bool(other.mean() - one.mean() > 2.0 * _error(one, other))


def not_more(one: Any, other: Any) -> bool:
    """Whether the mean of one is not above the other's by more than two standard errors."""
    return bool(one.mean() - other.mean() <= 2.0 * _error(one, other))


def _error(one: Any, other: Any) -> float:
    variances = [each.var(ddof=1) / len(each) if len(each) > 1 else 0.0 for each in (one, other)]
    return float(np.sqrt(sum(variances)))


def _line(panel: Panel, strategy: str) -> Line | None:
    return panel.get((strategy, PLANNER))


def _number(*held: Iterable[bool]) -> str:
    """The statistic that goes with a verdict."""
    every = [bool(each) for some in held for each in some]
    return f"true in {sum(every)} of {len(every)} comparisons" if every else "nothing to compare"


def _on_axes(by_axis: dict[str, list[bool]]) -> str:
    """One verdict from what is true of every kernel on each axis."""
    whole = [all(each) for each in by_axis.values() if each]
    if not whole:
        return UNKNOWN
    return HOLDS if all(whole) else DEPENDS if any(whole) else FAILS


# --- the claims ---


def _generative_best(evidence: Evidence) -> Claim:
    claim = "With a generative model (Alg 2) the gap is the smallest"
    rule = (
        "on every kernel no other of the four is below it by more than two standard errors, "
        "at equal samples per step and at equal environment steps; for both tie rules"
    )
    found, verdicts, every = [], [], []
    for name, rivals in (("generative", FOUR[1:]), ("generative-ties", FOUR[1:])):
        by_axis: dict[str, list[bool]] = {"samples": [], "steps": []}
        for (_, kernel), panel in (evidence.figure1 or {}).items():
            own = _line(panel, name)
            if own is None:
                continue
            for axis, held in by_axis.items():
                pairs = {rival: _compared(panel, name, rival, axis) for rival in rivals}
                told = {rival: pair for rival, pair in pairs.items() if pair is not None}
                held.append(all(not_more(*pair) for pair in told.values()))
                gaps = ", ".join(f"{label(r)} {p[1].mean():.3f}" for r, p in told.items())
                mine = next(iter(told.values()))[0].mean() if told else float("nan")
                found.append(f"{label(kernel)}, equal {axis}, {label(name)}: {mine:.3f}; {gaps}")
        verdicts.append(_on_axes(by_axis))
        every += [held for results in by_axis.values() for held in results]
    return Claim(claim, rule, _number(every), tuple(found), _joined(verdicts))


def _compared(panel: Panel, one: str, other: str, axis: str) -> tuple[Any, Any] | None:
    first, second = _line(panel, one), _line(panel, other)
    return None if first is None or second is None else at_equal(first, second, axis)


def _joined(verdicts: Sequence[str]) -> str:
    """One verdict of several: the same, or that it depends."""
    known = [each for each in verdicts if each != UNKNOWN]
    if not known:
        return UNKNOWN
    return known[0] if len(set(known)) == 1 else DEPENDS


def _pairwise(
    evidence: Evidence,
    claim: str,
    rule: str,
    pair: tuple[str, str],
    held: Callable[[Any, Any], bool],
) -> Claim:
    """A claim about two algorithms on every kernel, at equal samples per step and at equal episodes."""
    by_axis: dict[str, list[bool]] = {"samples": [], "episodes": []}
    found = []
    for (_, kernel), panel in (evidence.figure1 or {}).items():
        for axis, results in by_axis.items():
            gaps = _compared(panel, *pair, axis)
            if gaps is None:
                continue
            results.append(held(*gaps))
            means = f"{label(pair[0])} {gaps[0].mean():.3f}, {label(pair[1])} {gaps[1].mean():.3f}"
            found.append(f"{label(kernel)}, equal {axis}: {means}")
    return Claim(claim, rule, _number(*by_axis.values()), tuple(found), _on_axes(by_axis))


def _online_beats_qiu(evidence: Evidence) -> Claim:
    return _pairwise(
        evidence,
        "Without a generative model, Alg 3 is better than Qiu et al. on every kernel",
        "its mean gap is below theirs by more than two standard errors on every kernel, "
        "at equal samples per step and at equal episodes",
        ("online", "qiu"),
        surely_less,
    )


def _greedy_close(evidence: Evidence) -> Claim:
    return _pairwise(
        evidence,
        "Greedy max variance is close to Alg 3",
        f"mean gaps differ by at most {CLOSE:.0%} of the larger one on every kernel, "
        "at equal samples per step and at equal episodes",
        ("greedy", "online"),
        lambda one, other: abs(one.mean() - other.mean()) <= CLOSE * max(one.mean(), other.mean()),
    )


def _qiu_poor(evidence: Evidence) -> Claim:
    claim = "Qiu et al. do poorly on kernels that are not smooth"
    rule = (
        f"on Matérn 1.5 their mean gap is at least {POOR:g} times that of Alg 3, and that ratio is larger "
        "than on the squared exponential; at equal samples per step and at equal episodes"
    )
    panels = {kernel: panel for (_, kernel), panel in (evidence.figure1 or {}).items()}
    by_axis: dict[str, list[bool]] = {"samples": [], "episodes": []}
    found = []
    for axis, held in by_axis.items():
        ratios = {}
        for kernel in ("matern15", "se"):
            pair = _compared(panels[kernel], "qiu", "online", axis) if kernel in panels else None
            if pair is not None:
                ratios[kernel] = pair[0].mean() / pair[1].mean()
        if len(ratios) == 2:
            held.append(bool(ratios["matern15"] >= POOR and ratios["matern15"] > ratios["se"]))
            told = ", ".join(f"{label(kernel)} {ratio:.2f}" for kernel, ratio in ratios.items())
            found.append(f"Qiu et al. / Alg 3 at equal {axis}: {told}")
    return Claim(claim, rule, _number(*by_axis.values()), tuple(found), _on_axes(by_axis))


def _beta_best(evidence: Evidence) -> Claim:
    claim = "β = 0.1 is the best width"
    rule = (
        "for every algorithm and kernel no other β has a mean gap below that of 0.1 by more than two "
        "standard errors, at the most samples per step"
    )
    held, found = [], []
    for (_, kernel), panel in (evidence.betas or {}).items():
        for algorithm in ALGORITHMS:
            gaps = {beta: line.gaps["start"][:, -1] for beta, line in _betas(panel, algorithm).items()}
            if 0.1 not in gaps or len(gaps) < 2:
                continue
            held.append(all(not_more(gaps[0.1], gap) for gap in gaps.values()))
            told = ", ".join(f"{beta:g}: {gap.mean():.3f}" for beta, gap in gaps.items())
            found.append(f"{label(kernel)}, {label(algorithm)}: {told}")
    return Claim(claim, rule, _number(held), tuple(found), _on_axes({"samples": held}))


def _betas(panel: Panel, algorithm: str) -> dict[float, Line]:
    betas = sorted(
        {float(planner.split("-")[1]) for _, planner in panel if planner.startswith("optimistic-")}
    )
    return beta_lines(panel, algorithm, betas)


def _falls(evidence: Evidence) -> Claim:
    claim = "The gap falls as samples grow"
    rule = (
        "for each of the four on every kernel the mean gap at the most samples is below that at the fewest "
        "by more than two standard errors"
    )
    held, found = [], []
    for (_, kernel), panel in (evidence.figure1 or {}).items():
        for name in FOUR:
            line = _line(panel, name)
            if line is None:
                continue
            gaps = line.gaps["start"]
            held.append(surely_less(gaps[:, -1], gaps[:, 0]))
            first, last = gaps[:, 0].mean(), gaps[:, -1].mean()
            found.append(f"{label(kernel)}, {label(name)}: {first:.3f} to {last:.3f}")
    return Claim(claim, rule, _number(held), tuple(found), _on_axes({"samples": held}))


def _stable(evidence: Evidence) -> Claim:
    claim = "Results are stable over draws of the world"
    rule = (
        f"on each kernel, Alg 2 below Alg 3 and Alg 3 below Qiu et al. (mean gaps at the most samples) "
        f"on at least {MOST_DRAWS:.0%} of the draws"
    )
    shares: dict[str, list[tuple[bool, bool]]] = {}
    for (_, kernel), panel in (evidence.repeats or {}).items():
        lines = {name: _line(panel, name) for name in FOUR}
        ends = {name: line.mean("start")[-1] for name, line in lines.items() if line is not None}
        if {"generative", "online", "qiu"} <= set(ends):
            orders = (ends["generative"] < ends["online"], ends["online"] < ends["qiu"])
            shares.setdefault(kernel, []).append(orders)
    held, found = [], []
    for kernel, draws in shares.items():
        first, second = (sum(each) for each in zip(*draws, strict=True))
        held.append(min(first, second) >= MOST_DRAWS * len(draws))
        found.append(
            f"{label(kernel)}: Alg 2 below Alg 3 on {first} of {len(draws)} draws, "
            f"Alg 3 below Qiu et al. on {second}"
        )
    return Claim(claim, rule, _number(held), tuple(found), _on_axes({"samples": held}))


def _price(evidence: Evidence) -> Claim:
    H = evidence.horizon
    claim = "Doing without a generative model costs a factor H"
    rule = (
        f"Alg 3 needs between H/{FACTOR:g} and {FACTOR:g}H times the environment steps of Alg 2 (H = {H}) "
        "for the gap that Alg 2 has in the middle of its samples, on every kernel"
    )
    held, found = [], []
    for (_, kernel), panel in (evidence.figure1 or {}).items():
        own, other = _line(panel, "generative"), _line(panel, "online")
        if own is None or other is None:
            continue
        middle = len(own.cost["steps"]) // 2
        wanted, steps = own.mean("start")[middle], own.cost["steps"][middle]
        needed = _steps_for(other, wanted)
        if needed is None:
            held.append(False)
            found.append(
                f"{label(kernel)}: Alg 3 never reaches the {wanted:.3f} of Alg 2 at {steps:.0f} steps"
            )
            continue
        ratio = needed / steps
        held.append(bool(H / FACTOR <= ratio <= FACTOR * H))
        found.append(f"{label(kernel)}: {needed:.0f} steps instead of {steps:.0f}, {ratio:.1f} times as many")
    return Claim(claim, rule, _number(held), tuple(found), _on_axes({"steps": held}))


def _steps_for(line: Line, gap: float) -> float | None:
    """The environment steps after which a line's mean gap is first so small, interpolated; None if never."""
    means, logs = line.mean("start"), np.log(line.cost["steps"])
    below = np.flatnonzero(means <= gap)
    if not len(below):
        return None
    i = int(below[0])
    if i == 0:
        return float(line.cost["steps"][0])
    share = (means[i - 1] - gap) / (means[i - 1] - means[i])
    return float(np.exp(logs[i - 1] + share * (logs[i] - logs[i - 1])))
