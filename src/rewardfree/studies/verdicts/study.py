"""The study of verdicts: what is run, and what is written of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.stats import spearmanr

from rewardfree.evaluation.diagnosis import FEW, PARTLY, WELL
from rewardfree.experiments.store import Store
from rewardfree.report.pictures import Picture
from rewardfree.report.style import COLOURS, legend_below, styled_figure, title_above
from rewardfree.studies.study import SeededStudy
from rewardfree.studies.verdicts.specification import (
    DEVELOPED_ON,
    SIZES,
    SYSTEMS,
    TRUE_DYNAMICS,
    VerdictUnit,
    sources_of,
)

#: Smaller differences of a share are chance: it is the mean of a few rewards over ten episodes each.
STEP = 0.05
#: "Well" is false of a share below this.
GOOD = 0.5
#: What was asked for: a median rank correlation within systems, and how often "well" may be false.
CORRELATION, FALSE_WELL = 0.7, 0.05
WORDS = ("well", "partly", "not yet", "cannot tell")


@dataclass(frozen=True)
class DataSet:
    """One data set: the verdict on it, and how much of the possible gain its plans reach."""

    system: str
    source: str
    size: int
    seed: int
    word: str
    score: float
    share: float
    doubts: frozenset[str]


def judged(records: Iterable[dict[str, Any]]) -> list[DataSet]:
    """Every data set with (return - random) / (best known - random), in [0, 1], the mean of its rewards.

    Best known is the largest mean return of all data sets of a system and of the true dynamics, on the same
    episodes: those of a seed.
    """
    records = list(records)
    best: dict[tuple[str, int, str], float] = {}
    for record in records:
        for reward, returns in record["returns"].items():
            key = record["system"], record["seed"], reward
            best[key] = max(best.get(key, -np.inf), float(np.mean(returns)))

    def share(record: dict[str, Any]) -> float:
        shares = []
        for reward, returns in record["returns"].items():
            low = float(np.mean(record["random"][reward]))
            high = best[record["system"], record["seed"], reward]
            if high > low:
                shares.append(np.clip((np.mean(returns) - low) / (high - low), 0.0, 1.0))
        return float(np.mean(shares)) if shares else 0.0

    return [
        DataSet(
            record["system"],
            record["source"],
            record["size"],
            record["seed"],
            record["verdict"].split(":")[0],
            record["score"],
            share(record),
            frozenset(name for names in record["doubts"].values() for name in names),
        )
        for record in records
        if record["source"] != TRUE_DYNAMICS
    ]


def correlation(data_sets: Sequence[DataSet]) -> float:
    """Spearman's rank correlation of score and share; NaN where all shares, or scores, are alike."""
    shares = np.round([data_set.share / STEP for data_set in data_sets])
    scores = np.array([data_set.score for data_set in data_sets])
    if np.ptp(shares) == 0.0 or np.ptp(scores) == 0.0:
        return float("nan")
    return float(spearmanr(scores, shares).statistic)


def verdict_table(data_sets: list[DataSet]) -> list[str]:
    """For the systems of the development and for the others: ranks, words, and how often "well" is false."""
    systems = [name for name in SYSTEMS if any(data_set.system == name for data_set in data_sets)]
    parts = {
        "developed on": [name for name in systems if name in DEVELOPED_ON],
        "held out": [name for name in systems if name not in DEVELOPED_ON],
    }
    lines = [f"score and share of what can be gained, {len(data_sets)} data sets"]
    for part, names in parts.items():
        chosen = [data_set for data_set in data_sets if data_set.system in names]
        if chosen:
            lines += ["", *_part(part, names, chosen)]
    return [*lines, "", *_words(data_sets), "", *_doubts(data_sets)]


def _part(part: str, names: Sequence[str], data_sets: list[DataSet]) -> list[str]:
    heads = f"{'data sets':>10}{'rank corr.':>12}{f'from {FEW}':>9}"
    lines = [f"{part:<24}{heads}" + "".join(f"{word:>13}" for word in WORDS)]
    of_all, of_told = [], []
    for name in names:
        chosen = [data_set for data_set in data_sets if data_set.system == name]
        of_all.append(correlation(chosen))
        of_told.append(correlation([data_set for data_set in chosen if data_set.size >= FEW]))
        cells = "".join(f"{_mean_share(chosen, word):>13}" for word in WORDS)
        lines.append(f"{name:<24}{len(chosen):>10}{_number(of_all[-1]):>12}{_number(of_told[-1]):>9}{cells}")
    told = _median(of_told)
    median = _median(of_all)
    reached = "reached" if median >= CORRELATION else "NOT reached"
    lines.append(f"median rank correlation {_number(median)} (at least {CORRELATION}: {reached})")
    lines.append(f"the same of data sets of at least {FEW} transitions {_number(told)}")
    alike = [name for name, each in zip(names, of_all, strict=True) if np.isnan(each)]
    if alike:
        lines.append(f"no correlation where all shares, or all scores, are alike: {', '.join(alike)}")
    return [*lines, _false_well([data_set for data_set in data_sets if data_set.word == "well"])]


def _median(correlations: Sequence[float]) -> float:
    """Of the systems that have one."""
    known = [each for each in correlations if not np.isnan(each)]
    return float(np.median(known)) if known else float("nan")


def _number(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.2f}"


def _false_well(well: Sequence[DataSet]) -> str:
    """How often "well" was said of plans that gain little."""
    if not well:
        return '"well" was never said'
    false = sum(data_set.share < GOOD for data_set in well)
    kept = "kept" if false <= FALSE_WELL * len(well) else "NOT kept"
    return f'"well" of a share below {GOOD}: {false} of {len(well)} times (at most {FALSE_WELL:.0%}: {kept})'


def _mean_share(data_sets: Iterable[DataSet], word: str) -> str:
    """How often a word was said, and the mean share of those data sets."""
    shares = [data_set.share for data_set in data_sets if data_set.word == word]
    return f"{np.mean(shares):.2f} ({len(shares)})" if shares else "-"


def _words(data_sets: list[DataSet]) -> list[str]:
    """Shares by word over all systems."""
    lines = [f"{'word':<14}{'said':>6}{'mean share':>12}{'below 0.5':>11}{'from 0.9':>10}"]
    for word in WORDS:
        shares = np.array([data_set.share for data_set in data_sets if data_set.word == word])
        if len(shares):
            below, above = (shares < GOOD).sum(), (shares >= 0.9).sum()
            lines.append(f"{word:<14}{len(shares):>6}{shares.mean():>12.2f}{below:>11}{above:>10}")
    return lines


def _doubts(data_sets: list[DataSet]) -> list[str]:
    """Which warnings were raised on how many data sets, by the share that their plans gain."""
    kinds = sorted({kind for data_set in data_sets for kind in data_set.doubts})
    classes = {"share below 0.5": (0.0, 0.5), "0.5 to 0.9": (0.5, 0.9), "from 0.9": (0.9, 1.1)}
    columns = {
        name: [data_set for data_set in data_sets if low <= data_set.share < high]
        for name, (low, high) in classes.items()
    }
    heads = "".join(f"{f'{name} ({len(chosen)})':>24}" for name, chosen in columns.items())
    lines = [f"{'data sets with a warning':<24}{heads}"]
    for kind in kinds:
        counts = "".join(
            f"{sum(kind in data_set.doubts for data_set in rows):>24}" for rows in columns.values()
        )
        lines.append(f"{kind:<24}{counts}")
    counts = "".join(f"{sum(not data_set.doubts for data_set in rows):>24}" for rows in columns.values())
    return [*lines, f"{'none':<24}{counts}"]


def verdict_figure(data_sets: list[DataSet]) -> Any:
    """Share against score, a panel for each system, a colour for each source."""
    systems = [name for name in SYSTEMS if any(data_set.system == name for data_set in data_sets)]
    columns = min(5, len(systems))
    rows = -(-len(systems) // columns)
    with styled_figure(2.4 * columns, 2.5 * rows + 0.5) as figure:
        places = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for place, name in zip(places, systems, strict=False):
            for i, source in enumerate(sources_of(max(SIZES))):
                chosen = [
                    data_set
                    for data_set in data_sets
                    if data_set.system == name and data_set.source == source
                ]
                xy = [data_set.score for data_set in chosen], [data_set.share for data_set in chosen]
                place.plot(*xy, ".", color=COLOURS[i], markersize=6, alpha=0.8, label=source)
            for level in (PARTLY, WELL):
                begins = {"color": "#999999", "linestyle": ":", "linewidth": 1.0}
                place.axvline(level, label="“partly” and “well” begin", **begins)
            held = "" if name in DEVELOPED_ON else ", held out"
            place.set_title(f"{name}{held}", fontsize=8)
        for place in places[len(systems) :]:
            place.set_visible(False)
        for place in places[::columns]:
            place.set_ylabel("share of what can be gained", fontsize=8)
        for place in places[max(len(systems) - columns, 0) : len(systems)]:  # the lowest of each column
            place.set_xlabel("score")
            place.tick_params(labelbottom=True)
        legend_below(figure, places[: len(systems)])
        title_above(figure, "What is said of data, and what plans from them gain; a dot is a data set")
    return figure


@dataclass(frozen=True)
class Verdicts(SeededStudy[list[DataSet]]):
    """Every system, source and size."""

    name: ClassVar[str] = "verdicts"
    first_seed: ClassVar[int] = 4000
    usual_runs: ClassVar[int] = 2

    def units(self) -> list[VerdictUnit]:
        systems = ("Pendulum", "MountainCar") if self.quick else tuple(SYSTEMS)
        sizes, episodes = ((25, 120), 3) if self.quick else (SIZES, 10)
        slow = [  # planning through a simulator: each reward is a unit of its own
            VerdictUnit(system, TRUE_DYNAMICS, max(sizes), seed, episodes, reward)
            for seed in self.seeds
            for system in reversed(systems)
            for reward in SYSTEMS[system].rewards
        ]
        return slow + [
            VerdictUnit(system, source, size, seed, episodes)
            for size in reversed(sizes)
            for seed in self.seeds
            for system in reversed(systems)
            for source in sources_of(size)
        ]

    def read(self, store: Store) -> list[DataSet]:
        return judged(store.tables())

    def table(self, records: list[DataSet]) -> list[str]:
        return verdict_table(records)

    def pictures(self, records: list[DataSet], folder: Path) -> list[Picture]:
        return [Picture(folder / "verdicts", partial(verdict_figure, records))]
