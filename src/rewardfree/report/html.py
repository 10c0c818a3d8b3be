"""One self-contained page from a view: no request leaves it, and the same view gives the same bytes."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from rewardfree.files import written_whole


def page(view: dict[str, Any]) -> str:
    """The page as text: style, drawing library, program and numbers are all inside."""
    from plotly.offline import get_plotlyjs  # here: reading it takes its time

    parts = files("rewardfree.report").joinpath("page")
    names = ("page.html", "page.css", "page.js")
    text = {name: parts.joinpath(name).read_text(encoding="utf-8") for name in names}
    return Template(text["page.html"]).substitute(
        title=html.escape(str(view["title"])),
        css=text["page.css"],
        view=_inside_script(json.dumps(view, ensure_ascii=False, separators=(",", ":"))),
        plotly=get_plotlyjs(),
        app=text["page.js"],
    )


def write_page(path: Path, view: dict[str, Any]) -> Path:
    """Write the page, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text(page(view), encoding="utf-8")
    return path


def _inside_script(text: str) -> str:
    """JSON that cannot end the script element it stands in: names are whatever a sweep's file says."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
