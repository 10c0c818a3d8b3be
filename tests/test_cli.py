"""The command line: what it prints, what it writes, and how it refuses."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rewardfree as rf
from rewardfree.arrays import even_points
from rewardfree.cli.app import app
from rewardfree.studies.demo import MODELS, SHOWN, uncertainty_figure

COMMAND = Path(sys.executable).parent / "rewardfree"
COMMANDS = ["demo", "query-plan"]


def shown(*arguments):
    """What the command prints, without colours and with its spaces evened out."""
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


def evened(text):
    return " ".join(text.split())


def test_version():
    assert shown("--version") == f"rewardfree {rf.__version__}\n"


def test_installed_command_runs():
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rewardfree {rf.__version__}\n", "")


def test_help_lists_every_command():
    text = evened(shown("--help"))
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert names >= set(COMMANDS)
    assert [name for name in names if name not in text] == []


def test_every_command_shows_an_example():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    without = [
        name
        for name in names
        if not re.search(f"Examples?: rewardfree {name}", evened(shown(name, "--help")))
    ]
    assert without == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "figures",
            "Of a sweep, or of reproduce figure1, betas, repeats, beyond, baselines, control, "
            "doubling or verdicts.",
        ),
        ("report", "beyond, control, doubling and verdicts have no page: use figures."),
        ("reproduce", "for beyond, baselines, control, doubling and verdicts it is added to the run seeds."),
        ("plan", "Steps of an episode, by default the world's; inf: no end."),
        ("explore", "Stop after that time; a step that blocks is waited for."),
    ],
)
def test_help_says_what_is_meant(command, words):
    assert words in evened(shown(command, "--help").replace("│", " "))


def test_example_of_query_plan_runs(tmp_path):
    line = re.search(r"Example: (rewardfree .*?) ╭", evened(shown("query-plan", "--help")))[1]
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    subprocess.run(line, shell=True, check=True, cwd=tmp_path, env={**os.environ, "PATH": path})
    assert len((tmp_path / "plan.csv").read_text().splitlines()) == 161


def test_the_curves_of_the_demo_name_their_ridges():
    """The squared exponential's is smaller: without it the curves would look like a comparison of kernels."""
    points = even_points(5, 2)
    paths = {
        name: rf.strategies.uncertainty_path(model, points, rf.query_plan(model, points, 4), [4])
        for name, model in MODELS.items()
    }
    figure = uncertainty_figure(paths, SHOWN, points[:4], side=5)
    legends = [place.get_legend() for place in figure.subfigs[1].axes]
    texts = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    assert texts == ["Matern 1.5, ridge 0.5", "Matern 2.5, ridge 0.5", "Squared exponential, ridge 0.01"]


def test_demo_draws_the_same_pictures_twice(tmp_path):
    drawn = []
    for name in ["first", "second"]:
        text = shown("demo", "--quick", "--out", str(tmp_path / name))
        written = sorted((tmp_path / name).iterdir())
        assert [path.name for path in written] == ["plans.png", "uncertainty.png"]
        assert all(str(path) in text for path in written)
        drawn.append([path.read_bytes() for path in written])
    assert drawn[0] == drawn[1]
    for picture in drawn[0]:
        assert picture.startswith(b"\x89PNG\r\n\x1a\n") and len(picture) > 20_000


def test_demo_plans_better_than_without_data(tmp_path):
    """The table's columns: optimal, planned, myopic, random."""
    text = shown("demo", "--quick", "--out", str(tmp_path))
    rows = re.findall(r"^   (?:low|middle|high)\D*([\d. ]+)$", text, re.M)
    assert len(rows) == 3
    for optimal, planned, _, random in (map(float, row.split()) for row in rows):
        assert random < planned <= optimal


def test_demo_leaves_matplotlib_as_it_was(tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    shown("demo", "--quick", "--out", str(tmp_path))
    assert dict(mpl.rcParams) == before


def the_plan():
    """The plan that the tests below ask the command for, from the library."""
    axis = np.linspace(0.0, 1.0, 7)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    model = rf.Model(rf.SquaredExponential(0.3), ridge=0.05)
    plan = rf.query_plan(model, points, 12)
    return plan, points[plan], rf.strategies.uncertainty_path(model, points, plan).at_query


def asked(form):
    options = f"--kernel se --lengthscale 0.3 --ridge 0.05 --side 7 --dim 2 -n 12 --format {form}"
    return shown("query-plan", *options.split())


def records(form):
    if form == "json":
        return json.loads(asked(form))
    text = (
        asked(form)
        if form == "csv"
        else "\n".join(",".join(line.split()) for line in asked(form).splitlines())
    )
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(("form", "within"), [("json", 0.0), ("csv", 0.0), ("table", 5.1e-5)])
def test_query_plan_prints_the_librarys_plan(form, within):
    plan, points, sigma = the_plan()
    rows = records(form)
    assert list(rows[0]) == ["query", "index", "z1", "z2", "sigma"]
    assert [int(row["query"]) for row in rows] == list(range(1, 13))
    assert [int(row["index"]) for row in rows] == plan.tolist()
    printed = np.array([[float(row[name]) for name in ["z1", "z2", "sigma"]] for row in rows])
    np.testing.assert_allclose(printed, np.column_stack([points, sigma]), rtol=0, atol=within)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("matern", rf.Matern(2.5, 0.4)),
        ("se", rf.SquaredExponential(0.4)),
        ("ntk", rf.NeuralTangent(3)),
        ("linear", rf.Linear(0.4, bias=1.0)),
        ("delta", rf.kernels.Delta()),
    ],
)
def test_every_kernel_has_a_name(name, kernel):
    options = f"--kernel {name} --nu 2.5 --lengthscale 0.4 --depth 3 --dim 1 --side 9 -n 6 --format json"
    rows = json.loads(shown("query-plan", *options.split()))
    points = np.linspace(0.0, 1.0, 9).reshape(-1, 1)
    assert [row["index"] for row in rows] == rf.query_plan(rf.Model(kernel, ridge=0.5), points, 6).tolist()


def test_no_queries_is_an_empty_list():
    assert json.loads(shown("query-plan", "-n", "0", "--side", "3", "--format", "json")) == []
    assert shown("query-plan", "-n", "0", "--side", "3", "--format", "csv") == "query,index,z1,z2,sigma\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("query-plan --kernel cubic", "kernel must be one of"),
        ("query-plan --ridge -1", "ridge must be positive"),
        ("query-plan --ridge 0", "ridge must be positive"),
        ("query-plan --ridge nan", "ridge must be finite"),
        ("query-plan --lengthscale -0.1", "lengthscale must be positive"),
        ("query-plan --nu 0", "nu must be positive"),
        ("query-plan --kernel ntk --depth 0", "depth must be a whole number"),
        ("query-plan --side 0", "side must be a whole number"),
        ("query-plan --dim 0", "dim must be a whole number"),
        ("query-plan -n -1", "n must be a whole number"),
        ("query-plan --side 10 --dim 7", "a grid of 10^7 points is too large"),
        ("query-plan --side 10000000 --dim 1", "a grid of 10000000^1 points is too large"),
        ("demo --quick --out a_file", "a_file"),
        ("demo --quick --out a_file/below", "a_file"),
    ],
)
def test_bad_input_is_one_line(arguments, said, tmp_path):
    (tmp_path / "a_file").write_text("kept")
    done = subprocess.run([COMMAND, *arguments.split()], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("rewardfree: ") and said in done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("\n")
    assert "Traceback" not in done.stdout + done.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a_file", "kept")]


@pytest.mark.parametrize("arguments", ["", "nothing", "query-plan --ridge much", "query-plan --format xml"])
def test_mistyped_command_shows_usage(arguments):
    done = subprocess.run([COMMAND, *arguments.split()], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Usage: rewardfree" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


SMALL = ["--points", "100", "--samples", "20", "--horizon", "4", "--lengthscale", "0.3"]


@pytest.mark.parametrize("what", ["width", "gain", "spectrum", "complexity", "table1"])
def test_theory_as_a_table_as_json_and_as_a_picture(what, tmp_path):
    found = json.loads(shown("theory", what, "--json", *SMALL))
    assert {tuple(each) for each in found} == {
        ("name", "reading", "value", "assumptions", "vacuous", "sentence")
    }
    text = shown("theory", what, *SMALL, "--out", str(tmp_path))
    for each in found:
        assert each["name"] in text and each["reading"] in text and each["sentence"] in text
    assert sorted(path.name for path in tmp_path.iterdir()) == (
        [] if what == "table1" else [f"{what}.pdf", f"{what}.png"]
    )


def test_theorem_3_as_printed_has_no_number():
    found = json.loads(shown("theory", "complexity", "--json", *SMALL))
    (printed, *_) = [r for r in found if (r["name"], r["reading"]) == ("Theorem 3, N per step", "printed")]
    assert (printed["value"], printed["vacuous"], printed["sentence"]) == (None, True, "no N satisfies it")


def test_norms_and_coverage_are_measured(tmp_path):
    assert "||[PV]|| settles" in shown("theory", "norms", "--side", "8", "--lengthscale", "0.3")
    options = ["--side", "6", "--draws", "11", "--samples", "4", "--horizon", "3", "--lengthscale", "0.3"]
    text = shown("coverage", *options, "--world", "sharpened", "--out", str(tmp_path))
    assert "fitted on 10 draws for 90%, tested on 1 others" in text and "standard errors" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bounds_sharpened.pdf",
        "bounds_sharpened.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["theory", "luck"], "theory knows about width, gain, spectrum, complexity, table1 and norms"),
        (["theory", "norms", "--json"], "norms are printed as a table: --json and --out are for the other"),
        (["theory", "norms", "--dim", "3"], "norms are measured on a world of dim = 2, got 3"),
        (["coverage", "--horizon", "1"], "horizon must be at least 2"),
        (["coverage", "--delta", "0.05"], "delta must be at least 1/11 for 10 draws, got 0.05"),
        (["theory", "width", "--delta", "1"], "delta must lie strictly between 0 and 1, got 1.0"),
        (["theory", "width", "--epsilon", "0"], "epsilon must be positive"),
        (["theory", "gain", "--ridge", "-1"], "ridge must be positive"),
        (["coverage", "--draws", "10"], "draws must be more than the 10 that a width is fitted on, got 10"),
        (["coverage", "--world", "flat"], "world must be one of rkhs, sharpened, corridor, got 'flat'"),
    ],
)
def test_theory_refuses_in_one_line(arguments, said):
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1
