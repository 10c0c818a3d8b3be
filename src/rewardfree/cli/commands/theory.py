"""Commands about the paper's theory: where to look, what its theorems give, and what is measured of them."""

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import rewardfree as rf
from rewardfree.arrays import count, even_points
from rewardfree.registry import named, typed_names
from rewardfree.report.pictures import save_as
from rewardfree.report.theory import (
    bound_figure,
    gain_figure,
    result_json,
    result_table,
    spectrum_figure,
    width_figure,
)
from rewardfree.studies.coverage import coverage_lines
from rewardfree.studies.norms import norms_lines
from rewardfree.theory import Problem, Result, complexities, gains, spectra, table_1, widths

#: A grid larger than this was almost surely not meant: its posterior alone takes gigabytes.
MOST_POINTS = 1_000_000
QUESTIONS: dict[str, Callable[[Problem], list[Result]]] = {
    "width": widths,
    "gain": gains,
    "spectrum": spectra,
    "complexity": complexities,
    "table1": table_1,
}
FIGURES: dict[str, Callable[[Problem], Any]] = {
    "width": width_figure,
    "gain": gain_figure,
    "spectrum": spectrum_figure,
    "complexity": bound_figure,
}
Kernel = Annotated[str, typer.Option(help=f"{', '.join(typed_names('kernel'))}.")]
Smoothness = Annotated[float, typer.Option(help="Smoothness, for matern.")]
Lengthscale = Annotated[float, typer.Option(help="For se, matern and linear.")]
Depth = Annotated[int, typer.Option(help="Hidden layers, for ntk.")]
Ridge = Annotated[float, typer.Option(help="The number on the diagonal (the paper's tau^2).")]
Norm = Annotated[float | None, typer.Option(help="B1, which bounds ||[PV]||; by default H.")]


class Format(StrEnum):
    """The forms in which a list is written."""

    table = "table"
    csv = "csv"
    json = "json"


def query_plan(
    kernel: Kernel = "matern",
    nu: Smoothness = 1.5,
    lengthscale: Lengthscale = 0.1,
    depth: Depth = 2,
    ridge: Ridge = 0.5,
    dim: Annotated[int, typer.Option(help="Dimension of z = (s, a).")] = 2,
    side: Annotated[int, typer.Option(help="Grid points per dimension, on [0, 1].")] = 100,
    n: Annotated[int, typer.Option("-n", "--queries", help="How many queries.")] = 20,
    form: Annotated[Format, typer.Option("--format", help="table, csv or json.")] = Format.table,
) -> None:
    """Print where Alg 2 will look, before any data exist.

    Example: `rewardfree query-plan --kernel se --ridge 0.01 -n 160 --format csv > plan.csv`
    """
    model = rf.Model(_kernel(kernel, nu, lengthscale, depth), ridge=ridge)
    dim, side = count(dim, "dim"), count(side, "side")
    if dim > 20 or side**dim > MOST_POINTS:
        raise ValueError(
            f"a grid of {side}^{dim} points is too large: at most 20 dimensions and {MOST_POINTS:,} points"
        )
    points = even_points(side, dim)
    plan = rf.query_plan(model, points, n)
    sigma = rf.strategies.uncertainty_path(model, points, plan).at_query
    coordinates = [f"z{axis + 1}" for axis in range(dim)]
    rows = []
    for i, (index, std) in enumerate(zip(plan, sigma, strict=True)):
        place = dict(zip(coordinates, map(float, points[index]), strict=True))
        rows.append({"query": i + 1, "index": int(index), **place, "sigma": float(std)})
    if form is Format.json:
        typer.echo(json.dumps(rows, indent=1))
        return
    names = ["query", "index", *coordinates, "sigma"]
    cells = [[_cell(row[name], exact=form is Format.csv) for name in names] for row in rows]
    for line in [names, *cells]:
        typer.echo(",".join(line) if form is Format.csv else "  ".join(f"{cell:>9}" for cell in line))


def theory(
    what: Annotated[str, typer.Argument(help="width, gain, spectrum, complexity, table1 or norms.")],
    kernel: Kernel = "matern",
    nu: Smoothness = 1.5,
    lengthscale: Lengthscale = 0.1,
    depth: Depth = 2,
    dim: Annotated[int, typer.Option(help="Dimension of z = (s, a).")] = 2,
    horizon: Annotated[int, typer.Option(help="H.")] = 10,
    epsilon: Annotated[float, typer.Option(help="The accuracy that is wanted.")] = 0.5,
    delta: Annotated[float, typer.Option(help="The probability that may fail.")] = 0.1,
    ridge: Ridge = 0.5,
    samples: Annotated[int, typer.Option(help="n, for widths and gains.")] = 160,
    points: Annotated[int | None, typer.Option(help="|Z|; by default 100^dim.")] = None,
    states: Annotated[int, typer.Option(help="S, where a bound is for every reward.")] = 100,
    norm: Norm = None,
    value_norm: Annotated[float | None, typer.Option(help="B2, which bounds ||V||; by default H.")] = None,
    value_kernel: Annotated[
        str | None, typer.Option(help="k_psi for values V on the states; by default z's own kernel.")
    ] = None,
    value_nu: Annotated[float, typer.Option(help="Smoothness of a matern k_psi.")] = 1.5,
    value_lengthscale: Annotated[float, typer.Option(help="Of k_psi.")] = 0.1,
    side: Annotated[int, typer.Option(help="States, and as many actions, of the world for norms.")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects instead of a table.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the picture that goes with it.")] = None,
) -> None:
    """Say what the paper's theorems give for a problem, and whether it means anything.

    Examples: `rewardfree theory complexity --kernel matern --nu 2.5 --epsilon 1`,
    `rewardfree theory width --json`, `rewardfree theory gain --out pictures`
    """
    psi = None if value_kernel is None else _kernel(value_kernel, value_nu, value_lengthscale, depth)
    problem = Problem(
        _kernel(kernel, nu, lengthscale, depth), dim, horizon, epsilon, delta, ridge, samples, points, states,
        norm, value_norm, psi,
    )  # fmt: skip
    if what == "norms":
        if as_json or out is not None:
            raise ValueError("norms are printed as a table: --json and --out are for the other questions")
        for line in norms_lines(problem, side):
            typer.echo(line)
        return
    if what not in QUESTIONS:
        raise ValueError(f"theory knows about {', '.join(QUESTIONS)} and norms, got {what!r}")
    results = QUESTIONS[what](problem)
    typer.echo(result_json(results) if as_json else "\n".join(result_table(results)).rstrip())
    if out is not None:
        written = save_as(FIGURES[what](problem), out / what) if what in FIGURES else []
        typer.echo(f"pictures: {', '.join(map(str, written)) or 'none for this one'}", err=as_json)


def coverage(
    world: Annotated[str, typer.Option(help="rkhs, the paper's draws; sharpened or corridor.")] = "rkhs",
    kernel: Annotated[str, typer.Option(help="se or matern.")] = "matern",
    nu: Smoothness = 1.5,
    lengthscale: Lengthscale = 0.1,
    ridge: Ridge = 0.5,
    horizon: Annotated[int, typer.Option(help="H.")] = 10,
    delta: Annotated[float, typer.Option(help="The probability that may fail.")] = 0.1,
    samples: Annotated[int, typer.Option(help="Samples per step.")] = 160,
    norm: Norm = None,
    draws: Annotated[int, typer.Option(help="Worlds; a width is fitted on the first ten.")] = 30,
    side: Annotated[int, typer.Option(help="States, and as many actions.")] = 100,
    out: Annotated[Path | None, typer.Option(help="Folder for the picture of bounds and gap.")] = None,
) -> None:
    """Measure how wide confidence intervals have to be, and whether adaptive data are biased.

    Example: `rewardfree coverage --world sharpened --samples 40 --side 30 --draws 12 --out coverage`
    """
    chosen = _kernel(kernel, nu, lengthscale, depth=1)
    problem = Problem(chosen, 2, horizon, 1.0, delta, ridge, samples, side * side, side, norm)
    for line in coverage_lines(world, problem, draws, side, out):
        typer.echo(line)


def _kernel(name: str, nu: float, lengthscale: float, depth: int) -> rf.kernels.Kernel:
    """The kernel of that name, with those of the options that it has; a linear one has a constant, too."""
    constant = {"bias": 1.0} if name == "linear" else {}
    kernel: rf.kernels.Kernel = named("kernel", name, nu=nu, lengthscale=lengthscale, depth=depth, **constant)
    return kernel


def _cell(value: float | int, exact: bool) -> str:
    return str(value) if exact or isinstance(value, int) else f"{value:.4f}"
