"""What a folder of results is shown as: a table, figures and a page, written from what is stored."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from rewardfree.experiments.folder import ResultsFolder
from rewardfree.experiments.run_maps import read_maps
from rewardfree.experiments.store import Store
from rewardfree.report.gaps import Lines, Names, gap_pictures, gap_table, lines_of
from rewardfree.report.labels import label
from rewardfree.report.pictures import DrawingPool, Picture
from rewardfree.report.view import Choices, about, maps_view, sweep_view, write_page

Results = TypeVar("Results")


class Report(ABC, Generic[Results]):
    """A kind of results, and what is written of them."""

    @abstractmethod
    def read(self, store: Store) -> Results:
        """The stored records as tables and figures need them."""

    @abstractmethod
    def table(self, results: Results) -> list[str]:
        """The lines of table.txt."""

    def summary(self, results: Results, table: list[str]) -> list[str]:
        """What is printed of the table."""
        return table

    def csv(self, results: Results) -> str:
        """The text of results.csv; none where `rewardfree export` is enough."""
        return ""

    def pictures(self, results: Results, folder: Path) -> list[Picture]:
        """The figures, which are still to be drawn."""
        return []

    def view(self, results: Results, folder: ResultsFolder) -> dict[str, Any] | None:
        """What the page shows, as JSON can hold it; None: there is no page."""
        return None

    def show(self, folder: ResultsFolder, pool: DrawingPool, forms: Sequence[str] = ()) -> Iterator[str]:
        """Write all of it from what is stored, and yield the lines to print."""
        with folder.stored() as store:
            results = self.read(store)
        pictures = self.pictures(results, folder.path)
        drawing = pool.draw([replace(picture, forms=forms) for picture in pictures] if forms else pictures)
        table, csv = self.table(results), self.csv(results)
        yield from self.summary(results, table)
        yield f"\nresults: {folder.write('results.csv', csv) if csv else folder.results}"
        yield f"table:   {folder.write('table.txt', table)}"
        page, written = self.write_page(results, folder, folder.page), drawing()
        if written:
            yield f"figures: {written[0]} and {len(written) - 1} more in {folder.path}"
        if page is not None:
            yield f"report:  {page}"

    def write_page(self, results: Results, folder: ResultsFolder, path: Path) -> Path | None:
        """Write the page, if there is one."""
        view = self.view(results, folder)
        return None if view is None else write_page(path, view)

    def page_of(self, folder: ResultsFolder, path: Path | None = None) -> Path:
        """Write the page alone, from what is stored."""
        with folder.stored() as store:
            page = self.write_page(self.read(store), folder, path or folder.page)
        if page is None:
            raise ValueError(
                f"{folder.path} has no page: `rewardfree figures {folder.path}` writes its table and figures"
            )
        return page


class SweepReport(Report[Lines]):
    """Curves of gaps, with the maps of single runs: what every sweep can show."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Of the page."""

    @property
    def settings(self) -> str:
        """Where the results come from, in a line."""
        return "a sweep of your own"

    def panel_names(self, lines: Lines) -> Names | None:
        """What panels are called; None: by their worlds and models."""
        return None

    def label(self, name: str) -> str:
        """A strategy or planner in words."""
        return label(name)

    def choices(self, lines: Lines) -> Choices:
        """What a reader of the page can choose beside one planner for all."""
        return {}

    def read(self, store: Store) -> Lines:
        lines = lines_of(store.rows())
        if not lines:
            raise ValueError(f"{store.path} holds no gaps of a sweep: `rewardfree export` says what is there")
        return lines

    def table(self, lines: Lines) -> list[str]:
        return list(gap_table(lines, names=self.panel_names(lines)))

    def pictures(self, lines: Lines, folder: Path) -> list[Picture]:
        return gap_pictures(lines, folder / "figures", ["png"], self.panel_names(lines))

    def view(self, lines: Lines, folder: ResultsFolder) -> dict[str, Any]:
        with folder.stored() as store:
            seeds = store.seeds()
        names, choices = self.panel_names(lines), self.choices(lines)
        view = sweep_view(lines, self.title, self.settings, names, choices, self.label)
        maps = read_maps(folder.maps) if folder.maps.exists() else []
        view["maps"] = [maps_view(of_world, names, self.label) for of_world in maps]
        return {**view, "about": about(seeds, folder.made())}


@dataclass(frozen=True)
class UserSweep(SweepReport):
    """A sweep that a user wrote."""

    title: str = ""
