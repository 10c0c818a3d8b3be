"""What `rewardfree reproduce` does: run what is missing, then table and figures from what is stored."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from rewardfree.cli.engine import Engine
from rewardfree.cli.report import PORTRAITS, remember_making, write_report
from rewardfree.cli.stored import RESULTS, stored
from rewardfree.experiments.reproduction import BETA, BETAS, KERNELS, Reproduction
from rewardfree.experiments.running import begin_first_world, check_devices, on_device
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import Unit
from rewardfree.files import written_whole
from rewardfree.presets import preset_named
from rewardfree.report.betas import betas_figure, betas_table
from rewardfree.report.complexities import complexity_table
from rewardfree.report.functions import functions_figure
from rewardfree.report.gaps import Lines, gap_figure, gap_pictures, gap_table, lines
from rewardfree.report.labels import label
from rewardfree.report.pictures import Picture
from rewardfree.report.recorded import PLANNED_ALIKE, beside_table
from rewardfree.report.repeats import repeats_figure, verdict

#: The file of a folder that says which reproduction its results are.
ABOUT = "reproduction.json"
#: What the pages of the parts are called.
TITLES = {
    "figure1": "Figure 1: the gap of four algorithms on three kernels",
    "betas": "Figures 5 to 7: the width of the confidence interval",
    "repeats": "Figures 8 to 10: other draws of the world",
}


@dataclass(frozen=True)
class Job:
    """What to reproduce, where it goes, and who runs it."""

    what: Reproduction
    out: Path
    engine: Engine = field(default_factory=Engine)
    stored_in: Path | None = None  # redraw what is in this folder, and run nothing

    def folder(self, name: str) -> Path:
        """Results of other settings have a folder of their own: what is in one belongs together."""
        return self.stored_in or self.out / f"{name}{self.what.variant}"

    def figure1(self) -> Iterator[str]:
        """Gaps of four algorithms and three kernels."""
        folder = self.folder("figure1")
        found = yield from self._results("figure1", self.what.figure1())
        names = _kernels(found)
        title = f"Figure 1 ({self.what.settings}), planned with the bonus (β = {BETA:g})"
        alike = "Figure 1, planned as in the authors' recorded results"
        figure = partial(gap_figure, found, names=names)
        drawing = self.engine.draw(
            Picture(folder / "figure1", partial(figure, planned="optimistic", title=title)),
            Picture(folder / "figure1_mean_planning", partial(figure, planned=PLANNED_ALIKE, title=alike)),
            *gap_pictures(found, folder / "figures", names=names),
        )
        gaps = [line for measure in ("start", "max") for line in (*gap_table(found, measure, names), "")]
        table = [*gaps, *beside_table(found)]
        yield from table
        yield from self._places(folder, table)
        page, written = self.report("figure1"), drawing()
        yield f"figures: {written[0]} and {len(written) - 1} more beside it and in {folder / 'figures'}"
        yield f"report:  {page}"

    def functions(self) -> Iterator[str]:
        """Figures 2 to 4: what the worlds look like."""
        folder = self.folder("functions")
        for kernel, instance in self.what.worlds().items():
            world, reward = instance.world, instance.reward
            number = 2 + list(KERNELS).index(kernel)
            title = f"{label(kernel)}, lengthscale 0.1: a reward and a transition law (draw {self.what.seed})"
            axes = (world.states[:, 0], world.actions[:, 0])
            figure = partial(functions_figure, *axes, reward, world.law(0), title)
            written = self.engine.draw(Picture(folder / f"functions_{kernel}", figure))()
            yield f"Figure {number}, {label(kernel)}: {' and '.join(map(str, written))}"

    def betas(self) -> Iterator[str]:
        """Figures 5 to 7: four values of beta."""
        folder = self.folder("betas")
        found = yield from self._results("betas", self.what.betas())
        table, pictures = [], []
        for (_, kernel), panel in found.items():
            for measure in ("start", "max"):
                title = f"{label(kernel)}: β of the explorer and of the planner"
                figure = partial(betas_figure, panel, BETAS, title, measure)
                pictures.append(Picture(folder / f"betas_{kernel}_{measure}", figure))
            table += ["", label(kernel), *betas_table(panel, BETAS)]
        yield from table[1:]
        drawing = self.engine.draw(*pictures)
        yield from self._places(folder, table[1:])
        page, written = self.report("betas"), drawing()
        yield f"figures: {', '.join(map(str, written[::4]))} and {len(written) - len(written[::4])} more"
        yield f"report:  {page}"

    def repeats(self) -> Iterator[str]:
        """Figures 8 to 10: other draws."""
        folder = self.folder("repeats")
        found = yield from self._results("repeats", self.what.repeats())
        figure = partial(repeats_figure, found)
        alike = partial(figure, PLANNED_ALIKE, "Planned as in the authors' recorded results")
        pictures = [Picture(folder / "repeats_mean_planning", alike)]
        for measure in ("start", "max"):
            bonus = partial(figure, "optimistic", f"Planned with the bonus (β = {BETA:g})", measure)
            pictures.append(Picture(folder / f"repeats_{measure}", bonus))
        for seed in self.what.every_draw:
            own = {key: panel for key, panel in found.items() if key[0].endswith(f", draw {seed}")}
            title = f"Draw {seed}, planned with the bonus"
            one = partial(gap_figure, own, "optimistic", title=title, names=_kernels(own))
            pictures.append(Picture(folder / "draws" / f"draw_{seed}", one))
        drawing = self.engine.draw(*pictures)
        yield from verdict(found)
        table = gap_table(found, names=_draw_names(found))
        yield from self._places(folder, [*verdict(found), "", *table])
        page, written = self.report("repeats"), drawing()
        yield f"figures: {written[0]} and {len(written) - 1} more beside it and in {folder / 'draws'}"
        yield f"report:  {page}"

    def table(self) -> Iterator[str]:
        """Table 1, and the gaps of Figure 1 beside the authors'."""
        yield from complexity_table()
        yield ""
        found = yield from self._results("figure1", self.what.figure1())
        gaps = [*gap_table(found, names=_kernels(found)), "", *beside_table(found)]
        yield from gaps
        text = [*complexity_table(), "", *gaps]
        yield f"\ntable: {_write(self.folder('table') / 'table.txt', [self.what.settings, '', *text])}"

    def all(self) -> Iterator[str]:
        """Everything, one after the other."""
        for name, part in PARTS.items():
            yield f"=== {name}"
            yield from part(self)
            yield ""

    def _results(self, name: str, sweep: Sweep) -> Generator[str, None, Lines]:
        """Run what the store lacks, and return what it holds as lines."""
        folder = self.folder(name)
        if self.stored_in is not None:
            with stored(folder) as store:
                return lines(store.rows())
        runs = sum(len(unit.seeds) for unit in sweep.units if isinstance(unit, Unit))
        yield f"{name}: {runs} runs in {len(sweep.units)} units, {self.what.settings}"
        started, used = time.perf_counter(), _cpu_minutes()
        with (
            self.engine.looking_inside(sweep.units, folder / PORTRAITS),
            Store(folder / RESULTS) as store,
        ):
            self._remember(folder, name)
            ran = self.engine.run_sweep(sweep, store)
            found = lines(store.rows())
            if ran:
                seconds, cpu = time.perf_counter() - started, f"{_cpu_minutes() - used:.1f} minutes of CPU"
                took = f"{ran} units run in {seconds:.0f} s ({self.engine.cluster or cpu})"
                remember_making(folder, self.what.command(name), time=took)
                yield took
            else:
                yield "all of them are stored already"
            yield ""
        return found

    def report(self, name: str, out: Path | None = None) -> Path:
        """Write the page of a part, whose claims are judged by all parts that are there."""
        folder = self.folder(name)
        with stored(folder) as store:
            found = lines(store.rows())
        names = _draw_names(found) if name == "repeats" else _kernels(found)
        beside = {each: folder.parent / f"{each}{self.what.variant}" for each in TITLES}
        settings = self.what.settings
        return write_report(folder, TITLES[name], settings, names=names, beside=beside, out=out)

    def _remember(self, folder: Path, name: str) -> None:
        """What the folder's results are, so that `rewardfree figures` can draw them again."""
        about = {**asdict(self.what), "preset": self.what.preset.name, "what": name}
        _write(folder / ABOUT, [json.dumps(about, indent=1)])

    def _places(self, folder: Path, table: list[str]) -> Iterator[str]:
        """Store the table, and say where it and the results are."""
        yield f"\nresults: {folder / RESULTS}"
        yield f"table:   {_write(folder / 'table.txt', [self.what.settings, '', *table])}"


PARTS: dict[str, Callable[[Job], Iterator[str]]] = {
    "functions": Job.functions,
    "figure1": Job.figure1,
    "betas": Job.betas,
    "repeats": Job.repeats,
    "table": Job.table,
}


def perform(name: str, job: Job) -> Iterator[str]:
    """Do one of the parts, or all of them, and yield the lines to print."""
    units = job.what.figure1().units  # every part begins with its first world
    if on_device(units):
        begin_first_world(units)  # while torch is loaded
    check_devices(units, job.engine.jobs, job.engine.cluster)  # before a folder is made
    return job.all() if name == "all" else PARTS[name](job)


def redraw(folder: Path) -> Iterator[str] | None:
    """The lines of a reproduction's folder, drawn again from what is stored; None if it is no such folder."""
    found = _stored_job(folder)
    return None if found is None else PARTS[found[0]](found[1])


def _stored_job(folder: Path) -> tuple[str, Job] | None:
    """The part whose results a folder holds, and how it was run; None if it is no such folder."""
    path = folder / ABOUT
    if not path.exists():
        return None
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        name, preset = about.pop("what"), preset_named(about.pop("preset"))
        what = Reproduction(preset=preset, **{**about, "kernels": tuple(about["kernels"])})
        PARTS[name]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error!r}): run the reproduction again") from error
    return name, Job(what, folder.parent, stored_in=folder)


def page_of(folder: Path, out: Path | None) -> Path | None:
    """Write the page of a reproduction's folder; None if it is no such folder."""
    found = _stored_job(folder)
    return None if found is None else found[1].report(found[0], out)


def _kernels(found: Lines) -> dict[tuple[str, str], str]:
    """What the panels of one draw are called."""
    return {(world, kernel): label(kernel) for world, kernel in found}


def _draw_names(found: Lines) -> dict[tuple[str, str], str]:
    """What the panels of several draws are called."""
    return {key: key[0].replace(key[1], label(key[1]), 1) for key in found}


def _write(path: Path, text: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def _cpu_minutes() -> float:
    """CPU time of the workers that have ended, and of this process."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) / 60.0
