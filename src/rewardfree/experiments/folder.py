"""A folder of results: what its files are called, what is in its store, and how the results were made."""

import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import rewardfree as rf
from rewardfree.experiments.store import Store
from rewardfree.files import written_whole


class ResultsFolder:
    """The files of one sweep or study. Nothing is made before something is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = path / "results.sqlite"
        self.maps = path / "maps.npz"
        self.page = path / "report.html"

    @contextmanager
    def stored(self) -> Iterator[Store]:
        """The store, which must have results."""
        with Store(self.results, create=False) as store:
            if next(store.rows(), None) is None and not store.tables():
                raise ValueError(f"there are no results in {self.path} yet: run its sweep again")
            yield store

    def write(self, name: str, text: str | Sequence[str]) -> Path:
        """Write a text, or the lines of one, to a file: all of it or nothing."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text if isinstance(text, str) else "\n".join(text) + "\n"
        with written_whole(path) as part:
            part.write_bytes(content.encode())
        return path

    def remember(self, command: str, time: str) -> None:
        """Note how the results were made."""
        versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
        python = f"rewardfree {rf.__version__}, Python {platform.python_version()}, {versions}"
        made = {"command": command, "versions": python, "time": time}
        self.write("made.json", json.dumps(made, indent=1))

    def made(self) -> dict[str, str]:
        """The note on how the results were made, if there is one."""
        path = self.path / "made.json"
        if not path.exists():
            return {}
        try:
            made = json.loads(path.read_text(encoding="utf-8"))
            return {str(name): str(value) for name, value in made.items()}
        except (ValueError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path} is damaged ({error}): remove it, and the page says less") from error
