"""The walks of docs/architecture.md against traced runs: no file is left out, and none is made up."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rewardfree as rf
from rewardfree.cli.app import app

PACKAGE = Path(rf.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
#: Where a run's data are defined: their constructors are generated, so no line of these files is traced.
ONLY_DATA = {"data/transitions.py", "data/experience.py"}
#: What `rewardfree reproduce` runs in other processes.
IN_WORKERS = {"experiments/curves.py"}
NEEDS_TORCH = {f"posterior/engine/{name}.py" for name in ("backend_torch", "linear_algebra_torch", "replay")}
REPRODUCE = "`rewardfree reproduce figure1`"


@pytest.fixture(scope="module")
def finite_world():
    return rf.rkhs_world(rf.Matern(1.5, 0.3), states=12, actions=4, horizon=3).world


@pytest.fixture(scope="module")
def pendulum():
    return rf.from_gymnasium("Pendulum-v1")


def walk(title):
    """The numbered files of a walk, the others that its text names, and those that a plan adds."""
    section = PAGE.split(f"**{title}**")[1].split("\n**")[0].split("\n## ")[0]
    section, _, then = section.partition("\nThen ")
    numbered = re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)
    others, added = (set(re.findall(r"`([\w/]+\.py)`", text)) for text in (section, then))
    return numbered, others - set(numbered), added


def counted(words):
    """How many files the page says there are."""
    (number,) = re.findall(rf"(\d+) {words}", PAGE.replace("\n", " "))
    return int(number)


def files_that_run(run):
    seen = set()

    def note(frame, event, _):
        if event == "call":
            seen.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    inside = [Path(name) for name in seen if name.startswith(str(PACKAGE))]
    return {path.relative_to(PACKAGE).as_posix() for path in inside}


def check(expected, run, untraced=frozenset(ONLY_DATA)):
    traced = files_that_run(run)
    assert traced - expected == set()
    assert expected - traced <= untraced


def finite_run(world):
    model = rf.Model(rf.Matern(1.5, 0.3), 0.5)
    return rf.explore(world, model, rf.Online(beta=0.1), samples_per_step=4)


def test_finite_run(finite_world):
    numbered, others, _ = walk("A finite run")
    assert len(numbered) <= 12 and len({*numbered, *others}) == counted("files in all for the finite run")
    check({*numbered, *others}, lambda: finite_run(finite_world))


def test_finite_run_with_a_plan(finite_world):
    reward = np.random.default_rng(0).random(finite_world.grid.shape)

    def run():
        return rf.gap(finite_world, rf.plan(finite_run(finite_world), reward, rf.Mean()), reward)

    run()  # what is imported on first use is not part of it
    numbered, others, added = walk("A finite run")
    assert len({*numbered, *others, *added}) == counted("with `rf.plan` and `rf.gap`")
    check({*numbered, *others, *added}, run, untraced=set())


def test_run_on_real_states(pendulum):
    numbered, others, _ = walk("A run on real states")
    assert len(numbered) <= 12 and len({*numbered, *others}) == counted("for the run on real states")
    check({*numbered, *others}, lambda: rf.explore(pendulum, transitions=60))


def test_run_on_real_states_with_a_plan(pendulum):
    def run():
        data = rf.explore(pendulum, transitions=60)
        rf.rollouts(pendulum, rf.plan(data, "-theta**2"), "-theta**2", 2)

    run()
    numbered, others, added = walk("A run on real states")
    assert len({*numbered, *others, *added}) == counted("with `rf.plan` and `rf.rollouts`")
    check({*numbered, *others, *added}, run, untraced=set())


def test_reproduce(tmp_path):
    for path in PACKAGE.rglob("*.py"):  # what is imported on first use is not part of it
        name = path.relative_to(PACKAGE)
        if name.as_posix() not in NEEDS_TORCH:
            importlib.import_module(".".join(["rewardfree", *name.with_suffix("").parts]))

    def run():
        words = "reproduce figure1 --quick --kernels matern15 --runs 2 --jobs 1 --out"
        outcome = CliRunner().invoke(app, [*words.split(), str(tmp_path)])
        assert outcome.exit_code == 0, outcome.output

    numbered, others, _ = walk(REPRODUCE)
    assert 15 < len(numbered) <= 20
    assert len({*numbered, *others}) == counted("for `rewardfree reproduce figure1`")
    check({*numbered, *others}, run, untraced=IN_WORKERS)
