"""`rewardfree reproduce` on the command line, also when it is interrupted."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rewardfree as rf
from reproduction_cases import COMMAND, KERNELS, SMALL, units_in
from rewardfree import cli
from rewardfree.experiments.store import Store
from rewardfree.report.gaps import gap_pictures
from rewardfree.report.pictures import DrawingPool
from rewardfree.studies.paper import study as paper
from rewardfree.studies.paper.specification import PaperSettings

PAGE = {"report.html", "maps.npz", "made.json"}


# --- the command ---


def commanded(capsys, *arguments):
    """The command in this process: its exit code, and what it printed."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["rewardfree", *map(str, arguments)])
        cli.main()
    said = capsys.readouterr()
    return ended.value.code or 0, said.out, said.err


def reproduce(capsys, *arguments):
    return commanded(capsys, "reproduce", *arguments)


def below(folder):
    """The files of a folder, by name."""
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def pictures(*names):
    return {f"{name}.{form}" for name in names for form in ("png", "pdf")}


def check_pictures(files):
    """Pictures that are what their names say."""
    marks = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-"}
    for path in files.values():
        if path.suffix in marks:
            assert path.read_bytes().startswith(marks[path.suffix]) and path.stat().st_size > 5000, path


FOLDER = "figure1-quick-matern15-runs2"


@pytest.fixture(scope="module")
def figure1(tmp_path_factory):
    """What the command wrote and printed."""
    out = tmp_path_factory.mktemp("reproduced")
    done = subprocess.run(
        [COMMAND, "reproduce", "figure1", *SMALL, "--runs", "2", "--out", out],
        capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "default"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return out, done.stdout


def test_figure_1_is_written(figure1):
    out, text = figure1
    gaps = [
        f"figures/gap_{measure}_by_{axis}_{planner}"
        for measure in ("start", "max") for axis in ("samples", "episodes", "steps")
        for planner in ("mean", "optimistic")
    ]  # fmt: skip
    files = below(out / FOLDER)
    wanted = {"results.sqlite", "results.sqlite.lock", "study.json", "table.txt", *PAGE}
    assert set(files) == wanted | pictures("figure1", "figure1_mean_planning", *gaps)
    check_pictures(files)
    settings = "preset published, draw 0, 20 states and actions, QUICK: too small to mean anything"
    assert f"figure1: 12 runs in 7 units, {settings}\n7 units run in " in text
    header, table = (out / FOLDER / "table.txt").read_text().split("\n\n", 1)
    assert header == settings and table in text
    assert [path.name for path in out.iterdir()] == [FOLDER]


def test_the_table_has_the_gaps_of_the_runs(figure1):
    kernel = KERNELS["matern15"]
    instance = rf.rkhs_world(kernel, states=20, actions=20)
    world, reward = instance.world, instance.reward
    curve = rf.experiments.learning_curves(
        world, rf.Model(kernel, 0.5), rf.Online(0.1), reward, {"own": rf.Optimistic(0.1)},
        samples_per_step=[4, 8, 16], seeds=[0, 1],
    )["own"]  # fmt: skip
    start, largest = (
        [float(mean) for mean in re.findall(r"([\d.]+) \+-", line)]
        for line in figure1[1].splitlines() if line.startswith("  online, optimistic ")
    )  # fmt: skip
    np.testing.assert_allclose(start, curve.start.mean(axis=0), rtol=0, atol=5.1e-4)
    np.testing.assert_allclose(largest, curve.max.mean(axis=0), rtol=0, atol=5.1e-4)


@pytest.mark.parametrize("command", ["reproduce", "figures"])
def test_a_second_run_draws_the_same_from_what_is_stored(figure1, capsys, monkeypatch, command):
    """One picture must do for those by planner, cost and measure: each takes its time."""
    out, folder = figure1[0], figure1[0] / FOLDER

    def run(capsys):
        if command == "figures":
            return commanded(capsys, "figures", folder)
        code, text, errors = reproduce(capsys, "figure1", *SMALL, "--runs", 2, "--out", out)
        assert "all of them are stored already" in text
        return code, text, errors

    def one(*of_sweep):
        return [each for each in gap_pictures(*of_sweep) if each.path.name == "gap_max_by_steps_mean"]

    monkeypatch.setattr(paper, "gap_pictures", one)
    again = pictures("figure1", "figure1_mean_planning", "figures/gap_max_by_steps_mean") | {"table.txt"}
    before = {name: (folder / name).read_bytes() for name in again}
    with Store(folder / "results.sqlite", create=False) as store:
        rows = list(store.rows())
    for name in again:
        (folder / name).unlink()
    code, _, errors = run(capsys)
    assert (code, errors) == (0, "")
    assert [name for name in again if (folder / name).read_bytes() != before[name]] == []
    with Store(folder / "results.sqlite", create=False) as store:
        assert list(store.rows()) == rows


def test_the_table_is_table_1_and_the_gaps_that_are_stored(figure1, capsys):
    out, printed = figure1
    code, text, errors = reproduce(capsys, "table", *SMALL, "--runs", 2, "--out", out)
    assert (code, errors) == (0, "") and "all of them are stored already" in text
    _, written = (out / FOLDER.replace("figure1", "table") / "table.txt").read_text().split("\n\n", 1)
    assert written.startswith("Table 1 of the paper: ") and "2.80 for nu = 2.5, 3.33 for nu = 1.5" in written
    gaps = [line for line in printed.splitlines() if line.startswith("  generative, mean ")]
    assert gaps[0] in written.splitlines() and gaps[1] not in written.splitlines()  # of the start alone
    assert "none of their N = 10, 20, 40, 80, 160 is among ours, so nothing can be said" in written
    assert set(written.splitlines()) <= set(text.splitlines())


def test_functions_are_drawn_without_a_run(tmp_path, capsys):
    code, text, errors = reproduce(capsys, "functions", *SMALL, "--out", tmp_path)
    assert (code, errors) == (0, "")
    files = below(tmp_path)
    assert set(files) == pictures("functions-quick-matern15/functions_matern15")
    check_pictures(files)
    assert all(str(path) in text for path in files.values())


def test_functions_have_the_papers_numbers(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(DrawingPool, "draw", lambda *_: list)
    _, text, _ = reproduce(capsys, "functions", "--quick", "--kernels", "matern15,se", "--out", tmp_path)
    assert re.findall(r"Figure (\d), ([^:]*):", text) == [("4", "Matérn 1.5"), ("2", "Squared exponential")]


def test_betas_are_run_and_drawn(tmp_path, capsys):
    code, text, errors = reproduce(capsys, "betas", *SMALL, "--runs", 1, "--out", tmp_path)
    assert (code, errors) == (0, "")
    files = below(tmp_path / "betas-quick-matern15-runs1")
    wanted = {"results.sqlite", "results.sqlite.lock", "study.json", "table.txt", *PAGE}
    assert set(files) == wanted | pictures("betas_matern15_start", "betas_matern15_max")
    check_pictures(files)
    table = files["table.txt"].read_text().split("\n\n", 1)[1]
    assert table in text and table.count("β = ") == 16
    with Store(files["results.sqlite"], create=False) as store:
        rows = [row for row in store.rows() if row[2:6] == ("online-10", 0, "optimistic-10", 16)]
    assert re.search(rf"\(Alg 3\) +β = 10 .* {rows[0][8]:.3f}\n", table) and len(rows) == 1


def test_repeats_are_run_and_drawn(tmp_path, capsys):
    arguments = ("--runs", 1, "--draws", 2, "--seed", 4, "--out", tmp_path)
    code, text, errors = reproduce(capsys, "repeats", *SMALL, *arguments)
    assert (code, errors) == (0, "")
    files = below(tmp_path / "repeats-quick-matern15-seed4-runs1-draws2")
    wanted = {"results.sqlite", "results.sqlite.lock", "study.json", "table.txt", *PAGE}
    drawn = pictures("repeats_mean_planning", "repeats_start", "repeats_max", "draws/draw_4", "draws/draw_5")
    assert set(files) == wanted | drawn
    check_pictures(files)
    assert files["draws/draw_4.png"].read_bytes() != files["draws/draw_5.png"].read_bytes()
    assert "nothing can be said" in text  # 4, 8 and 16 samples are none of the authors'
    table = files["table.txt"].read_text()
    assert (
        "nothing can be said" in table and "draw 4" in table and "draw 5" in table and "draw 6" not in table
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "figure7 --quick",
            "there is functions, figure1, betas, repeats, table, all, beyond, baselines, control, doubling, "
            "verdicts to reproduce, got 'figure7'",
        ),
        ("figure1 --quick --preset old", "preset must be one of published, literal, got 'old'"),
        ("figure1 --quick --kernels rbf", "kernels must be among se, matern25, matern15, got 'rbf'"),
        ("figure1 --quick --kernels se,se", "kernels must be different"),
        ("figure1 --quick --kernels ,", "kernels must be different and at least one"),
        ("figure1 --quick --runs 0", "runs must be a whole number of at least 1, got 0"),
        ("repeats --quick --draws 0", "draws must be a whole number of at least 1, got 0"),
        ("figure1 --quick --seed -1", "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_folder(arguments, said, tmp_path, capsys):
    code, text, errors = reproduce(capsys, *arguments.split(), "--out", tmp_path / "out")
    assert (code, text) == (2, "")
    assert errors.startswith("rewardfree: ") and said in errors and errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# --- interruption ---


LONG = """
runs = 1000
batch = 1
samples_per_step = [3]

[[worlds]]
type = "corridor_world"
states = 10
actions = 6

[[models]]
type = "Model"
kernel = {type = "Delta"}
ridge = 0.5

[[strategies]]
type = "Uniform"

[[planners]]
type = "Mean"
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_an_interrupted_sweep_says_what_is_stored_and_ends_its_workers(tmp_path, number, code):
    (tmp_path / "long.toml").write_text(LONG)
    out = tmp_path / "out"
    process = subprocess.Popen(
        [COMMAND, "sweep", tmp_path / "long.toml", "--out", out, "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while units_in(out / "results.sqlite") < 5 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    workers = children.read_text().split()
    assert len(workers) >= 2
    process.send_signal(number)
    printed, errors = process.communicate(timeout=60)
    assert (process.returncode, printed) == (code, ""), errors
    said = re.fullmatch(
        r"rewardfree: interrupted with (\d+) of (\d+) units stored in \S+results\.sqlite; to go on: (.*)\n",
        errors,
    )
    assert said, errors
    assert said[3] == f"rewardfree sweep {tmp_path / 'long.toml'} --out {out} --jobs 2"
    with Store(out / "results.sqlite", create=False) as store:
        assert 5 <= len(store.keys()) == int(said[1]) < int(said[2]) == 1001
        rows = list(store.rows())
    assert len(rows) in (
        int(said[1]),
        int(said[1]) + 1,
    )  # a gap for each run, and two where there are no data
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []


def test_results_of_the_defaults_have_the_plain_name():
    assert PaperSettings().variant == ""
    assert PaperSettings("literal", ("se",), seed=2, runs=3).variant == "-literal-se-seed2-runs3"


def test_a_damaged_note_of_what_was_reproduced_is_named(figure1, tmp_path, capsys):
    for text in ("{", "[]", '{"study": "figure9", "kernels": ["se"]}', '{"study": "betas", "x": 1}'):
        (tmp_path / "study.json").write_text(text)
        code, _, errors = commanded(capsys, "figures", tmp_path)
        assert code == 2 and "study.json is damaged" in errors
