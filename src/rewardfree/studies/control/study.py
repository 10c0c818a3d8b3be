"""The study of the classic-control tasks: what is run, and what is written of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rewardfree.experiments.store import Store
from rewardfree.report.numbers import mean_with_error
from rewardfree.report.pictures import Picture
from rewardfree.report.style import COLOURS, legend_below, styled_figure, title_above
from rewardfree.studies.control.specification import TASKS, ControlTask, ControlUnit
from rewardfree.studies.study import SeededStudy

#: Where the data came from, as columns; the oracle plans with the true dynamics.
SOURCES = {"generative": "queries", "online": "online", "uniform": "random data", "oracle": "true dynamics"}
DATA = {source: name for source, name in SOURCES.items() if source != "oracle"}
_COLOURS = {
    "generative": COLOURS[0],
    "online": COLOURS[5],
    "uniform": "#777777",
}  # Scout has that of the other pages
#: A published score counts as reached up to the rounding of a printed number.
ROUNDING = 0.05
NOTES = (
    "published: RL Baselines3 Zoo, which calls its numbers no quantitative benchmark; in brackets the steps",
    "of its training budget. Our planner is told the reward's formula, the declared bounds and which",
    "variables are angles; these five tasks were also the ones that the method was developed on.",
)


def means(records: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], Any]:
    """The mean return of every seed, (seeds,), by environment, reward and source."""
    returns: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        key = record["env"], record["reward"], record["source"]
        returns.setdefault(key, []).append(float(np.mean(record["returns"])))
    return {key: np.array(values) for key, values in returns.items()}


def control_table(records: list[dict[str, Any]], tasks: Any) -> list[str]:
    """Mean returns over seeds, with their standard errors, and the worst seed, for every task and reward."""
    returns = means(records)
    seeds = len({record["seed"] for record in records})
    lines = [
        f"mean return over {seeds} seeds, standard error, (worst seed); all in Gymnasium",
        f"{'task':<23}{'reward':<18}" + "".join(f"{name:>26}" for name in SOURCES.values()),
    ]
    for task in tasks:
        for reward in task.rewards:
            cells = []
            for source in SOURCES:
                values = returns.get((task.env, reward, source))
                cells.append("-" if values is None else _cell(values))
            lines.append(f"{task.name:<23}{reward:<18}" + "".join(f"{cell:>26}" for cell in cells))
    return [*lines, "", *_seconds(records, tasks)]


def scores_table(records: list[dict[str, Any]], tasks: Any) -> list[str]:
    """Each task's own reward beside the best that was published."""
    returns = means(records)
    heads = "".join(f"{name:>13}" for name in DATA.values())
    lines = [f"{'task':<23}{heads}{'best published':>16}  (training budget)"]
    for task in tasks:
        by_source = {name: returns[task.env, "own", source] for source, name in DATA.items()}
        cells = "".join(f"{values.mean():>13.2f}" for values in by_source.values())
        reached = [
            name for name, values in by_source.items() if values.mean() >= task.best_published - ROUNDING
        ]
        by = f"  reached by {' and '.join(reached)}" if reached else ""
        best = f"{task.best_published:>16g}  ({task.published_steps:,})"
        lines.append(f"{task.name:<23}{cells}{best}{by}")
    return [*lines, *NOTES]


def control_figure(records: list[dict[str, Any]], tasks: Any) -> Any:
    """Every seed's mean return for each task's own reward, beside true dynamics and the best published."""
    returns = means(records)
    with styled_figure(2.5 * len(tasks), 3.4) as figure:
        places = figure.subplots(1, len(tasks), squeeze=False)[0]
        for place, task in zip(places, tasks, strict=True):
            for i, source in enumerate(DATA):
                values = returns.get((task.env, "own", source))
                if values is None:
                    continue
                spread = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
                colour = _COLOURS[source]
                place.plot(i + spread, np.sort(values), ".", color=colour, markersize=6, alpha=0.8)
                place.plot([i - 0.28, i + 0.28], [values.mean()] * 2, color=colour, linewidth=2)
            oracle = returns.get((task.env, "own", "oracle"))
            if oracle is not None:
                level = float(oracle.mean())
                place.axhline(level, color=COLOURS[6], linestyle=":", linewidth=1.2, label="true dynamics")
            published = {"color": "#999999", "linestyle": "--", "linewidth": 1.1}
            place.axhline(task.best_published, label="best published", **published)
            place.set_title(f"{task.name}\n(training budget {task.published_steps:,})", fontsize=8)
            place.set_xticks(range(len(DATA)), list(DATA.values()), rotation=20)
            place.set_xlim(-0.5, len(DATA) - 0.5)
        places[0].set_ylabel("mean return of an episode")
        legend_below(figure, places)
        title_above(figure, "One reward-free exploration, then the task's own reward; a dot is a seed")
    return figure


def _cell(values: Any) -> str:
    """The mean, its standard error and the worst seed."""
    worst = f" ({values.min():.1f})" if len(values) > 1 else ""
    return mean_with_error(values) + worst


def _seconds(records: list[dict[str, Any]], tasks: Any) -> list[str]:
    """CPU seconds of exploring and planning, the largest of all seeds and rewards."""
    lines = [f"{'CPU seconds, largest':<23}{'explore, queries':>18}{'explore, online':>18}{'plan':>8}"]
    for task in tasks:
        of_task = [record for record in records if record["env"] == task.env]
        cells = []
        for source in ("generative", "online"):
            times = [record["seconds"]["explore"] for record in of_task if record["source"] == source]
            cells.append(f"{max(times):>18.1f}" if times else f"{'-':>18}")
        plans = [record["seconds"]["plan"] for record in of_task if record["source"] != "oracle"]
        lines.append(f"{task.name:<23}" + "".join(cells) + (f"{max(plans):>8.1f}" if plans else ""))
    return lines


@dataclass(frozen=True)
class Control(SeededStudy[list[dict[str, Any]]]):
    """Every task with its rewards."""

    name: ClassVar[str] = "control"
    first_seed: ClassVar[int] = 2000
    usual_runs: ClassVar[int] = 10

    @property
    def tasks(self) -> Sequence[ControlTask]:
        return TASKS[:2] if self.quick else TASKS

    def units(self) -> list[ControlUnit]:
        size = (150, 3) if self.quick else (1000, 20)
        slow_first = list(reversed(self.tasks))
        return [
            ControlUnit(task.env, seed, *size, oracle)
            for oracle in (False, True)
            for seed in self.seeds
            for task in slow_first
        ]

    def read(self, store: Store) -> list[dict[str, Any]]:
        return store.tables()

    def table(self, records: list[dict[str, Any]]) -> list[str]:
        text = control_table(records, self.tasks)
        return (
            text if self.quick else [*text, "", *scores_table(records, self.tasks)]
        )  # quick runs are too small to compare scores

    def pictures(self, records: list[dict[str, Any]], folder: Path) -> list[Picture]:
        return [Picture(folder / "control", partial(control_figure, records, self.tasks))]
