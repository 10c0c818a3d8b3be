"""What a file of data or of a plan holds, in words."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rewardfree.arrays import counted
from rewardfree.data import Experience, Transitions
from rewardfree.evaluation.diagnosis import CELLS, Diagnosis, too_few
from rewardfree.planning import Plan, WorldPlan


def experience_lines(data: Experience, diagnosis: Diagnosis | None) -> Iterator[str]:
    """What was explored and kept; with a diagnosis what was covered, and whether anything was learned."""
    kept = int(data.kept.sum())
    steps, episodes = counted(len(data), "step"), counted(data.episodes, "episode")
    yield f"{steps} in {episodes}, {kept} kept, {counted(len(data.starts), 'first state')}"
    yield f"strategy    {data.strategy!r}, seed {data.seed}, stopped by {data.stopped_by}"
    yield from _named_lines(data.provenance)
    if data.fitted is not None:
        yield f"kernel      {data.fitted.model.kernel!r}"
        yield f"ridge       {data.fitted.model.ridge:.3g}"
    of_state, of_action = (", ".join(space.names) for space in (data.spaces.state, data.spaces.action))
    yield f"variables   states {of_state}; actions {of_action}"
    yield f"actions     {data.spaces.action!r}"
    if diagnosis is None:
        yield f"states      {data.spaces.state!r}"
        if data.is_box:
            yield f"verdict     {too_few(kept)}"
        return
    d = diagnosis
    yield ""
    yield f"{'variable':<12}{'seen':>22}{'of bounds':>11}{'held-out error':>16}{'typical':>10}  (constant: 1)"
    for i, name in enumerate(d.names):
        seen = f"{d.low[i]:.3g} .. {d.high[i]:.3g}"
        span = "-" if np.isnan(d.span[i]) else f"{d.span[i]:.0%}"
        yield f"{name:<12}{seen:>22}{span:>11}{d.error[i]:>16.2%}{d.typical[i]:>10.2%}"
    total, ends = CELLS ** len(d.names), f"{counted(d.ends, 'step')} ended an episode"
    yield f"cells       {d.cells} of {total} between these ends visited; {ends}"
    yield f"noise       {d.noise:.2g} of the variance of a step"
    yield f"reach       {d.visited:.0%} of the cells, {d.seen.mean():.0%} of the range within reach were seen"
    yield f"score       {d.score:.2f} of 1"
    yield f"verdict     {d.verdict}"


def transitions_lines(data: Transitions) -> Iterator[str]:
    """What data of a finite world hold."""
    s, a = data.grid.shape
    yield repr(data)
    yield f"world       {s} states, {a} actions, horizon {data.horizon}"
    yield f"variables   {data.grid.rule}"
    yield f"model       {data.model!r}"
    visited = len(np.unique(data.points(slice(None))))
    yield f"coverage    {visited} of {s * a} pairs of state and action were tried"


def plan_lines(plan: Plan) -> Iterator[str]:
    """What a plan was made of, and for which reward and world."""
    yield repr(plan)
    if isinstance(plan, WorldPlan):
        if plan.reward_text is not None:
            yield f"reward      {plan.reward_text}"
        yield from _named_lines(plan.provenance)


def _named_lines(values: Any) -> Iterator[str]:
    for name, value in values.items():
        yield f"{name:<11} {value}"
