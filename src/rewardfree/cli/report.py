"""The page of a folder of results: what `rewardfree report` and the end of a reproduction write."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rewardfree as rf
from rewardfree.cli.stored import RESULTS, stored
from rewardfree.experiments.portrait import read_portraits
from rewardfree.experiments.store import Store
from rewardfree.files import written_whole
from rewardfree.report.claims import Evidence, judged
from rewardfree.report.gaps import Lines, Names, lines
from rewardfree.report.html import write_page
from rewardfree.report.view import portrait_view, spread_view, sweep_view

#: Files of a folder of results: the page, maps of single runs, and how the results were made.
PAGE, PORTRAITS, MADE = "report.html", "portraits.npz", "made.json"


def write_report(
    folder: Path,
    title: str,
    settings: str,
    *,
    names: Names | None = None,
    beside: dict[str, Path] | None = None,
    out: Path | None = None,
) -> Path:
    """Write the page of a folder of results.

    `beside` are the folders of figure1, betas and repeats by which the paper's claims are judged.
    """
    with stored(folder) as store:
        found, seeds = lines(store.rows()), store.seeds()
    view = sweep_view(found, title, settings, names)
    beside = beside or {}
    figure1, betas, repeats = (_lines(beside.get(name)) for name in ("figure1", "betas", "repeats"))
    claims = judged(Evidence(figure1, betas, repeats)) if beside else []
    view["claims"] = [claim.view() for claim in claims]
    view["spread"] = None if repeats is None else spread_view(repeats)
    portraits = read_portraits(folder / PORTRAITS) if (folder / PORTRAITS).exists() else []
    view["portraits"] = [portrait_view(each) for each in portraits]
    return _written(view, folder, seeds, out)


def write_comparison(folder: Path, found: Lines, seeds: Sequence[int], title: str, settings: str) -> Path:
    """Write the page of gaps that belong to no sweep: curves and tables, a panel for each world."""
    view = sweep_view(found, title, settings, names={key: key[0] for key in found})
    return _written(view, folder, seeds)


def remember_making(folder: Path, command: str, **took: str) -> None:
    """Note how the results were made: the command, versions, and what it took."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    about = {
        "command": command,
        "versions": f"rewardfree {rf.__version__}, Python {platform.python_version()}, {versions}",
        **took,
    }
    with written_whole(folder / MADE) as part:
        part.write_text(json.dumps({**_made(folder), **about}, indent=1), encoding="utf-8")


def _written(view: dict[str, Any], folder: Path, seeds: Sequence[int], out: Path | None = None) -> Path:
    view["about"] = {"seeds": f"{len(seeds)}, from {seeds[0]} to {seeds[-1]}", **_made(folder)}
    return write_page(out or folder / PAGE, view)


def _made(folder: Path) -> dict[str, str]:
    path = folder / MADE
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in found.items()}
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove it, and the page says less") from error


def _lines(folder: Path | None) -> Lines | None:
    """The results of a folder, if there are any."""
    if folder is None or not (folder / RESULTS).exists():
        return None
    with Store(folder / RESULTS, create=False) as store:
        return lines(store.rows()) or None
