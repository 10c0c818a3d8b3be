"""What a page shows of a sweep, as JSON can hold it, and the page itself.

Nothing is drawn here. No request leaves a page, and the same store gives the same bytes.
"""

import base64
import html
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

import numpy as np

from rewardfree.files import written_whole
from rewardfree.report.gaps import (
    AXES,
    CONFIDENCE,
    MEASURES,
    Line,
    Lines,
    Names,
    Panel,
    levels,
    panel_name,
    planned_lines,
)
from rewardfree.report.labels import label
from rewardfree.report.numbers import numbers
from rewardfree.report.style import curve_styles
from rewardfree.report.tables import SHOWN, table_view
from rewardfree.report.words import finding_without_data, words_in

#: Which planner's lines a choice of the page shows, for every strategy, by the name of the choice.
Choices: TypeAlias = Mapping[str, Mapping[str, str]]
#: What is chosen at first, where a sweep has it.
USUAL_PLANNER = "optimistic"


def sweep_view(
    lines: Lines,
    title: str,
    settings: str,
    names: Names | None = None,
    more: Choices | None = None,
    labelled: Callable[[str], str] = label,
) -> dict[str, Any]:
    """Curves, tables and references of a sweep, and what they say in words.

    A reader chooses one planner for all strategies, or a mix of planners from `more`.
    """
    drawn = [(key, line) for panel in lines.values() for key, line in panel.items() if not line.level]
    strategies, planners = (
        list(dict.fromkeys(column)) for column in zip(*(key for key, _ in drawn), strict=True)
    )
    styles = curve_styles(strategies)
    choices = {**{name: dict.fromkeys(strategies, name) for name in planners}, **(more or {})}
    view = {
        "title": title,
        "settings": settings,
        "confidence": CONFIDENCE,
        "axes": {
            name: text for name, text in AXES.items() if any(line.cost[name].all() for _, line in drawn)
        },
        "measures": {name: MEASURES[name] for name in SHOWN},
        "planners": {name: {"label": labelled(name), "of": dict(of)} for name, of in choices.items()},
        "planner": USUAL_PLANNER if USUAL_PLANNER in choices else planners[0],
        "strategies": [
            {
                "key": name,
                "label": labelled(name),
                "colour": styles[name]["color"],
                "dash": _dash(styles[name]),
            }
            for name in strategies
        ],
        "panels": [_panel_view(panel_name(key, names), panel, choices) for key, panel in lines.items()],
        "quick": "",
        "finding": finding_without_data(lines, names),
    }
    return {**view, "words": page_words(view)}


def quick_view(view: dict[str, Any], command: str) -> dict[str, Any]:
    """The same of a quick run, which says so and concludes nothing."""
    notice = (
        "QUICK: the worlds are too small and the runs too few to mean anything, so this page concludes "
        f"nothing. The full run: {command}"
    )
    return {**view, "quick": notice, "finding": []}


def page_words(view: Mapping[str, Any]) -> dict[str, str]:
    """The words that a page has to explain, by its labels and claims."""
    labels = [entry["label"] for entry in (*view["strategies"], *view["planners"].values())]
    claims = [text for claim in view.get("claims", []) for text in (claim["claim"], claim["rule"])]
    return words_in([*labels, *claims])


def about(seeds: Sequence[int], made: Mapping[str, str]) -> dict[str, str]:
    """Where the results come from."""
    told = f"{len(seeds)}, from {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"one, {seeds[0]}"
    return {"seeds": told, **made}


def _panel_view(title: str, panel: Panel, choices: Choices) -> dict[str, Any]:
    return {
        "title": title,
        "lines": [
            {"strategy": strategy, "planner": planner, **_line_view(line)}
            for (strategy, planner), line in panel.items()
            if not line.level
        ],
        "levels": [
            {
                "key": name,
                "label": label(name),
                "gaps": {measure: numbers(line.mean(measure))[0] for measure in SHOWN},
            }
            for name, line in levels(panel).items()
        ],
        "recorded": [],
        "tables": {
            name: {axis: table_view(planned_lines(panel, of), levels(panel), axis) for axis in AXES}
            for name, of in choices.items()
        },
    }


def _line_view(line: Line) -> dict[str, Any]:
    return {
        "runs": line.runs,
        **{axis: numbers(line.cost[axis]) for axis in AXES},
        "gaps": {
            measure: {
                "mean": numbers(line.mean(measure)),
                "half": numbers(line.half_width(measure)),
                "deviation": numbers(line.deviation(measure)),
            }
            for measure in SHOWN
        },
    }


def _dash(style: Mapping[str, Any]) -> str:
    return {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}[style["linestyle"]]


def maps_view(
    maps: Mapping[str, Any], names: Names | None = None, labelled: Callable[[str], str] = label
) -> dict[str, Any]:
    """The maps of one world, which is called as its panel is, and of what some runs knew of it."""
    key = maps["world"], maps["model"]
    return {
        "title": panel_name(key, names if names is not None and key in names else None),
        "steps": [h + 1 for h in maps["steps"]],
        "reward": _map(maps["reward"]),
        "law": _map(maps["law"]),
        "law_action": numbers([maps["law_action"]])[0],
        "runs": [
            {
                "label": labelled(run["strategy"]),
                "sizes": [int(n) for n in run["sizes"]],
                "moments": [_moment(run, i) for i in range(len(run["sizes"]))],
            }
            for run in maps["runs"]
        ],
    }


def _moment(run: Mapping[str, Any], i: int) -> dict[str, Any]:
    """What a run knew at one checkpoint."""
    sigma = run["sigma"]  # (n,steps,s,a): one scale for all, or nothing would be seen to shrink
    ends = float(sigma.min()), float(sigma.max())
    return {
        "value": _map(run["value"][i], (0.0, float(run["value"].max()))),
        "policy": _map(run["policy"][i], (0.0, 1.0)),
        "steps": [
            {
                "sigma": _map(sigma[i, k], ends),
                "visited": {name: numbers(run[name][k, : run["sizes"][i]]) for name in ("state", "action")},
            }
            for k in range(sigma.shape[1])
        ],
    }


def _map(values: Any, ends: tuple[float, float] | None = None) -> dict[str, Any]:
    """A table of numbers as bytes between two ends: a page of them stays small."""
    low, high = (float(values.min()), float(values.max())) if ends is None else ends
    scaled = np.clip((values - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    text = base64.b64encode(np.round(255.0 * scaled).astype(np.uint8).tobytes()).decode("ascii")
    rows, columns = values.shape
    low, high = numbers([low, high])
    return {"rows": rows, "columns": columns, "low": low, "high": high, "bytes": text}


# The page

#: The program of a page, in the order in which it is read: one scope for all.
PROGRAM = ("elements.js", "plots.js", "curves.js", "tables.js", "maps.js", "page.js")


def page(view: dict[str, Any]) -> str:
    """The page as text: style, drawing library, program and numbers are all inside."""
    from plotly.offline import get_plotlyjs  # here: reading it takes its time

    parts = files("rewardfree.report").joinpath("page")
    text = {
        name: parts.joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", *PROGRAM)
    }
    return Template(text["page.html"]).substitute(
        title=html.escape(str(view["title"])),
        css=text["page.css"],
        view=_inside_script(json.dumps(view, ensure_ascii=False, separators=(",", ":"))),
        plotly=get_plotlyjs(),
        app="\n".join(text[name] for name in PROGRAM),
    )


def write_page(path: Path, view: dict[str, Any]) -> Path:
    """Write the page, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text(page(view), encoding="utf-8")
    return path


def _inside_script(text: str) -> str:
    """JSON that cannot end the script element it stands in: names are those of a sweep's file."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
