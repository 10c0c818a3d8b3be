"""What the paper claims of its experiments: our numbers, and verdicts by rules that are stated here.

The rules were stated in code after Figure 1 was known. The thresholds 25%, 2 times and 80% are the first
ones. One tie rule for all claims, "smallest" at every checkpoint and no verdict for the factor H came later.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardfree.arrays import counted
from rewardfree.report.gaps import Line, Lines, Panel
from rewardfree.report.labels import label
from rewardfree.report.numbers import standard_error
from rewardfree.studies.paper.betas import ALGORITHMS, beta_lines

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "unknown"
DEPENDS, DEPENDS_ON_TIES = "depends on the axis", "depends on axis or ties"
ACCOUNTING = "accounting, no verdict"
NOT_JUDGED = ""
BELOW, TIE, ABOVE = "below", "tie", "above"
#: In all claims a difference of two means is a tie up to this number of its standard errors.
TIE_ERRORS = 2.0
TIE_RULE = "a difference of at most two standard errors is a tie"
PLANNER = "optimistic"
FOUR = ("generative", "online", "qiu", "greedy")
CLOSE = 0.25  # "close" is a difference of at most a quarter of the larger gap
POOR = 2.0  # "poor" is at least twice the gap of Alg 3
MOST_DRAWS = 0.8  # "stable" is true of at least this share of the draws


@dataclass(frozen=True)
class Claim:
    """One claim: what was measured, by which rule it is judged, and what was found."""

    claim: str
    rule: str
    number: str  # in how many checks it is true; not judged, how many there are
    found: tuple[str, ...]  # one line for each comparison
    verdict: str


@dataclass(frozen=True)
class Evidence:
    """The stores that claims are judged by; those that are missing leave some of them open.

    Quick stores are too small: comparisons are shown, without verdicts.
    """

    figure1: Lines | None = None
    betas: Lines | None = None
    repeats: Lines | None = None
    horizon: int = 10
    quick: bool = False

    @property
    def panels(self) -> dict[str, Panel]:
        """The panels of Figure 1, by kernel."""
        return {kernel: panel for (_, kernel), panel in (self.figure1 or {}).items()}


@dataclass(frozen=True)
class Check:
    """One comparison: where it was made, and its result."""

    axis: str  # a claim is judged for each axis by itself
    true: bool
    text: str
    ties: str = ""  # and for each way in which Alg 2 breaks equal sigmas


def judged(evidence: Evidence) -> list[Claim]:
    """Every claim, in the order of the paper; some also on each draw and with random ties of Alg 2."""
    draws, ties = {}, {}
    if not evidence.quick:
        draws = {"draw by draw": list(_draws(evidence))}
        ties = {"with equal sigmas of Alg 2 broken at random": _ties_at_random(evidence)}
    claims = [
        _with_verdicts(_generative_best, evidence, draws),
        _with_verdicts(_online_beats_qiu, evidence, draws),
        _with_verdicts(_greedy_close, evidence, draws),
        _with_verdicts(_qiu_poor, evidence, draws),
        _beta_best(evidence),
        _with_verdicts(_falls, evidence, draws | ties),
        _stable(evidence),
        _price(evidence),
    ]
    return [_not_judged(claim) for claim in claims] if evidence.quick else claims


def _not_judged(claim: Claim) -> Claim:
    """A claim without its verdict, and without a tally of comparisons that would read as one."""
    tallied = claim.found and claim.verdict != ACCOUNTING
    number = counted(len(claim.found), "comparison") if tallied else claim.number
    return replace(claim, verdict=NOT_JUDGED, number=number)


def _draws(evidence: Evidence) -> Iterator[Evidence]:
    """Each draw of the repeats in the place of Figure 1's."""
    by_draw: dict[str, Lines] = {}
    for key, panel in (evidence.repeats or {}).items():
        by_draw.setdefault(key[0].rpartition(", ")[2], {})[key] = panel
    return (replace(evidence, figure1=lines) for lines in by_draw.values())


def _ties_at_random(evidence: Evidence) -> list[Evidence]:
    """Figure 1 with the curve of Alg 2 that has random ties in the place of the other."""
    swapped = {
        key: {
            ("generative" if strategy == "generative-ties" else strategy, planner): line
            for (strategy, planner), line in panel.items()
            if strategy != "generative"
        }
        for key, panel in (evidence.figure1 or {}).items()
        if ("generative-ties", PLANNER) in panel
    }
    return [replace(evidence, figure1=swapped)] if swapped else []


def _with_verdicts(
    judge: Callable[[Evidence], Claim], evidence: Evidence, again: Mapping[str, Sequence[Evidence]]
) -> Claim:
    """The claim, with the verdicts of the same rule on other evidence appended to its findings."""
    claim, lines = judge(evidence), []
    for where, others in again.items():
        verdicts = Counter(judge(other).verdict for other in others)
        if len(others) == 1:
            lines.append(f"{where}: {next(iter(verdicts))}")
        elif others:
            counts = ", ".join(f"{verdict} {n}" for verdict, n in verdicts.most_common())
            lines.append(f"{where}, {len(others)} of them: {counts}")
    return replace(claim, found=(*claim.found, *lines))


def _claim(
    claim: str,
    rule: str,
    checks: Iterable[Check],
    judged_by: Lines | None,
    number: str = "",
    study: str = "figure1",
) -> Claim:
    """One verdict from what is true on each axis; `judged_by` are the lines of `study` that were compared."""
    checks = list(checks)
    true = sum(check.true for check in checks)
    texts = tuple(check.text for check in checks)
    if not texts:
        return Claim(claim, rule, _why_unknown(judged_by, study), (), UNKNOWN)
    number = number or f"true in {true} of {len(texts)} comparisons"
    return Claim(claim, rule, number, texts, _verdict(checks))


def _verdict(checks: Sequence[Check]) -> str:
    places: dict[tuple[str, str], bool] = {}
    for check in checks:
        place = check.axis, check.ties
        places[place] = places.get(place, True) and check.true
    if all(places.values()):
        return HOLDS
    if not any(places.values()):
        return FAILS
    axes = {axis for axis, _ in places}
    alike = all(len({true for (axis, _), true in places.items() if axis == one}) == 1 for one in axes)
    return DEPENDS if alike else DEPENDS_ON_TIES


def _why_unknown(lines: Lines | None, study: str) -> str:
    if lines is None:
        return f"nothing to compare: rewardfree reproduce {study} has not run here"
    panels = lines.values()
    runs = [line.runs for panel in panels for line in panel.values() if not line.level]
    return "one run: no standard error" if max(runs, default=0) == 1 else "nothing to compare"


# Where two lines are compared


def outcome(one: Any, other: Any) -> str:
    """Where the mean of one (runs,) lies: below, above, or a tie with that of the other."""
    difference = one.mean() - other.mean()
    if abs(difference) <= TIE_ERRORS * float(np.hypot(standard_error(one), standard_error(other))):
        return TIE
    return BELOW if difference < 0.0 else ABOVE


def at_equal(one: Line, other: Line, axis: str) -> list[tuple[float, Any, Any]]:
    """The costs at which either line was planned and both can be read, with the gaps of their runs (runs,).

    Between checkpoints gaps are interpolated in the logarithm of the cost. None where a line has one run:
    its error is unknown.
    """
    costs = [line.cost[axis] for line in (one, other)]
    if min(one.runs, other.runs) < 2 or not all(cost.all() for cost in costs):
        return []
    low, high = max(cost[0] for cost in costs), min(cost[-1] for cost in costs)
    return [
        (cost, one.read_at(cost, axis, "start"), other.read_at(cost, axis, "start"))
        for cost in sorted({float(cost) for cost in np.concatenate(costs)})
        if low <= cost <= high
    ]


def _compared(panel: Panel, one: str, other: str, axis: str) -> list[tuple[float, Any, Any]]:
    lines = [panel.get((name, PLANNER)) for name in (one, other)]
    return [] if lines[0] is None or lines[1] is None else at_equal(lines[0], lines[1], axis)


# The claims


def _generative_best(evidence: Evidence) -> Claim:
    outcomes: Counter[str] = Counter()
    checks = []
    for name, axis, (kernel, panel) in itertools.product(
        ("generative", "generative-ties"), ("samples", "steps"), evidence.panels.items()
    ):
        met = {
            (rival, cost): outcome(gaps, others)
            for rival in FOUR[1:]
            for cost, gaps, others in _compared(panel, name, rival, axis)
        }
        if not met:
            continue
        outcomes.update(met.values())
        counts = Counter(met.values())
        behind = [f"{label(rival)} at {cost:.0f}" for (rival, cost), place in met.items() if place == ABOVE]
        text = f"{label(kernel)}, equal {axis}, {label(name)}: {_wins(counts)}"
        text += f"; behind {', '.join(behind)}" * bool(behind)
        checks.append(Check(axis, not behind, text, name))
    return _claim(
        "With a generative model (Alg 2) the gap is the smallest",
        "on every kernel and at every checkpoint none of the other three is below it, at equal samples per "
        "step and at equal environment steps, for both ways in which Alg 2 breaks equal sigmas; "
        f"{TIE_RULE}, and a tie is no loss",
        checks,
        evidence.figure1,
        _wins(outcomes),
    )


def _wins(outcomes: Counter[str]) -> str:
    return f"wins {outcomes[BELOW]}, ties {outcomes[TIE]}, losses {outcomes[ABOVE]}"


def _pairwise(evidence: Evidence, pair: tuple[str, str], true: Callable[[Any, Any], bool]) -> Iterator[Check]:
    """Two algorithms on every kernel, at the most samples per step and the most episodes of both."""
    for (kernel, panel), axis in itertools.product(evidence.panels.items(), ("samples", "episodes")):
        for _, one, other in _compared(panel, *pair, axis)[-1:]:
            means = f"{label(pair[0])} {one.mean():.3f}, {label(pair[1])} {other.mean():.3f}"
            text = f"{label(kernel)}, equal {axis}: {means} ({outcome(one, other)})"
            yield Check(axis, true(one, other), text)


def _online_beats_qiu(evidence: Evidence) -> Claim:
    return _claim(
        "Without a generative model, Alg 3 is better than Qiu et al. on every kernel",
        "its mean gap is below theirs on every kernel, at equal samples per step and at equal episodes; "
        f"{TIE_RULE}",
        _pairwise(evidence, ("online", "qiu"), lambda one, other: outcome(one, other) == BELOW),
        evidence.figure1,
    )


def _greedy_close(evidence: Evidence) -> Claim:
    def close(one: Any, other: Any) -> bool:
        near = abs(one.mean() - other.mean()) <= CLOSE * max(one.mean(), other.mean())
        return bool(near) or outcome(one, other) == TIE

    return _claim(
        "Greedy max variance is close to Alg 3",
        f"mean gaps differ by at most {CLOSE:.0%} of the larger one, or tie, on every kernel, at equal "
        f"samples per step and at equal episodes; {TIE_RULE}",
        _pairwise(evidence, ("greedy", "online"), close),
        evidence.figure1,
    )


def _qiu_poor(evidence: Evidence) -> Claim:
    checks = []
    for axis in ("samples", "episodes"):
        ratios = {}
        for kernel, panel in evidence.panels.items():
            for _, qiu, online in _compared(panel, "qiu", "online", axis)[-1:]:
                ratio = qiu.mean() / online.mean()
                parts = [standard_error(gaps) / gaps.mean() for gaps in (qiu, online)]
                ratios[kernel] = (ratio, ratio * float(np.hypot(*parts)))
        if {"matern15", "se"} <= set(ratios):
            (rough, error), (smooth, smooth_error) = ratios["matern15"], ratios["se"]
            larger = rough - smooth > TIE_ERRORS * float(np.hypot(error, smooth_error))
            text = f"{label('matern15')} {rough:.2f}, {label('se')} {smooth:.2f}"
            text = f"Qiu et al. / Alg 3 at equal {axis}: {text}"
            checks.append(Check(axis, bool(rough + TIE_ERRORS * error >= POOR and larger), text))
    return _claim(
        "Qiu et al. do poorly on kernels that are not smooth",
        f"on Matérn 1.5 their mean gap is at least {POOR:g} times that of Alg 3, up to a tie, and that ratio "
        "is larger than on the squared exponential by more than a tie; at equal samples per step and at "
        f"equal episodes; {TIE_RULE}",
        checks,
        evidence.figure1,
    )


def _beta_best(evidence: Evidence) -> Claim:
    checks = []
    for ((_, kernel), panel), algorithm in itertools.product((evidence.betas or {}).items(), ALGORITHMS):
        lines = beta_lines(panel, algorithm, _betas(panel))
        gaps = {beta: line.gaps["start"][:, -1] for beta, line in lines.items() if line.runs > 1}
        if 0.1 in gaps and len(gaps) > 1:
            best = all(outcome(gap, gaps[0.1]) != BELOW for beta, gap in gaps.items() if beta != 0.1)
            means = ", ".join(f"{beta:g}: {gap.mean():.3f}" for beta, gap in gaps.items())
            checks.append(Check("samples", best, f"{label(kernel)}, {label(algorithm)}: {means}"))
    return _claim(
        "β = 0.1 is the best width",
        "for every algorithm and kernel no other β has a mean gap below that of 0.1, at the most samples per "
        f"step; {TIE_RULE}",
        checks,
        evidence.betas,
        study="betas",
    )


def _betas(panel: Panel) -> list[float]:
    planners = {planner for _, planner in panel if planner.startswith("optimistic-")}
    return sorted(float(planner.split("-")[1]) for planner in planners)


def _falls(evidence: Evidence) -> Claim:
    checks = []
    for (kernel, panel), name in itertools.product(evidence.panels.items(), FOUR):
        line = panel.get((name, PLANNER))
        if line is not None and line.runs > 1:
            first, last = line.gaps["start"][:, 0], line.gaps["start"][:, -1]
            text = f"{label(kernel)}, {label(name)}: {first.mean():.3f} to {last.mean():.3f}"
            checks.append(Check("samples", outcome(last, first) == BELOW, text))
    return _claim(
        "The gap falls as samples grow",
        "for each of the four on every kernel the mean gap at the most samples is below that at the fewest; "
        f"{TIE_RULE}",
        checks,
        evidence.figure1,
    )


def _stable(evidence: Evidence) -> Claim:
    orders = (("generative", "online"), ("online", "qiu"))
    kernels: dict[str, list[tuple[str, ...]]] = {}
    for (_, kernel), panel in (evidence.repeats or {}).items():
        ends = [_compared(panel, *order, "samples")[-1:] for order in orders]
        if all(ends):
            kernels.setdefault(kernel, []).append(tuple(outcome(*end[0][1:]) for end in ends))
    checks = []
    for kernel, draws in kernels.items():
        counts = [Counter(column) for column in zip(*draws, strict=True)]
        text = "; ".join(
            f"{label(one)} against {label(other)}: {_wins(count)} of {len(draws)} draws"
            for (one, other), count in zip(orders, counts, strict=True)
        )
        stable = min(count[BELOW] for count in counts) >= MOST_DRAWS * len(draws)
        checks.append(Check("samples", stable, f"{label(kernel)}: {text}"))
    return _claim(
        "Results are stable over draws of the world",
        "on each kernel, Alg 2 below Alg 3 and Alg 3 below Qiu et al. (mean gaps at the most samples) on at "
        f"least {MOST_DRAWS:.0%} of the draws; {TIE_RULE}",
        checks,
        evidence.repeats,
        study="repeats",
    )


def _price(evidence: Evidence) -> Claim:
    """No verdict: at equal N the ratio of steps is (H+1)/2 by construction."""
    H, ratios = evidence.horizon, []
    for kernel, panel in evidence.panels.items():
        generative, online = (panel.get((name, PLANNER)) for name in ("generative", "online"))
        if generative is not None and online is not None:
            ratios.append(f"{label(kernel)}: {'; '.join(_ratios(generative, online))}")
    return Claim(
        "Doing without a generative model costs a factor H",
        f"no verdict: at equal samples Alg 3 takes (H+1)/2 = {(H + 1) / 2:g} times the environment steps of "
        f"Alg 2 by construction (H = {H}), so a test of this claim would only confirm that. Below: how many "
        "times the steps of Alg 2 Alg 3 needs for the same mean gap (never: not within the steps it was run)",
        "ratios at every checkpoint" if ratios else "nothing to compare",
        tuple(ratios),
        ACCOUNTING if ratios else UNKNOWN,
    )


def _ratios(generative: Line, online: Line) -> Iterator[str]:
    """How many times the steps of Alg 2 Alg 3 needs for the same mean gap, at each checkpoint of Alg 2."""
    first = True
    for gap, steps in zip(generative.mean("start"), generative.cost["steps"], strict=True):
        needed = _steps_for(online, gap)
        place = f"after {steps:.0f}" + " steps of Alg 2, Alg 3" * first
        if needed is None:
            yield place + (" never gets to the same gap" if first else " it never gets there")
        else:
            most = "at most " if needed == online.cost["steps"][0] else ""  # it may have had it before
            ratio = f"{most}{needed / steps:.1f}"
            yield place + (f" needs {ratio} times as many for the same gap" if first else f", {ratio} times")
        first = False


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
