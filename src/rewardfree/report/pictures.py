"""Figures that are still to be drawn: each takes most of a second, so processes share many of them."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardfree.experiments.local import without_interrupts, worker_pool
from rewardfree.report.style import save

FORMS = ("png", "pdf", "svg")
#: For a screen and for a paper.
BOTH = ("png", "pdf")
#: Fewer are drawn sooner than processes are started.
FEW = 5
#: More processes than this have nothing to do.
MOST_WORKERS = 16


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, and where it goes in which forms; a process can be given it."""

    path: Path  # a form's ending is added
    figure: Callable[[], Any]
    forms: Sequence[str] = BOTH

    def draw(self) -> list[Path]:
        """Write it; the files."""
        return save_as(self.figure(), self.path, self.forms)


class DrawingPool:
    """Draws pictures, in up to `jobs` processes (by default one for each core) where there are many."""

    def __init__(self, jobs: int | None = None) -> None:
        self._workers = min(jobs or os.cpu_count() or 1, MOST_WORKERS)
        self._pool: ProcessPoolExecutor | None = None

    def start(self) -> None:
        """Start the processes now, while there is nothing to draw yet."""
        pool = self._processes()
        with without_interrupts():  # processes are started here
            for _ in range(self._workers):
                pool.submit(_get_ready)

    def draw(self, pictures: Sequence[Picture]) -> Callable[[], list[Path]]:
        """Begin to draw them; what comes back waits for the end, and says all files in order."""
        drawn: Iterable[list[Path]]
        if self._workers == 1 or (len(pictures) < FEW and self._pool is None):
            drawn = [picture.draw() for picture in pictures]
        else:
            with without_interrupts():
                drawn = self._processes().map(Picture.draw, pictures)
        return lambda: self._collected(drawn)

    def _collected(self, drawn: Iterable[list[Path]]) -> list[Path]:
        """All files in order; then the processes end.

        Left to the end of the program they are sometimes told to stop through a pipe that is closed already.
        """
        try:
            return [path for paths in drawn for path in paths]
        finally:
            pool, self._pool = self._pool, None
            if pool is not None:
                pool.shutdown(cancel_futures=True)

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = worker_pool(self._workers)
        return self._pool


def _get_ready() -> None:
    """Import what takes longest."""
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_pdf
    import matplotlib.figure  # noqa: F401


def check_forms(forms: Sequence[str]) -> None:
    """Refuse a form that no picture can have, before any work is done for it."""
    for form in forms:
        if form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")


def save_as(figure: Any, path: Path, forms: Sequence[str] = BOTH) -> list[Path]:
    """One figure in several forms, at `path` with the form as its ending."""
    paths = [path.with_name(f"{path.name}.{form}") for form in forms]
    for form in paths:
        save(figure, form)
    return paths
