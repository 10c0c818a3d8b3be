"""Commands about the paper: its idea, its experiments and its theory."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import rewardfree as rf
from rewardfree.cli import demonstration
from rewardfree.cli.baselines import baselines
from rewardfree.cli.beyond import beyond
from rewardfree.cli.choices import grid, kernel_named
from rewardfree.cli.console import console
from rewardfree.cli.control import control
from rewardfree.cli.coverage import measured_coverage
from rewardfree.cli.engine import Engine
from rewardfree.cli.options import AsEvents, Cluster, Device, Jobs, Quiet
from rewardfree.cli.reproduction import PARTS, Job, perform
from rewardfree.cli.theory import answers, draw, measured_norms
from rewardfree.experiments.reproduction import KERNELS, Reproduction
from rewardfree.presets import preset_named
from rewardfree.report.theory import result_json, result_table
from rewardfree.theory import Problem


class Format(StrEnum):
    """How a list is written."""

    table = "table"
    csv = "csv"
    json = "json"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/demo"),
    quick: Annotated[bool, typer.Option("--quick", help="A small grid and few queries.")] = False,
) -> None:
    """Show the library at work: where to look first, and one exploration that serves three rewards.

    Example: `rewardfree demo --out demo`
    """
    sizes = {"side": 30, "queries": 40, "transitions": 100}
    if not quick:
        sizes = {"side": 100, "queries": 160, "transitions": 400}
    for line in demonstration.run(out, **sizes):
        typer.echo(line)


def query_plan(
    kernel: Annotated[str, typer.Option(help="se, matern, ntk, linear or delta.")] = "matern",
    nu: Annotated[float, typer.Option(help="Smoothness, for matern.")] = 1.5,
    lengthscale: Annotated[float, typer.Option(help="For se, matern and linear.")] = 0.1,
    depth: Annotated[int, typer.Option(help="Hidden layers, for ntk.")] = 2,
    ridge: Annotated[float, typer.Option(help="The number on the diagonal (the paper's tau^2).")] = 0.5,
    dim: Annotated[int, typer.Option(help="Dimension of z = (s, a).")] = 2,
    side: Annotated[int, typer.Option(help="Grid points per dimension, on [0, 1].")] = 100,
    n: Annotated[int, typer.Option("-n", "--queries", help="How many queries.")] = 20,
    form: Annotated[Format, typer.Option("--format", help="table, csv or json.")] = Format.table,
) -> None:
    """Print where Alg 2 will look, before any data exist.

    Example: `rewardfree query-plan --kernel se --ridge 0.01 -n 160 --format csv > plan.csv`
    """
    model = rf.Model(kernel_named(kernel, nu=nu, lengthscale=lengthscale, depth=depth), ridge=ridge)
    points = grid(dim, side)
    plan = rf.query_plan(model, points, n)
    sigma = rf.strategies.uncertainty_path(model, points, plan).at_query
    rows = [
        {"query": i + 1, "index": int(index), **_coordinates(points[index]), "sigma": float(std)}
        for i, (index, std) in enumerate(zip(plan, sigma, strict=True))
    ]
    if form is Format.json:
        typer.echo(json.dumps(rows, indent=1))
        return
    names = ["query", "index", *(f"z{axis + 1}" for axis in range(dim)), "sigma"]
    cells = [[_cell(row[name], exact=form is Format.csv) for name in names] for row in rows]
    for line in [names, *cells]:
        typer.echo(",".join(line) if form is Format.csv else "  ".join(f"{cell:>9}" for cell in line))


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="figure1, functions, betas, repeats, table, all of these, beyond, baselines, or control."
        ),
    ] = "figure1",
    preset: Annotated[str, typer.Option(help="published, or literal: as the text says.")] = "published",
    runs: Annotated[
        int | None,
        typer.Option(help="Runs of each algorithm; by default 80, 20 for all but figure1, 10 for control."),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Worlds for repeats; by default 10.")] = None,
    kernels: Annotated[str, typer.Option(help="Some of them, with commas between.")] = ",".join(KERNELS),
    jobs: Jobs = None,
    cluster: Cluster = None,
    device: Device = "cpu",
    seed: Annotated[
        int,
        typer.Option(
            help="The draw of the world, for repeats the first; beyond the paper added to run seeds."
        ),
    ] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small worlds and few runs: seconds, for a look.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for results, tables and figures.")] = Path(
        "out/reproduce"
    ),
    quiet: Quiet = False,
    as_json: AsEvents = False,
) -> None:
    """Reproduce the paper: run what is not stored yet, print the table, draw the figures.

    `figure1`: gaps of four algorithms on three kernels. `functions`: Figures 2-4, the worlds. `betas`:
    Figures 5-7. `repeats`: Figures 8-10, on other draws. `table`: Table 1, and our gaps beside the authors'.

    Further than the paper: `beyond`, every explorer, model and planner on worlds where planning matters;
    `baselines`, every system that the paper names, on its worlds, on these and on tabular ones; `control`,
    five Gymnasium tasks, explored once without a reward, planned for several. These run on the CPU.

    Ctrl-C leaves what is stored, and says the command that goes on.

    Examples: `rewardfree reproduce figure1`, `rewardfree reproduce figure1 --device cuda`,
    `rewardfree reproduce repeats --draws 3 --kernels se,matern15`
    """
    engine = Engine(jobs, cluster, console(quiet, as_json))
    further = {"beyond": beyond, "baselines": baselines, "control": control}
    if what in further:
        if preset != "published" or draws is not None or kernels != ",".join(KERNELS) or device != "cpu":
            raise ValueError(
                f"--preset, --draws, --kernels and --device are for the paper's figures, not for {what}"
            )
        found = further[what](out, runs, seed, quick, engine)
    else:
        if what not in {*PARTS, "all"}:
            known = ", ".join([*PARTS, "all", *further])
            raise ValueError(f"there is {known} to reproduce, got {what!r}")
        names = tuple(name.strip() for name in kernels.split(",") if name.strip())
        wanted = Reproduction(preset_named(preset), names, seed, runs, draws, quick, device)
        found = perform(what, Job(wanted, out, engine))
    engine.say(found)


def theory(
    what: Annotated[str, typer.Argument(help="width, gain, spectrum, complexity, table1 or norms.")],
    kernel: Annotated[str, typer.Option(help="se, matern, ntk, linear or delta.")] = "matern",
    nu: Annotated[float, typer.Option(help="Smoothness, for matern.")] = 1.5,
    lengthscale: Annotated[float, typer.Option(help="For se, matern and linear.")] = 0.1,
    depth: Annotated[int, typer.Option(help="Hidden layers, for ntk.")] = 2,
    dim: Annotated[int, typer.Option(help="Dimension of z = (s, a).")] = 2,
    horizon: Annotated[int, typer.Option(help="H.")] = 10,
    epsilon: Annotated[float, typer.Option(help="The accuracy that is wanted.")] = 0.5,
    delta: Annotated[float, typer.Option(help="The probability that may fail.")] = 0.1,
    ridge: Annotated[float, typer.Option(help="The number on the diagonal (the paper's tau^2).")] = 0.5,
    samples: Annotated[int, typer.Option(help="n, for widths and gains.")] = 160,
    points: Annotated[int | None, typer.Option(help="|Z|; by default 100^dim.")] = None,
    states: Annotated[int, typer.Option(help="S, where a bound is for every reward.")] = 100,
    norm: Annotated[float | None, typer.Option(help="B1, which bounds ||[PV]||; by default H.")] = None,
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
    own = kernel_named(kernel, nu=nu, lengthscale=lengthscale, depth=depth)
    psi = None
    if value_kernel is not None:
        psi = kernel_named(value_kernel, nu=value_nu, lengthscale=value_lengthscale, depth=depth)
    problem = Problem(
        own, dim, horizon, epsilon, delta, ridge, samples, points, states, norm, value_norm, psi
    )  # fmt: skip
    if what == "norms":
        if as_json or out is not None:
            raise ValueError("norms are printed as a table: --json and --out are for the other questions")
        for line in measured_norms(problem, side):
            typer.echo(line)
        return
    results = answers(what, problem)
    typer.echo(result_json(results) if as_json else "\n".join(result_table(results)).rstrip())
    if out is not None:
        written = draw(what, problem, out)
        typer.echo(f"pictures: {', '.join(map(str, written)) or 'none for this one'}", err=as_json)


def coverage(
    world: Annotated[str, typer.Option(help="rkhs, the paper's draws; sharpened or corridor.")] = "rkhs",
    kernel: Annotated[str, typer.Option(help="se or matern.")] = "matern",
    nu: Annotated[float, typer.Option(help="Smoothness, for matern.")] = 1.5,
    lengthscale: Annotated[float, typer.Option(help="Of the kernel.")] = 0.1,
    ridge: Annotated[float, typer.Option(help="The number on the diagonal (the paper's tau^2).")] = 0.5,
    horizon: Annotated[int, typer.Option(help="H.")] = 10,
    delta: Annotated[float, typer.Option(help="The probability that may fail.")] = 0.1,
    samples: Annotated[int, typer.Option(help="Samples per step.")] = 160,
    norm: Annotated[float | None, typer.Option(help="B1, which bounds ||[PV]||; by default H.")] = None,
    draws: Annotated[int, typer.Option(help="Worlds; a width is fitted on the first ten.")] = 30,
    side: Annotated[int, typer.Option(help="States, and as many actions.")] = 100,
    out: Annotated[Path | None, typer.Option(help="Folder for the picture of bounds and gap.")] = None,
) -> None:
    """Measure how wide confidence intervals have to be, and whether adaptive data are biased.

    Example: `rewardfree coverage --world sharpened --samples 40 --side 30 --draws 12 --out coverage`
    """
    own = kernel_named(kernel, nu=nu, lengthscale=lengthscale, depth=1)
    problem = Problem(own, 2, horizon, 1.0, delta, ridge, samples, side * side, side, norm)
    checkpoints = sorted({max(1, samples // 2**i) for i in range(5)})
    for line in measured_coverage(world, problem, draws, side, out, checkpoints):
        typer.echo(line)


def _coordinates(point: list[float]) -> dict[str, float]:
    return {f"z{axis + 1}": float(value) for axis, value in enumerate(point)}


def _cell(value: float | int, exact: bool) -> str:
    return str(value) if exact or isinstance(value, int) else f"{value:.4f}"
