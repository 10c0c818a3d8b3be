"""The paper's figures and its table, each with what is run for it and what is written of it."""

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rewardfree.experiments.folder import ResultsFolder
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import Unit
from rewardfree.report.gaps import Lines, Names, gap_figure, gap_pictures, gap_table, lines_of
from rewardfree.report.labels import label
from rewardfree.report.pictures import BOTH, Picture
from rewardfree.report.report import SweepReport
from rewardfree.report.view import Choices, page_words, quick_view
from rewardfree.studies.paper.betas import beta_label, betas_figure, betas_table
from rewardfree.studies.paper.claims import Evidence, judged
from rewardfree.studies.paper.complexities import complexity_table
from rewardfree.studies.paper.functions import functions_figure
from rewardfree.studies.paper.recorded import PLANNED_ALIKE, recorded_views, table_beside_recorded
from rewardfree.studies.paper.repeats import repeats_figure, spread_view, table_of_ranges
from rewardfree.studies.paper.specification import BETA, BETAS, KERNELS, PaperSettings
from rewardfree.studies.study import Study, Workspace, runs_in


@dataclass(frozen=True)
class PaperSweep(PaperSettings, SweepReport, Study[Lines]):
    """A figure of the paper that is drawn of many runs."""

    page_title: ClassVar[str]

    @abstractmethod
    def sweep(self) -> Sweep:
        """What is run."""

    @property
    def title(self) -> str:
        return self.page_title

    @property
    def command(self) -> str:
        return self.command_of(self.name)

    def units(self) -> Sequence[Unit]:
        return self.sweep().units

    def announcement(self, units: Sequence[Unit]) -> str:
        return f"{self.name}: {runs_in(units)} runs in {len(units)} units, {self.settings}"

    def panel_names(self, lines: Lines) -> Names:
        return {(world, kernel): label(kernel) for world, kernel in lines}

    def view(self, lines: Lines, folder: ResultsFolder) -> dict[str, Any]:
        """With the claims, which are judged by whichever of these figures are there."""
        view = super().view(lines, folder)
        if self.quick:
            view = quick_view(view, replace(self, quick=False).command)
        for (_, kernel), panel, shown in zip(lines, lines.values(), view["panels"], strict=True):
            shown["recorded"] = recorded_views(kernel, panel)
        figure1, betas, repeats = (
            self._stored(folder.path.parent / self.folder_of(name))
            for name in ("figure1", "betas", "repeats")
        )
        evidence = Evidence(figure1, betas, repeats, quick=self.quick)
        view["claims"] = [asdict(claim) for claim in judged(evidence)]
        view["spread"] = None if repeats is None else spread_view(repeats)
        return {**view, "words": page_words(view)}

    def choices(self, lines: Lines) -> Choices:
        """Each algorithm as in the authors' results, where these can be compared with ours."""
        recorded = any(recorded_views(kernel, panel) for (_, kernel), panel in lines.items())
        return {"as in the authors' results": PLANNED_ALIKE} if recorded else {}

    def _stored(self, path: Path) -> Lines | None:
        folder = ResultsFolder(path)
        if not folder.results.exists():
            return None
        with Store(folder.results, create=False) as store:
            return lines_of(store.rows()) or None


@dataclass(frozen=True)
class Figure1(PaperSweep):
    """Gaps of four algorithms on three kernels."""

    name: ClassVar[str] = "figure1"
    page_title: ClassVar[str] = "Figure 1: the gap of four algorithms on three kernels"

    def sweep(self) -> Sweep:
        return self.figure1()

    def table(self, lines: Lines) -> list[str]:
        names = self.panel_names(lines)
        gaps = [line for measure in ("start", "max") for line in (*gap_table(lines, measure, names), "")]
        return [self.settings, "", *gaps, *table_beside_recorded(lines)]

    def pictures(self, lines: Lines, folder: Path) -> list[Picture]:
        names = self.panel_names(lines)
        figure = partial(gap_figure, lines, names=names)
        title = f"Figure 1 ({self.settings}), planned with the bonus (β = {BETA:g})"
        alike = "Figure 1, planned as in the authors' recorded results"
        return [
            Picture(folder / "figure1", partial(figure, planned="optimistic", title=title)),
            Picture(folder / "figure1_mean_planning", partial(figure, planned=PLANNED_ALIKE, title=alike)),
            *gap_pictures(lines, folder / "figures", BOTH, names),
        ]


@dataclass(frozen=True)
class Betas(PaperSweep):
    """Figures 5 to 7: four values of beta."""

    name: ClassVar[str] = "betas"
    page_title: ClassVar[str] = "Figures 5 to 7: the width of the confidence interval"

    def sweep(self) -> Sweep:
        return self.betas()

    def label(self, name: str) -> str:
        return beta_label(name)

    def view(self, lines: Lines, folder: ResultsFolder) -> dict[str, Any]:
        """Without the spread: the repeats have none of these planners."""
        return {**super().view(lines, folder), "spread": None}

    def table(self, lines: Lines) -> list[str]:
        text = [self.settings]
        for (_, kernel), panel in lines.items():
            text += ["", label(kernel), *betas_table(panel, BETAS)]
        return text

    def pictures(self, lines: Lines, folder: Path) -> list[Picture]:
        pictures = []
        for ((_, kernel), panel), measure in itertools.product(lines.items(), ("start", "max")):
            title = f"{label(kernel)}: β of the explorer and of the planner"
            figure = partial(betas_figure, panel, BETAS, title, measure)
            pictures.append(Picture(folder / f"betas_{kernel}_{measure}", figure))
        return pictures


@dataclass(frozen=True)
class Repeats(PaperSweep):
    """Figures 8 to 10: other draws."""

    name: ClassVar[str] = "repeats"
    page_title: ClassVar[str] = "Figures 8 to 10: other draws of the world"

    def sweep(self) -> Sweep:
        return self.repeats()

    def panel_names(self, lines: Lines) -> Names:
        return {key: key[0].replace(key[1], label(key[1]), 1) for key in lines}

    def table(self, lines: Lines) -> list[str]:
        return [*self.summary(lines, []), "", *gap_table(lines, names=self.panel_names(lines))]

    def summary(self, lines: Lines, table: list[str]) -> list[str]:
        return [self.settings, "", *table_of_ranges(lines)]

    def pictures(self, lines: Lines, folder: Path) -> list[Picture]:
        figure = partial(repeats_figure, lines)
        alike = partial(figure, PLANNED_ALIKE, "Planned as in the authors' recorded results")
        pictures = [Picture(folder / "repeats_mean_planning", alike)]
        for measure in ("start", "max"):
            bonus = partial(figure, "optimistic", f"Planned with the bonus (β = {BETA:g})", measure)
            pictures.append(Picture(folder / f"repeats_{measure}", bonus))
        for seed in self.every_draw:
            draw = {key: panel for key, panel in lines.items() if key[0].endswith(f", draw {seed}")}
            names = {key: label(key[1]) for key in draw}
            title = f"Draw {seed}, planned with the bonus"
            one = partial(gap_figure, draw, "optimistic", title=title, names=names)
            pictures.append(Picture(folder / "draws" / f"draw_{seed}", one))
        return pictures


@dataclass(frozen=True)
class Functions(PaperSettings):
    """Figures 2 to 4: what the worlds look like. Nothing is run."""

    def reproduce(self, workspace: Workspace) -> Iterator[str]:
        folder = workspace.out / self.folder_of("functions")
        for kernel, instance in self.instances().items():
            world = instance.world
            title = f"{label(kernel)}, lengthscale 0.1: a reward and a transition law (draw {self.seed})"
            axes = (world.states[:, 0], world.actions[:, 0])
            figure = partial(functions_figure, *axes, instance.reward, world.law(0), title)
            written = workspace.pool.draw([Picture(folder / f"functions_{kernel}", figure)])()
            number = 2 + list(KERNELS).index(kernel)
            yield f"Figure {number}, {label(kernel)}: {' and '.join(map(str, written))}"


@dataclass(frozen=True)
class Table(PaperSettings):
    """Table 1, and the gaps of Figure 1 beside the authors'."""

    def reproduce(self, workspace: Workspace) -> Iterator[str]:
        figure1 = Figure1(**asdict(self))
        folder = yield from figure1.run(workspace)
        with folder.stored() as store:
            lines = figure1.read(store)
        gaps = [*gap_table(lines, names=figure1.panel_names(lines)), "", *table_beside_recorded(lines)]
        text = [self.settings, "", *complexity_table(), "", *gaps]
        yield from text
        yield f"\ntable: {ResultsFolder(workspace.out / self.folder_of('table')).write('table.txt', text)}"


@dataclass(frozen=True)
class WholePaper(PaperSettings):
    """All studies of the paper, one after the other."""

    def reproduce(self, workspace: Workspace) -> Iterator[str]:
        workspace.runner.check_devices(self.figure1().units)  # before a folder is made
        for name, part in PARTS.items():
            yield f"=== {name}"
            yield from part(**asdict(self)).reproduce(workspace)
            yield ""


PARTS: dict[str, type[Functions | PaperSweep | Table]] = {
    "functions": Functions,
    "figure1": Figure1,
    "betas": Betas,
    "repeats": Repeats,
    "table": Table,
}
