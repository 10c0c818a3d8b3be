"""What a file of data or of a plan holds, in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardfree.arrays import counted
from rewardfree.data import Experience, Transitions
from rewardfree.evaluation.diagnosis import CELLS, LEAST, Diagnosis, diagnose, too_few
from rewardfree.evaluation.rollouts import Score
from rewardfree.planning import Plan
from rewardfree.report.experience import experience_figure, plan_figure


def experience_lines(data: Experience, diagnosis: Diagnosis | None) -> list[str]:
    """What was explored and kept; with a diagnosis what was covered, and whether anything was learned."""
    kept = int(data.kept.sum())
    steps, episodes = counted(len(data), "step"), counted(data.episodes, "episode")
    lines = [
        f"{steps} in {episodes}, {kept} kept, {counted(len(data.starts), 'first state')}",
        f"strategy    {data.strategy!r}, seed {data.seed}, stopped by {data.stopped_by}",
        *_named_lines(data.provenance),
    ]
    if data.fitted is not None:
        kernel, ridge = data.fitted.model.kernel, data.fitted.model.ridge
        lines += [f"kernel      {kernel!r}", f"ridge       {ridge:.3g}"]
    of_state, of_action = (", ".join(space.names) for space in (data.spaces.state, data.spaces.action))
    lines += [
        f"variables   states {of_state}; actions {of_action}",
        f"actions     {data.spaces.action!r}",
    ]
    if diagnosis is not None:
        return [*lines, "", *_diagnosis_lines(diagnosis)]
    verdict = (
        too_few(kept) if data.is_box else "none for labels: play a plan with rf.rollouts(world, plan, reward)"
    )
    return [*lines, f"states      {data.spaces.state!r}", f"verdict     {verdict}"]


def _diagnosis_lines(d: Diagnosis) -> list[str]:
    """A line for each variable, and what is said of all of them."""

    def line(i: int) -> str:
        seen = f"{d.low[i]:.3g} .. {d.high[i]:.3g}"
        span = "-" if np.isnan(d.span[i]) else f"{d.span[i]:.0%}"
        return f"{d.names[i]:<12}{seen:>22}{span:>11}{d.error[i]:>16.2%}{d.typical[i]:>10.2%}"

    total, ends = CELLS ** len(d.names), f"{counted(d.ends, 'step')} ended an episode"
    return [
        f"{'variable':<12}{'seen':>22}{'of bounds':>11}{'held-out error':>16}{'typical':>10}  (constant: 1)",
        *map(line, range(len(d.names))),
        f"cells       {d.cells} of {total} between these ends visited; {ends}",
        f"noise       {d.noise:.2g} of the variance of a step",
        f"reach       {d.visited:.0%} of the cells, {d.range_seen:.0%} of the range within reach were seen",
        f"score       {d.score:.2f} of 1",
        f"verdict     {d.verdict}",
    ]


def verdict_of(data: Experience) -> str:
    """What is said of real states: a diagnosis' verdict, or that they are too few."""
    diagnosis = _diagnosis(data)
    return too_few(int(data.kept.sum())) if diagnosis is None else diagnosis.verdict


def _diagnosis(data: Experience) -> Diagnosis | None:
    """What real states say of themselves; None for labels, or where there are too few."""
    return diagnose(data) if data.is_box and data.kept.sum() >= LEAST else None


def contents_of(stored: Experience | Transitions | Plan, name: str, drawn: bool) -> tuple[list[str], Any]:
    """What a file of that name holds, line by line, and if it is `drawn` a figure; None: there is none."""
    if isinstance(stored, Transitions):
        return transitions_lines(stored), None
    if isinstance(stored, Plan):
        figure = plan_figure(stored, name) if drawn and stored.drawn_over is not None else None
        return plan_lines(stored), figure
    diagnosis, figure = _diagnosis(stored), None
    if drawn and diagnosis is not None:
        figure = experience_figure(stored, diagnosis, f"{name}: {diagnosis.verdict.split(':')[0]}")
    return experience_lines(stored, diagnosis), figure


def score_lines(score: Score) -> list[str]:
    """What episodes returned."""
    n, between = len(score.returns), ""
    if n > 1:
        low, high = score.interval()
        between = f" (95% interval {low:.4g} .. {high:.4g})"
    return [
        f"mean return {score.mean:.4g} over {counted(n, 'episode')}{between}",
        f"from {score.returns.min():.4g} to {score.returns.max():.4g}, {score.lengths.mean():.4g} steps each",
    ]


def transitions_lines(data: Transitions) -> list[str]:
    """What data of a finite world hold."""
    (s, a), visited = data.grid.shape, len(np.unique(data.points(slice(None))))
    return [
        repr(data),
        f"world       {s} states, {a} actions, horizon {data.horizon}",
        f"variables   {data.grid.rule}",
        f"model       {data.model!r}",
        f"coverage    {visited} of {s * a} pairs of state and action were tried",
        "verdict     none for finite worlds: rf.gap(world, plan, reward) says how good a plan is",
    ]


def plan_lines(plan: Plan) -> list[str]:
    """What a plan was made of, and for which reward and world."""
    reward = [] if plan.reward_text is None else [f"reward      {plan.reward_text}"]
    return [repr(plan), *reward, *_named_lines(plan.provenance)]


def _named_lines(values: Mapping[str, Any]) -> list[str]:
    return [f"{name:<11} {value}" for name, value in values.items()]
