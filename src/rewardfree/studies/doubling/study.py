"""The study of more and more data: what is run, and what is written of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rewardfree.experiments.store import Store
from rewardfree.report.numbers import mean_with_error
from rewardfree.report.pictures import Picture
from rewardfree.report.style import COLOURS, LEVELS, legend_below, styled_figure, title_above
from rewardfree.studies.doubling.specification import SIZES, DoublingUnit
from rewardfree.studies.doubling.worlds import DEVELOPED_ON, WORLDS
from rewardfree.studies.study import SeededStudy, typed

#: When data double, a return may fall by this share of the best of its seed.
TOLERANCE = 0.05
#: On this share of the seeds it may not fall by more.
HOLDS = 0.9


def returns_of(records: Iterable[dict[str, Any]], what: str = "returns") -> dict[tuple[str, str], Any]:
    """The mean return of every seed and size, (seeds, sizes), by world and reward."""
    cells: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    for record in records:
        place = record["seed"], record["transitions"]
        cells.setdefault((record["world"], record["reward"]), {})[place] = float(np.mean(record[what]))
    means: dict[tuple[str, str], Any] = {}
    for key, values in cells.items():
        seeds, sizes = (sorted(set(names)) for names in zip(*values, strict=True))
        means[key] = np.array([[values[seed, n] for n in sizes] for seed in seeds])
    return means


def falls(returns: Any) -> Any:
    """The largest fall at a doubling as a share of the best return, for returns (seeds, sizes): (seeds,).

    Returns are not negative here: an agent that never gains anything has nothing to lose.
    """
    best = returns.max(axis=1)
    largest = (returns[:, :-1] - returns[:, 1:]).max(axis=1, initial=0.0)
    return np.divide(largest, best, out=np.zeros(len(best)), where=best > 0.0)


def doubling_table(records: list[dict[str, Any]], worlds: Sequence[str]) -> list[str]:
    """Mean returns and standard errors at each size, and on how many seeds none fell, by world and reward."""
    returns, random = returns_of(records), returns_of(records, "random")
    sizes = sorted({record["transitions"] for record in records})
    seeds = len({record["seed"] for record in records})
    lines = [
        f"mean return over {seeds} seed{'s' * (seeds > 1)} and standard error, from the first n of "
        f"{sizes[-1]:,} transitions",
        f"{'world':<10}{'reward':<26}{'random':>11}"
        + "".join(f"{f'n = {n:,}':>15}" for n in sizes)
        + f"{'none falls':>12}{'largest fall':>14}",
    ]
    for world in worlds:
        for reward in WORLDS[world].rewards:
            values = returns.get((world, reward))
            if values is None:
                continue
            worst = falls(values)
            kept = f"{(worst <= TOLERANCE).sum()} of {len(worst)}"
            cells = "".join(f"{mean_with_error(column):>15}" for column in values.T)
            level = f"{random[world, reward].mean():>11.1f}"
            lines.append(f"{world:<10}{reward:<26}{level}{cells}{kept:>12}{worst.max():>14.0%}")
    return [*lines, *_verdict(returns, worlds), "", *_walls(records, worlds), "", *_seconds(records, worlds)]


def doubling_figure(records: list[dict[str, Any]], worlds: Sequence[str]) -> Any:
    """Every seed's return against the number of transitions, a panel for each world and reward."""
    returns, random = returns_of(records), returns_of(records, "random")
    sizes = sorted({record["transitions"] for record in records})
    columns = max(len(WORLDS[world].rewards) for world in worlds)
    with styled_figure(3.0 * columns, 2.3 * len(worlds) + 0.4) as figure:
        places = figure.subplots(len(worlds), columns, squeeze=False)
        for row, world in zip(places, worlds, strict=True):
            for place, reward in zip(row, WORLDS[world].rewards, strict=True):
                values = returns[world, reward]
                fell = falls(values) > TOLERANCE
                for line, falling in zip(values, fell, strict=True):
                    colour, label = (COLOURS[1], "falls") if falling else (COLOURS[0], "does not fall")
                    place.plot(sizes, line, ".-", color=colour, linewidth=1.0, alpha=0.7, label=label)
                place.axhline(random[world, reward].mean(), label="random actions", **LEVELS["random"])
                place.set_xscale("log", base=2)
                place.set_xticks(sizes, [f"{n:,}" for n in sizes])
                place.set_title(f"{world}: {reward}", fontsize=8)
            row[0].set_ylabel("mean return")
        for place in places[-1]:
            place.set_xlabel("transitions")
        legend_below(figure, places.ravel())
        title_above(figure, "Plans from the first transitions of one exploration; a line is a seed")
    return figure


def _verdict(returns: dict[tuple[str, str], Any], worlds: Sequence[str]) -> list[str]:
    """In how many rows enough seeds never fell, on the worlds of the development and on the others."""
    lines = [f"none falls: seeds whose return never fell by more than {TOLERANCE:.0%} of their best"]
    for name, chosen in (("developed on", DEVELOPED_ON), ("held out", set(WORLDS) - set(DEVELOPED_ON))):
        rows = [values for (world, _), values in returns.items() if world in chosen and world in worlds]
        if rows:
            held = sum((falls(values) <= TOLERANCE).mean() >= HOLDS for values in rows)
            lines.append(f"on at least {HOLDS:.0%} of seeds: {held} of {len(rows)} rows, {name}")
    return lines


def _walls(records: list[dict[str, Any]], worlds: Sequence[str]) -> list[str]:
    """The share of an exploration's steps that led to a wall, on average over seeds."""
    most, at_most = _at_most(records, worlds)
    lines = [f"share of {most:,} steps that led to a wall or stayed there"]
    for world, of_world in at_most.items():
        shares = {record["seed"]: record["at_wall"] for record in of_world}
        lines.append(f"{world:<10}{np.mean(list(shares.values())):>8.0%}")
    return lines


def _at_most(records: list[dict[str, Any]], worlds: Sequence[str]) -> tuple[int, dict[str, list[Any]]]:
    """The largest number of transitions, and the records at it, by world."""
    most = max(record["transitions"] for record in records)
    found = [record for record in records if record["transitions"] == most]
    of_worlds = {world: [record for record in found if record["world"] == world] for world in worlds}
    return most, {world: chosen for world, chosen in of_worlds.items() if chosen}


def _seconds(records: list[dict[str, Any]], worlds: Sequence[str]) -> list[str]:
    """CPU seconds of exploring, and of a plan from all of it, the largest of all seeds and rewards."""
    lines = [f"{'CPU seconds':<12}{'explore':>9}{'plan':>8}"]
    for world, of_world in _at_most(records, worlds)[1].items():
        explored, planned = (
            max(record["seconds"][key] for record in of_world) for key in ("explore", "plan")
        )
        lines.append(f"{world:<12}{explored:>9.1f}{planned:>8.1f}")
    return lines


@dataclass(frozen=True)
class Doubling(SeededStudy[list[dict[str, Any]]]):
    """Every world with its rewards, or some of them."""

    worlds: tuple[str, ...] | None = None  # None: all
    name: ClassVar[str] = "doubling"
    first_seed: ClassVar[int] = 3000
    usual_runs: ClassVar[int] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.worlds is None:
            return
        object.__setattr__(self, "worlds", tuple(self.worlds))
        if not self.worlds or not set(self.worlds) <= set(WORLDS):
            raise ValueError(f"worlds must be some of {', '.join(WORLDS)}, got {', '.join(self.worlds)!r}")

    @property
    def command(self) -> str:
        worlds = None if self.worlds is None else ",".join(self.worlds)
        return typed(self.name, {"runs": self.runs, "seed": self.seed or None, "worlds": worlds}, self.quick)

    @property
    def shown(self) -> tuple[str, ...]:
        """The worlds that are run."""
        return self.worlds or (DEVELOPED_ON[:1] if self.quick else tuple(WORLDS))

    def units(self) -> list[DoublingUnit]:
        size: tuple[tuple[int, ...], int] = ((60, 120), 2) if self.quick else (SIZES, 20)
        return [DoublingUnit(world, seed, *size) for seed in self.seeds for world in self.shown]

    def read(self, store: Store) -> list[dict[str, Any]]:
        return [record for record in store.tables() if record["world"] in self.shown]

    def table(self, records: list[dict[str, Any]]) -> list[str]:
        return doubling_table(records, self.shown)

    def pictures(self, records: list[dict[str, Any]], folder: Path) -> list[Picture]:
        return [Picture(folder / "doubling", partial(doubling_figure, records, self.shown))]
