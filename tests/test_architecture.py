"""The walks of docs/architecture.md against traced runs: no file is left out, and none is made up."""

import re
import sys
from pathlib import Path

import pytest

import rewardfree as rf

PACKAGE = Path(rf.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
#: Where a run's data are defined: their constructors are generated, so no line of these files is traced.
ONLY_DATA = {"data/transitions.py", "data/experience.py"}


@pytest.fixture(scope="module")
def finite_world():
    return rf.rkhs_world(rf.Matern(1.5, 0.3), states=12, actions=4, horizon=3).world


@pytest.fixture(scope="module")
def pendulum():
    return rf.from_gymnasium("Pendulum-v1")


def walk(title):
    """The numbered files of a walk, and the others that its text names up to the next paragraph."""
    section = PAGE.split(f"**{title}**")[1].split("\n**")[0].split("\nThen ")[0]
    numbered = re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)
    return numbered, set(re.findall(r"`([\w/]+\.py)`", section)) - set(numbered)


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


def check(title, run):
    numbered, others = walk(title)
    traced = files_that_run(run)
    assert len(numbered) <= 12
    assert traced - {*numbered, *others} == set()
    assert {*numbered, *others} - traced <= ONLY_DATA


def test_finite_run(finite_world):
    model = rf.Model(rf.Matern(1.5, 0.3), 0.5)
    check("A finite run", lambda: rf.explore(finite_world, model, rf.Online(beta=0.1), samples_per_step=4))


def test_run_on_real_states(pendulum):
    check("A run on real states", lambda: rf.explore(pendulum, transitions=60))


def test_walk_through_reproduce():
    numbered, _ = walk("`rewardfree reproduce figure1`")
    assert 15 < len(numbered) <= 20
    assert [name for name in numbered if not (PACKAGE / name).is_file()] == []
