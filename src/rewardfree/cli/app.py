"""The commands and their options."""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import rewardfree as rf
from rewardfree.cli import demonstration, journeys
from rewardfree.cli.baselines import baselines
from rewardfree.cli.beyond import beyond
from rewardfree.cli.choices import grid, kernel_named
from rewardfree.cli.console import console
from rewardfree.cli.control import control
from rewardfree.cli.coverage import measured_coverage
from rewardfree.cli.engine import Engine, Remembering, typed_command
from rewardfree.cli.report import PORTRAITS, remember_making, write_report
from rewardfree.cli.reproduction import PARTS, Job, page_of, perform, redraw
from rewardfree.cli.stored import RESULTS, stored
from rewardfree.cli.theory import answers, draw, measured_norms
from rewardfree.experiments.export import write_csv, write_parquet
from rewardfree.experiments.reproduction import KERNELS, Reproduction
from rewardfree.experiments.running import check_devices
from rewardfree.experiments.store import Store
from rewardfree.experiments.sweep import Sweep
from rewardfree.files import written_whole
from rewardfree.presets import preset_named
from rewardfree.report.gaps import gap_pictures, gap_table, lines
from rewardfree.report.pictures import check_forms
from rewardfree.report.theory import result_json, result_table
from rewardfree.theory import Problem

app = typer.Typer(
    name="rewardfree",
    cls=Remembering,
    help="Reward-free, kernel-based reinforcement learning: explore once, plan for any reward later.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)


Cluster = Annotated[
    str | None, typer.Option(help="A Dask scheduler, tcp://host:port: its workers run the units instead.")
]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one for each core.")]
Device = Annotated[
    str, typer.Option(help="cpu; cuda or cuda:N runs all of it there, in this process, as large batches.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
AsEvents = Annotated[
    bool, typer.Option("--json", help="Print one JSON object a line: progress, and what would be printed.")
]


class Format(StrEnum):
    """How a list is written."""

    table = "table"
    csv = "csv"
    json = "json"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rewardfree {rf.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Reward-free, kernel-based reinforcement learning: explore once, plan for any reward later."""


@app.command()
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


@app.command("query-plan")
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
    sigma = rf.uncertainty_path(model, points, plan).at_query
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


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
def explore(
    env: Annotated[str, typer.Argument(help="A Gymnasium environment, such as Pendulum-v1.")],
    transitions: Annotated[
        int | None, typer.Option(help="Transitions to keep; 1000 if no other limit.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Environment steps instead.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Episodes instead.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after so long.")] = None,
    max_sigma: Annotated[
        float | None, typer.Option(help="Stop when the largest sigma is this small.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="generative, scout, online, qiu, greedy or uniform; by default the first that works."
        ),
    ] = None,
    beta: Annotated[float, typer.Option(help="For online and qiu.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 0,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of an episode; by default its time limit.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Data to go on from; limits are then totals.")] = None,
    out: Annotated[Path, typer.Option(help="Where the data go.")] = Path("data.npz"),
) -> None:
    """Explore an environment without any reward, and keep the transitions.

    Ctrl-C keeps what there is, and says how to go on.

    Examples: `rewardfree explore Pendulum-v1 --transitions 1000 --out pendulum.npz`,
    `rewardfree explore Acrobot-v1 --strategy scout --seconds 60`
    """
    if transitions is None and steps is None and episodes is None and seconds is None:
        transitions = 1000
    limits = {"transitions": transitions, "steps": steps, "episodes": episodes, "seconds": seconds}
    for line in journeys.explore_to(
        out, env, strategy, beta, seed, horizon, resume, **limits, max_sigma=max_sigma
    ):
        typer.echo(line)


@app.command()
def plan(
    data: Annotated[Path, typer.Argument(help="What `explore` wrote, or a CSV file of your own.")],
    reward: Annotated[
        str, typer.Option(help="A formula over the world's variables; next_x for the next state's.")
    ],
    horizon: Annotated[int | None, typer.Option(help="Steps of an episode; by default the world's.")] = None,
    discount: Annotated[float | None, typer.Option(help="Alone: plan for no end.")] = None,
    terminated: Annotated[
        str | None, typer.Option(help="A formula: where episodes end; by default as the data saw it.")
    ] = None,
    planner: Annotated[
        str | None,
        typer.Option(help="dynamics, mean, optimistic or pessimistic; by default the best that works."),
    ] = None,
    beta: Annotated[float, typer.Option(help="For optimistic and pessimistic.")] = 0.1,
    out: Annotated[Path, typer.Option(help="Where the plan goes.")] = Path("plan.npz"),
) -> None:
    """Plan for a reward that the data never saw.

    Example: `rewardfree plan pendulum.npz --reward "-(theta**2 + 0.1*omega**2)" --horizon 200 --out plan.npz`
    """
    for line in journeys.plan_to(out, data, reward, planner, beta, horizon, discount, terminated):
        typer.echo(line)


@app.command()
def evaluate(
    plan: Annotated[Path, typer.Argument(help="What `plan` wrote.")],
    episodes: Annotated[int, typer.Option(help="How many to play.")] = 20,
    seed: Annotated[int, typer.Option(help="Of their first states.")] = 1,
    reward: Annotated[str | None, typer.Option(help="A formula to count; by default the plan's own.")] = None,
    env: Annotated[
        str | None, typer.Option(help="An environment; by default the one that was explored.")
    ] = None,
    gif: Annotated[Path | None, typer.Option(help="A film of one episode (pygame and pillow).")] = None,
) -> None:
    """Play a plan in its environment and count its reward.

    Example: `rewardfree evaluate plan.npz --episodes 20 --gif swingup.gif`
    """
    for line in journeys.evaluate(plan, env, reward, episodes, seed, gif):
        typer.echo(line)


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="Data or a plan.")],
    out: Annotated[Path | None, typer.Option(help="A picture, as .png, .pdf or .svg.")] = None,
) -> None:
    """Say what a file holds, what was covered, and whether exploration learned anything.

    Example: `rewardfree info pendulum.npz --out pendulum.png`
    """
    for line in journeys.info(file, out):
        typer.echo(line)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="The experiment, as TOML.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default out/NAME.")] = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    device: Annotated[
        str | None,
        typer.Option(help="Instead of the file's own: cuda runs its units there, as large batches."),
    ] = None,
    allow_imports: Annotated[
        bool, typer.Option("--allow-imports", help="Import what the file names as module:object.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsEvents = False,
) -> None:
    """Run an experiment of your own: worlds, models, strategies and planners in a TOML file.

    Results are stored as they come; Ctrl-C leaves them, and says the command that goes on.

    Examples: `rewardfree sweep experiment.toml --out results`,
    `rewardfree sweep experiment.toml --out results --cluster tcp://192.168.1.10:8786`
    """
    engine = Engine(jobs, cluster, console(quiet, as_json))
    plan = Sweep.load(file, allow_imports)
    if device is not None:
        plan = plan.on(device)
    check_devices(plan.units, jobs, cluster)  # before a folder is made
    folder = Path("out") / plan.name if out is None else out
    started = time.perf_counter()
    with (
        engine.looking_inside(plan.units, folder / PORTRAITS, allow_imports),
        Store(folder / RESULTS) as store,
    ):
        ran = engine.run_sweep(plan, store, allow_imports)
    if ran:
        took = f"{ran} units run in {time.perf_counter() - started:.0f} s"
        remember_making(folder, typed_command(), time=took)
    said = f"{ran} of {len(plan.units)} units run, the rest was there; results: {folder / RESULTS}"
    engine.console.say(said)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="The folder that a sweep wrote.")],
    csv: Annotated[
        bool, typer.Option("--csv", help="Text, to standard output or a file (the default).")
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet, to the file of --output.")] = False,
    output: Annotated[Path | None, typer.Option(help="A file instead of standard output.")] = None,
) -> None:
    """Write the stored results: a gap for every run, planner and checkpoint.

    Examples: `rewardfree export results --csv > gaps.csv`,
    `rewardfree export results --parquet --output gaps.parquet`
    """
    if csv and parquet:
        raise ValueError("--csv and --parquet are two forms: give one of them")
    if parquet and output is None:
        raise ValueError("--parquet needs --output FILE: it is no text for a terminal")
    with stored(folder) as store:
        if output is None:
            write_csv(store, sys.stdout)
            return
        with written_whole(output) as part:
            if parquet:
                write_parquet(store, part)
            else:
                with part.open("w", newline="") as file:
                    write_csv(store, file)


@app.command()
def figures(
    folder: Annotated[Path, typer.Argument(help="The folder that a sweep wrote.")],
    form: Annotated[
        list[str] | None, typer.Option("--form", help="png, pdf or svg; may be repeated.")
    ] = None,
) -> None:
    """Print the table of gaps and draw them against samples, episodes and steps, from stored results alone.

    The folder of a reproduction gets its own figures and table again, as PNG and PDF.

    Example: `rewardfree figures results --form png --form pdf`
    """
    check_forms(form or [])
    again = redraw(folder)
    if again is not None:
        for line in again:
            typer.echo(line)
        return
    with stored(folder) as store:
        found = lines(store.rows())
    drawing = Engine().draw(*gap_pictures(found, folder / "figures", form or ["png"]))
    for line in gap_table(found):
        typer.echo(line)
    typer.echo(f"\n{len(drawing())} pictures in {folder / 'figures'}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder that a sweep or a reproduction wrote.")],
    out: Annotated[Path | None, typer.Option(help="The page; by default report.html in the folder.")] = None,
) -> None:
    """Write one page that shows a folder of results: curves with switches, tables, claims, and maps of runs.

    It needs no network, and works from disk. A reproduction ends with it.

    Example: `rewardfree report out/reproduce/figure1`
    """
    page = page_of(folder, out)
    if page is None:
        page = write_report(folder, folder.resolve().name, "a sweep of your own", out=out)
    typer.echo(f"report: {page}")


def _coordinates(point: list[float]) -> dict[str, float]:
    return {f"z{axis + 1}": float(value) for axis, value in enumerate(point)}


def _cell(value: float | int, exact: bool) -> str:
    return str(value) if exact or isinstance(value, int) else f"{value:.4f}"
